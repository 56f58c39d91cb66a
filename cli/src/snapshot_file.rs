//! A pool at one moment, as a file says it: what a scheduling decision looks at, in words that people can write.
//! `docs/scheduling.md` has the members.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use osprey_model::id::{JobId, MessageId, TierName};
use osprey_model::metadata::parse_duration;
use osprey_policy::Policy;
use osprey_policy::share::{Account, DAY_MS, Day, Held, midnight};
use osprey_scheduler::snapshot::{
    Array, Charge, Gate, Hold, Landing, Node, NodeState, Queued, Running, Shape, TeamUse, UNCOUNTED,
};
use osprey_scheduler::{Rules, Snapshot};
use serde::Deserialize;

use crate::error::{CliError, ErrorCode};
use crate::{input, plain};

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotFile {
    now: Timestamp,
    #[serde(default)]
    paused: bool,
    /// Tiers of which nothing starts.
    #[serde(default)]
    drained: Vec<TierName>,
    #[serde(default)]
    no_capacity_for: Option<String>,
    #[serde(default)]
    batch_chooses_nodes: bool,
    #[serde(default)]
    nodes: Vec<FileNode>,
    #[serde(default)]
    running: Vec<FileRunning>,
    #[serde(default)]
    teams: Vec<FileTeam>,
    queued: Vec<FileQueued>,
}

/// What a team has used and holds, in this pool and others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTeam {
    team: String,
    /// Of today.
    #[serde(default)]
    gpu_hours_day: f64,
    /// Of the six days before.
    #[serde(default)]
    gpu_hours_before: f64,
    #[serde(default)]
    gpus: BTreeMap<TierName, u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNode {
    gpus: u32,
    #[serde(default)]
    vcpus: Option<u32>,
    #[serde(default)]
    foreign_gpus: u32,
    #[serde(default)]
    closed: bool,
    #[serde(default)]
    starts_within: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRunning {
    job: String,
    #[serde(default)]
    gpus: u32,
    #[serde(default)]
    vcpus: u32,
    /// The number of its node; in flight without one.
    #[serde(default)]
    node: Option<u32>,
    #[serde(default)]
    ends_in: Option<String>,
    #[serde(default)]
    team: Option<String>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    reserve: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileQueued {
    job: String,
    priority: u32,
    tier: TierName,
    #[serde(default)]
    gpus: u32,
    #[serde(default)]
    vcpus: u32,
    #[serde(default)]
    nodes: Option<u32>,
    #[serde(default)]
    children: Option<u32>,
    #[serde(default)]
    expected: Option<String>,
    #[serde(default)]
    waited: Option<String>,
    #[serde(default)]
    backs_off_for: Option<String>,
    #[serde(default)]
    team: Option<String>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    reserve: Option<String>,
}

/// A pool as a file says it.
pub struct Scene {
    /// What is decided on.
    pub snapshot: Snapshot,
    /// When, milliseconds since 1970.
    pub now_ms: i64,
    queued: Vec<FileQueued>,
    /// What running and waiting jobs are called.
    names: BTreeMap<JobId, String>,
}

/// A waiting job of a file.
pub struct Named<'a> {
    /// Its id: the name itself where that is one, else made of the name.
    pub id: JobId,
    /// Its name.
    pub name: &'a str,
    /// Its number.
    pub priority: u32,
    /// Its tier.
    pub tier: &'a TierName,
}

impl Scene {
    /// Reads a file; `-` is standard input.
    ///
    /// # Errors
    /// One sentence about the first mistake.
    pub fn read(path: &Path, policy: &Policy, rules: &Rules) -> Result<Self, CliError> {
        let text = input::read_text(path)?;
        Self::parse(&text, policy, rules).map_err(|mistake| {
            let message = format!("snapshot `{}`: {mistake}", path.display());
            CliError::new(ErrorCode::InvalidInput, message).help("docs/scheduling.md says what a snapshot is made of")
        })
    }

    fn parse(text: &str, policy: &Policy, rules: &Rules) -> Result<Self, String> {
        let file: SnapshotFile = serde_json::from_str(text).map_err(|fault| plain::fault(&fault))?;
        let now_ms = file.now.as_millisecond();
        let nodes = file.nodes.iter().map(|node| node.read()).collect::<Result<_, _>>()?;
        let known = Known { teams: &file.teams, rules };
        let running = file.running.iter().map(|running| running.read(now_ms, &known)).collect::<Result<_, _>>()?;
        let queued = file.queued.iter().map(|queued| queued.read(now_ms, &known)).collect::<Result<_, _>>()?;
        let teams = file.teams.iter().map(|team| team.read(policy, now_ms)).collect();
        let gate = match (file.paused, &file.no_capacity_for) {
            (true, _) => Gate::Paused,
            (false, Some(since)) => Gate::NoCapacity { since_ms: now_ms.saturating_sub(ms(since)?) },
            (false, None) => Gate::Open,
        };
        let drained = file.drained.iter().map(|tier| known.tier(tier)).collect::<Result<_, _>>()?;
        let names = file.running.iter().map(|running| &running.job).chain(file.queued.iter().map(|queued| &queued.job));
        let names = names.map(|name| (id(name), name.clone())).collect();
        let landing = if file.batch_chooses_nodes { Landing::Anywhere } else { Landing::AsPlanned };
        Ok(Self {
            snapshot: Snapshot { nodes, running, queued, gate, drained, landing, teams, ..Snapshot::default() },
            now_ms,
            queued: file.queued,
            names,
        })
    }

    /// The waiting job of a name.
    pub fn find(&self, name: &str) -> Option<Named<'_>> {
        let queued = self.queued.iter().find(|queued| queued.job == name)?;
        Some(Named { id: id(name), name: &queued.job, priority: queued.priority, tier: &queued.tier })
    }

    /// What a job is called.
    pub fn name(&self, job: JobId) -> String {
        self.names.get(&job).cloned().unwrap_or_else(|| job.to_string())
    }

    /// The names of the jobs that wait.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.queued.iter().map(|queued| queued.job.as_str())
    }
}

/// The id of a job that a file names.
fn id(name: &str) -> JobId {
    JobId::parse(name).unwrap_or_else(|| JobId::of_message(&MessageId::new(name)))
}

/// A duration in milliseconds.
fn ms(text: &str) -> Result<i64, String> {
    let seconds = parse_duration(text).map_err(|fault| format!("`{text}` is no duration: {fault}"))?;
    Ok(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000))
}

fn maybe_ms(text: Option<&String>) -> Result<Option<i64>, String> {
    text.map(|text| ms(text)).transpose()
}

/// What jobs of a file may name.
struct Known<'a> {
    teams: &'a [FileTeam],
    rules: &'a Rules,
}

impl Known<'_> {
    /// The place of a tier of the policy.
    fn tier(&self, name: &TierName) -> Result<u16, String> {
        let names: Vec<&str> = self.rules.tiers.iter().map(|tier| tier.name.as_str()).collect();
        let known = names.contains(&name.as_str());
        if known {
            Ok(self.rules.tier(name))
        } else {
            Err(format!("`{name}` is no tier: there are {}", names.join(", ")))
        }
    }

    /// Whose use a job counts as, by its team, user and reserve.
    fn charge(&self, [team, user, reserve]: [&Option<String>; 3]) -> Result<Charge, String> {
        let place = |kind: &str, name: &Option<String>, known: Vec<&str>| {
            let Some(name) = name else { return Ok(None) };
            let at = known.iter().position(|known| known == name).and_then(|at| u16::try_from(at).ok());
            at.map(Some).ok_or_else(|| format!("`{name}` is no {kind}: there are {}", known.join(", ")))
        };
        let teams = self.teams.iter().map(|team| team.team.as_str()).collect();
        let reserves = self.rules.quota.reserves.iter().map(|reserve| reserve.name.as_str()).collect();
        let user =
            user.as_ref().map(|user| user.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(byte)));
        Ok(Charge {
            team: place("team of the file", team, teams)?,
            reserve: place("reserve of the policy", reserve, reserves)?,
            user,
        })
    }
}

impl FileTeam {
    fn read(&self, policy: &Policy, now_ms: i64) -> TeamUse {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "beyond its range it stays at its end"
        )]
        let gpu_ms = |hours: f64| (hours * 3_600_000.0).round() as u64;
        let today = midnight(now_ms);
        let day = |starts_ms, hours| Day { starts_ms, gpu_ms: gpu_ms(hours), ..Day::default() };
        let days = vec![day(today, self.gpu_hours_day), day(today - DAY_MS, self.gpu_hours_before)];
        let held = |(tier, gpus): (&TierName, &u32)| Held {
            tier: tier.clone(),
            gpus: *gpus,
            started_ms: Some(now_ms),
            expected_ms: Some(0),
            is_borrowed: false,
        };
        Account { days, holds: self.gpus.iter().map(held).collect() }.team_use(&self.team, policy, now_ms)
    }
}

impl FileNode {
    fn read(&self) -> Result<Node, String> {
        let state = match (self.closed, maybe_ms(self.starts_within.as_ref())?) {
            (true, _) => NodeState::Closed,
            (false, Some(start_up)) => NodeState::Absent { start_up_ms: start_up.unsigned_abs() },
            (false, None) => NodeState::Up,
        };
        let foreign_gpus = self.foreign_gpus;
        Ok(Node { vcpus: self.vcpus.unwrap_or(UNCOUNTED), foreign_gpus, state, ..Node::new(self.gpus) })
    }
}

impl FileRunning {
    fn read(&self, now_ms: i64, known: &Known<'_>) -> Result<Running, String> {
        let shape = Shape { nodes: 1, gpus: self.gpus, vcpus: self.vcpus };
        let ends_in = maybe_ms(self.ends_in.as_ref())?;
        Ok(Running {
            holds: self.node.map(|node| Hold { node, gpus: self.gpus, vcpus: self.vcpus }).into_iter().collect(),
            has_landed: self.node.is_some(),
            started_ms: now_ms,
            expected_end_ms: ends_in.map(|ends_in| now_ms.saturating_add(ends_in)),
            charge: known.charge([&self.team, &self.user, &self.reserve])?,
            ..Running::new(id(&self.job), shape)
        })
    }
}

impl FileQueued {
    fn read(&self, now_ms: i64, known: &Known<'_>) -> Result<Queued, String> {
        let shape = Shape { nodes: self.nodes.unwrap_or(1), gpus: self.gpus, vcpus: self.vcpus };
        Ok(Queued {
            priority: self.priority,
            tier: known.rules.tier(&self.tier),
            enqueued_ms: now_ms.saturating_sub(maybe_ms(self.waited.as_ref())?.unwrap_or(0)),
            not_before_ms: maybe_ms(self.backs_off_for.as_ref())?.map_or(0, |later| now_ms.saturating_add(later)),
            array: self.children.map(|waiting| Array { waiting, singly: false }),
            expected_ms: maybe_ms(self.expected.as_ref())?.map(i64::unsigned_abs),
            charge: known.charge([&self.team, &self.user, &self.reserve])?,
            ..Queued::new(id(&self.job), shape)
        })
    }
}

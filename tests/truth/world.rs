//! Simulated clusters, one a seed, and moments of them: nodes, policy, strategy, load and what is believed of run times are
//! drawn, the simulator runs it, and some of the passes in which somebody waits are kept.

use std::cell::RefCell;

use osprey_model::id::PoolName;
use osprey_policy::Policy;
use osprey_scheduler::{Rules, Snapshot, Strategy};
use osprey_sim::cluster::{Cluster, Placement};
use osprey_sim::decided::{Onlooker, Production, Sight};
use osprey_sim::estimates::Estimates;
use osprey_sim::intake::{Intake, Numbers, Taken};
use osprey_sim::kernel::random::{Random, fork};
use osprey_sim::replay::{self, Setting};
use osprey_sim::synthetic::{PROFILES, Synthetic};
use osprey_sim::teams::Teams;
use osprey_sim::trace::{Entry, csv};
use osprey_sim::workload::Workload;

use crate::draw::{between, one_of, place};

/// Moments that are kept of a world.
const MOMENTS: usize = 4;
/// The policies by name: those of the product, and two whose limits come to bear.
const POLICIES: [(&str, &str); 7] = [
    ("default", include_str!("../../shared/policy/policies/default.toml")),
    ("four-tiers-sla", include_str!("../../shared/policy/policies/four-tiers-sla.toml")),
    ("interactive-first", include_str!("../../shared/policy/policies/interactive-first.toml")),
    ("strict-metadata", include_str!("../../shared/policy/policies/strict-metadata.toml")),
    ("strict-order", include_str!("../../shared/policy/policies/strict-order.toml")),
    ("limits", include_str!("policies/limits.toml")),
    ("shares", include_str!("policies/shares.toml")),
];
/// Real jobs.
const TRACES: [&str; 2] =
    [include_str!("../simulator/traces/itp_c06_meta.csv"), include_str!("../simulator/traces/itp_c10_meta.csv")];
const ESTIMATES: [Estimates; 6] =
    [Estimates::Exact, Estimates::Exact, Estimates::Noise, Estimates::Classes, Estimates::Learned, Estimates::Nothing];
/// Those of production more often than the others.
const STRATEGIES: [Strategy; 8] = [
    Strategy::Backfill,
    Strategy::Backfill,
    Strategy::Backfill,
    Strategy::Osprey,
    Strategy::Osprey,
    Strategy::Fifo,
    Strategy::Priority,
    Strategy::Sjf,
];

/// A pool at a moment, with the rules by which it is decided about.
#[derive(Clone, Debug)]
pub struct Moment {
    /// What the simulation is of, for people.
    pub world: String,
    /// The pool.
    pub snapshot: Snapshot,
    /// The rules.
    pub rules: Rules,
    /// When, milliseconds since the first submission.
    pub now_ms: i64,
    /// GPUs of a node, where a job may only ask for a part of a node without a rest or for whole nodes.
    pub gpus_per_node: Option<u32>,
}

/// Moments of the cluster of a seed.
///
/// # Errors
/// When a policy or a trace of the suite can't be read.
pub fn moments(seed: u64) -> Result<Vec<Moment>, String> {
    let mut random = fork(seed, "world");
    let (name, text) = one_of(&mut random, &POLICIES).copied().ok_or("there are policies")?;
    let policy = Policy::load(text).map_err(|errors| format!("policy `{name}`: {errors:?}"))?.policy;
    let gpus_per_node = if random.chance(0.25) { 4 } else { 8 };
    let nodes = between(&mut random, 1, if random_small(seed) { 6 } else { 32 });
    let cluster = Cluster { nodes, gpus_per_node, placement: Placement::Node };
    let strategy = one_of(&mut random, &STRATEGIES).copied().unwrap_or_default();
    let estimates = one_of(&mut random, &ESTIMATES).copied().unwrap_or_default();
    let workload = workload(seed, &policy, cluster, &mut random)?;
    let rules = Rules { strategy, ..Rules::of(&policy, &PoolName::from("")) };
    let believed = estimates.of(&workload, policy.estimates(), seed);
    let production = Production { rules: vec![rules], believed, teams: Teams::of(&policy, &workload.teams) };
    let world = format!("{nodes} nodes of {gpus_per_node} GPUs, {name}, {}, {estimates:?}", strategy.name());
    let seen =
        Seen { world, gpus_per_node, kept: RefCell::default(), random: RefCell::new(random), count: RefCell::new(0) };
    let see = |sight: &Sight<'_>| seen.take(sight);
    let setting = Setting { onlooker: Some(Onlooker(&see)), ..Setting::of(&cluster) };
    drop(replay::run_decided(&workload, production, &setting));
    Ok(seen.kept.into_inner())
}

/// Small clusters are half of all: there single jobs matter more.
fn random_small(seed: u64) -> bool {
    fork(seed, "small").chance(0.5)
}

/// Whoever keeps moments: any one of all that were seen, each as likely as every other.
struct Seen {
    world: String,
    gpus_per_node: u32,
    kept: RefCell<Vec<Moment>>,
    random: RefCell<Random>,
    count: RefCell<u64>,
}

impl Seen {
    fn take(&self, sight: &Sight<'_>) {
        if sight.plan.waiting.is_empty() {
            return;
        }
        let mut count = self.count.borrow_mut();
        *count += 1;
        let mut kept = self.kept.borrow_mut();
        let at = usize::try_from(self.random.borrow_mut().below(*count)).unwrap_or(usize::MAX);
        if kept.len() < MOMENTS {
            kept.push(self.moment(sight));
        } else if let Some(old) = kept.get_mut(at) {
            *old = self.moment(sight);
        }
    }

    fn moment(&self, sight: &Sight<'_>) -> Moment {
        Moment {
            world: self.world.clone(),
            snapshot: sight.snapshot.clone(),
            rules: sight.rules.clone(),
            now_ms: sight.now_ms,
            gpus_per_node: (sight.snapshot.nodes.len() > 1).then_some(self.gpus_per_node),
        }
    }
}

/// Jobs that make a line: more than the cluster can do.
fn workload(seed: u64, policy: &Policy, cluster: Cluster, random: &mut Random) -> Result<Workload, String> {
    let mut entries = if random.chance(0.3) { traced(cluster, random)? } else { made(seed, cluster, random) };
    let mut people = fork(seed, "people of the suite");
    entries.iter_mut().for_each(|entry| tell_more(entry, &mut people));
    let Taken { workload, .. } = Intake { policy, cluster, scenario: None, numbers: Numbers::Policy }.take(entries);
    Ok(workload)
}

fn made(seed: u64, cluster: Cluster, random: &mut Random) -> Vec<Entry> {
    let profile = one_of(random, &PROFILES).copied().unwrap_or(PROFILES[0]);
    let jobs = between(random, 60, 200);
    let load = 1.0 + 2.0 * random.unit();
    Synthetic { profile, jobs, gpus: cluster.gpus(), largest: cluster.gpus(), load, seed }.entries()
}

/// A part of a trace, squeezed until it is more than the cluster can do.
fn traced(cluster: Cluster, random: &mut Random) -> Result<Vec<Entry>, String> {
    let text = one_of(random, &TRACES).copied().unwrap_or_default();
    let trace = csv::read(text, None).map_err(|bad| bad.message)?;
    let count = usize::try_from(between(random, 60, 200)).unwrap_or(60);
    let from = place(random, trace.entries.len().saturating_sub(count).max(1));
    let mut entries: Vec<Entry> = trace.entries.into_iter().skip(from).take(count).collect();
    entries.retain(|entry| cluster.could_hold(entry.gpus));
    let first_ms = entries.iter().map(|entry| entry.submit_ms).min().unwrap_or(0);
    let last_ms = entries.iter().map(|entry| entry.submit_ms).max().unwrap_or(0);
    let work: u64 = entries.iter().map(|entry| entry.duration_ms.saturating_mul(entry.gpus.into())).sum();
    let takes_ms = work / u64::from(cluster.gpus().max(1));
    let squeeze = (last_ms - first_ms).saturating_mul(2).checked_div(takes_ms.max(1)).unwrap_or(1).max(1);
    entries.iter_mut().for_each(|entry| entry.submit_ms = (entry.submit_ms - first_ms) / squeeze);
    Ok(entries)
}

/// What the policies look at and no trace says: who sits in front of a screen, deadlines, projects.
fn tell_more(entry: &mut Entry, people: &mut Random) {
    if entry.gpus <= 4 && people.chance(0.15) {
        entry.metadata.workload = Some("interactive".to_owned());
        entry.metadata.max_duration = Some(1_800);
    }
    if people.chance(0.3) {
        entry.metadata.project = Some("atlas".to_owned());
    }
}

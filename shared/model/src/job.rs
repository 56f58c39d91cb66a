//! The job record: one logical job across its attempts.
//!
//! The state item stays under 1 KB, because every update pays for the item's size. What is long and never changes
//! (the body) is another item.

use serde::{Deserialize, Serialize};

use crate::end::EndClass;
use crate::id::{BatchJobId, JobId, MessageId, PolicyRevision, PoolName, QueueName, TierName};
use crate::reason::ReasonCode;

/// Most bytes of a state item.
pub const STATE_BYTES_MAX: usize = 1024;
/// Most characters of a reason kept in the state item; the whole text is in the attempt.
pub const STATE_REASON_CHARS_MAX: usize = 160;

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Kept out of the queue by a person.
    Held,
    /// Waits for the jobs it depends on.
    Waiting,
    /// May be submitted once `not_before` has come.
    Queued,
    /// An attempt is being submitted; whether Batch has it isn't known yet.
    Claimed,
    /// Batch has it.
    Submitted,
    /// It runs.
    Running,
    /// It ended well.
    Succeeded,
    /// It was stopped, or what it depends on can't succeed.
    Failed,
    /// It was turned away at the door.
    Refused,
    /// It can't be handled without a person.
    Dead,
}

impl JobState {
    /// Every state.
    pub const ALL: [Self; 10] = [
        Self::Held,
        Self::Waiting,
        Self::Queued,
        Self::Claimed,
        Self::Submitted,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Refused,
        Self::Dead,
    ];

    /// Whether the job has ended. A person may still requeue one that failed or is dead.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Refused | Self::Dead)
    }

    /// Whether Batch has, or may have, a job for it.
    #[must_use]
    pub fn is_dispatched(self) -> bool {
        matches!(self, Self::Claimed | Self::Submitted | Self::Running)
    }

    /// Whether the record may go from this state to `next` in one write.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        use JobState::{Claimed, Dead, Failed, Held, Queued, Refused, Running, Submitted, Succeeded, Waiting};
        match self {
            Held => matches!(next, Queued | Waiting | Failed | Refused),
            Waiting => matches!(next, Queued | Held | Failed | Refused),
            // A late event of an attempt that was given up as never made brings the job straight into Batch's hands.
            Queued => {
                matches!(next, Queued | Claimed | Held | Failed | Dead | Submitted | Running | Succeeded)
            }
            Claimed => matches!(next, Claimed | Queued | Submitted | Running | Succeeded | Failed | Dead | Held),
            Submitted => {
                matches!(next, Submitted | Running | Queued | Held | Succeeded | Failed | Dead)
            }
            Running => matches!(next, Running | Queued | Held | Succeeded | Failed | Dead),
            Failed | Dead => matches!(next, Queued | Waiting),
            Succeeded | Refused => false,
        }
    }

    /// The word in records and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Waiting => "waiting",
            Self::Queued => "queued",
            Self::Claimed => "claimed",
            Self::Submitted => "submitted",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Dead => "dead",
        }
    }
}

/// The state item of a job. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The stable id.
    pub id: JobId,
    /// The message it came with.
    pub message: MessageId,
    /// First sixteen hexadecimal digits of the SHA-256 of the body.
    pub payload: String,
    /// `jobName`, cut to what fits.
    pub name: String,
    /// Where it is.
    pub state: JobState,
    /// Number of the newest attempt; 0 before the first.
    pub attempt: u32,
    /// The tier derived.
    pub tier: TierName,
    /// The priority derived, 0 to 9999.
    pub priority: u32,
    /// The pool it goes to.
    pub pool: PoolName,
    /// Policy revision of the newest decision.
    pub policy: PolicyRevision,
    /// Team, for usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// GPUs that it holds while it runs: those of one child × children for an array.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gpus: u32,
    /// What else it needs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub needs: Needs,
    /// Whose use it counts as.
    #[serde(default, skip_serializing_if = "is_default")]
    pub charge: Charge,
    /// Whether a scheduling cycle of its pool starts it. It then stands in the pool's line while it is queued, and
    /// holds capacity of the pool from its claim to its end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scheduled: bool,
    /// Whether its wait has brought it to the front of its tier in its pool's line.
    #[serde(default, skip_serializing_if = "is_default")]
    pub aged: bool,
    /// When it was recorded.
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: i64,
    /// Not to be submitted before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub not_before: i64,
    /// What happened to it so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub counts: Counts,
    /// Budgets spent since it was submitted, or since a person requeued it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budget: Budget,
    /// The claim of the attempt being submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The attempt that Batch has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// Set while a person's wish to stop it is being carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Set while its run is being evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evict: Option<Evict>,
    /// The newest checkpoint that it reported, in whichever attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<Saved>,
    /// Work of attempts that ended that its checkpoints keep, in milliseconds of its run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kept_ms: u64,
    /// What a step before it in its graph reported last, for it and for what comes after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// When a person moved it to the front of its tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topped: Option<i64>,
    /// Memory grown after an attempt that ran out of it, MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// Whether its next attempt stays off Spot.
    #[serde(default, skip_serializing_if = "is_default")]
    pub avoid_spot: bool,
    /// Pools that couldn't get capacity when it was moved on: its next attempt goes elsewhere if it can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoid_pools: Vec<PoolName>,
    /// Ancestors by `parent-job-id`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub depth: u32,
    /// Whether it has dependencies.
    #[serde(default, skip_serializing_if = "is_default")]
    pub depends: bool,
    /// Whether its number is the fallback.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fallback: bool,
    /// Class of the newest attempt's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<EndClass>,
    /// Why it ended, for a job that did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// What a step of a graph of jobs reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// Points above, or below 0, what is derived.
    pub points: i32,
    /// When the report was sent, milliseconds since 1970: the newest stands.
    pub at: i64,
}

/// Whose use a job counts as; nothing where its policy has no quotas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Charge {
    /// Whether what it holds is counted for its team, from its claim to its end.
    #[serde(skip_serializing_if = "is_default")]
    pub counted: bool,
    /// Whether it goes on beyond its team's quota while nobody within his own wants the GPUs.
    #[serde(skip_serializing_if = "is_default")]
    pub borrowed: bool,
    /// The reserve of its policy that it may take from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<String>,
    /// Its user, where the reserve limits users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// What a scheduling cycle has to know of a job beside its GPUs. 0 is what isn't known, or doesn't matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Needs {
    /// vCPUs that it takes while it runs: those of one child × children for an array.
    #[serde(skip_serializing_if = "is_default")]
    pub vcpus: u32,
    /// Nodes of a multi-node job.
    #[serde(skip_serializing_if = "is_default")]
    pub nodes: u32,
    /// Children of an array.
    #[serde(skip_serializing_if = "is_default")]
    pub children: u32,
    /// How long an attempt is expected to run, in seconds.
    #[serde(skip_serializing_if = "is_default")]
    pub expected_seconds: u64,
    /// How that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_by: Option<EstimateSource>,
    /// The longest that an attempt may run, in seconds.
    #[serde(skip_serializing_if = "is_default")]
    pub longest_seconds: u64,
    /// How often it says that it saves, in seconds of its run; `None` where it doesn't say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saves_every_seconds: Option<u64>,
}

/// How the expected run of a job is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimateSource {
    /// The job says so.
    Declared,
    /// Runs of the jobs that it comes from.
    Predecessors,
    /// Runs of its definition by its team.
    DefinitionOfTeam,
    /// Runs of its definition.
    Definition,
    /// Runs of its team.
    Team,
}

impl EstimateSource {
    /// Every source, the most like the job first.
    pub const ALL: [Self; 5] =
        [Self::Declared, Self::Predecessors, Self::DefinitionOfTeam, Self::Definition, Self::Team];

    /// The word in records and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::Predecessors => "predecessors",
            Self::DefinitionOfTeam => "definition-of-team",
            Self::Definition => "definition",
            Self::Team => "team",
        }
    }
}

/// Lineage counters: each attempt is counted once, in the write that closes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Attempts that count as failures.
    #[serde(skip_serializing_if = "is_default")]
    pub failures: u32,
    /// Attempts stopped for more urgent work.
    #[serde(skip_serializing_if = "is_default")]
    pub preemptions: u32,
    /// Attempts that lost their host.
    #[serde(skip_serializing_if = "is_default")]
    pub host_losses: u32,
    /// Times it went back into the queue.
    #[serde(skip_serializing_if = "is_default")]
    pub requeues: u32,
    /// Second Batch jobs for one attempt that were stopped.
    #[serde(skip_serializing_if = "is_default")]
    pub duplicate_runs: u32,
    /// GPU-milliseconds lost to failures.
    #[serde(skip_serializing_if = "is_default")]
    pub wasted_gpu_ms: u64,
}

impl Counts {
    /// GPU-seconds lost to failures, as people read them.
    #[must_use]
    pub fn wasted_gpu_seconds(&self) -> u64 {
        whole_seconds(self.wasted_gpu_ms)
    }
}

/// Milliseconds as seconds, rounded half up. Sums are made of milliseconds and rounded last, or many short attempts
/// would count for nothing.
fn whole_seconds(ms: u64) -> u64 {
    ms / 1000 + u64::from(ms % 1000 >= 500)
}

/// Budgets spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Failures.
    #[serde(skip_serializing_if = "is_default")]
    pub failures: u32,
    /// Interruptions.
    #[serde(skip_serializing_if = "is_default")]
    pub interruptions: u32,
}

/// An attempt on its way to Batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// When it was claimed.
    pub at: i64,
    /// The queue it is sent to.
    pub queue: QueueName,
    /// Lists after the window that did not show it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub empty_lists: u32,
}

/// An attempt that Batch has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Batch's id.
    pub id: BatchJobId,
    /// The queue it was sent to.
    pub queue: QueueName,
    /// When Batch had it, as far as we know.
    pub submitted_at: i64,
    /// When it was claimed; `None` for one that turned up after its claim had been given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<i64>,
    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    /// The node that it runs on, the last part of its container instance's ARN; `None` where that isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// A wish to stop the attempt, and what comes then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// What comes then.
    pub then: AfterStop,
    /// The person's reason, cut to what fits.
    pub reason: String,
}

/// What comes after a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterStop {
    /// The job has failed.
    Fail,
    /// It is held.
    Hold,
    /// It goes back into the queue.
    Requeue,
}

/// An eviction that is being carried out. Its receipt is the job's row `EVICTION#nnnn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evict {
    /// When it was recorded: Batch is asked after that.
    pub at: i64,
    /// The job that starts in its place; `None` when a person asked for it.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub goes_for: Option<JobId>,
}

/// A checkpoint that a job reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// When the report was sent.
    pub at: i64,
    /// How much of its work the job had done by then, in percent, where it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u32>,
}

/// Why a job ended without success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Code.
    pub code: ReasonCode,
    /// Sentence, cut to what fits.
    pub message: String,
}

impl End {
    /// Cuts the sentence to what the state item may hold.
    #[must_use]
    pub fn new(code: ReasonCode, message: &str) -> Self {
        Self { code, message: cut(message, STATE_REASON_CHARS_MAX) }
    }
}

/// An attempt that ended; its own item, written in the transaction that closes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Number, from 1.
    pub number: u32,
    /// Batch's id.
    pub batch_job_id: BatchJobId,
    /// The queue it was sent to.
    pub queue: QueueName,
    /// When Batch had it, milliseconds since 1970.
    pub submitted_at: i64,
    /// When it started; `None` for one that never did.
    pub started_at: Option<i64>,
    /// When it ended.
    pub stopped_at: i64,
    /// How it ended.
    pub end_class: EndClass,
    /// Batch's words.
    pub reason: String,
    /// Exit code, where there was one.
    pub exit_code: Option<i64>,
    /// Attempts that Batch made inside this one, beyond the first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inner_retries: u32,
    /// GPU-milliseconds it held: GPUs × milliseconds.
    pub gpu_ms: u64,
    /// What came after.
    pub then: String,
}

impl Attempt {
    /// GPU-seconds it held, as people read them.
    #[must_use]
    pub fn gpu_seconds(&self) -> u64 {
        whole_seconds(self.gpu_ms)
    }
}

/// A broken invariant, found right before a write or right after a read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {job} breaks a rule: {rule}")]
pub struct Broken {
    /// The job.
    pub job: JobId,
    /// The rule.
    pub rule: &'static str,
}

impl Job {
    /// A queued job of which nothing is known but its message, recorded at a time, milliseconds since 1970.
    #[must_use]
    pub fn new(id: JobId, message: MessageId, now: i64) -> Self {
        Self {
            id,
            message,
            payload: String::new(),
            name: String::new(),
            state: JobState::Queued,
            attempt: 0,
            tier: TierName::default(),
            priority: 0,
            pool: PoolName::default(),
            policy: PolicyRevision::default(),
            team: None,
            gpus: 0,
            needs: Needs::default(),
            charge: Charge::default(),
            scheduled: false,
            aged: false,
            created_at: now,
            updated_at: now,
            not_before: 0,
            counts: Counts::default(),
            budget: Budget::default(),
            claim: None,
            run: None,
            stop: None,
            evict: None,
            saved: None,
            kept_ms: 0,
            reported: None,
            topped: None,
            memory_mib: None,
            avoid_spot: false,
            avoid_pools: Vec::new(),
            depth: 0,
            depends: false,
            fallback: false,
            last_end: None,
            end: None,
        }
    }

    /// Work that its checkpoints keep when a run ends at a time, in milliseconds of all its runs: up to the checkpoint that
    /// it reported within the run, else up to the last that it should have made by the interval that it declares.
    #[must_use]
    pub fn kept_ms_at(&self, started_at: i64, ended_at: i64) -> u64 {
        let since_start = |at: i64| u64::try_from(at.saturating_sub(started_at)).unwrap_or(0);
        let ran_ms = since_start(ended_at);
        let reported = self.saved.filter(|saved| saved.at >= started_at).map(|saved| since_start(saved.at).min(ran_ms));
        let every_ms = self.needs.saves_every_seconds.map(|seconds| seconds.saturating_mul(1_000));
        // Who saves all the time loses nothing.
        let declared = every_ms.map(|every| ran_ms.checked_rem(every).map_or(ran_ms, |lost| ran_ms - lost));
        self.kept_ms.saturating_add(reported.or(declared).unwrap_or(0))
    }

    /// When the attempt being submitted was claimed.
    #[must_use]
    pub fn claim_at(&self) -> Option<i64> {
        self.claim.as_ref().map(|claim| claim.at)
    }

    /// Checks what must hold of every state item.
    ///
    /// # Errors
    /// Names the first rule that doesn't hold.
    pub fn check(&self) -> Result<(), Broken> {
        let rules: [(bool, &'static str); 8] = [
            ((self.state == JobState::Claimed) == self.claim.is_some(), "a claim exactly while claimed"),
            (
                matches!(self.state, JobState::Submitted | JobState::Running) == self.run.is_some(),
                "a run exactly while Batch has it",
            ),
            (!self.state.is_dispatched() || self.attempt > 0, "an attempt number from 1 on"),
            (self.state.is_final() || self.end.is_none(), "no end before it ended"),
            (self.priority <= 9999, "a priority up to 9999"),
            (self.stop.is_none() || self.state.is_dispatched(), "a stop only of something dispatched"),
            (self.evict.is_none() || self.run.is_some(), "an eviction only of something that Batch has"),
            (
                !self.scheduled || self.state == JobState::Queued || self.state.is_dispatched(),
                "scheduled only while queued or dispatched",
            ),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(Broken { job: self.id, rule }),
            None => Ok(()),
        }
    }
}

/// The first `max` characters of a text, with `…` in place of what is left out.
#[must_use]
pub fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    short
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_succeeded_or_refused() {
        for next in JobState::ALL {
            assert!(!JobState::Succeeded.may_become(next));
            assert!(!JobState::Refused.may_become(next));
        }
    }

    #[test]
    fn only_a_claim_leads_to_batch_or_a_late_event_of_one() {
        for from in [JobState::Held, JobState::Waiting, JobState::Failed, JobState::Dead] {
            for to in [JobState::Claimed, JobState::Submitted, JobState::Running, JobState::Succeeded] {
                assert!(!from.may_become(to), "{from:?} -> {to:?}");
            }
        }
    }

    #[test]
    fn seconds_are_rounded_once_and_at_the_end() {
        let shown = |ms| Counts { wasted_gpu_ms: ms, ..Counts::default() }.wasted_gpu_seconds();
        assert_eq!([0, 499, 500, 1_499, 1_500].map(shown), [0, 0, 1, 1, 2]);
        assert_eq!(shown(u64::MAX), u64::MAX / 1000 + 1);
        assert_eq!(shown(3 * 400), 1, "three attempts of 0.4 s are one second, not none");
    }

    #[test]
    fn what_is_kept_of_a_run_is_what_was_reported_else_what_is_declared() {
        let job = |every: Option<u64>, saved_at: Option<i64>| Job {
            needs: Needs { saves_every_seconds: every, ..Needs::default() },
            saved: saved_at.map(|at| Saved { at, percent: None }),
            kept_ms: 7,
            ..Job::new(JobId::of_message(&MessageId::new("m")), MessageId::new("m"), 0)
        };
        // A run from second 100 to second 160.
        let kept = |every, saved_at| job(every, saved_at).kept_ms_at(100_000, 160_000) - 7;
        assert_eq!(kept(None, None), 0, "who saves nothing keeps nothing");
        assert_eq!(kept(Some(25), None), 50_000);
        assert_eq!(kept(Some(0), None), 60_000, "it saves all the time");
        assert_eq!(kept(Some(25), Some(112_000)), 12_000, "what was reported goes before what was declared");
        assert_eq!(kept(Some(25), Some(90_000)), 50_000, "a report of the run before says nothing of this one");
        assert_eq!(kept(None, Some(170_000)), 60_000, "a report that was sent late keeps no more than was done");
    }

    #[test]
    fn a_cut_text_says_that_it_was_cut() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("äöüß!", 3), "äö…");
    }
}

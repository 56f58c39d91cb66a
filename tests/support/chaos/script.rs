//! What jobs do: for each attempt how it ends and when. The truth that the checkers go by.

use super::random::Random;

/// How an attempt ends, in the words of Batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does what it should.
    Success,
    /// The same, though its memory ran out.
    SuccessOutOfMemory,
    /// It exits with this code.
    Exit(i64),
    /// Its memory runs out; the words and the code vary.
    OutOfMemory(bool),
    /// It runs into its time limit, with or without an exit code.
    Timeout(bool),
    /// Its EC2 host goes away.
    HostLost,
    /// Its Fargate Spot host goes away.
    SpotInterrupted,
    /// Its image can't be pulled just now.
    StartTransient,
    /// Its image doesn't exist.
    StartPermanent,
    /// Its overrides are too long for the container service.
    Misconfigured,
    /// Batch gives up waiting for capacity.
    Capacity,
    /// Somebody stops it in the console, with their own words.
    Console,
    /// Somebody stops it in the console, with the words of an eviction.
    Imitated,
}

/// An end as Batch tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Whether it succeeded.
    pub succeeded: bool,
    /// `statusReason`.
    pub status_reason: String,
    /// `container.reason`.
    pub container_reason: Option<&'static str>,
    /// Exit code.
    pub exit_code: Option<i64>,
    /// The class that the record must show, in its word there.
    pub class: &'static str,
}

const EXITED: &str = "Essential container in task exited";
const NOT_STARTED: &str = "Task failed to start";

impl Outcome {
    /// How Batch tells it.
    #[must_use]
    pub fn told(self, on_array: bool) -> Told {
        let (status_reason, container_reason, exit_code, class) = self.words();
        let succeeded = class == "succeeded";
        let status_reason = if on_array && !succeeded { "Array Child Job failed" } else { status_reason };
        Told { succeeded, status_reason: status_reason.to_owned(), container_reason, exit_code, class }
    }

    fn words(self) -> (&'static str, Option<&'static str>, Option<i64>, &'static str) {
        match self {
            Self::Success => (EXITED, None, Some(0), "succeeded"),
            Self::SuccessOutOfMemory => {
                (EXITED, Some("OutOfMemoryError: Container killed due to memory usage"), Some(0), "succeeded")
            }
            Self::Exit(code) => (EXITED, None, Some(code), "exit_code"),
            Self::OutOfMemory(true) => {
                (EXITED, Some("OutOfMemoryError: Container killed due to memory usage"), Some(137), "out_of_memory")
            }
            Self::OutOfMemory(false) => {
                (EXITED, Some("outofmemoryerror: container killed due to memory usage"), Some(1), "out_of_memory")
            }
            Self::Timeout(coded) => ("Job attempt duration exceeded timeout", None, coded.then_some(137), "timeout"),
            Self::HostLost => ("Host EC2 (instance i-0737c70432d64f82a) terminated.", None, None, "host_lost"),
            Self::SpotInterrupted => ("Your Spot Task was interrupted.", None, None, "host_lost"),
            Self::StartTransient => {
                (NOT_STARTED, Some("CannotPullContainerError: dial tcp: i/o timeout"), None, "start_failure_transient")
            }
            Self::StartPermanent => {
                (NOT_STARTED, Some("CannotPullContainerError: manifest not found"), None, "start_failure_permanent")
            }
            Self::Misconfigured => ("Container Overrides length must be at most 8192", None, None, "misconfigured"),
            Self::Capacity => (
                "Canceled by JobStateTimeLimit action due to reason: CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
                None,
                None,
                "capacity",
            ),
            Self::Console => ("not needed any more", None, Some(137), "cancelled"),
            Self::Imitated => ("OSPREY preempted for=somebody", None, Some(137), "cancelled"),
        }
    }

    /// Whether the attempt ends before it runs.
    #[must_use]
    pub fn is_before_start(self) -> bool {
        matches!(self, Self::StartTransient | Self::StartPermanent | Self::Misconfigured | Self::Capacity)
    }
}

/// One attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// How it ends.
    pub outcome: Outcome,
    /// How long it runs.
    pub run_ms: i64,
}

/// The attempts of a job; after the last it succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// One a step.
    pub steps: Vec<Step>,
    /// Whether Batch refuses the request for good.
    pub refused_by_batch: bool,
}

/// The longest run of an attempt.
pub const RUN_MS_MAX: i64 = 600_000;

impl Script {
    /// A script by chance: most jobs succeed at once.
    #[must_use]
    pub fn draw(random: &mut Random) -> Self {
        let count = random.pick(&[0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 4]).copied().unwrap_or(0);
        let mut steps: Vec<Step> = (0..count).map(|_| bad(random)).collect();
        let outcome = if random.chance(50_000) { Outcome::SuccessOutOfMemory } else { Outcome::Success };
        steps.push(Step { outcome, run_ms: run_ms(random) });
        Self { steps, refused_by_batch: random.chance(20_000) }
    }

    /// Makes every run at least half as long as the longest.
    pub fn lengthen(&mut self) {
        self.steps.iter_mut().for_each(|step| step.run_ms = i64::midpoint(step.run_ms, RUN_MS_MAX));
    }

    /// What attempt `number`, from 1, does.
    #[must_use]
    pub fn step(&self, number: u32) -> Step {
        let at = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        let last = Step { outcome: Outcome::Success, run_ms: 30_000 };
        self.steps.get(at).or(self.steps.last()).copied().unwrap_or(last)
    }
}

fn bad(random: &mut Random) -> Step {
    let outcomes = [
        Outcome::HostLost,
        Outcome::HostLost,
        Outcome::SpotInterrupted,
        Outcome::Exit(1),
        Outcome::Exit(137),
        Outcome::OutOfMemory(true),
        Outcome::OutOfMemory(false),
        Outcome::Timeout(true),
        Outcome::Timeout(false),
        Outcome::StartTransient,
        Outcome::StartTransient,
        Outcome::StartPermanent,
        Outcome::Misconfigured,
        Outcome::Capacity,
        Outcome::Console,
        Outcome::Imitated,
    ];
    let outcome = random.pick(&outcomes).copied().unwrap_or(Outcome::Exit(1));
    Step { outcome, run_ms: run_ms(random) }
}

fn run_ms(random: &mut Random) -> i64 {
    let most = random.pick(&[2_000, 60_000, 60_000, 300_000, RUN_MS_MAX]).copied().unwrap_or(60_000);
    random.between(500, most)
}

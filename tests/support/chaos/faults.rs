//! What goes wrong in a run: each seed turns a random part of it on (swarm testing: a run with every fault on at once
//! hides what a few of them do together).

use super::random::{Ppm, Random};
use super::wiring;

/// How far ListJobs lags behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListLag {
    /// It shows everything at once.
    None,
    /// It shows a job at the latest [`LIST_LAG_BOUND_MS`] after it was made.
    Bounded,
    /// Some jobs are shown much later, or never.
    Unbounded,
}

/// A lag of ListJobs that must never lead to a second Batch job. The window after which a claim is given up leaves
/// this much after the last moment at which the first request can still act, clocks that are 10 s off included.
pub const LIST_LAG_BOUND_MS: i64 = 15_000;
/// After it was signed, a request acts within this time: the life of a signature.
pub const ACT_BOUND_MS: i64 = 300_000;
/// A clock of an invocation is off by at most so much.
pub const SKEW_MS_MAX: i64 = 10_000;

/// The chances of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// A call is turned away for its rate.
    pub throttled: Ppm,
    /// A call fails, and nothing happened.
    pub fails_before: Ppm,
    /// A call happened, and its answer is lost.
    pub fails_after: Ppm,
    /// An invocation ends at an await point.
    pub crash: Ppm,
    /// An invocation stands still for seconds at an await point.
    pub delay: Ppm,
    /// An invocation stands still for minutes at an await point.
    pub stall: Ppm,
    /// A call takes no time at all.
    pub at_once: Ppm,
    /// Longest usual time of a call.
    pub latency_ms_max: i64,
    /// A message is delivered to two invocations at once.
    pub doubled: Ppm,
    /// A message is delivered again after it was acknowledged.
    pub undead: Ppm,
    /// Messages come in any order, and wait for any time up to this.
    pub scatter_ms_max: i64,
    /// The indexes lag up to this.
    pub index_lag_ms_max: i64,
    /// How ListJobs lags.
    pub list_lag: ListLag,
    /// A submission is throttled.
    pub submit_throttled: Ppm,
    /// The answer to a submission is lost.
    pub submit_lost: Ppm,
    /// Of those, so many act later than now: up to [`ACT_BOUND_MS`] after they were signed.
    pub submit_late: Ppm,
    /// Of the late ones, so many act even after that: what AWS doesn't promise to exclude.
    pub submit_beyond: Ppm,
    /// An event never comes.
    pub event_lost: Ppm,
    /// An event comes twice.
    pub event_doubled: Ppm,
    /// An event takes up to this.
    pub event_delay_ms_max: i64,
    /// Clocks are off by up to this.
    pub skew_ms_max: i64,
    /// A clock jumps when it is read.
    pub jump: Ppm,
    /// A round of `watch` is missed.
    pub watch_missed: Ppm,
    /// A round of `watch` runs twice at once.
    pub watch_doubled: Ppm,
    /// TerminateJob is accepted and forgotten.
    pub terminate_lost: Ppm,
    /// Times that every Spot host goes away.
    pub storms: u32,
    /// A person does something to a job the moment it changes.
    pub meddling: Ppm,
    /// The policy changes so often.
    pub policy_changes: u32,
    /// A change of the policy takes a tier away from every pool.
    pub tier_taken: bool,
    /// DescribeJobs shows jobs as they were up to so long ago, and new ones not at all.
    pub describe_lag_ms_max: i64,
    /// Times that the mode of some pool changes.
    pub mode_changes: u32,
    /// So long, from the start, the On-Demand pool gets no nodes, though it could have some.
    pub barren_ms: i64,
}

impl Faults {
    /// Nothing goes wrong.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            throttled: 0,
            fails_before: 0,
            fails_after: 0,
            crash: 0,
            delay: 0,
            stall: 0,
            at_once: 400_000,
            latency_ms_max: 20,
            doubled: 0,
            undead: 0,
            scatter_ms_max: 200,
            index_lag_ms_max: 500,
            list_lag: ListLag::None,
            submit_throttled: 0,
            submit_lost: 0,
            submit_late: 0,
            submit_beyond: 0,
            event_lost: 0,
            event_doubled: 0,
            event_delay_ms_max: 2_000,
            skew_ms_max: 0,
            jump: 0,
            watch_missed: 0,
            watch_doubled: 0,
            terminate_lost: 0,
            storms: 0,
            meddling: 0,
            policy_changes: 0,
            tier_taken: false,
            describe_lag_ms_max: 0,
            mode_changes: 0,
            barren_ms: 0,
        }
    }

    /// The faults of a seed: each is on in about half of all seeds, and as strong as chance has it.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::fork(seed, "faults");
        let mut faults = Self::none();
        faults.calls(&mut random);
        faults.messages(&mut random);
        faults.batch(&mut random);
        faults.people(&mut random);
        faults.theme(&mut random);
        faults.later_ones(&mut Random::fork(seed, "later faults"));
        if wiring::is_packed(seed) {
            faults.packed();
        }
        faults
    }

    /// A third of all seeds have a theme: a few faults that are only dangerous together, and strong.
    fn theme(&mut self, random: &mut Random) {
        match random.below(12) {
            0 => self.deaf(random),
            1 => self.crowded(random),
            2 => {
                self.deaf(random);
                self.crowded(random);
            }
            3 => self.meddling = 300_000,
            _ => {}
        }
        if random.chance(50_000) {
            self.deaf(random);
            self.meddling = 200_000;
        }
    }

    /// Faults that came into the harness later: drawn from a stream of their own, so that they change no other.
    fn later_ones(&mut self, random: &mut Random) {
        self.tier_taken = random.chance(200_000);
        self.describe_lag_ms_max = random.pick(&[0, 0, 0, 5_000, 120_000]).copied().unwrap_or(0);
        self.mode_changes = random.pick(&[0, 0, 1, 8]).copied().unwrap_or(0);
        self.barren_ms = random.pick(&[0, 0, 0, 1_800_000, 3_000_000]).copied().unwrap_or(0);
    }

    /// Nothing is heard of what Batch does with what it is asked for.
    fn deaf(&mut self, random: &mut Random) {
        self.event_lost = random.pick(&[600_000, 950_000, 1_000_000]).copied().unwrap_or(950_000);
        self.event_delay_ms_max = random.pick(&[2_000, 900_000]).copied().unwrap_or(2_000);
        self.submit_lost = random.pick(&[300_000, 700_000]).copied().unwrap_or(300_000);
        self.submit_late = random.pick(&[300_000, 1_000_000]).copied().unwrap_or(300_000);
    }

    /// Everything is done by several at once, and some of them stand still.
    fn crowded(&mut self, random: &mut Random) {
        self.watch_doubled = 900_000;
        self.watch_missed = 0;
        self.doubled = 500_000;
        self.stall = random.pick(&[5_000, 20_000]).copied().unwrap_or(5_000);
        self.latency_ms_max = 400;
    }

    /// Most of what Batch does is heard of soon, and cycles seldom fail: who isn't known to run isn't evicted, nor while nobody
    /// plans. Some of them break off all the same.
    fn packed(&mut self) {
        self.event_lost = self.event_lost.min(20_000);
        self.event_delay_ms_max = self.event_delay_ms_max.min(10_000);
        self.scatter_ms_max = self.scatter_ms_max.min(1_000);
        self.index_lag_ms_max = self.index_lag_ms_max.min(5_000);
        self.throttled = self.throttled.min(2_000);
        self.fails_before = self.fails_before.min(2_000);
        self.fails_after = self.fails_after.min(2_000);
        self.delay = self.delay.min(2_000);
        self.stall = self.stall.min(200);
        self.crash = self.crash.clamp(2_000, 6_000);
        self.submit_throttled = self.submit_throttled.min(20_000);
        self.submit_lost = self.submit_lost.min(50_000);
        self.watch_missed = self.watch_missed.min(50_000);
        self.mode_changes = 0;
        self.barren_ms = 0;
        self.tier_taken = false;
    }

    fn calls(&mut self, random: &mut Random) {
        self.throttled = amount(random, 40_000);
        self.fails_before = amount(random, 30_000);
        self.fails_after = amount(random, 30_000);
        self.crash = amount(random, 15_000);
        self.delay = amount(random, 30_000);
        self.stall = amount(random, 4_000);
        self.latency_ms_max = random.between(5, 120);
        self.skew_ms_max = i64::from(amount(random, 10_000));
        self.jump = amount(random, 50_000);
    }

    fn messages(&mut self, random: &mut Random) {
        self.doubled = amount(random, 150_000);
        self.undead = amount(random, 60_000);
        self.scatter_ms_max = 200 + i64::from(amount(random, 60_000));
        self.index_lag_ms_max = 500 + i64::from(amount(random, 180_000));
    }

    fn batch(&mut self, random: &mut Random) {
        self.list_lag = match random.below(4) {
            0 | 1 => ListLag::Bounded,
            2 => ListLag::Unbounded,
            _ => ListLag::None,
        };
        self.submit_throttled = amount(random, 200_000);
        self.submit_lost = amount(random, 250_000);
        self.submit_late = amount(random, 900_000);
        self.submit_beyond = if random.chance(150_000) { 200_000 } else { 0 };
        self.event_lost = amount(random, 300_000);
        self.event_doubled = amount(random, 300_000);
        self.event_delay_ms_max = 2_000 + i64::from(amount(random, 600_000));
        self.terminate_lost = amount(random, 300_000);
        self.storms = u32::try_from(random.below(4)).unwrap_or(0);
    }

    fn people(&mut self, random: &mut Random) {
        self.watch_missed = amount(random, 500_000);
        self.watch_doubled = amount(random, 300_000);
        self.meddling = amount(random, 40_000);
        self.policy_changes = u32::try_from(random.below(4)).unwrap_or(0);
    }
}

/// Nothing in half of all cases, else anything up to `most`, small amounts as often as large ones.
fn amount(random: &mut Random, most: u32) -> u32 {
    if random.chance(500_000) {
        return 0;
    }
    let most = u64::from(most);
    let scale = [most, most / 4, most / 16];
    let most = random.pick(&scale).copied().unwrap_or(most);
    u32::try_from(random.below(most) + 1).unwrap_or(0)
}

//! The reference strategies: what published simulators do, stated once and exactly (`docs/simulator.md`).

mod batch_alone;
mod blocking;
mod dive;
mod easy;
mod first_fit;
mod preemptive;
mod queue;

pub use batch_alone::{BatchAlone, DECAY_MS, START_CHARGE_MS, Setup, VCPUS_PER_GPU};
pub use blocking::Blocking;
pub use dive::Dive;
pub use easy::Easy;
pub use first_fit::FirstFit;
pub use preemptive::Preemptive;

use crate::machine::Machine;
use crate::pool::Pool;
use crate::workload::Job;

/// What a strategy is asked.
pub trait Strategy<P: Pool> {
    /// A job was submitted.
    fn submit(&mut self, job: usize, machine: &Machine<'_, P>);

    /// Starts, and for some strategies evicts, what it will: the one pass of an instant.
    fn pass(&mut self, machine: &mut Machine<'_, P>);

    /// Jobs that wait.
    fn waiting(&self) -> usize;

    /// When the next pass is to be although nothing happens by then; `None` where it needn't be.
    fn looks_again_at(&self, _now_ms: u64) -> Option<u64> {
        None
    }

    /// When a job can start that waits for nothing but the time; `None` where none does.
    fn comes_back_at(&self, _now_ms: u64) -> Option<u64> {
        None
    }
}

/// The reference strategies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// First come, first served; a head that doesn't fit holds up everybody.
    Fifo,
    /// The same, and smaller work may start behind the head if it can't delay it.
    Easy,
    /// Shortest first; a head that doesn't fit holds up everybody.
    Sjf,
    /// In the order of submission whatever fits, without a reservation.
    FirstFit,
    /// Shortest remaining time first, preempting; what doesn't fit is skipped.
    Srtf,
    /// Highest priority first; a head that doesn't fit holds up everybody.
    Priority,
    /// The same, and smaller work may start behind the head if it can't delay it.
    PriorityEasy,
    /// Highest priority first, preempting; what doesn't fit is skipped.
    PriorityPreempt,
    /// [`Reference::PriorityEasy`], whose urgent heads evict lower priorities.
    Dive,
}

impl Reference {
    /// Every one of them.
    pub const ALL: [Self; 9] = [
        Self::Fifo,
        Self::Easy,
        Self::Sjf,
        Self::FirstFit,
        Self::Srtf,
        Self::Priority,
        Self::PriorityEasy,
        Self::PriorityPreempt,
        Self::Dive,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Easy => "easy",
            Self::Sjf => "sjf",
            Self::FirstFit => "first-fit",
            Self::Srtf => "srtf",
            Self::Priority => "priority",
            Self::PriorityEasy => "priority-easy",
            Self::PriorityPreempt => "priority-preempt",
            Self::Dive => "dive",
        }
    }

    /// The strategy of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }
}

/// What waiting jobs are ordered by; ties by submission and then by id, which is the place in the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Submission.
    Arrival,
    /// Remaining run time, shortest first.
    Shortest,
    /// The row's own number, highest first.
    Priority,
}

impl Order {
    /// The number that jobs are ordered by, smallest first.
    #[must_use]
    pub fn key(self, job: &Job, remaining_ms: u64) -> u64 {
        match self {
            Self::Arrival => 0,
            Self::Shortest => remaining_ms,
            Self::Priority => u64::from(u32::MAX - job.row_priority),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_is_found_by_its_name() {
        for strategy in Reference::ALL {
            assert_eq!(Reference::named(strategy.name()), Some(strategy));
        }
        assert_eq!(Reference::named("lifo"), None);
    }
}

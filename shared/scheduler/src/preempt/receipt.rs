//! What an evicted job is told: for whom, by which rule, what it costs, and where it goes on.

use std::fmt;

use osprey_model::id::JobId;
use serde::{Deserialize, Serialize};

/// An evicted job's receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The job.
    pub job: JobId,
    /// Its tier: an index into [`crate::Rules::tiers`].
    pub tier: u16,
    /// The job that starts in its place.
    pub evicted_for: JobId,
    /// The rule that let it be evicted.
    pub opened: Opened,
    /// Work that no checkpoint holds, in GPU-milliseconds.
    pub lost_gpu_ms: u64,
    /// Work that is kept, in milliseconds of its run: where it goes on.
    pub kept_ms: u64,
}

/// Which rule lets a job be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Opened {
    /// `may_preempt`.
    Always,
    /// `may_preempt_when_full`: everything that is open otherwise couldn't have made room.
    WhenFull,
    /// `borrowing`: it went on beyond its team's quota, and the job that starts is within its own team's.
    Borrowed,
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = match self.opened {
            Opened::Always => "`may_preempt` of its tier",
            Opened::WhenFull => "`may_preempt_when_full` of its tier",
            Opened::Borrowed => "`borrowing` of the quota",
        };
        let Self { job, evicted_for, lost_gpu_ms, kept_ms, .. } = self;
        write!(
            f,
            "job {job} makes room for job {evicted_for} by the rule {rule}; {} GPU-minutes of work are lost, \
             and it goes on {} minutes into its run",
            Minutes(*lost_gpu_ms),
            Minutes(*kept_ms)
        )
    }
}

/// Milliseconds as minutes with a tenth.
struct Minutes(u64);

impl fmt::Display for Minutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0 / 6_000 + u64::from(self.0 % 6_000 >= 3_000);
        write!(f, "{}.{}", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_says_for_whom_by_which_rule_what_is_lost_and_where_it_goes_on() {
        let id = |number| JobId::from_uuid(uuid::Uuid::from_u128(number));
        let mut receipt = Receipt {
            job: id(1),
            tier: 3,
            evicted_for: id(2),
            opened: Opened::Always,
            lost_gpu_ms: 1_474_000,
            kept_ms: 7_200_000,
        };
        let told = "job 00000000-0000-0000-0000-000000000001 makes room for job 00000000-0000-0000-0000-000000000002 by the \
                    rule `may_preempt` of its tier; 24.6 GPU-minutes of work are lost, and it goes on 120.0 minutes into \
                    its run";
        assert_eq!(receipt.to_string(), told);
        receipt.opened = Opened::WhenFull;
        assert!(receipt.to_string().contains("rule `may_preempt_when_full` of its tier;"));
        receipt.opened = Opened::Borrowed;
        assert!(receipt.to_string().contains("rule `borrowing` of the quota;"));
        let json = serde_json::to_string(&receipt).unwrap();
        assert_eq!(serde_json::from_str::<Receipt>(&json).unwrap(), receipt);
    }
}

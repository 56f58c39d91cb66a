//! How long a job must have to wait until others are evicted for it: the more of them, the longer.

use crate::rules::PreemptionRules;
use crate::snapshot::Queued;

/// What a job would wait in all, in milliseconds: what it has waited since it last came, and what it still will until
/// the time that others leave it its place.
pub(super) fn wait_ms(job: &Queued, expected_at_ms: i64, now_ms: i64) -> u64 {
    let since_ms = job.enqueued_ms.max(job.not_before_ms).min(now_ms);
    u64::try_from(expected_at_ms.max(now_ms).saturating_sub(since_ms)).unwrap_or(0)
}

/// The wait above which so many evictions are worth it, in milliseconds.
pub(super) fn threshold_ms(rules: &PreemptionRules, victims: usize) -> u64 {
    let victims = u64::try_from(victims).unwrap_or(u64::MAX);
    rules.wait_ms.saturating_add(rules.wait_per_victim_ms.saturating_mul(victims))
}

/// Most evictions that a wait is worth: those whose threshold it exceeds.
pub(super) fn victims_max(rules: &PreemptionRules, wait_ms: u64) -> usize {
    let Some(over_ms) = wait_ms.checked_sub(rules.wait_ms).and_then(|over| over.checked_sub(1)) else { return 0 };
    let most = over_ms.checked_div(rules.wait_per_victim_ms).unwrap_or(u64::MAX);
    usize::try_from(most).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_victim_more_takes_a_longer_wait() {
        let rules = PreemptionRules { wait_ms: 300, wait_per_victim_ms: 100, ..PreemptionRules::default() };
        for (wait_ms, most) in [(0, 0), (300, 0), (400, 0), (401, 1), (500, 1), (501, 2), (1_301, 10)] {
            assert_eq!(victims_max(&rules, wait_ms), most, "{wait_ms}");
            assert!(most == 0 || wait_ms > threshold_ms(&rules, most));
            assert!(wait_ms <= threshold_ms(&rules, most + 1));
        }
        let flat = PreemptionRules { wait_per_victim_ms: 0, ..rules };
        assert_eq!((victims_max(&flat, 300), victims_max(&flat, 301)), (0, usize::MAX));
    }
}

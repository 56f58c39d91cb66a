//! Memory limits. Containers are limited by the kernel; processes here are sampled about ten times a second, so a
//! command that takes and returns memory between two samples goes unseen, and one that takes it quickly overshoots.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::process::{Measure, memory_by_group};

/// Shortest time between two samples.
const INTERVAL: Duration = Duration::from_millis(100);
/// Sampling may take one part in so many of the engine's time: machines with many processes are sampled less often.
const SHARE: u32 = 20;

/// Decides when to sample, and samples.
#[derive(Debug, Default)]
pub(crate) struct MemoryWatch {
    next: Option<Instant>,
}

impl MemoryWatch {
    /// The process groups of `limits` (group to MiB) that are over their limit now; nothing before a sample is due.
    pub fn over(&mut self, limits: &BTreeMap<i32, i64>) -> Vec<i32> {
        let started = Instant::now();
        if limits.is_empty() || self.next.is_some_and(|next| started < next) {
            return Vec::new();
        }
        let groups: Vec<i32> = limits.keys().copied().collect();
        // Workers that were forked share most of their pages: only a second, dearer look says what they really use.
        let mut over = beyond(limits, &memory_by_group(&groups, Measure::Resident));
        if !over.is_empty() {
            over = beyond(limits, &memory_by_group(&over, Measure::Proportional));
        }
        self.next = Some(started + INTERVAL.max(started.elapsed() * SHARE));
        over
    }
}

/// How many processes of this machine the kernel has killed for want of memory since it was started; `None` where it
/// doesn't count them.
pub(crate) fn kernel_kills() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

/// The groups that use more KiB than their limit in MiB.
fn beyond(limits: &BTreeMap<i32, i64>, used: &BTreeMap<i32, u64>) -> Vec<i32> {
    let over = |(group, kib): (&i32, &u64)| {
        let limit_kib = limits.get(group).and_then(|mib| u64::try_from(*mib).ok())?.saturating_mul(1024);
        (*kib > limit_kib).then_some(*group)
    };
    used.iter().filter_map(over).collect()
}

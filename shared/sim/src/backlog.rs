//! A made-up moment of a busy pool: what scheduling cycles are timed on.

use osprey_model::id::JobId;
use osprey_policy::Policy;
use osprey_scheduler::Snapshot;
use osprey_scheduler::snapshot::{Hold, Node, Queued, Running, Shape};

use crate::kernel::fork;
use crate::kernel::random::Random;

/// GPUs of a node.
const GPUS_PER_NODE: u32 = 8;
/// Sizes in GPUs with their shares, about those of the public traces.
const SIZES: [(u32, f64); 6] = [(1, 0.55), (2, 0.1), (4, 0.12), (8, 0.18), (16, 0.03), (32, 0.02)];
/// Numbers with their shares, those of the default policy's acceptance table.
const NUMBERS: [(u32, f64); 8] =
    [(1_200, 0.03), (1_150, 0.02), (950, 0.1), (700, 0.15), (500, 0.2), (450, 0.25), (420, 0.1), (0, 0.15)];
/// The moment: 2026-01-01T00:00:00Z.
pub const NOW_MS: i64 = 1_767_225_600_000;
/// Jobs wait for up to three weeks, so that some have aged out.
const WAIT_MS_MAX: u64 = 21 * 86_400_000;

/// A pool of about so many GPUs on nodes of 8, of which nearly all are held, and so many jobs that wait for them in no
/// particular order. Equal arguments give equal snapshots.
#[must_use]
pub fn backlog(policy: &Policy, pending: u32, gpus: u32, seed: u64) -> Snapshot {
    let mut random = fork(seed, "backlog");
    let node = Node { vcpus: 96, ..Node::new(GPUS_PER_NODE) };
    let nodes = (0..gpus.div_ceil(GPUS_PER_NODE)).map(|_| node).collect();
    let mut snapshot = Snapshot { nodes, ..Snapshot::default() };
    for node in 0..gpus.div_ceil(GPUS_PER_NODE) {
        fill(&mut snapshot, node, &mut random);
    }
    snapshot.queued = (0..pending).map(|number| queued(policy, number, &mut random)).collect();
    snapshot
}

/// Runs jobs on a node until it is full, or in one case of ten until a part of it is left.
fn fill(snapshot: &mut Snapshot, node: u32, random: &mut Random) {
    let mut free = GPUS_PER_NODE;
    if random.chance(0.1) {
        free -= u32::try_from(random.below(u64::from(GPUS_PER_NODE))).unwrap_or(0);
    }
    while free > 0 {
        let gpus = random.weighted(&SIZES).unwrap_or(1).min(free);
        free -= gpus;
        let place = u128::try_from(snapshot.running.len()).unwrap_or(u128::MAX);
        let left_ms = i64::try_from(run_ms(random)).unwrap_or(i64::MAX);
        snapshot.running.push(Running {
            holds: vec![Hold { node, gpus, vcpus: gpus * 8 }],
            has_landed: true,
            started_ms: NOW_MS - 60_000,
            expected_end_ms: Some(NOW_MS.saturating_add(left_ms)),
            ..Running::new(id(1, place), Shape { nodes: 1, gpus, vcpus: gpus * 8 })
        });
    }
}

fn queued(policy: &Policy, number: u32, random: &mut Random) -> Queued {
    let priority = random.weighted(&NUMBERS).unwrap_or(500);
    let gpus = random.weighted(&SIZES).unwrap_or(1);
    // A job of several nodes is one of whole ones.
    let nodes = gpus.div_ceil(GPUS_PER_NODE);
    let shape = Shape { nodes, gpus: gpus / nodes, vcpus: gpus / nodes * 8 };
    let tier = policy.tier_of(priority, priority == 0);
    let index = policy.tiers().iter().position(|other| other.name == tier.name);
    let waited_ms = i64::try_from(random.below(WAIT_MS_MAX)).unwrap_or(0);
    Queued {
        priority,
        tier: index.and_then(|index| u16::try_from(index).ok()).unwrap_or(u16::MAX),
        enqueued_ms: NOW_MS - waited_ms,
        // Of one job in five nobody knows how long it runs.
        expected_ms: (!random.chance(0.2)).then(|| run_ms(random)),
        ..Queued::new(id(2, number.into()), shape)
    }
}

/// A run time: the median is half an hour, and the mean several hours.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds, never negative")]
fn run_ms(random: &mut Random) -> u64 {
    random.lognormal(1_800_000.0, 2.0).round() as u64
}

fn id(kind: u128, number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(kind << 64 | number))
}

#[cfg(test)]
mod tests {
    use osprey_scheduler::{Rules, decide};

    use super::*;

    #[test]
    fn a_backlog_is_a_busy_pool_with_jobs_of_every_kind_and_the_same_every_time() {
        let policy = Policy::load(osprey_policy::DEFAULT).unwrap().policy;
        let snapshot = backlog(&policy, 1_001, 256, 1);
        assert_eq!(snapshot, backlog(&policy, 1_001, 256, 1));
        let held: u32 = snapshot.running.iter().flat_map(|running| &running.holds).map(|hold| hold.gpus).sum();
        assert!((220..256).contains(&held), "{held}");
        assert_eq!((snapshot.gpus(), snapshot.queued.len()), (256, 1_001));
        let plan = decide(&snapshot, &Rules::of(&policy, &"".into()), NOW_MS);
        assert!(!plan.starts.is_empty() && !plan.reservations.is_empty());
        assert_eq!(plan.starts.len() + plan.waiting.len(), 1_001);
    }
}

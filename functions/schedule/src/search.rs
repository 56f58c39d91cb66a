//! Jobs behind the front of a line whose wait brings them there.
//!
//! The line's order is stored, and doesn't change with time; what waiting adds does. So each cycle of a pool whose line is
//! longer than a cycle looks at goes through a piece of it, where the cycle before has stopped. A job found there that
//! would stand before one of the front is looked at in this cycle, and is put to the front for the next ones. Of n jobs
//! in line each is looked at every n ÷ [`PIECE`] cycles.

use std::collections::{BTreeMap, BTreeSet};

use osprey_model::id::{JobId, TierName};
use osprey_model::pool::Pool;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::line::{self, InLine};
use osprey_ports::QueryItems;
use osprey_scheduler::Rules;
use osprey_scheduler::priority::Standing;

use crate::load::Loaded;
use crate::snapshot;

/// Jobs that a cycle looks through behind the front.
pub const PIECE: usize = 500;
/// Most jobs that a cycle brings forward: each is a write.
const FORWARD_MAX: usize = 20;

/// Looks through a piece of a pool's line, and adds to what was loaded what should stand at its front.
///
/// # Errors
/// When the store fails.
pub async fn aged<P: QueryItems + Sync>(
    ports: &P,
    pool: &Pool,
    rules: &Rules,
    now_ms: i64,
    searched_to: Option<String>,
    loaded: &mut Loaded,
) -> Result<(), Failure> {
    let (piece, last) = line::behind(ports, &pool.name, searched_to, PIECE).await?;
    loaded.searched_to = last;
    let found = brought_forward(&loaded.line, piece, rules, now_ms);
    loaded.aged = found.iter().map(|job| job.job).collect();
    loaded.line.extend(found);
    Ok(())
}

/// The jobs of a piece that would stand before one of their tier's front.
fn brought_forward(front: &[InLine], piece: Vec<InLine>, rules: &Rules, now_ms: i64) -> Vec<InLine> {
    let seen: BTreeSet<JobId> = front.iter().map(|job| job.job).collect();
    let standing = |job: &InLine| Standing::of(&snapshot::queued(job, rules), rules, now_ms);
    let mut last: BTreeMap<&TierName, i64> = BTreeMap::new();
    for job in front {
        let level = standing(job).level;
        last.entry(&job.tier).and_modify(|last| *last = level.min(*last)).or_insert(level);
    }
    let is_before = |job: &InLine| {
        let standing = standing(job);
        standing.is_aged_out || last.get(&job.tier).is_some_and(|last| standing.level > *last)
    };
    piece.into_iter().filter(|job| !seen.contains(&job.job) && is_before(job)).take(FORWARD_MAX).collect()
}

#[cfg(test)]
mod tests {
    use osprey_model::job::Needs;
    use osprey_scheduler::rules::{Aging, TierOrder, TierRules};

    use super::*;

    const HOUR: i64 = 3_600_000;

    fn job(number: u32, priority: u32, hour: i64) -> InLine {
        InLine {
            job: JobId::of_message(&osprey_model::id::MessageId::new(number.to_string())),
            tier: "low".into(),
            priority,
            enqueued_at: hour * HOUR,
            not_before: 0,
            gpus: 1,
            needs: Needs::default(),
            kept_ms: 0,
            team: None,
            charge: osprey_model::job::Charge::default(),
            policy: "0123456789ab".into(),
        }
    }

    fn rules(order: TierOrder) -> Rules {
        let aging = Some(Aging { millipoints_per_hour: 10_000, cap: 1_000 });
        Rules {
            tiers: vec![TierRules { name: "low".into(), at_least: Some(0), order, aging, ..TierRules::default() }],
            ..Rules::default()
        }
    }

    fn found(order: TierOrder, piece: Vec<InLine>) -> Vec<u32> {
        let front = vec![job(1, 700, 90), job(2, 600, 90)];
        brought_forward(&front, piece, &rules(order), 100 * HOUR).iter().map(|job| job.priority).collect()
    }

    #[test]
    fn a_job_behind_the_front_comes_forward_once_its_wait_passes_the_last_of_it() {
        // At hour 100 the front stands at 800 and 700 points; these at 690, 710, 1,000 (the cap), and one is known.
        let piece = || vec![job(3, 590, 90), job(4, 500, 79), job(5, 100, 0), job(2, 600, 90)];
        assert_eq!(found(TierOrder::Strict, piece()), [500, 100]);
        // In a weighted tier all stand at its threshold until they reach the cap.
        assert_eq!(found(TierOrder::WeightedShortest, piece()), [100]);
    }

    #[test]
    fn no_cycle_brings_more_jobs_forward_than_it_can_write() {
        let piece = (10..100).map(|number| job(number, 100, 0)).collect();
        assert_eq!(found(TierOrder::Strict, piece).len(), FORWARD_MAX);
    }
}

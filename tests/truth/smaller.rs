//! Changes of the same kind that ask for less: the next one, and a few others between it and what is.

use osprey_model::id::JobId;
use osprey_scheduler::change::Change;
use osprey_scheduler::snapshot::{Running, Shape};
use osprey_sim::kernel::random::Random;

use crate::case::Case;
use crate::draw::amount;

/// Numbers that are drawn beside the next one.
const DRAWN: usize = 5;

/// Changes that ask for less than this one.
pub fn smaller(change: &Change, case: &Case, random: &mut Random) -> Vec<Change> {
    match change {
        Change::Gpus { from, to } => {
            let larger = requests(*from, case.moment.gpus_per_node).into_iter().take_while(|shape| shape != to);
            larger.map(|shape| Change::Gpus { from: *from, to: shape }).collect()
        }
        Change::ExpectedMs { from, to } => {
            // In whole seconds, and shorter than what is expected; of one that nobody knows, up to ten times as long.
            let most = from.map_or(*to / 100, |from| from.saturating_sub(1) / 1_000);
            let seconds = up(*to / 1_000, most, random);
            seconds.map(|seconds| Change::ExpectedMs { from: *from, to: seconds * 1_000 }).collect()
        }
        Change::Children { from, to } => {
            up32(*to, *from, random).map(|to| Change::Children { from: *from, to }).collect()
        }
        Change::Vcpus { from, to } => up32(*to, *from, random).map(|to| Change::Vcpus { from: *from, to }).collect(),
        Change::Headroom { from, to } => {
            up32(*to, *from, random).map(|to| Change::Headroom { from: *from, to }).collect()
        }
        Change::Reserve { reserve, from, to } => {
            up32(*to, *from, random).map(|to| Change::Reserve { reserve: *reserve, from: *from, to }).collect()
        }
        Change::Priority { from, to } => down(u64::from(*from), u64::from(*to), random)
            .map(|to| Change::Priority { from: *from, to: small(to) })
            .collect(),
        Change::Quota { unit, from, to } => {
            down(*from, *to, random).map(|to| Change::Quota { unit: *unit, from: *from, to }).collect()
        }
        Change::MoreNodes { from, to, each } => {
            let fewer = down(u64::from(*from), u64::from(*to), random);
            fewer.map(|to| Change::MoreNodes { from: *from, to: small(to), each: *each }).collect()
        }
        Change::Ends { jobs, .. } => fewer_ends(jobs, case),
        Change::Without { jobs } => fewer(jobs).map(|jobs| Change::Without { jobs }).collect(),
        Change::ForeignEnds { node: None, .. } => {
            let nodes = (0_u32..).zip(&case.moment.snapshot.nodes).filter(|(_, node)| node.foreign_gpus > 0);
            nodes.map(|(node, known)| Change::ForeignEnds { node: Some(node), gpus: known.foreign_gpus }).collect()
        }
        // There is no less of these.
        Change::ForeignEnds { .. }
        | Change::Pool { .. }
        | Change::Resume
        | Change::ResumeTier
        | Change::Release { .. }
        | Change::Capacity => Vec::new(),
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Numbers above `to` and below `from`: the next one, and some others.
fn up(to: u64, from: u64, random: &mut Random) -> impl Iterator<Item = u64> {
    let drawn = between(to + 1, from, random);
    Some(to + 1).filter(|next| *next < from).into_iter().chain(drawn)
}

fn up32(to: u32, from: u32, random: &mut Random) -> impl Iterator<Item = u32> {
    up(to.into(), from.into(), random).map(small)
}

/// Numbers above `from` and below `to`: the one before, and some others.
fn down(from: u64, to: u64, random: &mut Random) -> impl Iterator<Item = u64> {
    let drawn = between(from + 1, to, random);
    to.checked_sub(1).filter(|before| *before > from).into_iter().chain(drawn)
}

/// Numbers from one up to, and without, another.
fn between(from: u64, end: u64, random: &mut Random) -> Vec<u64> {
    (0..DRAWN).filter(|_| from < end).map(|_| amount(random, from, end.saturating_sub(1))).collect()
}

/// Lesser requests in the order in which they are less: fewer nodes, and then a part of one, as admission lets them in.
fn requests(shape: Shape, gpus_per_node: Option<u32>) -> Vec<Shape> {
    let nodes = (1..shape.nodes).rev().map(|nodes| Shape { nodes, ..shape });
    let may = |gpus: &u32| gpus_per_node.is_none_or(|node| node.is_multiple_of(*gpus) || gpus.is_multiple_of(node));
    nodes.chain((1..shape.gpus).rev().filter(may).map(|gpus| Shape { nodes: 1, gpus, ..shape })).collect()
}

/// The same jobs without each of them in turn.
fn fewer(jobs: &[JobId]) -> impl Iterator<Item = Vec<JobId>> {
    let without = |job: &JobId| jobs.iter().filter(|other| *other != job).copied().collect::<Vec<_>>();
    jobs.iter().map(without).filter(|fewer| !fewer.is_empty())
}

/// The same ends without one of them, and all that are expected before the last of them.
fn fewer_ends(jobs: &[JobId], case: &Case) -> Vec<Change> {
    let now_ms = case.moment.now_ms;
    let end_ms = |running: &Running| {
        let unknown_ms = running.started_ms.saturating_add_unsigned(case.moment.rules.unknown_ms);
        running.expected_end_ms.unwrap_or(unknown_ms).max(now_ms)
    };
    let mut ends: Vec<(i64, JobId)> =
        case.moment.snapshot.running.iter().map(|running| (end_ms(running), running.job)).collect();
    ends.sort_unstable();
    let last = ends.iter().rposition(|(_, job)| jobs.contains(job)).unwrap_or(0);
    let sooner = |count: usize| ends.iter().take(count).map(|(_, job)| *job).collect::<Vec<_>>();
    let sooner = [last, last / 2].map(sooner).into_iter().filter(|jobs| !jobs.is_empty());
    fewer(jobs).chain(sooner).map(|jobs| Change::Ends { jobs, at_ms: None }).collect()
}

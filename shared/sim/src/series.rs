//! A schedule over time, cut into equal parts: what waited, what was held, what packing left over.

use crate::schedule::{Schedule, Segment};
use crate::workload::Workload;

/// Means over equal parts of the time from the first submission to an end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Jobs that wait, by tier and then by part.
    pub waiting: Vec<Vec<f64>>,
    /// GPUs that are held, by tier and then by part.
    pub held: Vec<Vec<f64>>,
    /// GPUs free on partly held nodes, by part; zeros where nodes don't matter.
    pub stranded: Vec<f64>,
}

/// Equal parts of time.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// The end of the last one, in milliseconds; above 0.
    pub end_ms: u64,
    /// How many they are.
    pub count: usize,
}

impl Parts {
    fn length_ms(self) -> f64 {
        (self.end_ms.max(1) as f64 / self.count.max(1) as f64).max(f64::MIN_POSITIVE)
    }

    /// Adds what has this value from one time to another to the means.
    fn add(self, means: &mut [f64], from_ms: u64, to_ms: u64, value: f64) {
        let length = self.length_ms();
        let (from, to) = (from_ms as f64 / length, (to_ms.min(self.end_ms)) as f64 / length);
        for (index, mean) in means.iter_mut().enumerate().skip(floor(from)) {
            let (begin, end) = (index as f64, (index + 1) as f64);
            if begin >= to {
                break;
            }
            *mean += value * (to.min(end) - from.max(begin)).max(0.0);
        }
    }
}

impl Series {
    /// The series of a schedule whose runs were recorded. `node_gpus` are the GPUs of each node.
    #[must_use]
    pub fn of(workload: &Workload, schedule: &Schedule, node_gpus: &[u32], parts: Parts) -> Self {
        let tiers = workload.tiers.len().max(1);
        let nothing = vec![0.0; parts.count];
        let (mut waiting, mut held) = (vec![nothing.clone(); tiers], vec![nothing; tiers]);
        let mut runs: Vec<&Segment> = schedule.segments.iter().collect();
        runs.sort_unstable_by_key(|run| (run.job, run.start_ms));
        for runs in runs.chunk_by(|a, b| a.job == b.job) {
            let Some(job) = runs.first().and_then(|run| workload.jobs.get(run.job)) else { continue };
            let tier = usize::from(job.tier).min(tiers - 1);
            let mut since_ms = job.submit_ms;
            for run in runs {
                if let (Some(waiting), Some(held)) = (waiting.get_mut(tier), held.get_mut(tier)) {
                    parts.add(waiting, since_ms, run.start_ms, 1.0);
                    parts.add(held, run.start_ms, run.end_ms, f64::from(job.gpus));
                }
                since_ms = run.end_ms;
            }
        }
        Self { waiting, held, stranded: stranded(schedule, node_gpus, parts) }
    }
}

/// GPUs free on partly held nodes.
fn stranded(schedule: &Schedule, node_gpus: &[u32], parts: Parts) -> Vec<f64> {
    let mut changes: Vec<(u64, usize, i64)> = Vec::new();
    for run in &schedule.segments {
        for (node, gpus) in &run.nodes {
            let node = usize::try_from(*node).unwrap_or(usize::MAX);
            changes.extend([(run.start_ms, node, i64::from(*gpus)), (run.end_ms, node, -i64::from(*gpus))]);
        }
    }
    changes.sort_unstable();
    let left = |node: usize, held: i64| {
        let has = node_gpus.get(node).map_or(0, |gpus| i64::from(*gpus));
        if held > 0 { (has - held).max(0) } else { 0 }
    };
    let mut held = vec![0_i64; node_gpus.len()];
    let (mut means, mut total, mut since_ms) = (vec![0.0; parts.count], 0_i64, 0);
    for (at_ms, node, change) in changes {
        parts.add(&mut means, since_ms, at_ms, total as f64);
        since_ms = at_ms;
        if let Some(held) = held.get_mut(node) {
            total -= left(node, *held);
            *held += change;
            total += left(node, *held);
        }
    }
    means
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part's number, never negative")]
fn floor(part: f64) -> usize {
    part as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::SegmentEnd;
    use crate::workload::Job;

    #[test]
    fn what_waits_is_held_and_is_left_over_is_averaged_over_parts() {
        let job = |submit_ms, gpus, tier| Job { submit_ms, gpus, tier, ..Job::default() };
        let workload = Workload {
            jobs: vec![job(0, 4, 0), job(50, 8, 1)],
            tiers: vec!["high".to_owned(), "low".to_owned()],
            teams: Vec::new(),
        };
        let run = |job, start_ms, end_ms, nodes| Segment {
            job,
            start_ms,
            end_ms,
            nodes,
            end: SegmentEnd::Done,
            is_dive: false,
        };
        let segments =
            vec![run(0, 0, 150, vec![(0, 4)]), run(1, 200, 300, vec![(0, 8)]), run(1, 350, 400, vec![(1, 8)])];
        let schedule = Schedule { segments, ..Schedule::default() };
        let series = Series::of(&workload, &schedule, &[8, 8], Parts { end_ms: 400, count: 4 });
        assert_eq!(series.waiting, [[0.0; 4], [0.5, 1.0, 0.0, 0.5]]);
        assert_eq!(series.held, [[4.0, 2.0, 0.0, 0.0], [0.0, 0.0, 8.0, 4.0]]);
        assert_eq!(series.stranded, [4.0, 2.0, 0.0, 0.0]);
    }
}

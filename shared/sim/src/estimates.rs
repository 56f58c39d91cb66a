//! What is believed of run times before they are over. The reference strategies know them; the production decision
//! believes what it is told.

use std::collections::BTreeMap;

use crate::kernel::fork;
use crate::workload::{Job, Workload};

/// How good the estimates are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimates {
    /// The run time itself.
    #[default]
    Exact,
    /// What the trace says that was believed; the run time where it says nothing.
    Trace,
    /// The run time times a lognormal factor: in two of three cases it is within half and double.
    Noise,
    /// The upper end of the declared class that the run time is in: half an hour, 4 hours, a day, 14 days.
    Classes,
    /// The mean of all jobs of the same size.
    Averages,
    /// The mean of all jobs: nothing is known of the single one.
    Unknown,
}

/// Upper ends of the classes that users can declare, in milliseconds.
const CLASSES_MS: [u64; 4] = [1_800_000, 14_400_000, 86_400_000, 1_209_600_000];

impl Estimates {
    /// What is believed of each job, in milliseconds, in the order of the workload. Empty for exact estimates.
    #[must_use]
    pub fn of(self, workload: &Workload, seed: u64) -> Vec<u64> {
        let jobs = workload.jobs.iter();
        match self {
            Self::Exact => Vec::new(),
            Self::Trace => jobs.map(|job| job.estimate_ms.unwrap_or(job.duration_ms)).collect(),
            Self::Noise => {
                let mut random = fork(seed, "estimates");
                let sigma = std::f64::consts::LN_2;
                jobs.map(|job| whole(job.duration_ms as f64 * random.lognormal(1.0, sigma))).collect()
            }
            Self::Classes => jobs.map(|job| class_ms(job.duration_ms)).collect(),
            Self::Averages => averages(workload, |job| job.gpus),
            Self::Unknown => averages(workload, |_| 0),
        }
    }
}

/// The upper end of a class; a run longer than all of them declares itself.
fn class_ms(duration_ms: u64) -> u64 {
    CLASSES_MS.into_iter().find(|end| duration_ms <= *end).unwrap_or(duration_ms)
}

/// The mean run time of the jobs that are alike.
fn averages(workload: &Workload, kind: impl Fn(&Job) -> u32) -> Vec<u64> {
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for job in &workload.jobs {
        let (sum, count) = sums.entry(kind(job)).or_default();
        *sum += job.duration_ms;
        *count += 1;
    }
    let mean = |job: &Job| sums.get(&kind(job)).map_or(0, |(sum, count)| sum / (*count).max(1));
    workload.jobs.iter().map(mean).collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds of a run, never negative")]
fn whole(ms: f64) -> u64 {
    ms.round().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        let job = |minutes: u64, gpus, estimate_ms| Job {
            duration_ms: minutes * 60_000,
            gpus,
            estimate_ms,
            ..Job::default()
        };
        let jobs = vec![job(10, 1, Some(900_000)), job(30, 1, None), job(31, 8, None), job(100_000, 8, None)];
        Workload { jobs, ..Workload::default() }
    }

    #[test]
    fn estimates_are_what_they_say() {
        let minutes = |estimates: Estimates| -> Vec<u64> {
            estimates.of(&workload(), 1).into_iter().map(|ms| ms / 60_000).collect()
        };
        assert_eq!(minutes(Estimates::Exact), [0_u64; 0]);
        assert_eq!(minutes(Estimates::Trace), [15, 30, 31, 100_000]);
        assert_eq!(minutes(Estimates::Classes), [30, 30, 240, 100_000]);
        assert_eq!(minutes(Estimates::Averages), [20, 20, 50_015, 50_015]);
        assert_eq!(minutes(Estimates::Unknown), [25_017; 4]);
    }

    #[test]
    fn noise_is_within_half_and_double_in_two_of_three_cases() {
        let job = Job { duration_ms: 1_000_000, ..Job::default() };
        let workload = Workload { jobs: vec![job; 3_000], ..Workload::default() };
        let near =
            Estimates::Noise.of(&workload, 1).into_iter().filter(|ms| (500_000..=2_000_000).contains(ms)).count();
        assert!((1_950..2_150).contains(&near), "{near}");
    }
}

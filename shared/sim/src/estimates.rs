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
    /// The mean of the jobs of the same team and size that have ended by then, else of the size, else of all.
    Learned,
    /// Nothing at all.
    Nothing,
}

/// Upper ends of the classes that users can declare, in milliseconds.
const CLASSES_MS: [u64; 4] = [1_800_000, 14_400_000, 86_400_000, 1_209_600_000];

impl Estimates {
    /// What is believed of each job of a workload.
    #[must_use]
    pub fn of(self, workload: &Workload, seed: u64) -> Believed {
        let jobs = workload.jobs.iter();
        let known = match self {
            Self::Exact => return Believed::Exact,
            Self::Learned => return Believed::Learned(Learner::default()),
            Self::Nothing => return Believed::Nothing,
            Self::Trace => jobs.map(|job| job.estimate_ms.unwrap_or(job.duration_ms)).collect(),
            Self::Noise => {
                let mut random = fork(seed, "estimates");
                let sigma = std::f64::consts::LN_2;
                jobs.map(|job| whole(job.duration_ms as f64 * random.lognormal(1.0, sigma))).collect()
            }
            Self::Classes => jobs.map(|job| class_ms(job.duration_ms)).collect(),
            Self::Averages => averages(workload, |job| job.gpus),
            Self::Unknown => averages(workload, |_| 0),
        };
        Believed::Known(known)
    }
}

/// What is believed of run times, in milliseconds.
#[derive(Clone, Debug)]
pub enum Believed {
    /// The run time itself.
    Exact,
    /// A number for each job, in the order of the workload.
    Known(Vec<u64>),
    /// What jobs that have ended teach.
    Learned(Learner),
    /// Nothing: a job may run for as long as [`NOTHING_KNOWN_MS`].
    Nothing,
}

/// How long a job may run of which nothing is known: 30 days.
pub const NOTHING_KNOWN_MS: u64 = 2_592_000_000;
/// What is believed before any job has ended: an hour.
const FIRST_GUESS_MS: u64 = 3_600_000;
/// Jobs of a kind that have to end before their mean says more than that of a wider kind.
const ENOUGH: u64 = 3;

/// Means of jobs that have ended, by team and size, by size, and of all.
#[derive(Clone, Debug, Default)]
pub struct Learner {
    kinds: BTreeMap<(Option<u16>, u32), Sum>,
    sizes: BTreeMap<u32, Sum>,
    all: Sum,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total_ms: u64,
    count: u64,
}

impl Sum {
    fn add(&mut self, ms: u64) {
        self.total_ms = self.total_ms.saturating_add(ms);
        self.count += 1;
    }

    fn mean(self, enough: u64) -> Option<u64> {
        (self.count >= enough).then(|| self.total_ms / self.count)
    }
}

impl Learner {
    fn believed(&self, job: &Job) -> u64 {
        let of_kind = self.kinds.get(&(job.team, job.gpus)).and_then(|sum| sum.mean(ENOUGH));
        let of_size = || self.sizes.get(&job.gpus).and_then(|sum| sum.mean(ENOUGH));
        of_kind.or_else(of_size).or_else(|| self.all.mean(1)).unwrap_or(FIRST_GUESS_MS)
    }
}

impl Believed {
    /// What is believed of a job now.
    #[must_use]
    pub fn of(&self, place: usize, job: &Job) -> u64 {
        match self {
            Self::Exact => job.duration_ms,
            Self::Known(known) => known.get(place).copied().unwrap_or(job.duration_ms),
            Self::Learned(learner) => learner.believed(job),
            Self::Nothing => NOTHING_KNOWN_MS,
        }
    }

    /// Takes in that a job has ended.
    pub fn learn(&mut self, job: &Job) {
        if let Self::Learned(learner) = self {
            learner.kinds.entry((job.team, job.gpus)).or_default().add(job.duration_ms);
            learner.sizes.entry(job.gpus).or_default().add(job.duration_ms);
            learner.all.add(job.duration_ms);
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
            let (workload, mut believed) = (workload(), estimates.of(&workload(), 1));
            let jobs = workload.jobs.iter().enumerate();
            jobs.map(|(place, job)| {
                let ms = believed.of(place, job);
                believed.learn(job);
                ms / 60_000
            })
            .collect()
        };
        assert_eq!(minutes(Estimates::Exact), [10, 30, 31, 100_000]);
        assert_eq!(minutes(Estimates::Trace), [15, 30, 31, 100_000]);
        assert_eq!(minutes(Estimates::Classes), [30, 30, 240, 100_000]);
        assert_eq!(minutes(Estimates::Averages), [20, 20, 50_015, 50_015]);
        assert_eq!(minutes(Estimates::Unknown), [25_017; 4]);
        // An hour, then the mean of all that have ended; three of a kind would be needed for more.
        assert_eq!(minutes(Estimates::Learned), [60, 10, 20, 23]);
        assert_eq!(minutes(Estimates::Nothing), [43_200; 4]);
    }

    #[test]
    fn what_is_learned_is_of_the_same_team_and_size_once_enough_have_ended() {
        let job = |team, gpus, minutes: u64| Job { team, gpus, duration_ms: minutes * 60_000, ..Job::default() };
        let mut believed = Believed::Learned(Learner::default());
        for _ in 0..3 {
            believed.learn(&job(Some(1), 8, 10));
            believed.learn(&job(Some(2), 8, 30));
        }
        believed.learn(&job(Some(2), 1, 90));
        let minutes = |team, gpus| believed.of(0, &job(team, gpus, 7)) / 60_000;
        assert_eq!(
            [minutes(Some(1), 8), minutes(Some(2), 8), minutes(Some(3), 8), minutes(Some(2), 1)],
            [10, 30, 20, 30]
        );
    }

    #[test]
    fn noise_is_within_half_and_double_in_two_of_three_cases() {
        let job = Job { duration_ms: 1_000_000, ..Job::default() };
        let workload = Workload { jobs: vec![job; 3_000], ..Workload::default() };
        let Believed::Known(known) = Estimates::Noise.of(&workload, 1) else { panic!("a number for each job") };
        let near = known.into_iter().filter(|ms| (500_000..=2_000_000).contains(ms)).count();
        assert!((1_950..2_150).contains(&near), "{near}");
    }
}

//! What is believed of run times before they are over. The reference strategies know them; the production decision
//! believes what it is told.

use std::collections::BTreeMap;

use osprey_policy::estimate::{Runs, class_end_ms};
use osprey_policy::rules::EstimateRules;

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
    /// The upper end of the declared class that the run time is in: the policy's, else half an hour, 4 hours, a day, 14
    /// days.
    Classes,
    /// The mean of all jobs of the same size.
    Averages,
    /// The mean of all jobs: nothing is known of the single one.
    Unknown,
    /// What the policy's `[estimates]` learn from the jobs of the same team and size that have ended by then, else of the
    /// size, else of all.
    Learned,
    /// Nothing at all.
    Nothing,
}

/// Upper ends of the classes that users can declare where the policy says none, in milliseconds.
const CLASSES_MS: [u64; 4] = [1_800_000, 14_400_000, 86_400_000, 1_209_600_000];

impl Estimates {
    /// What is believed of each job of a workload.
    #[must_use]
    pub fn of(self, workload: &Workload, rules: &EstimateRules, seed: u64) -> Believed {
        let jobs = workload.jobs.iter();
        let known = match self {
            Self::Exact => return Believed::Exact,
            Self::Learned => return Believed::Learned(Learner::new(rules.clone())),
            Self::Nothing => return Believed::Nothing,
            Self::Trace => jobs.map(|job| job.estimate_ms.unwrap_or(job.duration_ms)).collect(),
            Self::Noise => {
                let mut random = fork(seed, "estimates");
                let sigma = std::f64::consts::LN_2;
                jobs.map(|job| whole(job.duration_ms as f64 * random.lognormal(1.0, sigma))).collect()
            }
            Self::Classes => jobs.map(|job| class_end_ms(classes(rules), job.duration_ms)).collect(),
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
    /// Nothing.
    Nothing,
}

/// Runs of jobs that have ended, by team and size, by size, and of all: a trace says nothing of definitions.
#[derive(Clone, Debug, Default)]
pub struct Learner {
    rules: EstimateRules,
    kinds: BTreeMap<(Option<u16>, u32), Runs>,
    sizes: BTreeMap<u32, Runs>,
    all: Runs,
}

impl Learner {
    /// Nothing has ended yet.
    #[must_use]
    pub fn new(rules: EstimateRules) -> Self {
        Self { rules, ..Self::default() }
    }

    fn believed(&self, job: &Job) -> Option<u64> {
        let EstimateRules { quantile_percent, runs_min, .. } = self.rules;
        let of = |runs: Option<&Runs>, runs_min| runs.and_then(|runs| runs.quantile_ms(quantile_percent, runs_min));
        of(self.kinds.get(&(job.team, job.gpus)), runs_min)
            .or_else(|| of(self.sizes.get(&job.gpus), runs_min))
            .or_else(|| of(Some(&self.all), 1))
    }
}

impl Believed {
    /// What is believed of a job now, in milliseconds; `None` where nothing is.
    #[must_use]
    pub fn of(&self, place: usize, job: &Job) -> Option<u64> {
        match self {
            Self::Exact => Some(job.duration_ms),
            Self::Known(known) => Some(known.get(place).copied().unwrap_or(job.duration_ms)),
            Self::Learned(learner) => learner.believed(job),
            Self::Nothing => None,
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

/// The policy's classes, where it has some.
fn classes(rules: &EstimateRules) -> &[u64] {
    if rules.classes_ms.is_empty() { &CLASSES_MS } else { &rules.classes_ms }
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
            let (workload, mut believed) = (workload(), estimates.of(&workload(), &EstimateRules::default(), 1));
            let jobs = workload.jobs.iter().enumerate();
            jobs.map(|(place, job)| {
                let ms = believed.of(place, job);
                believed.learn(job);
                ms.map_or(0, |ms| ms / 60_000)
            })
            .collect()
        };
        assert_eq!(minutes(Estimates::Exact), [10, 30, 31, 100_000]);
        assert_eq!(minutes(Estimates::Trace), [15, 30, 31, 100_000]);
        assert_eq!(minutes(Estimates::Classes), [30, 30, 240, 100_000]);
        assert_eq!(minutes(Estimates::Averages), [20, 20, 50_015, 50_015]);
        assert_eq!(minutes(Estimates::Unknown), [25_017; 4]);
        // Nothing, then the median of all that have ended; three of a kind would be needed for more.
        assert_eq!(minutes(Estimates::Learned), [0, 10, 10, 30]);
        assert_eq!(minutes(Estimates::Nothing), [0; 4]);
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
        let minutes = |team, gpus| believed.of(0, &job(team, gpus, 7)).map_or(0, |ms| ms / 60_000);
        assert_eq!(
            [minutes(Some(1), 8), minutes(Some(2), 8), minutes(Some(3), 8), minutes(Some(2), 1)],
            [10, 30, 10, 30]
        );
    }

    #[test]
    fn noise_is_within_half_and_double_in_two_of_three_cases() {
        let job = Job { duration_ms: 1_000_000, ..Job::default() };
        let workload = Workload { jobs: vec![job; 3_000], ..Workload::default() };
        let Believed::Known(known) = Estimates::Noise.of(&workload, &EstimateRules::default(), 1) else {
            panic!("a number for each job")
        };
        let near = known.into_iter().filter(|ms| (500_000..=2_000_000).contains(ms)).count();
        assert!((1_950..2_150).contains(&near), "{near}");
    }
}

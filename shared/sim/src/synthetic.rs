//! Made-up workloads that look like published clusters.
//!
//! Run times are lognormal with the mean and the median that each cluster's owners published; arrivals are a Poisson
//! process at the rate that gives the load asked for. Sizes have the published mean where one is known. Who submits
//! what (environment, workload, preemptible, failures, team) is our assumption, the same for all.

use osprey_model::metadata::Metadata;

use crate::kernel::fork;
use crate::kernel::random::Random;
use crate::trace::Entry;

/// A published cluster. Run times are seconds over all jobs, GPU jobs where the source tells them apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Mean run time.
    pub mean_seconds: f64,
    /// Median run time.
    pub median_seconds: f64,
    /// Sizes in GPUs, each with its share of the jobs.
    pub sizes: &'static [(u32, f64)],
}

/// Sizes with a mean of about 3.7 GPUs, as Helios has.
const HELIOS_SIZES: &[(u32, f64)] = &[(1, 0.62), (2, 0.07), (4, 0.07), (8, 0.19), (16, 0.03), (32, 0.02)];
/// Mostly small jobs: the cluster's owners publish a mean below one GPU, and whole GPUs are the least that we give.
const SMALL_SIZES: &[(u32, f64)] = &[(1, 0.9), (2, 0.06), (4, 0.02), (8, 0.02)];

/// The clusters, from the summary table of AcmeTrace (Hu et al., NSDI 2024).
pub const PROFILES: [Profile; 4] = [
    Profile { name: "philly", mean_seconds: 18_006.0, median_seconds: 874.0, sizes: HELIOS_SIZES },
    Profile { name: "helios", mean_seconds: 6_652.0, median_seconds: 206.0, sizes: HELIOS_SIZES },
    Profile { name: "seren", mean_seconds: 1_414.0, median_seconds: 122.0, sizes: HELIOS_SIZES },
    Profile { name: "pai", mean_seconds: 4_787.0, median_seconds: 481.0, sizes: SMALL_SIZES },
];

impl Profile {
    /// The profile of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        PROFILES.into_iter().find(|profile| profile.name == name)
    }

    /// Deviation of the logarithm of run times: the mean of a lognormal is median · e^(σ²/2).
    fn sigma(&self) -> f64 {
        (2.0 * (self.mean_seconds / self.median_seconds).ln()).sqrt()
    }

    /// Sizes that fit the cluster.
    fn fitting(&self, gpus_max: u32) -> Vec<(u32, f64)> {
        self.sizes.iter().filter(|(gpus, _)| *gpus <= gpus_max).copied().collect()
    }
}

/// What is to be made up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthetic {
    /// The cluster to look like.
    pub profile: Profile,
    /// Jobs.
    pub jobs: u32,
    /// GPUs of the cluster that they are meant for.
    pub gpus: u32,
    /// GPUs of the largest job that it could hold.
    pub largest: u32,
    /// Work that arrives over work that the cluster can do, 0.8 for a busy one.
    pub load: f64,
    /// The seed; equal seeds make equal workloads.
    pub seed: u64,
}

impl Synthetic {
    /// Makes the workload up. The lines are numbered as if they stood in a file.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let sizes = self.profile.fitting(self.largest);
        let mut chances = Chances::new(self.seed);
        let mut at_seconds = 0.0;
        let shapes: Vec<(u32, f64)> = (0..self.jobs).map(|_| self.shape(&sizes, &mut chances)).collect();
        let gap = self.mean_gap_seconds(&shapes);
        let numbered = (0_u32..).zip(shapes);
        numbered
            .map(|(number, (gpus, run))| {
                let entry = entry(number, at_seconds, run, gpus, &mut chances.people);
                at_seconds += chances.arrivals.exponential(gap);
                entry
            })
            .collect()
    }

    /// Size and run time in seconds, the one independent of the other.
    fn shape(&self, sizes: &[(u32, f64)], chances: &mut Chances) -> (u32, f64) {
        let gpus = chances.sizes.weighted(sizes).unwrap_or(1);
        let run = chances.durations.lognormal(self.profile.median_seconds, self.profile.sigma());
        // A month is the longest that anybody lets a job run; under a second is no job.
        (gpus, run.clamp(1.0, 2_592_000.0))
    }

    /// Seconds between two arrivals.
    ///
    /// The load is that of the time in which jobs arrive: of each job only as much counts as could run in it. Run times
    /// have heavy tails, and one job of a month would otherwise spread a hundred short ones over a month.
    fn mean_gap_seconds(&self, shapes: &[(u32, f64)]) -> f64 {
        let could_do = f64::from(self.gpus.max(1)) * self.load.max(0.01);
        let work = |within: f64| shapes.iter().map(|(gpus, run)| f64::from(*gpus) * run.min(within)).sum::<f64>();
        let (mut short, mut long) = (0.0, work(f64::INFINITY) / could_do);
        // Halving 60 times finds the time to less than a millisecond.
        for _ in 0..60 {
            let middle = f64::midpoint(short, long);
            if work(middle) > could_do * middle { short = middle } else { long = middle }
        }
        long.max(1.0) / f64::from(self.jobs.max(1))
    }
}

/// One generator for each purpose.
struct Chances {
    arrivals: Random,
    durations: Random,
    sizes: Random,
    people: Random,
}

impl Chances {
    fn new(seed: u64) -> Self {
        let [arrivals, durations, sizes, people] =
            ["arrivals", "durations", "sizes", "people"].map(|label| fork(seed, label));
        Self { arrivals, durations, sizes, people }
    }
}

fn entry(number: u32, at_seconds: f64, run: f64, gpus: u32, people: &mut Random) -> Entry {
    let metadata = metadata(people);
    Entry {
        line: u64::from(number) + 1,
        id: number.to_string(),
        submit_ms: whole(at_seconds) * 1000,
        duration_ms: whole(run) * 1000,
        gpus,
        priority: Some(typed(&metadata)),
        metadata,
        failures: people.weighted(&[(0, 0.80), (1, 0.12), (2, 0.05), (3, 0.03)]).unwrap_or(0),
        ..Entry::default()
    }
}

fn metadata(people: &mut Random) -> Metadata {
    let environment = people.weighted(&[("production", 0.35), ("dev", 0.65)]);
    let workload = people.weighted(&[("training", 0.65), ("inference", 0.25), ("preprocessing", 0.10)]);
    Metadata {
        team: Some(format!("team-{}", people.below(8))),
        environment: environment.map(str::to_owned),
        workload: workload.map(str::to_owned),
        preemptible: Some(people.chance(0.15)),
        ..Metadata::default()
    }
}

/// The number that people type where nothing is derived: by environment, more for inference, 0 for what may be evicted.
fn typed(metadata: &Metadata) -> u32 {
    let is = |value: &Option<String>, word: &str| value.as_deref() == Some(word);
    let base = if is(&metadata.environment, "production") { 1000 } else { 500 };
    let inference = if is(&metadata.workload, "inference") { 200 } else { 0 };
    if metadata.preemptible == Some(true) { 0 } else { base + inference }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a trace, never negative")]
fn whole(seconds: f64) -> u64 {
    seconds.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn synthetic(name: &str, jobs: u32, seed: u64) -> Synthetic {
        Synthetic { profile: Profile::named(name).unwrap(), jobs, gpus: 80, largest: 80, load: 0.8, seed }
    }

    #[test]
    fn equal_seeds_make_equal_workloads() {
        assert_eq!(synthetic("helios", 50, 1).entries(), synthetic("helios", 50, 1).entries());
        assert_ne!(synthetic("helios", 50, 1).entries(), synthetic("helios", 50, 2).entries());
    }

    #[test]
    fn run_times_have_the_published_median_and_mean() {
        for profile in PROFILES {
            let entries = synthetic(profile.name, 60_000, 1).entries();
            let mut runs: Vec<f64> = entries.iter().map(|entry| entry.duration_ms as f64 / 1000.0).collect();
            runs.sort_unstable_by(f64::total_cmp);
            let (median, mean) = (runs[30_000], runs.iter().sum::<f64>() / 60_000.0);
            assert!((median / profile.median_seconds - 1.0).abs() < 0.05, "{} {median}", profile.name);
            // Cutting at a month takes some of the tail.
            assert!((mean / profile.mean_seconds - 1.0).abs() < 0.2, "{} {mean}", profile.name);
        }
    }

    #[test]
    fn arrivals_give_the_load_asked_for() {
        let entries = synthetic("philly", 60_000, 3).entries();
        let work: f64 = entries.iter().map(|entry| entry.duration_ms as f64 * f64::from(entry.gpus)).sum();
        let load = work / (entries.last().unwrap().submit_ms as f64 * 80.0);
        assert!((load - 0.8).abs() < 0.02, "{load}");
    }

    #[test]
    fn sizes_fit_the_cluster_and_have_the_published_mean() {
        let entries = synthetic("helios", 60_000, 1).entries();
        let mean = entries.iter().map(|entry| f64::from(entry.gpus)).sum::<f64>() / 60_000.0;
        assert!((mean - 3.72).abs() < 0.15, "{mean}");
        let small = Synthetic { gpus: 4, largest: 4, ..synthetic("helios", 1000, 1) };
        assert!(small.entries().iter().all(|entry| entry.gpus <= 4));
    }
}

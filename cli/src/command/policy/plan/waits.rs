//! Who waits longer under the new policy: job by job, and by tier and team.

use std::collections::BTreeMap;

use osprey_sim::schedule::Schedule;
use osprey_sim::workload::{Job, Workload};

/// A wait that changes by less than this many seconds is the same: whatever a policy changes, it shifts everything a little.
pub(super) const SAME_SECONDS: f64 = 60.0;

/// A job that ended under both policies, with its waits in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wait {
    pub job: String,
    /// Its tier under the new policy.
    pub tier: String,
    /// Its team; `-` for a job that names none.
    pub team: String,
    pub before: f64,
    pub after: f64,
}

/// How many of a group's jobs wait longer, and how many less long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub jobs: usize,
    pub longer: usize,
    pub shorter: usize,
}

impl Wait {
    fn is_longer(&self) -> bool {
        self.after - self.before > SAME_SECONDS
    }

    fn is_shorter(&self) -> bool {
        self.before - self.after > SAME_SECONDS
    }
}

impl Tally {
    fn add(&mut self, wait: &Wait) {
        self.jobs += 1;
        self.longer += usize::from(wait.is_longer());
        self.shorter += usize::from(wait.is_shorter());
    }

    /// The share that waits longer, 0 to 1.
    pub(super) fn longer_share(self) -> f64 {
        if self.jobs == 0 { 0.0 } else { self.longer as f64 / self.jobs as f64 }
    }
}

/// The waits of the jobs that ended both times, in the order of submission.
pub(super) fn waits(before: (&Workload, &Schedule), after: (&Workload, &Schedule)) -> Vec<Wait> {
    let old: BTreeMap<&str, f64> = ended(before).map(|(job, wait)| (job.id.as_str(), wait)).collect();
    let (workload, _) = after;
    let wait = |(job, after): (&Job, f64)| {
        let name = |names: &[String], place: Option<u16>| {
            place.and_then(|place| names.get(usize::from(place))).map_or("-", String::as_str).to_owned()
        };
        Some(Wait {
            job: job.id.clone(),
            tier: name(&workload.tiers, Some(job.tier)),
            team: name(&workload.teams, job.team),
            before: *old.get(job.id.as_str())?,
            after,
        })
    };
    ended(after).filter_map(wait).collect()
}

fn ended<'w>((workload, schedule): (&'w Workload, &'w Schedule)) -> impl Iterator<Item = (&'w Job, f64)> {
    workload.jobs.iter().zip(&schedule.outcomes).filter_map(|(job, outcome)| {
        let ms = outcome.end_ms?.saturating_sub(job.submit_ms).saturating_sub(job.duration_ms);
        Some((job, ms as f64 / 1000.0))
    })
}

/// Those that wait longer, the worst first.
pub(super) fn longer(waits: &[Wait]) -> Vec<&Wait> {
    let mut longer: Vec<&Wait> = waits.iter().filter(|wait| wait.is_longer()).collect();
    longer.sort_by(|a, b| (b.after - b.before).total_cmp(&(a.after - a.before)).then(a.job.cmp(&b.job)));
    longer
}

/// Counts by a name of each job.
pub(super) fn tally(waits: &[Wait], name: fn(&Wait) -> &str) -> BTreeMap<String, Tally> {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for wait in waits {
        tallies.entry(name(wait).to_owned()).or_default().add(wait);
    }
    tallies
}

/// Counts of all.
pub(super) fn total(waits: &[Wait]) -> Tally {
    let mut total = Tally::default();
    waits.iter().for_each(|wait| total.add(wait));
    total
}

#[cfg(test)]
mod tests {
    use osprey_sim::schedule::Outcome;

    use super::*;

    #[test]
    fn who_waits_longer_is_found_by_name_and_counted_by_tier_and_team() {
        let job =
            |id: &str, tier, team| Job { id: id.to_owned(), tier, team, gpus: 1, duration_ms: 1_000, ..Job::default() };
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let jobs = vec![job("1", 0, Some(0)), job("2", 1, Some(1)), job("3", 1, None), job("4", 1, None)];
        let workload = Workload::new(jobs, names(["high", "low"]), names(["a", "b"]));
        let schedule = |ends: [Option<u64>; 4]| Schedule {
            outcomes: ends.map(|end_ms| Outcome { end_ms, ..Outcome::default() }).to_vec(),
            ..Schedule::default()
        };
        let before = schedule([Some(1_000), Some(200_000), Some(1_000), Some(1_000)]);
        let after = schedule([Some(61_000), Some(1_000), Some(62_000), None]);
        let waits = waits((&workload, &before), (&workload, &after));
        // A minute is the same wait, and what didn't end both times can't be compared.
        assert_eq!(longer(&waits).iter().map(|wait| wait.job.as_str()).collect::<Vec<_>>(), ["3"]);
        assert_eq!(total(&waits), Tally { jobs: 3, longer: 1, shorter: 1 });
        let tiers = tally(&waits, |wait| &wait.tier);
        assert_eq!(tiers.get("low"), Some(&Tally { jobs: 2, longer: 1, shorter: 1 }));
        let teams = tally(&waits, |wait| &wait.team);
        assert_eq!(teams.keys().map(String::as_str).collect::<Vec<_>>(), ["-", "a", "b"]);
        assert!((total(&waits).longer_share() - 1.0 / 3.0).abs() < 1e-9);
    }
}

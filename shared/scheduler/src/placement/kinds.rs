//! Kinds of jobs: those that only differ in what they are worth.
//!
//! Of two jobs of one kind the worthier one is placed first: wherever the other could go, it could go too. So a search
//! has to find how many of each kind go where, and not which, and a plan that was found never leaves a job waiting for
//! an equal one that is worth less.

use super::problem::Job;

/// The jobs by kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds {
    list: Vec<Kind>,
    /// The kind of each job.
    of_job: Vec<u32>,
}

/// Jobs of one kind.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub slots: u32,
    pub outlasts: bool,
    /// Its jobs, urgent ones first, then the worthiest, then by place.
    pub jobs: Vec<u32>,
    /// What the first n of them are worth together, in thousandths; one longer than `jobs`.
    pub worth: Vec<i64>,
}

impl Kinds {
    pub(super) fn of(jobs: &[Job]) -> Self {
        let key = |job: &Job| (job.slots, job.outlasts);
        let mut keys: Vec<(u32, bool)> = jobs.iter().map(key).collect();
        keys.sort_unstable();
        keys.dedup();
        let place = |job: &Job| keys.binary_search(&key(job)).ok().and_then(|at| u32::try_from(at).ok()).unwrap_or(0);
        let of_job: Vec<u32> = jobs.iter().map(place).collect();
        let list = (0_u32..).zip(&keys).map(|(number, (slots, outlasts))| {
            let mut members: Vec<(u32, &Job)> =
                (0_u32..).zip(jobs).zip(&of_job).filter(|(_, of)| **of == number).map(|(member, _)| member).collect();
            members.sort_by_key(|(_, job)| (!job.is_urgent, u32::MAX - job.weight));
            let mut worth = vec![0];
            let mut sum = 0;
            worth.extend(members.iter().map(|(_, job)| {
                sum += job.value();
                sum
            }));
            Kind {
                slots: *slots,
                outlasts: *outlasts,
                jobs: members.into_iter().map(|(number, _)| number).collect(),
                worth,
            }
        });
        Self { list: list.collect(), of_job }
    }

    pub(super) fn list(&self) -> &[Kind] {
        &self.list
    }

    /// The kind of a job.
    pub(super) fn of_job(&self, job: u32) -> Option<usize> {
        usize::try_from(job).ok().and_then(|job| self.of_job.get(job)).and_then(|kind| usize::try_from(*kind).ok())
    }
}

impl Kind {
    /// What the next job is worth once `placed` have a place; `None` when there are no more.
    pub(super) fn next_worth(&self, placed: usize) -> Option<i64> {
        Some(self.worth.get(placed + 1)? - self.worth.get(placed)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_differ_only_in_worth_are_of_one_kind() {
        let job = |slots, weight, outlasts| Job { slots, weight, is_urgent: weight > 800, outlasts };
        let jobs = [job(2, 5, false), job(1, 7, false), job(2, 9, false), job(2, 900, true), job(2, 9, false)];
        let kinds = Kinds::of(&jobs);
        let members: Vec<&[u32]> = kinds.list().iter().map(|kind| kind.jobs.as_slice()).collect();
        assert_eq!(members, [&[1][..], &[2, 4, 0], &[3]]);
        assert_eq!(kinds.list()[1].worth, [0, 18, 36, 46]);
        assert_eq!((kinds.list()[1].next_worth(2), kinds.list()[1].next_worth(3)), (Some(10), None));
        assert_eq!(kinds.of_job(3), Some(2));
    }
}

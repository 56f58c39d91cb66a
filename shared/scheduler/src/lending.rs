//! Priority inheritance and the critical path over the jobs that wait for one another.
//!
//! A job that waits for others lends them its number: an ancestor that it needs counts as urgent as what waits for it. Of
//! equally urgent ones the one with the longest chain behind it goes first.

use std::collections::{BTreeMap, BTreeSet};

use osprey_model::id::JobId;

/// A job that hasn't started, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependent {
    /// The job.
    pub job: JobId,
    /// Its derived priority, 0 to 9999.
    pub priority: u32,
    /// How long it is expected to run, in milliseconds.
    pub expected_ms: u64,
    /// The unfinished jobs that it needs.
    pub needs: Vec<JobId>,
}

/// What those that wait for a job lend it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lent {
    /// The highest number of those that wait for it, by however many steps; 0 when nobody does.
    pub priority: u32,
    /// Expected run of the longest chain of jobs that wait for it, in milliseconds, its own not counted.
    pub critical_path_ms: u64,
}

/// What every job that is waited for is lent.
///
/// Edges may be in any order and come late: a cycle, which nothing can ever start, lends within itself and has a path of
/// finite length. An edge to a job that isn't in the list is to one that runs or is about to, and counts as well.
#[must_use]
pub fn lent(dependents: &[Dependent]) -> BTreeMap<JobId, Lent> {
    let jobs: BTreeMap<JobId, &Dependent> = dependents.iter().map(|dependent| (dependent.job, dependent)).collect();
    let mut lent: BTreeMap<JobId, Lent> = BTreeMap::new();
    for (job, priority) in priorities(&jobs) {
        lent.entry(job).or_default().priority = priority;
    }
    for (job, critical_path_ms) in paths(&jobs) {
        lent.entry(job).or_default().critical_path_ms = critical_path_ms;
    }
    lent
}

/// From the most urgent down, each lends to all ancestors that nobody before it has reached.
fn priorities(jobs: &BTreeMap<JobId, &Dependent>) -> BTreeMap<JobId, u32> {
    let mut lenders: Vec<&Dependent> = jobs.values().copied().collect();
    lenders.sort_by_key(|lender| std::cmp::Reverse(lender.priority));
    let mut reached: BTreeMap<JobId, u32> = BTreeMap::new();
    for lender in lenders {
        let mut open: Vec<JobId> = lender.needs.clone();
        while let Some(job) = open.pop() {
            if let std::collections::btree_map::Entry::Vacant(entry) = reached.entry(job) {
                entry.insert(lender.priority);
                open.extend(jobs.get(&job).into_iter().flat_map(|ancestor| &ancestor.needs));
            }
        }
    }
    reached
}

/// From the ends of the graph up: a job's path is known once those of all that wait for it are. Where a cycle leaves
/// none, the first job of it by id is taken as if the rest of its waiters weren't there.
fn paths(jobs: &BTreeMap<JobId, &Dependent>) -> BTreeMap<JobId, u64> {
    let mut waiters: BTreeMap<JobId, usize> = jobs.keys().map(|job| (*job, 0)).collect();
    for need in jobs.values().flat_map(|dependent| needs(dependent)) {
        *waiters.entry(need).or_default() += 1;
    }
    let mut paths: BTreeMap<JobId, u64> = BTreeMap::new();
    let mut left: BTreeSet<JobId> = waiters.keys().copied().collect();
    let mut ready: Vec<JobId> = left.iter().copied().filter(|job| waiters.get(job) == Some(&0)).collect();
    while let Some(job) = ready.pop().or_else(|| left.first().copied()) {
        left.remove(&job);
        let Some(dependent) = jobs.get(&job) else { continue };
        let path_ms = paths.get(&job).copied().unwrap_or(0).saturating_add(dependent.expected_ms);
        for need in needs(dependent) {
            let longest = paths.entry(need).or_default();
            // What was taken out of a cycle keeps the path that it has.
            if left.contains(&need) {
                *longest = path_ms.max(*longest);
            }
            let waiting = waiters.entry(need).or_default();
            *waiting = waiting.saturating_sub(1);
            if *waiting == 0 && left.contains(&need) {
                ready.push(need);
            }
        }
    }
    paths
}

/// What a job needs, each once, and never itself.
fn needs(dependent: &Dependent) -> BTreeSet<JobId> {
    dependent.needs.iter().copied().filter(|need| *need != dependent.job).collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn id(number: u128) -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(number))
    }

    /// A job by number, priority, minutes and what it needs.
    fn job(number: u128, priority: u32, minutes: u64, needs: &[u128]) -> Dependent {
        let needs = needs.iter().copied().map(id).collect();
        Dependent { job: id(number), priority, expected_ms: minutes * 60_000, needs }
    }

    fn of(lent: &BTreeMap<JobId, Lent>, number: u128) -> (u32, u64) {
        lent.get(&id(number)).map_or((0, 0), |lent| (lent.priority, lent.critical_path_ms / 60_000))
    }

    /// A28
    #[test]
    fn a_waiting_job_lends_its_number_to_everything_it_needs_by_however_many_steps() {
        // 1 ← 2 ← 4 (urgent), 1 ← 3
        let lent = lent(&[job(1, 0, 5, &[]), job(2, 450, 10, &[1]), job(3, 700, 90, &[1]), job(4, 1_200, 20, &[2])]);
        assert_eq!((of(&lent, 1), of(&lent, 2), of(&lent, 3)), ((1_200, 90), (1_200, 20), (0, 0)));
    }

    #[test]
    fn a_job_that_runs_is_lent_to_as_well() {
        assert_eq!(of(&lent(&[job(2, 900, 10, &[1])]), 1), (900, 10));
    }

    #[test]
    fn a_cycle_by_late_edges_lends_within_itself_and_ends() {
        let lent = lent(&[job(1, 100, 1, &[3, 1]), job(2, 900, 10, &[1]), job(3, 50, 100, &[2]), job(4, 70, 5, &[3])]);
        assert_eq!([1, 2, 3].map(|number| of(&lent, number).0), [900; 3]);
        assert!([1, 2, 3].iter().all(|number| of(&lent, *number).1 <= 116), "{lent:?}");
    }

    proptest! {
        /// Nobody is lent less than a job that waits for it, and its path is no shorter than that job and its own path.
        #[test]
        fn lending_reaches_every_ancestor(edges in vec((0_u128..12, 0_u128..12), 0..40), numbers in vec(0_u32..1_300, 12)) {
            let needs = |number: u128| -> Vec<u128> {
                // Edges to smaller numbers make no cycle.
                edges.iter().filter(|(a, b)| *a == number && b < a).map(|(_, b)| *b).collect()
            };
            let jobs: Vec<Dependent> =
                (0_u128..).zip(&numbers).map(|(number, p)| job(number, *p, u64::from(*p % 7), &needs(number))).collect();
            let found = lent(&jobs);
            let mut turned = jobs.clone();
            turned.reverse();
            prop_assert_eq!(&lent(&turned), &found);
            for (number, dependent) in (0_u128..).zip(&jobs) {
                let (own, path) = of(&found, number);
                for need in needs(number) {
                    prop_assert!(of(&found, need).0 >= own.max(dependent.priority));
                    prop_assert!(of(&found, need).1 >= path + dependent.expected_ms / 60_000);
                }
            }
        }

        /// Any edges at all: it ends, and the order of the list means nothing for the numbers.
        #[test]
        fn any_graph_has_an_answer(edges in vec((0_u128..8, 0_u128..8), 0..40)) {
            let needs = |number: u128| -> Vec<u128> { edges.iter().filter(|(a, _)| *a == number).map(|(_, b)| *b).collect() };
            let jobs: Vec<Dependent> = (0_u32..8).map(|n| job(n.into(), n, 1, &needs(n.into()))).collect();
            let mut turned = jobs.clone();
            turned.rotate_left(3);
            prop_assert_eq!(lent(&turned), lent(&jobs));
        }
    }
}

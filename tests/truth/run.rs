//! Checks jobs on all cores, in the order of their worlds.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use osprey_sim::kernel::random::fork;

use crate::case::{Case, cases};
use crate::changes::{Looked, look};
use crate::options::Options;
use crate::tally::Tally;
use crate::{binding, say};

/// What came of a job.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The job, where and when, for people.
    pub what: String,
    /// Its number.
    pub number: (u64, u32),
    /// The code of its reason.
    pub code: &'static str,
    /// What is wrong about its reason.
    pub untrue: Option<String>,
    /// What came of its changes.
    pub looked: Looked,
}

fn check(case: &Case, seed: u64) -> Outcome {
    let mut random = fork(seed ^ (case.number.0 << 16) ^ u64::from(case.number.1), "changes");
    Outcome {
        what: what(case),
        number: case.number,
        code: case.reason.code(),
        untrue: binding::untrue(case).err(),
        looked: look(case, &mut random),
    }
}

fn what(case: &Case) -> String {
    let (job, reason) = (case.job.as_uuid().as_u128(), case.reason);
    format!("{}, at {} ms, job {job}: {reason:?}", case.moment.world, case.moment.now_ms)
}

/// Checks one job and tells all of it.
///
/// # Errors
/// When there is no such job.
pub fn one(options: &Options, (world, number): (u64, u32)) -> Result<bool, String> {
    let cases = cases(options.seed, world)?;
    let at = usize::try_from(number).unwrap_or(usize::MAX);
    let case = cases.get(at).ok_or_else(|| format!("world {world} has {} jobs", cases.len()))?;
    let outcome = check(case, options.seed);
    say(&format!("rules: {:#?}", case.moment.rules));
    say(&format!("snapshot: {:#?}", case.moment.snapshot));
    say(&format!("plan: {:#?}", case.plan));
    say(&format!("job: {:#?}", case.queued()));
    let mut tally = Tally::default();
    tally.add(outcome, options.seed);
    Ok(tally.tell())
}

/// Checks as many jobs as were asked for.
///
/// # Errors
/// When a world can't be made.
pub fn all(options: &Options) -> Result<bool, String> {
    let began = std::time::Instant::now();
    let mut tally = Tally::default();
    let mut first = 0;
    let batch = 4 * u64::try_from(options.threads).unwrap_or(1);
    while tally.jobs() < options.jobs {
        for outcome in worlds(options, first, first + batch)? {
            if tally.jobs() < options.jobs {
                tally.add(outcome, options.seed);
            }
        }
        first += batch;
    }
    let seconds = began.elapsed().as_secs_f64();
    drop(std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{first} worlds in {seconds:.0} s\n")));
    Ok(tally.tell())
}

/// Outcomes of the jobs of some worlds, in their order.
fn worlds(options: &Options, first: u64, end: u64) -> Result<Vec<Outcome>, String> {
    let next = AtomicU64::new(first);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| {
                loop {
                    let world = next.fetch_add(1, Ordering::Relaxed);
                    if world >= end {
                        break;
                    }
                    let outcomes = cases(options.seed, world)
                        .map(|cases| cases.iter().map(|case| check(case, options.seed)).collect::<Vec<_>>());
                    if let Ok(mut found) = found.lock() {
                        found.push((world, outcomes));
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().map_err(|_| "a check panicked".to_owned())?;
    found.sort_by_key(|(world, _)| *world);
    let mut all = Vec::new();
    for (_, outcomes) in found {
        all.extend(outcomes?);
    }
    Ok(all)
}

//! Counters, budgets and usage are what a replay of Batch's own log gives.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::batch::BatchJob;
use super::super::evictions::TOKEN;
use super::super::observer::Edge;
use super::super::scenario::Truth;
use super::super::wiring::{FAILURES_MAX, INTERRUPTIONS_MAX};
use super::super::world::World;
use super::messages::truth_of;
use super::table::{Table, number, text};

const FAILURES: [&str; 5] = ["out_of_memory", "start_failure_permanent", "timeout", "exit_code", "misconfigured"];
const INTERRUPTIONS: [&str; 3] = ["host_lost", "start_failure_transient", "capacity"];
const DAY_MS: i64 = 86_400_000;

/// GPU-milliseconds by team, day and kind.
type Usage = BTreeMap<(String, String, String), i64>;

/// One run as Batch's log has it.
struct Run {
    attempt: u64,
    class: &'static str,
    from: i64,
    to: i64,
}

/// Checks every job.
///
/// # Errors
/// The first number that is another.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    let mut usage = Usage::new();
    for (id, (job, _)) in &table.jobs {
        let Some(Truth::Job { gpus, team, retries, saves_ms, .. }) = truth_of(world, job) else { continue };
        let runs = runs(world, table, id)?;
        let mut crashed = false;
        for run in &runs {
            use_up(&mut usage, team, *gpus, run);
            lose(&mut usage, team, *gpus, (run, *saves_ms));
            if crashed && run.from < run.to && *gpus > 0 {
                *usage.entry(((*team).to_owned(), day_of(run.from), "restarts".to_owned())).or_insert(0) += 1;
            }
            crashed = FAILURES.contains(&run.class);
        }
        counts(world, table, id, job, *gpus, &runs)?;
        budgets(world, id, job, &runs, retries.unwrap_or(FAILURES_MAX))?;
        success(id, job, &runs)?;
    }
    usage.retain(|_, amount| *amount > 0);
    // How long jobs waited isn't in Batch's log.
    let (waited, kept): (Usage, Usage) =
        table.usage.clone().into_iter().partition(|((_, _, name), _)| name == "queue_gpu_ms");
    if let Some((key, amount)) = waited.iter().find(|(_, amount)| **amount < 0) {
        return Err(format!("{key:?} is {amount}: nobody waits for less than nothing"));
    }
    if usage == kept {
        return Ok(());
    }
    let differs = usage.iter().find(|(key, amount)| kept.get(key) != Some(amount));
    let wrong = differs.map(|(key, want)| format!("{key:?} is {:?} where {want} was used", kept.get(key)));
    Err(format!(
        "usage differs from Batch's log: {}",
        wrong.unwrap_or_else(|| "there is more than was used".to_owned())
    ))
}

/// The recorded runs of a job in the order of their attempts, by Batch's log, checked against their rows.
fn runs(world: &World, table: &Table, id: &str) -> Result<Vec<Run>, String> {
    let mut runs = Vec::new();
    for ((_, attempt), row) in table.attempts.range((id.to_owned(), 0)..=(id.to_owned(), u64::MAX)) {
        let batch = text(row, "batch_job_id");
        let Some(job) = world.batch.find(&batch).and_then(|(at, _)| world.batch.jobs.get(at)) else {
            return Err(format!("attempt {attempt} of job {id} is a Batch job that never was"));
        };
        let run = Run { class: class(world, job), ..replay(job, *attempt, row) };
        let class = text(row, "end_class");
        if class != run.class {
            return Err(format!("attempt {attempt} of job {id} ended as {} and is recorded as {class}", run.class));
        }
        let (from, to) = (row.get("started_at").and_then(Value::as_i64), row.get("stopped_at").and_then(Value::as_i64));
        if to != Some(run.to) || from.unwrap_or(run.to) != run.from {
            return Err(format!(
                "attempt {attempt} of job {id} ran from {} to {} and is recorded from {from:?} to {to:?}",
                run.from, run.to
            ));
        }
        runs.push(run);
    }
    Ok(runs)
}

/// The class of the end. The words of an eviction and its record together are one, whoever wrote the words.
fn class(world: &World, job: &BatchJob) -> &'static str {
    let Some(told) = &job.whole.told else { return "unknown" };
    let is_recorded = world.evictions.seen.iter().any(|eviction| eviction.batch == job.id);
    let units = std::iter::once(&job.whole).chain(&job.children).filter_map(|unit| unit.told.as_ref());
    let is_said = told.class == "cancelled" && units.into_iter().any(|told| told.status_reason.starts_with(TOKEN));
    if is_said && is_recorded { "preempted" } else { told.class }
}

/// An array's start isn't in Batch's answers; it is that of the first child whose start was told.
fn replay(job: &BatchJob, attempt: u64, row: &Value) -> Run {
    let told = job.whole.told.as_ref();
    let to = job.whole.stopped_at.unwrap_or(0);
    let recorded = row.get("started_at").and_then(Value::as_i64);
    let is_start = |at: &i64| job.children.iter().any(|child| child.started_at == Some(*at));
    let from = if job.children.is_empty() { job.whole.started_at } else { recorded.filter(is_start) };
    Run { attempt, class: told.map_or("unknown", |told| told.class), from: from.unwrap_or(to), to }
}

fn gpu_ms(gpus: i64, from: i64, to: i64) -> i64 {
    (to - from).max(0) * gpus
}

fn use_up(usage: &mut Usage, team: &str, gpus: i64, run: &Run) {
    let kind = match run.class {
        "succeeded" => "useful_gpu_ms",
        class if FAILURES.contains(&class) => "failed_gpu_ms",
        _ => "interrupted_gpu_ms",
    };
    let mut from = run.from;
    while from < run.to {
        let to = ((from / DAY_MS + 1) * DAY_MS).min(run.to);
        let day = day_of(from);
        for name in ["gpu_ms", kind] {
            *usage.entry((team.to_owned(), day.clone(), name.to_owned())).or_insert(0) += gpu_ms(gpus, from, to);
        }
        from = to;
    }
}

/// What a crash, an eviction or a lost host lost: the work at the end of the run that wasn't saved.
fn lose(usage: &mut Usage, team: &str, gpus: i64, (run, saves_ms): (&Run, Option<i64>)) {
    let kind = match run.class {
        class if FAILURES.contains(&class) => "crash_gpu_ms",
        "host_lost" | "preempted" => "eviction_gpu_ms",
        _ => return,
    };
    let ran = (run.to - run.from).max(0);
    let mut from = run.to - saves_ms.map_or(ran, |saves| ran % saves);
    while from < run.to {
        let to = ((from / DAY_MS + 1) * DAY_MS).min(run.to);
        *usage.entry((team.to_owned(), day_of(from), kind.to_owned())).or_insert(0) += gpu_ms(gpus, from, to);
        from = to;
    }
}

fn day_of(ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    at.to_string().chars().take(10).collect()
}

fn counts(world: &World, table: &Table, id: &str, job: &Value, gpus: i64, runs: &[Run]) -> Result<(), String> {
    let of = |classes: &[&str]| runs.iter().filter(|run| classes.contains(&run.class)).count() as u64;
    let edges = world.observer.jobs.get(id).map(|track| track.edges.as_slice()).unwrap_or_default();
    let back = |edge: &&Edge| matches!(edge.to.as_str(), "queued" | "waiting") && is_return(edge);
    let wasted = runs.iter().filter(|run| FAILURES.contains(&run.class)).map(|run| gpu_ms(gpus, run.from, run.to));
    let extras = table.extras.values().filter(|(owner, _)| owner == id).count() as u64;
    let want = [
        ("failures", of(&FAILURES)),
        ("preemptions", of(&["preempted"])),
        ("host_losses", of(&["host_lost"])),
        ("requeues", edges.iter().filter(back).count() as u64),
        ("duplicate_runs", extras),
        ("wasted_gpu_ms", wasted.sum::<i64>().unsigned_abs()),
    ];
    let counts = job.get("counts").cloned().unwrap_or_default();
    match want.into_iter().find(|(name, want)| number(&counts, name) != *want) {
        Some((name, want)) => {
            Err(format!("{name} of job {id} is {} where Batch's log gives {want}", number(&counts, name)))
        }
        None => Ok(()),
    }
}

/// Whether a job came back into the queue from Batch or from an end.
fn is_return(edge: &Edge) -> bool {
    matches!(edge.from.as_str(), "submitted" | "running" | "failed" | "dead")
}

/// No job comes back by itself more often than its budgets allow. A person who requeues it gives it new ones.
fn budgets(world: &World, id: &str, job: &Value, runs: &[Run], failures_max: u32) -> Result<(), String> {
    let edges = world.observer.jobs.get(id).map(|track| track.edges.as_slice()).unwrap_or_default();
    let (mut failures, mut interruptions) = (0_u32, 0_u32);
    for edge in edges {
        if matches!(edge.from.as_str(), "failed" | "dead") {
            (failures, interruptions) = (0, 0);
        }
        let ended = matches!(edge.from.as_str(), "submitted" | "running") && edge.to != "running";
        let Some(run) = runs.iter().find(|run| ended && run.attempt == edge.attempt) else { continue };
        let (failed, interrupted) = (FAILURES.contains(&run.class), INTERRUPTIONS.contains(&run.class));
        failures += u32::from(failed);
        interruptions += u32::from(interrupted);
        let by_itself = edge.to == "queued" && !edge.stop;
        let spent = failed && failures > failures_max || interrupted && interruptions > INTERRUPTIONS_MAX;
        if by_itself && spent {
            return Err(format!("job {id} came back after {failures} failures and {interruptions} interruptions"));
        }
    }
    let budget = job.get("budget").cloned().unwrap_or_default();
    let kept = (number(&budget, "failures"), number(&budget, "interruptions"));
    if kept != (u64::from(failures), u64::from(interruptions)) {
        return Err(format!(
            "the budgets of job {id} say {kept:?} where Batch's log gives {failures} and {interruptions}"
        ));
    }
    Ok(())
}

/// A job succeeded exactly if its last run did.
fn success(id: &str, job: &Value, runs: &[Run]) -> Result<(), String> {
    let ran = runs.iter().any(|run| run.class == "succeeded");
    let says = text(job, "state") == "succeeded";
    if ran == says { Ok(()) } else { Err(format!("job {id} is {} and its runs say otherwise", text(job, "state"))) }
}

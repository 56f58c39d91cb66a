//! Jobs: a list, a summary, and the whole record of one.

use std::path::PathBuf;

use osprey_model::id::BatchJobId;
use osprey_model::job::{Attempt, Job};
use osprey_pipeline::view::JobView;
use serde_json::{Value, json};

use super::table::Columns;
use super::time::{rfc3339, short};
use super::{decision, policy::counted};

/// Jobs as a table.
#[must_use]
pub fn list(jobs: &[Job], now: i64) -> String {
    let headings = ["ID", "NAME", "STATE", "TIER", ">PRIORITY", ">GPUS", "POOL", ">ATTEMPT", ">AGE", "WHY"];
    let mut columns = Columns::new(&headings);
    for job in jobs {
        columns.row([
            job.id.to_string(),
            job.name.clone(),
            job.state.as_str().to_owned(),
            or_dash(job.tier.as_str()),
            job.priority.to_string(),
            job.gpus.to_string(),
            or_dash(job.pool.as_str()),
            job.attempt.to_string(),
            short(now - job.created_at),
            why(job),
        ]);
    }
    columns.render()
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// Why a job is where it is, as far as its state item says.
fn why(job: &Job) -> String {
    match (&job.end, job.last_end) {
        (Some(end), _) => end.code.to_string(),
        (None, Some(class)) if !job.state.is_final() => format!("after {}", class.as_str()),
        _ => String::new(),
    }
}

/// One job in a list, as JSON.
#[must_use]
pub fn summary(job: &Job) -> Value {
    json!({
        "id": job.id,
        "name": job.name,
        "state": job.state,
        "tier": text_or_null(job.tier.as_str()),
        "priority": job.priority,
        "pool": text_or_null(job.pool.as_str()),
        "team": job.team,
        "gpus": job.gpus,
        "attempt": job.attempt,
        "created_at": rfc3339(job.created_at),
        "updated_at": rfc3339(job.updated_at),
        "not_before": (job.not_before > 0).then(|| rfc3339(job.not_before)),
        "end": job.end,
    })
}

fn text_or_null(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Where the log of a Batch job is, when it has one.
pub type Logs<'a> = &'a dyn Fn(&BatchJobId) -> Option<PathBuf>;

/// The whole record as JSON. Every object is built member by member, so that what is an interface is in one place.
#[must_use]
pub fn record(view: &JobView, logs: Logs<'_>) -> Value {
    let JobView { job, record, decision, dependencies, attempts, extras, duplicates, .. } = view;
    let mut document = summary(job);
    let more = json!({
        "policy_revision": text_or_null(job.policy.as_str()),
        "fallback": job.fallback,
        "decision": decision.as_ref().map(|decision| json!({
            "priority": decision.derivation.priority,
            "tier": decision.derivation.tier,
            "pool": text_or_null(decision.pool.as_str()),
            "policy_revision": decision.policy_revision,
            "decided_at": rfc3339(decision.decided_at.as_millisecond()),
            "steps": decision.derivation.steps,
            "warnings": decision.warnings,
        })),
        "refusals": record.as_ref().map(|record| &record.refusals),
        "lineage": {
            "attempts": job.attempt,
            "failures": job.counts.failures,
            "preemptions": job.counts.preemptions,
            "host_losses": job.counts.host_losses,
            "wasted_gpu_seconds": job.counts.wasted_gpu_seconds,
        },
        "budget": { "failures": job.budget.failures, "interruptions": job.budget.interruptions },
        "attempts": attempts.iter().map(|ended| attempt(ended, logs)).collect::<Vec<_>>(),
        "running": job.run.as_ref().map(|run| json!({
            "number": job.attempt,
            "batch_job_id": run.id,
            "queue": run.queue,
            "submitted_at": rfc3339(run.submitted_at),
            "started_at": run.started_at.map(rfc3339),
            "log": logs(&run.id),
        })),
        "evictions": job.counts.preemptions,
        "requeues": job.counts.requeues,
        "depends_on": dependencies.iter().map(|dependency| &dependency.given).collect::<Vec<_>>(),
        "duplicates": duplicates,
        "second_runs": extras.iter().map(|extra| json!({
            "attempt": extra.attempt,
            "batch_job_id": extra.batch_job_id,
            "found_at": rfc3339(extra.found_at),
            "stopped": extra.stopped,
        })).collect::<Vec<_>>(),
        "sender": record.as_ref().map(|record| &record.sender),
        "sent_at": record.as_ref().map(|record| rfc3339(record.sent_at)),
        "request": record.as_ref().map(|record| request(&record.body)),
    });
    if let (Value::Object(document), Value::Object(more)) = (&mut document, more) {
        document.extend(more);
    }
    document
}

/// The body as JSON where it is some, else as text.
fn request(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| body.into())
}

fn attempt(attempt: &Attempt, logs: Logs<'_>) -> Value {
    json!({
        "number": attempt.number,
        "batch_job_id": attempt.batch_job_id,
        "queue": attempt.queue,
        "submitted_at": rfc3339(attempt.submitted_at),
        "started_at": attempt.started_at.map(rfc3339),
        "stopped_at": rfc3339(attempt.stopped_at),
        "end_class": attempt.end_class,
        "reason": attempt.reason,
        "exit_code": attempt.exit_code,
        "gpu_seconds": attempt.gpu_seconds,
        "then": attempt.then,
        "log": logs(&attempt.batch_job_id),
    })
}

/// The whole record for people.
#[must_use]
pub fn story(view: &JobView, logs: Logs<'_>) -> String {
    let mut parts = vec![head(view)];
    if let Some(decision) = &view.decision {
        let head = format!("decision, policy {}", decision.policy_revision);
        parts.push(format!("{head}\n{}", decision::indent(&decision::steps(&decision.derivation.steps))));
    }
    let said: Vec<String> = warnings(view).collect();
    if !said.is_empty() {
        parts.push(said.join("\n"));
    }
    if !view.attempts.is_empty() || view.job.run.is_some() {
        parts.push(format!("attempts\n{}", decision::indent(&attempts(view))));
        let last = view.job.run.as_ref().map(|run| &run.id).or_else(|| view.attempts.last().map(|a| &a.batch_job_id));
        parts.extend(last.and_then(logs).map(|path| format!("log of the last: {}", path.display())));
    }
    parts.join("\n\n")
}

fn head(view: &JobView) -> String {
    let JobView { job, record, dependencies, duplicates, .. } = view;
    let mut rows = vec![
        ("id", job.id.to_string()),
        ("state", state(job)),
        ("priority", priority(job)),
        ("GPUs", job.gpus.to_string()),
        ("sent", record.as_ref().map(|r| format!("{} by {}", rfc3339(r.sent_at), r.sender)).unwrap_or_default()),
        ("history", history(job)),
    ];
    if !dependencies.is_empty() {
        rows.push(("depends on", dependencies.iter().map(|d| d.given.clone()).collect::<Vec<_>>().join(", ")));
    }
    if *duplicates > 0 {
        rows.push(("duplicates", format!("{} with the same content", counted(*duplicates, "more message"))));
    }
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    let lines: Vec<String> = rows.map(|(name, value)| format!("  {name:<11}{value}")).collect();
    format!("{}\n{}", job.name, lines.join("\n"))
}

fn priority(job: &Job) -> String {
    if job.tier.as_str().is_empty() {
        return String::new();
    }
    let fallback = if job.fallback { " (the fallback: the policy could not be evaluated)" } else { "" };
    let pool = text_or_null(job.pool.as_str()).map(|pool| format!(", pool {pool}")).unwrap_or_default();
    format!("{}, tier {}{pool}{fallback}", job.priority, job.tier)
}

fn state(job: &Job) -> String {
    let state = job.state.as_str();
    match &job.end {
        Some(end) => format!("{state}: {} ({})", end.message, end.code),
        None if job.not_before > job.updated_at => format!("{state}, not before {}", rfc3339(job.not_before)),
        None => state.to_owned(),
    }
}

fn history(job: &Job) -> String {
    let counts = &job.counts;
    let numbers = [
        (usize_of(job.attempt), "attempt"),
        (usize_of(counts.failures), "failure"),
        (usize_of(counts.host_losses), "lost host"),
        (usize_of(counts.preemptions), "eviction"),
        (usize_of(counts.requeues), "requeue"),
    ];
    let said = numbers.into_iter().filter(|(count, _)| *count > 0).map(|(count, noun)| counted(count, noun));
    said.collect::<Vec<_>>().join(", ")
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn warnings(view: &JobView) -> impl Iterator<Item = String> {
    let refusals = view.record.iter().flat_map(|record| &record.refusals).map(|refusal| format!("refused: {refusal}"));
    let said = view.decision.iter().flat_map(|decision| &decision.warnings);
    refusals.chain(said.map(|warning| format!("warning: {warning}")))
}

fn attempts(view: &JobView) -> String {
    let mut columns = Columns::new(&[">NO", "BATCH JOB", "STARTED", ">RAN", "END", "REASON", "THEN"]);
    for attempt in &view.attempts {
        columns.row([
            attempt.number.to_string(),
            attempt.batch_job_id.to_string(),
            attempt.started_at.map_or_else(|| "never".to_owned(), rfc3339),
            attempt.started_at.map(|started| short(attempt.stopped_at - started)).unwrap_or_default(),
            attempt.end_class.as_str().to_owned(),
            attempt.reason.clone(),
            attempt.then.clone(),
        ]);
    }
    if let Some(run) = &view.job.run {
        columns.row([
            view.job.attempt.to_string(),
            run.id.to_string(),
            run.started_at.map_or_else(|| "not yet".to_owned(), rfc3339),
            String::new(),
            view.job.state.as_str().to_owned(),
            String::new(),
            String::new(),
        ]);
    }
    columns.render()
}

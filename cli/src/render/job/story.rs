//! The whole record of a job, for people.

use osprey_model::job::Job;
use osprey_model::message::words::shown;
use osprey_pipeline::checkpoint::Checkpoint;
use osprey_pipeline::view::JobView;

use super::super::table::Columns;
use super::super::time::{rfc3339, short};
use super::super::{action, decision, policy::counted};
use super::{Array, Parent, Story, text_or_null};

/// Most failed children that are shown.
const CHILDREN_MAX: usize = 20;

/// The whole record for people.
#[must_use]
pub fn story(story: &Story) -> String {
    let view = &story.view;
    let mut parts = vec![head(story)];
    if let Some(decision) = &view.decision {
        let head = format!("decision, policy {}", decision.policy_revision);
        parts.push(format!("{head}\n{}", decision::indent(&decision::steps(&decision.derivation.steps))));
    }
    let said: Vec<String> = warnings(view).collect();
    if !said.is_empty() {
        parts.push(said.join("\n"));
    }
    if !view.attempts.is_empty() || view.job.run.is_some() {
        parts.push(format!("attempts\n{}", decision::indent(&attempts(story))));
    }
    parts.extend(evictions(view));
    parts.extend(logs(story));
    parts.extend(story.array.as_ref().and_then(failed_children));
    if !view.actions.is_empty() {
        parts.push(format!("actions\n{}", decision::indent(&action::table(&view.actions))));
    }
    parts.join("\n\n")
}

fn head(story: &Story) -> String {
    let JobView { job, record, duplicates, .. } = &story.view;
    let mut rows = vec![
        ("id", job.id.to_string()),
        ("state", state(job)),
        ("priority", priority(job)),
        ("GPUs", gpus(job, story.array.as_ref())),
        ("memory", job.memory_mib.map(grown).unwrap_or_default()),
        ("sent", record.as_ref().map(|r| format!("{} by {}", rfc3339(r.sent_at), r.sender)).unwrap_or_default()),
        ("history", history(job)),
    ];
    rows.extend(story.view.checkpoint.iter().map(|checkpoint| ("checkpoint", saved(checkpoint))));
    rows.extend(story.parents.iter().map(|of| ("depends on", parent(of))));
    if !duplicates.is_empty() {
        let count = counted(duplicates.len(), "more message");
        rows.push(("duplicates", format!("{count} with the same content")));
    }
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    let lines: Vec<String> = rows.map(|(name, value)| format!("  {name:<11}{}", shown(&value))).collect();
    format!("{}\n{}", shown(&job.name), lines.join("\n"))
}

fn grown(mib: u64) -> String {
    format!("{mib} MiB, grown after an attempt ran out of it")
}

/// `s3://data/run/step-500, 40 % done, reported 2026-11-30T10:00:00.000Z`.
fn saved(checkpoint: &Checkpoint) -> String {
    let percent = checkpoint.percent.map(|percent| format!(", {percent} % done")).unwrap_or_default();
    format!("{}{percent}, reported {}", checkpoint.uri, rfc3339(checkpoint.at))
}

/// `train-7, succeeded (ID)`.
fn parent(parent: &Parent) -> String {
    let Parent { given, known } = parent;
    match known {
        Some((name, state)) => format!("{name}, {} ({given})", state.as_str()),
        None => format!("{given}, not on record"),
    }
}

/// A job's GPUs; those of an array as GPUs of one child × children.
fn gpus(job: &Job, array: Option<&Array>) -> String {
    let size = array.and_then(|array| u32::try_from(array.size).ok()).filter(|size| *size > 0);
    match size {
        Some(size) => format!("{} ({} × {size} children)", job.gpus, job.gpus / size),
        None => job.gpus.to_string(),
    }
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

fn attempts(story: &Story) -> String {
    let Story { view, now, .. } = story;
    let mut columns = Columns::new(&[">NO", "BATCH JOB", "STARTED", ">RAN", "END", ">EXIT", "REASON", "THEN"]);
    for attempt in &view.attempts {
        columns.row([
            attempt.number.to_string(),
            attempt.batch_job_id.to_string(),
            attempt.started_at.map_or_else(|| "never".to_owned(), rfc3339),
            attempt.started_at.map(|started| short(attempt.stopped_at - started)).unwrap_or_default(),
            attempt.end_class.as_str().to_owned(),
            attempt.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string()),
            attempt.reason.clone(),
            attempt.then.clone(),
        ]);
    }
    if let Some(run) = &view.job.run {
        columns.row([
            view.job.attempt.to_string(),
            run.id.to_string(),
            run.started_at.map_or_else(|| "not yet".to_owned(), rfc3339),
            run.started_at.map(|started| short(now - started)).unwrap_or_default(),
            view.job.state.as_str().to_owned(),
            String::new(),
            String::new(),
            String::new(),
        ]);
    }
    columns.render()
}

/// Who it made room for, and what that cost.
fn evictions(view: &JobView) -> Option<String> {
    let told: Vec<String> =
        view.evictions.iter().map(|receipt| format!("attempt {}: {receipt}", receipt.attempt)).collect();
    (!told.is_empty()).then(|| format!("evictions\n{}", decision::indent(&shown_lines(&told))))
}

/// Lines with what a person wrote in them.
fn shown_lines(lines: &[String]) -> String {
    lines.iter().map(|line| shown(line)).collect::<Vec<_>>().join("\n")
}

/// Where each attempt wrote to.
fn logs(story: &Story) -> Option<String> {
    let ended = story.view.attempts.iter().map(|attempt| (attempt.number, &attempt.batch_job_id));
    let running = story.view.job.run.as_ref().map(|run| (story.view.job.attempt, &run.id));
    let mut columns = Columns::new(&[">NO", "LOG"]);
    let mut is_empty = true;
    for (number, id) in ended.chain(running) {
        if let Some(path) = story.log(id) {
            columns.row([number.to_string(), path.clone()]);
            is_empty = false;
        }
    }
    (!is_empty).then(|| format!("logs\n{}", decision::indent(&columns.render())))
}

fn failed_children(array: &Array) -> Option<String> {
    if array.failed.is_empty() {
        return None;
    }
    let mut columns = Columns::new(&[">CHILD", ">EXIT", "REASON", "LOG"]);
    for child in array.failed.iter().take(CHILDREN_MAX) {
        columns.row([
            child.index.to_string(),
            child.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string()),
            child.reason.clone().unwrap_or_default(),
            child.log.as_ref().map_or_else(|| "none".to_owned(), Clone::clone),
        ]);
    }
    let failed = array.failed.len();
    let more = failed.saturating_sub(CHILDREN_MAX);
    let rest = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
    let head = format!("{failed} of {} children failed in the newest attempt", array.size);
    Some(format!("{head}\n{}{rest}", decision::indent(&columns.render())))
}

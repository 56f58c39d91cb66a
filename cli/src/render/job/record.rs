//! The whole record of a job as JSON.

use osprey_model::job::Attempt;
use osprey_pipeline::evict::{By, Receipt};
use osprey_pipeline::view::JobView;
use serde_json::{Value, json};

use super::super::action;
use super::super::time::rfc3339;
use super::{Array, FailedChild, Story, summary, text_or_null};

/// The whole record as JSON. Every object is built member by member, so that what is an interface is in one place.
#[must_use]
pub fn record(story: &Story) -> Value {
    let view = &story.view;
    let JobView { job, record, decision, dependencies, attempts, evictions, .. } = view;
    let JobView { checkpoint, actions, extras, duplicates, .. } = view;
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
            "wasted_gpu_seconds": job.counts.wasted_gpu_seconds(),
        },
        "budget": { "failures": job.budget.failures, "interruptions": job.budget.interruptions },
        "memory_mib": job.memory_mib,
        "attempts": attempts.iter().map(|ended| attempt(ended, story)).collect::<Vec<_>>(),
        "running": job.run.as_ref().map(|run| json!({
            "number": job.attempt,
            "batch_job_id": run.id,
            "queue": run.queue,
            "submitted_at": rfc3339(run.submitted_at),
            "started_at": run.started_at.map(rfc3339),
            "log": story.log(&run.id),
        })),
        "evictions": job.counts.preemptions,
        "eviction_receipts": evictions.iter().map(receipt).collect::<Vec<_>>(),
        "checkpoint": checkpoint.as_ref().map(|checkpoint| json!({
            "uri": checkpoint.uri,
            "percent": checkpoint.percent,
            "at": rfc3339(checkpoint.at),
            "attempt": checkpoint.attempt,
        })),
        "requeues": job.counts.requeues,
        "depends_on": dependencies.iter().map(|dependency| &dependency.given).collect::<Vec<_>>(),
        "actions": actions.iter().map(action::document).collect::<Vec<_>>(),
        "array": story.array.as_ref().map(array),
        "duplicates": duplicates.len(),
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

/// An eviction, as its owner is told of it.
#[must_use]
pub fn receipt(receipt: &Receipt) -> Value {
    let (job, sender, reason, rule) = match &receipt.by {
        By::Job { job, rule, .. } => (Some(job), None, None, Some(rule.key())),
        By::Person { sender, reason } => (None, Some(sender), Some(reason), None),
    };
    json!({
        "attempt": receipt.attempt,
        "batch_job_id": receipt.batch_job_id,
        "at": rfc3339(receipt.at),
        "for_job": job,
        "rule": rule,
        "by": sender,
        "reason": reason,
        "lost_gpu_minutes": receipt.lost_gpu_ms as f64 / 60_000.0,
        "resumes_at_minutes": receipt.kept_ms as f64 / 60_000.0,
        "end_class": receipt.end,
        "sentence": receipt.to_string(),
    })
}

/// A line of an export. `ran` are the attempts that started, oldest first.
#[must_use]
pub fn exported(view: &JobView, ran: &[&Attempt]) -> Value {
    let started_at = ran.first().and_then(|attempt| attempt.started_at);
    let last = ran.last().and_then(|attempt| Some((attempt.started_at?, attempt.stopped_at)));
    let counts = &view.job.counts;
    let mut document = summary(&view.job);
    let more = json!({
        "started_at": started_at.map(rfc3339),
        "stopped_at": last.map(|(_, stopped)| rfc3339(stopped)),
        "run_seconds": last.map(|(started, stopped)| (stopped - started).max(0) as f64 / 1_000.0),
        "failures": counts.failures,
        "preemptions": counts.preemptions,
        "host_losses": counts.host_losses,
        "request": view.record.as_ref().map(|record| request(&record.body)),
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

fn array(array: &Array) -> Value {
    let failed = array.failed.iter().map(|child| {
        let FailedChild { index, exit_code, reason, log } = child;
        json!({ "index": index, "exit_code": exit_code, "reason": reason, "log": log })
    });
    json!({ "size": array.size, "failed_children": failed.collect::<Vec<_>>() })
}

fn attempt(attempt: &Attempt, story: &Story) -> Value {
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
        "gpu_seconds": attempt.gpu_seconds(),
        "then": attempt.then,
        "log": story.log(&attempt.batch_job_id),
    })
}

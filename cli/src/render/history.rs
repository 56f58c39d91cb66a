//! What happened to a job, moment by moment.

use osprey_model::decision::Decision;
use osprey_model::job::{Attempt, Job, Run};
use osprey_model::message::words::shown;
use osprey_pipeline::acted::Acted;
use osprey_pipeline::evict::Receipt;
use osprey_pipeline::view::JobView;
use serde_json::{Value, json};

use super::action::{self, Asked};
use super::table::Columns;
use super::time::{rfc3339, short};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When, milliseconds since 1970.
    pub at: i64,
    /// What kind of thing, in one word; stable.
    pub what: &'static str,
    /// The attempt that it is about.
    pub attempt: Option<u32>,
    /// Who did it, as the queue authenticated them; `None` for Osprey and Batch.
    pub by: Option<String>,
    /// All of it as a sentence.
    pub sentence: String,
}

impl Moment {
    fn new(at: i64, what: &'static str, sentence: impl Into<String>) -> Self {
        Self { at, what, attempt: None, by: None, sentence: sentence.into() }
    }

    fn of_attempt(self, attempt: u32) -> Self {
        Self { attempt: Some(attempt), ..self }
    }

    fn by(self, sender: &str) -> Self {
        Self { by: Some(sender.to_owned()), ..self }
    }
}

/// Every word of [`Moment::what`].
#[cfg(test)]
const WHATS: [&str; 14] = [
    "sent",
    "recorded",
    "refused",
    "decided",
    "duplicate",
    "claimed",
    "submitted",
    "started",
    "checkpoint",
    "evicted",
    "ended",
    "asked",
    "second-run",
    "closed",
];

/// What happened to a job, oldest first. What happened in the same millisecond is in the order in which it must have.
#[must_use]
pub fn moments(view: &JobView) -> Vec<Moment> {
    let JobView { job, record, decisions, attempts, evictions, checkpoint, actions, extras, duplicates, .. } = view;
    let mut moments = Vec::new();
    if let Some(record) = record {
        moments.push(Moment::new(record.sent_at, "sent", "its message was sent").by(&record.sender));
    }
    // A job is decided about before it is recorded.
    moments.extend(decisions.iter().map(decided));
    moments.push(Moment::new(job.created_at, "recorded", format!("taken in as `{}`", job.name)));
    let refusals = record.iter().flat_map(|record| &record.refusals);
    moments.extend(refusals.map(|refusal| Moment::new(job.created_at, "refused", refusal.to_string())));
    moments.extend(duplicates.iter().map(|duplicate| {
        Moment::new(duplicate.sent_at, "duplicate", "another message with the same content was sent, and did nothing")
            .by(&duplicate.sender)
    }));
    moments.extend(actions.iter().map(asked));
    moments.extend(attempts.iter().flat_map(begun));
    moments.extend(job.run.iter().flat_map(|run| running(run, job.attempt)));
    if let Some(claim) = &job.claim {
        let sentence = format!("claimed for queue `{}`, and being submitted", claim.queue);
        moments.push(Moment::new(claim.at, "claimed", sentence).of_attempt(job.attempt));
    }
    moments.extend(checkpoint.iter().map(|checkpoint| {
        let percent = checkpoint.percent.map(|percent| format!(", {percent} % done")).unwrap_or_default();
        Moment::new(checkpoint.at, "checkpoint", format!("its newest checkpoint is {}{percent}", checkpoint.uri))
            .of_attempt(checkpoint.attempt)
    }));
    moments.extend(evictions.iter().map(evicted));
    moments.extend(extras.iter().map(|extra| {
        let stopped = if extra.stopped { ", and was stopped" } else { ", and had ended" };
        let sentence = format!("a second Batch job {} for it was found{stopped}", extra.batch_job_id);
        Moment::new(extra.found_at, "second-run", sentence).of_attempt(extra.attempt)
    }));
    moments.extend(attempts.iter().map(ended));
    moments.extend(closed(job));
    // An attempt ends before the next one begins, and the job after all of them.
    let place = |moment: &Moment| if moment.what == "closed" { u32::MAX } else { moment.attempt.unwrap_or(0) };
    moments.sort_by_key(|moment| (moment.at, place(moment)));
    moments
}

fn decided(decision: &Decision) -> Moment {
    let Decision { derivation, pool, policy_revision, decided_at, warnings } = decision;
    let pool = if pool.as_str().is_empty() { String::new() } else { format!(", pool {pool}") };
    let fallback = derivation.fallback.as_ref().map(|why| format!("; the fallback: {why}")).unwrap_or_default();
    let warned = if warnings.is_empty() { String::new() } else { format!("; {}", warnings.join("; ")) };
    let sentence = format!(
        "priority {}, tier {}{pool}, by policy {policy_revision}{fallback}{warned}",
        derivation.priority, derivation.tier
    );
    Moment::new(decided_at.as_millisecond(), "decided", sentence)
}

fn asked(acted: &Acted) -> Moment {
    let Asked { name, reason, .. } = action::asked(&acted.action);
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    Moment::new(acted.at, "asked", format!("{name}{reason}: {}", action::outcome(acted))).by(&acted.sender)
}

/// How an attempt began.
fn begun(attempt: &Attempt) -> Vec<Moment> {
    let Attempt { number, batch_job_id, queue, submitted_at, started_at, .. } = attempt;
    let submitted = submitted(*submitted_at, batch_job_id.as_str(), queue.as_str());
    let started = started_at.map(|at| Moment::new(at, "started", "it runs"));
    [Some(submitted), started].into_iter().flatten().map(|moment| moment.of_attempt(*number)).collect()
}

fn running(run: &Run, attempt: u32) -> Vec<Moment> {
    let submitted = submitted(run.submitted_at, run.id.as_str(), run.queue.as_str());
    let on = run.node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
    let started = run.started_at.map(|at| Moment::new(at, "started", format!("it runs{on}")));
    [Some(submitted), started].into_iter().flatten().map(|moment| moment.of_attempt(attempt)).collect()
}

fn submitted(at: i64, id: &str, queue: &str) -> Moment {
    Moment::new(at, "submitted", format!("Batch has it as {id} in queue `{queue}`"))
}

fn evicted(receipt: &Receipt) -> Moment {
    let moment = Moment::new(receipt.at, "evicted", receipt.to_string()).of_attempt(receipt.attempt);
    match &receipt.by {
        osprey_pipeline::evict::By::Person { sender, .. } => moment.by(sender),
        osprey_pipeline::evict::By::Job { .. } => moment,
    }
}

fn ended(attempt: &Attempt) -> Moment {
    let Attempt { number, started_at, stopped_at, end_class, reason, exit_code, then, .. } = attempt;
    let after = started_at.map(|started| format!(" after {}", short(stopped_at - started))).unwrap_or_default();
    let code = exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
    let words = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let sentence = format!("{}{after}{code}{words}; then {then}", end_class.as_str());
    Moment::new(*stopped_at, "ended", sentence).of_attempt(*number)
}

/// That it is over, for a job that is.
fn closed(job: &Job) -> Option<Moment> {
    let why = job.end.as_ref().map(|end| format!(": {} ({})", end.message, end.code)).unwrap_or_default();
    job.state.is_final().then(|| Moment::new(job.updated_at, "closed", format!("it is {}{why}", job.state.as_str())))
}

/// The story for people.
#[must_use]
pub fn story(view: &JobView) -> String {
    let JobView { job, .. } = view;
    let mut columns = Columns::new(&["AT", ">AFTER", "WHAT", ">ATTEMPT", "BY", "STORY"]);
    let moments = moments(view);
    let mut before = moments.first().map_or(0, |moment| moment.at);
    for Moment { at, what, attempt, by, sentence } in &moments {
        columns.row([
            rfc3339(*at),
            format!("+{}", short(at - before)),
            (*what).to_owned(),
            attempt.map(|attempt| attempt.to_string()).unwrap_or_default(),
            by.clone().unwrap_or_default(),
            sentence.clone(),
        ]);
        before = *at;
    }
    format!("{}, {} ({})\n{}", shown(&job.name), job.state.as_str(), job.id, columns.render())
}

/// The story as JSON.
#[must_use]
pub fn document(view: &JobView) -> Value {
    let JobView { job, .. } = view;
    let moment = |moment: &Moment| {
        let Moment { at, what, attempt, by, sentence } = moment;
        json!({ "at": rfc3339(*at), "what": what, "attempt": attempt, "by": by, "sentence": sentence })
    };
    json!({
        "job": job.id,
        "name": job.name,
        "state": job.state,
        "moments": moments(view).iter().map(moment).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use osprey_model::end::EndClass;
    use osprey_model::id::{JobId, MessageId};
    use osprey_model::job::{End, JobState};
    use osprey_model::reason::ReasonCode;
    use osprey_pipeline::view::Duplicate;

    use super::*;

    fn attempt(number: u32, submitted_at: i64) -> Attempt {
        Attempt {
            number,
            batch_job_id: format!("b-{number}").as_str().into(),
            queue: "q".into(),
            submitted_at,
            started_at: Some(submitted_at + 1_000),
            stopped_at: submitted_at + 3_000,
            end_class: EndClass::ExitCode,
            reason: "Essential container in task exited".to_owned(),
            exit_code: Some(1),
            inner_retries: 0,
            gpu_ms: 0,
            then: "requeued".to_owned(),
        }
    }

    fn view() -> JobView {
        let message = MessageId::new("m");
        let job = Job {
            name: "train".to_owned(),
            state: JobState::Failed,
            updated_at: 9_000,
            end: Some(End::new(ReasonCode::Cancelled, "superseded")),
            ..Job::new(JobId::of_message(&message), message, 1_000)
        };
        JobView {
            job,
            record: None,
            decision: None,
            decisions: Vec::new(),
            dependencies: Vec::new(),
            attempts: vec![attempt(1, 2_000), attempt(2, 5_000)],
            evictions: Vec::new(),
            checkpoint: None,
            actions: Vec::new(),
            extras: Vec::new(),
            duplicates: vec![Duplicate { sender: "ada".to_owned(), sent_at: 2_500 }],
        }
    }

    #[test]
    fn moments_are_told_in_the_order_in_which_they_were() {
        let moments = moments(&view());
        let told: Vec<(i64, &str, Option<u32>)> = moments.iter().map(|m| (m.at, m.what, m.attempt)).collect();
        let want = [
            (1_000, "recorded", None),
            (2_000, "submitted", Some(1)),
            (2_500, "duplicate", None),
            (3_000, "started", Some(1)),
            (5_000, "ended", Some(1)),
            (5_000, "submitted", Some(2)),
            (6_000, "started", Some(2)),
            (8_000, "ended", Some(2)),
            (9_000, "closed", None),
        ];
        assert_eq!(told, want);
        assert!(moments.iter().all(|moment| WHATS.contains(&moment.what)));
        let ends = "exit_code after 2.0s, exit code 1: Essential container in task exited; then requeued";
        assert_eq!(moments.iter().find(|m| m.what == "ended").map(|m| m.sentence.as_str()), Some(ends));
    }

    #[test]
    fn a_jobs_name_cant_speak_to_the_terminal() {
        let mut view = view();
        "a\u{1b}[2J".clone_into(&mut view.job.name);
        assert!(!story(&view).contains('\u{1b}'));
    }
}

//! What else is worth knowing of a job that doesn't stand in line: how long it still runs, what its attempts came to, who
//! ended it, and what to do now.

use osprey_model::job::{Attempt, Job, JobState};
use osprey_model::message::Action;
use osprey_model::message::words::shown;
use osprey_pipeline::acted::Acted;
use osprey_pipeline::view::JobView;

use crate::render::action::{Asked, asked};
use crate::render::policy::counted;
use crate::render::time::{rfc3339, short};
use crate::render::why::Fact;

/// Attempts that are told one by one; of more only the last ones are.
const ATTEMPTS_TOLD: usize = 3;

/// What is told of a job, in the order of the telling. `log` is where its newest log is.
#[must_use]
pub fn facts(view: &JobView, log: Option<&str>, now_ms: i64) -> Vec<Fact> {
    let job = &view.job;
    let mut facts = Vec::new();
    match job.state {
        JobState::Running => {
            facts.extend(ends(job, now_ms));
            facts.push(saved(view));
        }
        JobState::Held => facts.extend(asked_last(view, |action| matches!(action, Action::HoldJob { .. }))),
        JobState::Succeeded | JobState::Failed | JobState::Dead | JobState::Refused => {
            facts.push(Fact::new("ended", rfc3339(ended_at(view))));
        }
        JobState::Waiting | JobState::Queued | JobState::Claimed | JobState::Submitted => {}
    }
    facts.extend(attempts(&view.attempts));
    if job.state == JobState::Failed {
        facts.extend(asked_last(view, |action| matches!(action, Action::CancelJob { .. })));
    }
    if !view.attempts.is_empty() || job.state == JobState::Running {
        facts.extend(log.map(|log| Fact::new("log", log)));
    }
    facts
}

/// When a job that is over came to its end.
fn ended_at(view: &JobView) -> i64 {
    let last = view.attempts.last().filter(|_| view.job.state == JobState::Succeeded);
    last.map_or(view.job.updated_at, |attempt| attempt.stopped_at)
}

/// How long a run still goes on, by what is expected of it.
fn ends(job: &Job, now_ms: i64) -> Option<Fact> {
    let started = job.run.as_ref()?.started_at?;
    let expected = i64::try_from(job.needs.expected_seconds).ok().filter(|seconds| *seconds > 0)?;
    let left = started.saturating_add(expected.saturating_mul(1_000)).saturating_sub(now_ms);
    let whole = short(expected.saturating_mul(1_000));
    let sentence = if left > 0 {
        format!("in about {}: {whole} are expected of it", short(left))
    } else {
        format!("{} later than expected: {whole} were", short(-left))
    };
    Some(Fact::new("ends", sentence))
}

/// What an eviction would leave of the work.
fn saved(view: &JobView) -> Fact {
    let sentence = match (&view.checkpoint, view.job.needs.saves_every_seconds) {
        (Some(checkpoint), _) => {
            let percent = checkpoint.percent.map(|percent| format!(", {percent} % done")).unwrap_or_default();
            format!("at {}{percent}: {}", rfc3339(checkpoint.at), shown(&checkpoint.uri))
        }
        (None, Some(seconds)) => {
            let every = short(i64::try_from(seconds).unwrap_or(i64::MAX / 1_000).saturating_mul(1_000));
            format!("every {every}, as it declares")
        }
        (None, None) => "never, as far as it says: an eviction would cost all of its run".to_owned(),
    };
    Fact::new("saves", sentence)
}

/// The last attempts, each with its end.
fn attempts(attempts: &[Attempt]) -> Vec<Fact> {
    let left_out = attempts.len().saturating_sub(ATTEMPTS_TOLD);
    let before = attempts.get(..left_out).unwrap_or_default();
    let mut facts = Vec::new();
    if !before.is_empty() {
        facts.push(Fact::new("attempts", format!("{} before these", counted(before.len(), "attempt"))));
    }
    facts.extend(attempts.iter().skip(left_out).map(|attempt| Fact::new("attempt", told(attempt))));
    facts
}

fn told(attempt: &Attempt) -> String {
    let Attempt { number, started_at, stopped_at, end_class, exit_code, reason, then, .. } = attempt;
    let ran = match started_at {
        Some(started) => format!("ran {}", short(stopped_at.saturating_sub(*started))),
        None => "never started".to_owned(),
    };
    let code = exit_code.map(|code| format!(" with exit code {code}")).unwrap_or_default();
    let words = if reason.is_empty() { String::new() } else { format!(" ({})", shown(reason)) };
    format!("{number} {ran}, ended as {}{code}{words}: {then}", end_class.as_str())
}

/// Who asked for such an action last, and why.
fn asked_last(view: &JobView, is_such: impl Fn(&Action) -> bool) -> Option<Fact> {
    let is_it = |acted: &&Acted| acted.refusal.is_none() && is_such(&acted.action);
    let acted = view.actions.iter().rev().find(is_it)?;
    let Asked { name, reason, .. } = asked(&acted.action);
    let why = reason.map(|reason| format!(": {}", shown(&reason))).unwrap_or_default();
    Some(Fact::new("by", format!("{} at {} ({name}){why}", shown(&acted.sender), rfc3339(acted.at))))
}

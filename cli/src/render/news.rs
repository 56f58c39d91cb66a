//! What happens during a run, one line each.

use osprey_model::job::{Job, JobState};
use osprey_model::message::words::{counted, shown};

use super::action;
use crate::local::account::{Fate, What};
use osprey_pipeline::acted::Acted;

/// `train-7  running  production  950  8 GPUs`; `line` is told of a job that was refused.
#[must_use]
pub fn job(job: &Job, line: Option<u64>) -> String {
    let Job { name, state, tier, priority, gpus, .. } = job;
    let mut text = format!("{name}  {}", state.as_str());
    if !tier.as_str().is_empty() {
        text.push_str(&format!("  {tier}  {priority}  {}", counted(u64::from(*gpus), "GPU")));
    }
    if let Some(note) = note(job) {
        text.push_str(&format!("  {note}"));
    }
    match line.filter(|_| *state == JobState::Refused) {
        Some(line) => format!("line {line}  {}", shown(&text)),
        None => shown(&text),
    }
}

/// Why a job is where it is, in few words.
#[must_use]
pub fn note(job: &Job) -> Option<String> {
    let again = || (job.attempt > 1).then(|| format!("attempt {}", job.attempt));
    match (&job.end, job.last_end, job.state) {
        (Some(end), _, _) => Some(format!("{}: {}", end.code, end.message)),
        (None, Some(class), JobState::Queued) => Some(format!("again after {}", class.as_str())),
        (None, _, JobState::Running | JobState::Submitted | JobState::Succeeded) => again(),
        _ => None,
    }
}

/// A line that is no job of its own: `line 6  duplicate of job ID`; `None` for one that is, or isn't known.
#[must_use]
pub fn line(fate: &Fate) -> Option<String> {
    let text = match &fate.what {
        What::Duplicate(id) => format!("duplicate of job {id}"),
        What::Letter(letter) => format!("dead letter {}  {}: {}", letter.id, letter.code, letter.message),
        What::Action(acted) => action::line(acted),
        What::Job(_) | What::Nothing => return None,
    };
    Some(numbered(fate.line, &text))
}

/// An action that was carried out or refused: by a line of the file, or by somebody.
#[must_use]
pub fn acted(acted: &Acted, line: Option<u64>) -> String {
    let text = action::line(acted);
    if line.is_some() { numbered(line, &text) } else { format!("{text}  (asked by {})", acted.sender) }
}

fn numbered(line: Option<u64>, text: &str) -> String {
    line.map_or_else(|| shown(text), |line| format!("line {line}  {}", shown(text)))
}

/// That a run can't end while people hold jobs.
#[must_use]
pub fn held(count: usize) -> String {
    let (jobs, them) = if count == 1 { ("1 job is".to_owned(), "it") } else { (format!("{count} jobs are"), "them") };
    format!("{jobs} held, and nothing else is left to do: release or cancel {them}, or leave {them} with Ctrl-C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_jobs_are_told_with_the_way_out() {
        let want = "1 job is held, and nothing else is left to do: release or cancel it, or leave it with Ctrl-C";
        assert_eq!(held(1), want);
        assert!(held(2).starts_with("2 jobs are held"), "{}", held(2));
    }

    #[test]
    fn a_line_is_told_with_its_number() {
        let duplicate =
            |line| Fate { line, what: What::Duplicate(osprey_model::id::JobId::from_uuid(uuid::Uuid::nil())) };
        let want = "duplicate of job 00000000-0000-0000-0000-000000000000";
        assert_eq!(line(&duplicate(Some(6))).unwrap(), format!("line 6  {want}"));
        assert_eq!(line(&duplicate(None)).unwrap(), want);
    }
}

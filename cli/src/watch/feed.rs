//! What happens, one line each.

use osprey_model::end::EndClass;
use osprey_model::id::JobId;
use osprey_model::job::{Job, JobState};
use osprey_model::message::words::counted;

use super::rows::Change;
use crate::render::time::short;

/// Characters of a node's name that are shown.
pub const NODE_NAME: usize = 10;

/// Something that happened to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// When, milliseconds since 1970.
    pub at: i64,
    /// What.
    pub kind: Kind,
    /// The job.
    pub id: JobId,
    /// Its attempt.
    pub attempt: u32,
    /// Its name.
    pub name: String,
    /// The rest of the line.
    pub text: String,
}

/// Kinds of what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is new, or what it waited for has succeeded.
    Came,
    /// It was handed to Batch.
    Sent,
    /// It runs.
    Started,
    /// It was told to make room.
    MakesRoom,
    /// It was evicted, and waits again.
    Evicted,
    /// It came back after its attempt ended badly.
    Back,
    /// It succeeded.
    Succeeded,
    /// It ended without success.
    Failed,
    /// A person holds it.
    Held,
}

impl Kind {
    /// Every kind, in the order of the help.
    pub const ALL: [Self; 9] = [
        Self::Came,
        Self::Sent,
        Self::Started,
        Self::MakesRoom,
        Self::Evicted,
        Self::Back,
        Self::Succeeded,
        Self::Failed,
        Self::Held,
    ];

    /// The sign: what it means is seen without colours.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Came => "+",
            Self::Sent => "→",
            Self::Started => "▶",
            Self::MakesRoom => "◁",
            Self::Evicted => "◀",
            Self::Back => "↻",
            Self::Succeeded => "✓",
            Self::Failed => "✗",
            Self::Held => "‖",
        }
    }

    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Came => "came",
            Self::Sent => "sent",
            Self::Started => "started",
            Self::MakesRoom => "makes room",
            Self::Evicted => "evicted",
            Self::Back => "came back",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Held => "held",
        }
    }
}

/// What a change means, by the job's record as it is now; `None` for what nobody cares for, or that has moved on since.
#[must_use]
pub fn told(change: &Change, job: &Job) -> Option<Item> {
    let before = change.before.as_ref().map(|before| before.state);
    let (kind, text) = match job.state {
        JobState::Succeeded => (Kind::Succeeded, ran(job)),
        JobState::Failed | JobState::Refused | JobState::Dead => (Kind::Failed, why(job)),
        JobState::Held => (Kind::Held, "by a person".to_owned()),
        JobState::Running if job.evict.is_some() => (Kind::MakesRoom, makes_room(job)),
        JobState::Running if before == Some(JobState::Running) => return None,
        JobState::Running => (Kind::Started, started(job)),
        JobState::Claimed | JobState::Submitted if before.is_some_and(JobState::is_dispatched) => return None,
        JobState::Claimed | JobState::Submitted => (Kind::Sent, size(job)),
        JobState::Queued if before.is_some_and(JobState::is_dispatched) => back(job),
        JobState::Queued if before == Some(JobState::Waiting) => {
            (Kind::Came, format!("what it waited for has succeeded, {}", size(job)))
        }
        JobState::Queued | JobState::Waiting if before.is_none() => (Kind::Came, size(job)),
        JobState::Queued | JobState::Waiting => return None,
    };
    let Job { id, attempt, name, updated_at, .. } = job;
    Some(Item { at: *updated_at, kind, id: *id, attempt: *attempt, name: name.clone(), text })
}

/// `production 950, 8 GPUs`
fn size(job: &Job) -> String {
    format!("{} {}, {}", job.tier, job.priority, counted(u64::from(job.gpus), "GPU"))
}

fn started(job: &Job) -> String {
    let node = job.run.as_ref().and_then(|run| run.node.as_ref());
    // The beginning of a node's name tells it from others, here as among the pools.
    let on = node.map(|node| node.chars().take(NODE_NAME).collect::<String>());
    let on = on.map(|node| format!(" on {node}")).unwrap_or_default();
    let again = if job.attempt > 1 { format!(", attempt {}", job.attempt) } else { String::new() };
    format!("{}{on}{again}", size(job))
}

fn makes_room(job: &Job) -> String {
    match job.evict.and_then(|evict| evict.goes_for) {
        Some(other) => format!("for job {other}"),
        None => "a person asked for it".to_owned(),
    }
}

/// A job that is back in line.
fn back(job: &Job) -> (Kind, String) {
    match job.last_end {
        Some(EndClass::Preempted) => (Kind::Evicted, format!("for more urgent work, {}", size(job))),
        Some(class) => (Kind::Back, format!("after {}, {}", class.as_str(), size(job))),
        None => (Kind::Back, size(job)),
    }
}

fn ran(job: &Job) -> String {
    format!("{} after its submission", short(job.updated_at - job.created_at))
}

fn why(job: &Job) -> String {
    job.end.as_ref().map_or_else(|| job.state.as_str().to_owned(), |end| format!("{}: {}", end.code, end.message))
}

#[cfg(test)]
mod tests {
    use osprey_model::id::MessageId;
    use osprey_model::job::{Claim, Evict};

    use super::*;
    use crate::watch::scene;

    fn job(state: JobState) -> Job {
        let job = Job::new(scene::id(1), MessageId::new("m"), 0);
        Job { state, tier: "production".into(), priority: 950, gpus: 8, attempt: 1, updated_at: 60_000, ..job }
    }

    fn change(before: Option<JobState>) -> Change {
        let open = |state| scene::open(1, state, "production", 950, 8, 0);
        Change { id: scene::id(1), before: before.map(open), after: None }
    }

    #[test]
    fn every_change_that_people_care_for_is_told() {
        let evicted = Job { last_end: Some(EndClass::Preempted), ..job(JobState::Queued) };
        let lost = Job { last_end: Some(EndClass::HostLost), ..job(JobState::Queued) };
        let evicting = Job { evict: Some(Evict { at: 0, goes_for: Some(scene::id(2)) }), ..job(JobState::Running) };
        let claim = Some(Claim { at: 0, queue: "q".into(), empty_lists: 0 });
        for (before, job, want) in [
            (None, job(JobState::Queued), Some((Kind::Came, "production 950, 8 GPUs"))),
            (Some(JobState::Queued), job(JobState::Running), Some((Kind::Started, "production 950, 8 GPUs"))),
            (Some(JobState::Running), job(JobState::Running), None),
            (Some(JobState::Claimed), Job { claim, ..job(JobState::Claimed) }, None),
            (Some(JobState::Running), evicted, Some((Kind::Evicted, "for more urgent work, production 950, 8 GPUs"))),
            (Some(JobState::Running), lost, Some((Kind::Back, "after host_lost, production 950, 8 GPUs"))),
            (
                Some(JobState::Running),
                evicting,
                Some((Kind::MakesRoom, "for job 00000000-0000-0000-0000-000000000002")),
            ),
            (Some(JobState::Running), job(JobState::Succeeded), Some((Kind::Succeeded, "1m00s after its submission"))),
            (Some(JobState::Running), job(JobState::Dead), Some((Kind::Failed, "dead"))),
        ] {
            let item = told(&change(before), &job);
            assert_eq!(item.as_ref().map(|item| (item.kind, item.text.as_str())), want, "{before:?}");
        }
    }

    #[test]
    fn every_kind_has_a_sign_of_its_own() {
        let mut signs: Vec<&str> = Kind::ALL.map(Kind::sign).to_vec();
        signs.sort_unstable();
        signs.dedup();
        assert_eq!(signs.len(), Kind::ALL.len());
    }
}

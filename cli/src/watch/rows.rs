//! What has changed between two readings of the jobs that have not ended.

use std::collections::BTreeMap;

use osprey_model::id::JobId;
use osprey_model::job::JobState;
use osprey_pipeline::census::OpenJob;

/// The jobs that have not ended, by id.
pub type Rows = BTreeMap<JobId, OpenJob>;

/// A job that isn't what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub id: JobId,
    /// As it was; `None` for one that wasn't there.
    pub before: Option<OpenJob>,
    /// As it is; `None` for one that isn't there any more: it has ended, or a person holds it.
    pub after: Option<OpenJob>,
}

impl Change {
    /// How much people care for it, what they care for most first: what ended or came back, what started, what was sent,
    /// what is new.
    fn rank(&self) -> u8 {
        let state = |job: &Option<OpenJob>| job.as_ref().map(|job| job.state);
        match (state(&self.before), state(&self.after)) {
            (_, None) => 0,
            (Some(before), Some(JobState::Queued)) if before.is_dispatched() => 0,
            (_, Some(JobState::Running)) => 1,
            (Some(_), Some(_)) => 2,
            (None, Some(_)) => 3,
        }
    }
}

/// What has changed, what people care for most first, and within that in the order of the ids.
#[must_use]
pub fn changes(before: &Rows, after: &Rows) -> Vec<Change> {
    let change = |id: &JobId| Change { id: *id, before: before.get(id).cloned(), after: after.get(id).cloned() };
    let gone = before.keys().filter(|id| !after.contains_key(id));
    let other = after.iter().filter(|(id, job)| before.get(id) != Some(job)).map(|(id, _)| id);
    let mut changes: Vec<Change> = gone.chain(other).map(change).collect();
    changes.sort_by_key(|change| (change.rank(), change.id));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::scene;

    #[test]
    fn what_ended_or_came_back_comes_before_what_is_new() {
        let job = |number, state| scene::open(number, state, "production", 900, 8, 0);
        let rows = |jobs: Vec<OpenJob>| jobs.into_iter().map(|job| (job.id, job)).collect::<Rows>();
        let before = rows(vec![
            job(1, JobState::Running),
            job(2, JobState::Running),
            job(3, JobState::Queued),
            job(4, JobState::Queued),
        ]);
        let after = rows(vec![
            job(2, JobState::Queued),
            job(3, JobState::Running),
            job(4, JobState::Queued),
            job(5, JobState::Queued),
        ]);
        let told: Vec<JobId> = changes(&before, &after).iter().map(|change| change.id).collect();
        assert_eq!(told, [1, 2, 3, 5].map(scene::id));
        assert_eq!(changes(&after, &after), []);
    }
}

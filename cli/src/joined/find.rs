//! Which job or dead letter a person means: by its id, its name, or a beginning that only one has.

use std::time::Instant;

use osprey_model::id::{JobId, MessageId};
use osprey_model::message::words::{nearest, quote};
use osprey_model::message::{self, Action, Message};
use osprey_pipeline::dead::DeadKind;
use osprey_pipeline::{derive, repository};
use osprey_ports::{QueueKind, ReceivedMessage};

use super::{Joined, RUNNER_PATIENCE};
use crate::error::{CliError, ErrorCode};

/// Messages of the submission queue that are looked at.
const SENT_MAX: usize = 10_000;

/// A job that somebody means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is on record.
    OnRecord(JobId),
    /// It was sent, and no pipeline has taken it in yet.
    Sent(JobId),
}

impl Found {
    /// Its id.
    #[must_use]
    pub fn id(self) -> JobId {
        match self {
            Self::OnRecord(id) | Self::Sent(id) => id,
        }
    }
}

/// A job that was sent and isn't on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentJob {
    /// Its id.
    pub id: JobId,
    /// Its name.
    pub name: String,
}

/// Something that a person may mean.
struct Candidate {
    id: JobId,
    name: String,
    is_sent: bool,
}

/// What is looked for, for sentences.
struct Noun {
    one: &'static str,
    list: &'static str,
    unknown: ErrorCode,
}

impl Joined {
    /// The job that is meant, on record.
    ///
    /// # Errors
    /// When none or several are meant, or it isn't taken in yet.
    pub fn find(&self, given: &str) -> Result<JobId, CliError> {
        let until = Instant::now() + RUNNER_PATIENCE;
        loop {
            match self.look_up(given)? {
                Found::OnRecord(id) => return Ok(id),
                // A pipeline that runs takes it in at once.
                Found::Sent(_) if self.resting()?.is_none() && Instant::now() < until => {
                    std::thread::sleep(self.look_every());
                }
                Found::Sent(id) => return Err(self.not_taken_in(id)?),
            }
        }
    }

    /// The job that is meant, on record or on its way.
    ///
    /// # Errors
    /// When none or several are meant.
    pub fn look_up(&self, given: &str) -> Result<Found, CliError> {
        let given = given.trim();
        if let Some(loaded) = self.run(derive::find(&self.home, &given.to_lowercase()))? {
            return Ok(Found::OnRecord(loaded.job.id));
        }
        let known = |id, name, is_sent| Candidate { id, name, is_sent };
        let jobs = self.searched()?.into_iter().map(|job| known(job.id, job.name, false));
        let sent = self.sent_jobs()?.into_iter().map(|job| known(job.id, job.name, true));
        let candidates: Vec<Candidate> = jobs.chain(sent).collect();
        let noun = Noun { one: "job", list: "osprey jobs", unknown: ErrorCode::UnknownJob };
        let found = self.only_one(given, &candidates, &noun)?;
        Ok(if found.is_sent { Found::Sent(found.id) } else { Found::OnRecord(found.id) })
    }

    /// The dead letter that is meant; that of a job also by the job's name.
    ///
    /// # Errors
    /// When none or several are meant.
    pub fn find_dead_letter(&self, given: &str) -> Result<JobId, CliError> {
        let name = |kind| if let DeadKind::Job { name } = kind { name } else { String::new() };
        let letters = self.dead_letters()?.into_iter();
        let candidates: Vec<Candidate> =
            letters.map(|letter| Candidate { id: letter.id, name: name(letter.kind), is_sent: false }).collect();
        let noun = Noun { one: "dead letter", list: "osprey dead-letters list", unknown: ErrorCode::UnknownDeadLetter };
        Ok(self.only_one(given.trim(), &candidates, &noun)?.id)
    }

    fn only_one<'c>(&self, given: &str, candidates: &'c [Candidate], noun: &Noun) -> Result<&'c Candidate, CliError> {
        match matching(given, candidates).as_slice() {
            [one] => Ok(one),
            [] => Err(self.nothing(given, candidates, noun)),
            [first, second, rest @ ..] => {
                let count = rest.len() + 2;
                let (one, quoted) = (noun.one, quote(given));
                let named = |candidate: &Candidate| match candidate.name.as_str() {
                    "" => format!("`{}`", candidate.id),
                    name => format!("`{}` ({name})", candidate.id),
                };
                let message =
                    format!("{quoted} may be any of {count} {one}s, such as {} and {}", named(first), named(second));
                Err(CliError::new(ErrorCode::AmbiguousId, message).help("give the id, or more of it"))
            }
        }
    }

    fn nothing(&self, given: &str, candidates: &[Candidate], noun: &Noun) -> CliError {
        let Noun { one, list, unknown } = noun;
        let (name, flags) = (self.name(), self.flags());
        let near = nearest(given, candidates.iter().map(|candidate| candidate.name.as_str()));
        let near = near.map(|near| format!("did you mean {}? ", quote(near))).unwrap_or_default();
        CliError::new(*unknown, format!("there is no {one} {} in {name}", quote(given)))
            .help(format!("{near}`{list} {flags}` shows those that there are"))
    }

    /// That a job isn't on record yet, and what has to happen.
    ///
    /// # Errors
    /// When the lock can't be looked at.
    pub fn not_taken_in(&self, id: JobId) -> Result<CliError, CliError> {
        let error = CliError::new(ErrorCode::NotTakenIn, format!("job `{id}` is sent, and not yet taken in"));
        Ok(match self.resting()? {
            None => error.help("the pipeline takes it in within moments; ask again"),
            Some(command) => error.help(format!("`{command}` takes it in")),
        })
    }

    /// Jobs that were sent and aren't on record, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub fn sent_jobs(&self) -> Result<Vec<SentJob>, CliError> {
        let mut jobs: Vec<SentJob> = Vec::new();
        for received in self.sent()? {
            let Ok(Message::Submit(request)) = message::parse(&received.body) else { continue };
            let chosen = message::chosen_job_id(&request).ok().flatten();
            let id = chosen.unwrap_or_else(|| JobId::of_message(&received.id));
            let is_known = jobs.iter().any(|job| job.id == id);
            if !is_known && self.run(repository::load(&self.home, id))?.is_none() {
                jobs.push(SentJob { id, name: request.job_name.clone() });
            }
        }
        Ok(jobs)
    }

    /// Actions that were sent and not carried out yet, oldest first.
    ///
    /// # Errors
    /// When the queue can't be read.
    pub fn sent_actions(&self) -> Result<Vec<(MessageId, Action)>, CliError> {
        let action = |received: ReceivedMessage| match message::parse(&received.body) {
            Ok(Message::Action(action)) => Some((received.id, action)),
            _ => None,
        };
        Ok(self.sent()?.into_iter().filter_map(action).collect())
    }

    fn sent(&self) -> Result<Vec<ReceivedMessage>, CliError> {
        // SQS shows a message only to whoever takes it.
        let Some(local) = self.local() else { return Ok(Vec::new()) };
        Ok(local.world.queues().peek(QueueKind::Submissions, SENT_MAX)?)
    }
}

/// The candidates that are meant. A whole id or name goes before a beginning, an id before a name.
fn matching<'c>(given: &str, candidates: &'c [Candidate]) -> Vec<&'c Candidate> {
    if given.is_empty() {
        return Vec::new();
    }
    let lower = given.to_lowercase();
    let ways: [&dyn Fn(&Candidate) -> bool; 4] = [
        &|candidate| candidate.id.to_string() == lower,
        &|candidate| candidate.name == given,
        &|candidate| candidate.id.to_string().starts_with(&lower),
        &|candidate| candidate.name.starts_with(given),
    ];
    let found = ways.iter().map(|is_meant| candidates.iter().filter(|c| is_meant(c)).collect::<Vec<_>>());
    found.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: &str, name: &str) -> Candidate {
        let id = JobId::parse(&format!("{id}-0000-4000-8000-000000000000")).unwrap();
        Candidate { id, name: name.to_owned(), is_sent: false }
    }

    #[test]
    fn a_whole_name_goes_before_a_beginning_and_an_id_before_a_name() {
        let candidates = [
            candidate("aaaaaaaa", "train-7"),
            candidate("aaaabbbb", "train-71"),
            candidate("cccccccc", "aaaa"),
            candidate("dddddddd", "Train"),
        ];
        let names = |given: &str| matching(given, &candidates).iter().map(|c| c.name.as_str()).collect::<Vec<_>>();
        for (given, want) in [
            ("train-7", vec!["train-7"]),
            ("train-71", vec!["train-71"]),
            ("train", vec!["train-7", "train-71"]),
            ("Tr", vec!["Train"]),
            ("aaaa", vec!["aaaa"]),
            ("aaaaa", vec!["train-7"]),
            ("AAAA", vec!["train-7", "train-71"]),
            ("CCCC", vec!["aaaa"]),
            ("x", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(names(given), want, "{given}");
        }
    }
}

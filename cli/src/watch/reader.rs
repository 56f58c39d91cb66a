//! Reading a pipeline again and again, on a thread of its own.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use osprey_model::id::JobId;

use super::feed;
use super::rows::{Rows, changes};
use super::state::{Event, Reading, Why, Wish};
use crate::command::Place;
use crate::error::CliError;
use crate::joined::overview::Overview;
use crate::joined::{Depth, Joined};
use crate::render::why;

/// Most changed jobs whose records are read at once.
const CHANGES_MAX: usize = 200;
/// Most names that are read at once beside those of the jobs on the screen; each is a record, and read once.
const NAMES_MAX: usize = 500;
/// How long it waits while nothing is to be read.
const PAUSE: Duration = Duration::from_secs(3_600);
/// The least time between two readings after one has failed.
const AFTER_FAULT: Duration = Duration::from_secs(5);

/// A thread that reads.
pub struct Reader {
    /// What the pipeline is called in a sentence.
    pub place: String,
    /// What it has read.
    pub events: Receiver<Event>,
    /// What it should read.
    pub wishes: Sender<Wish>,
}

impl Reader {
    /// Opens a pipeline and begins to read it, so often.
    ///
    /// # Errors
    /// When it can't be opened.
    pub fn start(place: Place, every: Duration) -> Result<Self, CliError> {
        let (told, events) = mpsc::channel();
        let (wishes, wished) = mpsc::channel();
        let (opened, open) = mpsc::channel();
        let read = move || match Joined::of(&place) {
            // The pipeline is opened where it is used: its connections belong to this thread.
            Ok(joined) => {
                if opened.send(Ok(joined.name())).is_ok() {
                    go(Eye::new(joined), every, &told, &wished);
                }
            }
            Err(error) => {
                // Who waits for it has gone, or takes it.
                let _ = opened.send(Err(error));
            }
        };
        let failed = |error: std::io::Error| CliError::failed(format!("no thread for reading can be made: {error}"));
        std::thread::Builder::new().name("reader".to_owned()).spawn(read).map_err(failed)?;
        let place =
            open.recv().map_err(|_| CliError::failed("the pipeline could not be opened: a fault of Osprey"))??;
        Ok(Self { place, events, wishes })
    }
}

/// Reads until nobody listens any more.
fn go(mut eye: Eye, every: Duration, told: &Sender<Event>, wished: &Receiver<Wish>) {
    let (mut wish, mut due) = (Wish::default(), Instant::now());
    loop {
        let wait = if wish.paused { PAUSE } else { due.saturating_duration_since(Instant::now()) };
        match wished.recv_timeout(wait) {
            Ok(first) => {
                // Only the newest wish counts.
                let new = wished.try_iter().last().unwrap_or(first);
                let asks_why = new.why != wish.why;
                if new.refreshes != wish.refreshes || (wish.paused && !new.paused) {
                    due = Instant::now();
                }
                wish = new;
                if asks_why && eye.tell_why(&wish, told).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                let event = match eye.read(&wish.names) {
                    Ok(reading) => Event::Read(Box::new(reading)),
                    Err(error) => Event::Failed(error.message),
                };
                let pause = if matches!(event, Event::Failed(_)) { every.max(AFTER_FAULT) } else { every };
                due = Instant::now() + pause;
                if told.send(event).is_err() || eye.tell_why(&wish, told).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// What was read before.
#[derive(Debug, Default)]
struct Memory {
    /// The jobs of the reading before; `None` before the first.
    rows: Option<Rows>,
    /// Jobs whose names were told.
    named: BTreeSet<JobId>,
}

/// Who looks.
pub struct Eye {
    joined: Joined,
    memory: Memory,
}

impl Eye {
    /// A look at an opened pipeline.
    #[must_use]
    pub fn new(joined: Joined) -> Self {
        Self { joined, memory: Memory::default() }
    }

    /// Reads the pools, the jobs that have not ended, the records of those that have changed, and names that aren't
    /// known yet, `wanted` first.
    ///
    /// # Errors
    /// When the pipeline can't be read.
    pub fn read(&mut self, wanted: &[JobId]) -> Result<Reading, CliError> {
        let began = Instant::now();
        let (jobs, is_cut) = self.joined.open_jobs()?;
        let mut overview = Overview { is_cut, ..self.joined.overview_of(&jobs, None)? };
        if let Some(command) = self.joined.resting()? {
            overview.faults.push(format!("no pipeline runs here now; `{command}` goes on"));
        }
        let rows: Rows = jobs.iter().map(|job| (job.id, job.clone())).collect();
        let changes = self.memory.rows.as_ref().map(|before| changes(before, &rows)).unwrap_or_default();
        let left_out = changes.len().saturating_sub(CHANGES_MAX);
        let (mut happened, mut names) = (Vec::new(), Vec::new());
        let some: Vec<_> = changes.iter().take(CHANGES_MAX).collect();
        let ids: Vec<JobId> = some.iter().map(|change| change.id).collect();
        for record in self.joined.records(&ids)? {
            let change = some.iter().find(|change| change.id == record.id);
            happened.extend(change.and_then(|change| feed::told(change, &record)));
            names.push((record.id, record.name));
        }
        happened.sort_by_key(|item| (item.at, item.id));
        self.memory.named.extend(names.iter().map(|(id, _)| *id));
        names.extend(self.names(&rows, wanted)?);
        self.memory.named.retain(|id| rows.contains_key(id));
        self.memory.rows = Some(rows);
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Reading { overview, jobs, happened, left_out, names, took_ms })
    }

    /// Names that aren't known yet.
    fn names(&mut self, rows: &Rows, wanted: &[JobId]) -> Result<Vec<(JobId, String)>, CliError> {
        let named = &self.memory.named;
        let first: Vec<JobId> = wanted.iter().filter(|id| rows.contains_key(id)).copied().collect();
        let others = rows.keys().filter(|id| !first.contains(id)).copied();
        let ids: Vec<JobId> = first
            .iter()
            .copied()
            .chain(others)
            .filter(|id| !named.contains(id))
            .take(first.len() + NAMES_MAX)
            .collect();
        let records = self.joined.records(&ids)?;
        // One that has gone meanwhile isn't asked after again.
        self.memory.named.extend(ids);
        Ok(records.into_iter().map(|record| (record.id, record.name)).collect())
    }

    /// Why a job is where it is, as `osprey why` says it.
    #[must_use]
    pub fn why(&self, job: JobId) -> Why {
        let text = match self.joined.why(job, Depth::Reason) {
            // The name stands in the heading.
            Ok(answer) => why::answer(&answer).split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default(),
            Err(error) => format!("  reason    {}", error.message),
        };
        Why { job, text }
    }

    fn tell_why(&self, wish: &Wish, told: &Sender<Event>) -> Result<(), mpsc::SendError<Event>> {
        wish.why.map_or(Ok(()), |job| told.send(Event::Why(self.why(job))))
    }
}

//! What the view knows. Events change it, and nothing else does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use osprey_model::id::JobId;
use osprey_model::job::JobState;
use osprey_model::message::words::shown;
use osprey_pipeline::census::OpenJob;

use super::feed::Item;
use super::keys::Wanted;
use super::rows::Rows;
use crate::joined::overview::Overview;

/// Most lines of what happened that are kept.
pub const FEED_MAX: usize = 200;
/// Names that are asked for around the selected job.
const NAMES_AROUND: usize = 100;
/// Longest filter, in characters.
const FILTER_CHARACTERS_MAX: usize = 60;

/// What happens to the view.
#[derive(Clone, Debug)]
pub enum Event {
    /// The pipeline was read.
    Read(Box<Reading>),
    /// Why the selected job is where it is.
    Why(Why),
    /// It could not be read: one sentence.
    Failed(String),
    /// A person wants something.
    Wanted(Wanted),
}

/// What was read of a pipeline.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The pools.
    pub overview: Overview,
    /// The jobs that have not ended.
    pub jobs: Vec<OpenJob>,
    /// What has happened since the reading before, oldest first.
    pub happened: Vec<Item>,
    /// Changes of which no record was read, since there were too many at once.
    pub left_out: usize,
    /// Names that weren't known before.
    pub names: Vec<(JobId, String)>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// Why a job is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The job.
    pub job: JobId,
    /// The answer for people, as `osprey why` gives it, without the job's name.
    pub text: String,
}

/// Which jobs are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// All of them.
    #[default]
    All,
    /// Those that wait.
    Waiting,
    /// Those that run or are on their way to a node.
    Running,
}

/// In which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Those that wait first, the highest number first.
    #[default]
    Urgency,
    /// Who is where he is for longest.
    Wait,
    /// The most GPUs.
    Gpus,
}

/// What the reader should read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The job whose reason is wanted.
    pub why: Option<JobId>,
    /// Jobs whose names are wanted first.
    pub names: Vec<JobId>,
    /// Whether nothing is to be read.
    pub paused: bool,
    /// How often somebody asked to read at once.
    pub refreshes: u64,
}

/// What the view knows.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// What it looks at, in a sentence's words.
    pub place: String,
    /// The pools as last read; `None` before the first time.
    pub overview: Option<Overview>,
    /// How long the last reading took, in milliseconds.
    pub took_ms: u64,
    /// The jobs that have not ended.
    pub jobs: Rows,
    /// Those that are listed, in their order.
    pub listed: Vec<JobId>,
    /// Names, as far as they are known.
    pub names: BTreeMap<JobId, String>,
    /// What happened, the newest last.
    pub feed: VecDeque<Item>,
    /// Since when it is told what happens, milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Changes that the feed leaves out.
    pub left_out: usize,
    /// The job that is selected.
    pub selected: Option<JobId>,
    /// Why that one is where it is.
    pub why: Option<Why>,
    /// What jobs are filtered by.
    pub filter: String,
    /// Whether the filter is being typed.
    pub is_typing: bool,
    /// Which jobs are listed.
    pub show: Show,
    /// In which order.
    pub order: Order,
    /// Whether nothing is read.
    pub is_paused: bool,
    /// Whether the help is shown.
    pub has_help: bool,
    /// Why the last reading failed.
    pub fault: Option<String>,
    /// How often somebody asked to read at once.
    pub refreshes: u64,
    /// Whether it is over.
    pub has_ended: bool,
}

impl State {
    /// What is known before the first reading.
    #[must_use]
    pub fn new(place: impl Into<String>) -> Self {
        Self { place: place.into(), ..Self::default() }
    }

    /// Takes an event in.
    pub fn take(&mut self, event: Event) {
        match event {
            Event::Read(reading) => self.read(*reading),
            Event::Why(why) => self.why = Some(why),
            Event::Failed(sentence) => self.fault = Some(shown(&sentence)),
            Event::Wanted(wanted) => self.wanted(wanted),
        }
    }

    /// What the reader should read next.
    #[must_use]
    pub fn wish(&self) -> Wish {
        let place = self.place_of_selected().unwrap_or(0).saturating_sub(NAMES_AROUND / 2);
        let around = self.listed.iter().skip(place).take(NAMES_AROUND);
        let unnamed = around.filter(|id| !self.names.contains_key(id)).copied();
        Wish { why: self.selected, names: unnamed.collect(), paused: self.is_paused, refreshes: self.refreshes }
    }

    /// Where the selected job stands in the list.
    #[must_use]
    pub fn place_of_selected(&self) -> Option<usize> {
        self.listed.iter().position(|id| Some(*id) == self.selected)
    }

    /// Why the selected job is where it is; `None` while that isn't known.
    #[must_use]
    pub fn why_selected(&self) -> Option<&str> {
        self.why.as_ref().filter(|why| Some(why.job) == self.selected).map(|why| why.text.as_str())
    }

    fn read(&mut self, reading: Reading) {
        let Reading { overview, jobs, happened, left_out, names, took_ms } = reading;
        self.since_ms.get_or_insert(overview.now_ms);
        self.overview = Some(overview);
        self.took_ms = took_ms;
        self.fault = None;
        self.left_out = self.left_out.saturating_add(left_out);
        self.jobs = jobs.into_iter().map(|job| (job.id, job)).collect();
        self.names.extend(names.into_iter().map(|(id, name)| (id, shown(&name))));
        let jobs = &self.jobs;
        self.names.retain(|id, _| jobs.contains_key(id));
        happened.iter().for_each(|item| self.tell(item));
        self.list();
    }

    /// Puts a line into the feed. That a job makes room is told once an attempt.
    fn tell(&mut self, item: &Item) {
        let is_same = |old: &Item| (old.id, old.kind, old.attempt) == (item.id, item.kind, item.attempt);
        if self.feed.iter().any(is_same) {
            return;
        }
        let Item { name, text, .. } = item;
        self.feed.push_back(Item { name: shown(name), text: shown(text), ..*item });
        if self.feed.len() > FEED_MAX {
            self.feed.pop_front();
        }
    }

    /// Lists the jobs anew. Whose job has gone has the one selected that stands in its place.
    fn list(&mut self) {
        let place = self.place_of_selected();
        let filter = self.filter.to_lowercase();
        let mut listed: Vec<&OpenJob> = self
            .jobs
            .values()
            .filter(|job| self.show.has(job.state))
            .filter(|job| filter.is_empty() || is_match(job, self.names.get(&job.id), &filter))
            .collect();
        listed.sort_by_key(|job| (self.order.key(job), job.since, job.id));
        self.listed = listed.into_iter().map(|job| job.id).collect();
        if self.place_of_selected().is_none() {
            let last = self.listed.len().saturating_sub(1);
            self.selected = self.listed.get(place.unwrap_or(0).min(last)).copied();
        }
    }

    fn wanted(&mut self, wanted: Wanted) {
        match wanted {
            Wanted::Quit => self.has_ended = true,
            Wanted::Help => self.has_help = !self.has_help,
            Wanted::Pause => self.is_paused = !self.is_paused,
            Wanted::Refresh => self.refreshes = self.refreshes.saturating_add(1),
            Wanted::Move(by) => self.select(self.place_of_selected().unwrap_or(0).saturating_add_signed(by)),
            Wanted::First => self.select(0),
            Wanted::Last => self.select(usize::MAX),
            Wanted::Filter => self.is_typing = true,
            Wanted::Accept => self.is_typing = false,
            Wanted::Clear => self.clear(),
            Wanted::Order | Wanted::Show | Wanted::Letter(_) | Wanted::Erase => {
                self.changed(wanted);
                self.list();
            }
        }
    }

    /// What changes which jobs are listed.
    fn changed(&mut self, wanted: Wanted) {
        match wanted {
            Wanted::Order => self.order = self.order.next(),
            Wanted::Show => self.show = self.show.next(),
            Wanted::Letter(letter) if self.filter.chars().count() < FILTER_CHARACTERS_MAX => self.filter.push(letter),
            Wanted::Erase => {
                self.filter.pop();
            }
            _ => {}
        }
    }

    /// Drops what is in the way: the help, then the filter; where there is neither, it is over.
    fn clear(&mut self) {
        if self.has_help {
            self.has_help = false;
        } else if self.is_typing || !self.filter.is_empty() {
            self.is_typing = false;
            self.filter.clear();
            self.list();
        } else {
            self.has_ended = true;
        }
    }

    fn select(&mut self, place: usize) {
        let last = self.listed.len().saturating_sub(1);
        self.selected = self.listed.get(place.min(last)).copied();
    }
}

/// Whether a job is meant by a filter in small letters.
fn is_match(job: &OpenJob, name: Option<&String>, filter: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(filter);
    name.is_some_and(|name| has(name))
        || job.id.to_string().starts_with(filter)
        || job.state.as_str().starts_with(filter)
        || has(job.tier.as_str())
        || has(job.pool.as_str())
}

impl Show {
    fn has(self, state: JobState) -> bool {
        match self {
            Self::All => true,
            Self::Waiting => matches!(state, JobState::Queued | JobState::Waiting),
            Self::Running => state.is_dispatched(),
        }
    }

    fn next(self) -> Self {
        match self {
            Self::All => Self::Waiting,
            Self::Waiting => Self::Running,
            Self::Running => Self::All,
        }
    }

    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Waiting => "waiting",
            Self::Running => "running",
        }
    }
}

impl Order {
    fn next(self) -> Self {
        match self {
            Self::Urgency => Self::Wait,
            Self::Wait => Self::Gpus,
            Self::Gpus => Self::Urgency,
        }
    }

    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Urgency => "urgency",
            Self::Wait => "wait",
            Self::Gpus => "GPUs",
        }
    }

    /// What a job is ordered by before everything else.
    fn key(self, job: &OpenJob) -> (u8, Reverse<u32>) {
        match self {
            Self::Urgency => (rank(job.state), Reverse(job.priority)),
            Self::Wait => (0, Reverse(0)),
            Self::Gpus => (0, Reverse(job.gpus)),
        }
    }
}

/// Who is asked after most: who waits, then who is on his way, then who runs, then who waits for others.
fn rank(state: JobState) -> u8 {
    match state {
        JobState::Queued => 0,
        JobState::Claimed | JobState::Submitted => 1,
        JobState::Running => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::feed::Kind;
    use crate::watch::scene;

    fn watched() -> State {
        let mut state = State::new("here");
        state.take(Event::Read(Box::new(scene::reading())));
        state
    }

    fn names(state: &State) -> Vec<&str> {
        state.listed.iter().map(|id| state.names.get(id).map_or("?", String::as_str)).collect()
    }

    #[test]
    fn who_waits_comes_first_and_the_most_urgent_of_them_is_selected() {
        let state = watched();
        assert_eq!(names(&state).first(), Some(&"serve-eu"));
        assert_eq!(state.selected, state.listed.first().copied());
    }

    #[test]
    fn a_filter_is_typed_kept_and_dropped() {
        let mut state = watched();
        let all = state.listed.len();
        state.take(Event::Wanted(Wanted::Filter));
        "SERVE".chars().for_each(|letter| state.take(Event::Wanted(Wanted::Letter(letter))));
        assert!(state.is_typing && state.listed.len() < all, "{:?}", names(&state));
        assert!(names(&state).iter().all(|name| name.contains("serve")));
        state.take(Event::Wanted(Wanted::Accept));
        assert!(!state.is_typing && !state.filter.is_empty());
        state.take(Event::Wanted(Wanted::Clear));
        assert_eq!((state.listed.len(), state.has_ended), (all, false));
        state.take(Event::Wanted(Wanted::Clear));
        assert!(state.has_ended, "where nothing is in the way, Esc leaves");
    }

    #[test]
    fn the_selection_stays_with_its_job_and_else_with_its_place() {
        let mut state = watched();
        state.take(Event::Wanted(Wanted::Move(2)));
        let (second, third) = (state.listed.get(1).copied(), state.selected);
        let mut reading = scene::reading();
        reading.jobs.retain(|job| Some(job.id) != second);
        state.take(Event::Read(Box::new(reading.clone())));
        assert_eq!((state.selected, state.place_of_selected()), (third, Some(1)));
        reading.jobs.retain(|job| Some(job.id) != third);
        state.take(Event::Read(Box::new(reading)));
        assert_eq!(state.place_of_selected(), Some(1));
        state.take(Event::Wanted(Wanted::Last));
        assert_eq!(state.place_of_selected(), Some(state.listed.len() - 1));
    }

    #[test]
    fn what_happened_is_told_once_and_only_so_much_is_kept() {
        let mut state = watched();
        let before = state.feed.len();
        let item = scene::item(1, Kind::MakesRoom, "a\u{1b}[2J", "for job b");
        for _ in 0..2 {
            let happened = vec![item.clone()];
            state.take(Event::Read(Box::new(Reading { happened, ..scene::reading() })));
        }
        assert_eq!(state.feed.len(), before + 1);
        assert_eq!(state.feed.back().map(|item| item.name.as_str()), Some("a\\u{1b}[2J"));
        let many = (100..500).map(|number| scene::item(number, Kind::Came, "n", "t")).collect();
        state.take(Event::Read(Box::new(Reading { happened: many, ..scene::reading() })));
        assert_eq!(state.feed.len(), FEED_MAX);
    }

    #[test]
    fn names_are_wished_for_that_arent_known_and_gone_ones_are_forgotten() {
        let mut state = watched();
        assert_eq!(state.wish().names, []);
        let mut reading = scene::reading();
        reading.jobs.push(scene::open(99, JobState::Queued, "critical", 9_000, 1, 0));
        state.take(Event::Read(Box::new(reading)));
        assert_eq!(state.wish().names, [scene::id(99)]);
        state.take(Event::Read(Box::new(Reading { jobs: Vec::new(), ..scene::reading() })));
        assert_eq!((state.names.len(), state.selected), (0, None));
    }

    #[test]
    fn a_fault_stays_until_it_can_be_read_again() {
        let mut state = watched();
        state.take(Event::Failed("the table can't be reached".to_owned()));
        assert!(state.fault.is_some() && !state.jobs.is_empty());
        state.take(Event::Read(Box::new(scene::reading())));
        assert_eq!(state.fault, None);
    }
}

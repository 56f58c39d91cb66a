//! What a person sees while a run goes on: a table that is drawn over itself on a terminal, one line a change elsewhere.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use osprey_model::job::{Job, JobState, cut};
use osprey_model::message::words::counted;
use osprey_policy::Policy;

use super::board::{Board, Moved};
use super::cluster::Cluster;
use super::lines::Lines;
use crate::error::CliError;
use crate::render::news;
use crate::render::policy::size;
use crate::render::table::Columns;
use crate::ui::Ui;

/// How often the table is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// Jobs shown in the table.
const SHOWN_MAX: usize = 12;
/// Most characters of a job's name in the table.
const NAME_CHARACTERS_MAX: usize = 32;
/// Things told below the table.
const RECENT_MAX: usize = 5;
/// Columns of a terminal that doesn't say how many it has.
const WIDTH: usize = 80;

/// The progress of a run.
pub struct Progress {
    started: Instant,
    drawn: Option<Instant>,
    drawn_lines: usize,
    recent: VecDeque<String>,
}

impl Default for Progress {
    fn default() -> Self {
        Self { started: Instant::now(), drawn: None, drawn_lines: 0, recent: VecDeque::new() }
    }
}

impl Progress {
    /// Real seconds since the run began.
    #[must_use]
    pub fn elapsed_seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Shows what has changed: line by line, or the table in which everything but refusals is to be seen.
    ///
    /// # Errors
    /// When the terminal can't be written.
    pub fn show(&mut self, ui: &mut Ui, scene: &Scene<'_>, moved: &[Moved]) -> Result<(), CliError> {
        for Moved { after, .. } in moved.iter().filter(|moved| is_news(moved)) {
            if !ui.is_live() || after.state == JobState::Refused {
                self.tell(ui, &news::job(after, scene.lines.number(&after.message)));
            }
        }
        if !ui.is_live() || self.drawn.is_some_and(|drawn| drawn.elapsed() < DRAW_EVERY) {
            return Ok(());
        }
        self.drawn = Some(Instant::now());
        let mut picture = scene.picture(self.elapsed_seconds());
        if !self.recent.is_empty() {
            picture.push_str("\n\n");
            picture.push_str(&self.recent.iter().map(String::as_str).collect::<Vec<_>>().join("\n"));
        }
        let picture = fitted(&picture);
        let text = format!("{}{picture}\n", self.erasure());
        self.drawn_lines = picture.lines().count();
        ui.draw(&text)
    }

    /// Takes the table away, so that what follows stands alone.
    ///
    /// # Errors
    /// When the terminal can't be written.
    pub fn clear(&mut self, ui: &mut Ui) -> Result<(), CliError> {
        let erasure = self.erasure();
        self.drawn_lines = 0;
        if erasure.is_empty() { Ok(()) } else { ui.draw(&erasure) }
    }

    fn erasure(&self) -> String {
        if self.drawn_lines == 0 { String::new() } else { format!("\x1b[{}A\x1b[J", self.drawn_lines) }
    }

    /// Tells of something; on a terminal below the table, as long as it is among the newest.
    pub fn tell(&mut self, ui: &mut Ui, news: &str) {
        let text = format!("{:.1}s  {news}", self.elapsed_seconds());
        if !ui.is_live() {
            return ui.progress(&text);
        }
        self.recent.push_back(text);
        if self.recent.len() > RECENT_MAX {
            self.recent.pop_front();
        }
    }
}

/// Whether a change of a job is something that a person cares for.
fn is_news(moved: &Moved) -> bool {
    let Moved { before, after } = moved;
    let is_other = |before: &Job| (before.state, before.attempt) != (after.state, after.attempt);
    before.as_ref().is_none_or(is_other) && after.state != JobState::Claimed
}

/// What there is to be seen.
pub struct Scene<'a> {
    /// Jobs.
    pub board: &'a Board,
    /// Tiers, in their order.
    pub policy: &'a Policy,
    /// GPU slots.
    pub cluster: Cluster,
    /// Lines of the file.
    pub lines: &'a Lines,
    /// The folder.
    pub dir: &'a str,
}

impl Scene<'_> {
    fn picture(&self, elapsed_seconds: f64) -> String {
        let lines = counted(size(self.lines.len()), "line");
        let jobs = counted(size(self.board.jobs().count()), "job");
        let head = format!("{elapsed_seconds:.1}s  {lines}, {jobs}  {}", self.dir);
        format!("{head}\n\n{}\n\n{}", self.tiers(), self.running())
    }

    fn tiers(&self) -> String {
        let headings = ["TIER", ">WAITING", ">RUNNING", ">GPUS", ">SUCCEEDED", ">FAILED", ">REFUSED", ">DEAD"];
        let mut columns = Columns::new(&headings);
        for tier in self.policy.tiers() {
            let jobs: Vec<&Job> = self.board.jobs().filter(|job| job.tier == tier.name).collect();
            let count = |is: fn(JobState) -> bool| jobs.iter().filter(|job| is(job.state)).count().to_string();
            let gpus: u32 = jobs.iter().filter(|job| job.state == JobState::Running).map(|job| job.gpus).sum();
            columns.row([
                tier.name.to_string(),
                count(|state| !state.is_final() && state != JobState::Running),
                count(|state| state == JobState::Running),
                format!("{gpus}/{}", self.cluster.gpus()),
                count(|state| state == JobState::Succeeded),
                count(|state| state == JobState::Failed),
                count(|state| state == JobState::Refused),
                count(|state| state == JobState::Dead),
            ]);
        }
        columns.render()
    }

    /// Jobs that run, then those that wait, the most urgent first.
    fn running(&self) -> String {
        let mut jobs: Vec<&Job> =
            self.board.jobs().filter(|job| !job.state.is_final() && job.state != JobState::Waiting).collect();
        jobs.sort_by_key(|job| {
            (job.state != JobState::Running, std::cmp::Reverse(job.priority), job.created_at, job.id)
        });
        let mut columns = Columns::new(&["JOB", "STATE", "TIER", ">PRIORITY", ">GPUS", "NOTE"]);
        for job in jobs.iter().take(SHOWN_MAX) {
            columns.row([
                cut(&job.name, NAME_CHARACTERS_MAX),
                job.state.as_str().to_owned(),
                job.tier.to_string(),
                job.priority.to_string(),
                job.gpus.to_string(),
                news::note(job).unwrap_or_default(),
            ]);
        }
        let more = jobs.len().saturating_sub(SHOWN_MAX);
        if more > 0 { format!("{}\n… and {more} more", columns.render()) } else { columns.render() }
    }
}

/// Cuts every line to the terminal: a line that wraps would leave its tail behind.
fn fitted(picture: &str) -> String {
    let width = comfy_table::Table::new().width().map_or(WIDTH, usize::from).saturating_sub(1);
    picture.lines().map(|line| cut(line, width.max(20))).collect::<Vec<_>>().join("\n")
}

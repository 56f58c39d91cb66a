//! What a person sees while a run goes on: a table that is drawn over itself on a terminal, one line a change elsewhere.

use std::time::{Duration, Instant};

use osprey_model::job::{Job, JobState};
use osprey_policy::Policy;

use super::board::{Board, Moved};
use super::cluster::Cluster;
use crate::error::CliError;
use crate::render::table::Columns;
use crate::ui::Ui;

/// How often the table is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// Jobs shown in the table.
const SHOWN_MAX: usize = 12;
/// Columns of a terminal that doesn't say how many it has.
const WIDTH: usize = 80;

/// The progress of a run.
pub struct Progress {
    started: Instant,
    drawn: Option<Instant>,
    drawn_lines: usize,
}

impl Default for Progress {
    fn default() -> Self {
        Self { started: Instant::now(), drawn: None, drawn_lines: 0 }
    }
}

impl Progress {
    /// Real seconds since the run began.
    #[must_use]
    pub fn elapsed_seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Shows what has changed.
    ///
    /// # Errors
    /// When the terminal can't be written.
    pub fn show(&mut self, ui: &mut Ui, scene: &Scene<'_>, moved: &[Moved]) -> Result<(), CliError> {
        if !ui.is_live() {
            moved.iter().filter_map(|moved| self.line(moved)).for_each(|line| ui.progress(&line));
            return Ok(());
        }
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < DRAW_EVERY) {
            return Ok(());
        }
        self.drawn = Some(Instant::now());
        let picture = fitted(&scene.picture(self.elapsed_seconds()));
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

    /// `12.3s  train-7  running  production  950  8 GPUs`; nothing when nothing that a person cares for has changed.
    fn line(&self, moved: &Moved) -> Option<String> {
        let Moved { before, after } = moved;
        let is_news = |before: &Job| (before.state, before.attempt) != (after.state, after.attempt);
        if !before.as_ref().is_none_or(is_news) || after.state == JobState::Claimed {
            return None;
        }
        let Job { name, state, tier, priority, gpus, .. } = after;
        let state = state.as_str();
        let mut line = format!("{:.1}s  {name}  {state}", self.elapsed_seconds());
        if !tier.as_str().is_empty() {
            line.push_str(&format!("  {tier}  {priority}  {gpus} GPUs"));
        }
        if let Some(note) = note(after) {
            line.push_str(&format!("  {note}"));
        }
        Some(line)
    }
}

/// Why a job is where it is, in few words.
fn note(job: &Job) -> Option<String> {
    let again = || (job.attempt > 1).then(|| format!("attempt {}", job.attempt));
    match (&job.end, job.last_end, job.state) {
        (Some(end), _, _) => Some(format!("{}: {}", end.code, end.message)),
        (None, Some(class), JobState::Queued) => Some(format!("again after {}", class.as_str())),
        (None, _, JobState::Running | JobState::Submitted | JobState::Succeeded) => again(),
        _ => None,
    }
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
    pub lines: usize,
    /// The folder.
    pub dir: &'a str,
}

impl Scene<'_> {
    fn picture(&self, elapsed_seconds: f64) -> String {
        let head =
            format!("{elapsed_seconds:.1}s  {} lines, {} jobs  {}", self.lines, self.board.jobs().count(), self.dir);
        format!("{head}\n\n{}\n\n{}", self.tiers(), self.running())
    }

    fn tiers(&self) -> String {
        let headings = ["TIER", ">WAITING", ">RUNNING", ">GPUS", ">SUCCEEDED", ">FAILED", ">DEAD"];
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
                job.name.clone(),
                job.state.as_str().to_owned(),
                job.tier.to_string(),
                job.priority.to_string(),
                job.gpus.to_string(),
                note(job).unwrap_or_default(),
            ]);
        }
        let more = jobs.len().saturating_sub(SHOWN_MAX);
        if more > 0 { format!("{}\n… and {more} more", columns.render()) } else { columns.render() }
    }
}

/// Cuts every line to the terminal: a line that wraps would leave its tail behind.
fn fitted(picture: &str) -> String {
    let width = comfy_table::Table::new().width().map_or(WIDTH, usize::from).saturating_sub(1);
    picture.lines().map(|line| osprey_model::job::cut(line, width.max(20))).collect::<Vec<_>>().join("\n")
}

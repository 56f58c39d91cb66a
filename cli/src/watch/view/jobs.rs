//! The jobs that have not ended, as many as there is room for around the selected one.

use osprey_model::job::JobState;
use osprey_pipeline::census::OpenJob;

use super::brush::{Brush, Piece, fit, right};
use crate::render::time::short;
use crate::watch::look::{Look, sign};
use crate::watch::state::State;

/// Columns of what stands behind a name: state, tier, number, GPUs, wait.
const STATE: usize = 11;
const TIER: usize = 13;
const NUMBER: usize = 5;
const GPUS: usize = 5;
const SINCE: usize = 8;

/// Draws the jobs.
pub(super) fn draw(state: &State, brush: &mut Brush<'_>) {
    let look = brush.look();
    brush.heading("jobs", &note(state));
    let room = brush.room();
    if state.listed.is_empty() && room > 0 {
        brush.text(&format!("  {}", nothing(state)), look.faint());
        return;
    }
    let selected = state.place_of_selected().unwrap_or(0);
    let first = selected.saturating_sub(room / 2).min(state.listed.len().saturating_sub(room));
    let now = state.overview.as_ref().map_or(0, |overview| overview.now_ms);
    for (place, id) in state.listed.iter().enumerate().skip(first).take(room) {
        let Some(job) = state.jobs.get(id) else { continue };
        let name = state.names.get(id).cloned().unwrap_or_else(|| id.to_string());
        let is_selected = place == selected;
        let pieces = row(job, &name, is_selected, now, brush.width(), look);
        brush.styled(&pieces, if is_selected { look.selected() } else { look.plain() });
    }
}

/// `12 of 10 000, waiting, by urgency, filter serve`
fn note(state: &State) -> String {
    let count = if state.listed.len() == state.jobs.len() {
        format!("{}", state.jobs.len())
    } else {
        format!("{} of {}", state.listed.len(), state.jobs.len())
    };
    let filter = if state.filter.is_empty() { String::new() } else { format!(", filter `{}`", state.filter) };
    format!("{count}, {}, by {}{filter}", state.show.word(), state.order.word())
}

fn nothing(state: &State) -> &'static str {
    if state.jobs.is_empty() { "no job waits or runs" } else { "no job is like that" }
}

fn row(job: &OpenJob, name: &str, is_selected: bool, now: i64, width: usize, look: Look) -> Vec<Piece> {
    let mark = if is_selected { "▸" } else { " " };
    let columns = width.saturating_sub(2 + 2 + STATE + TIER + NUMBER + GPUS + SINCE);
    // A style of its own would be lost on the selected row anyway.
    let of_state = if is_selected { look.plain() } else { look.state(job.state) };
    vec![
        (format!("{mark} "), look.strong()),
        (format!("{} ", sign(job.state)), of_state),
        (fit(name, columns), look.plain()),
        (format!(" {}", fit(word(job.state), STATE - 1)), of_state),
        (fit(job.tier.as_str(), TIER), look.plain()),
        (right(&job.priority.to_string(), NUMBER), look.plain()),
        (right(&job.gpus.to_string(), GPUS - 1), look.plain()),
        ("g".to_owned(), if is_selected { look.plain() } else { look.faint() }),
        (right(&short(now - job.since), SINCE), look.plain()),
    ]
}

fn word(state: JobState) -> &'static str {
    // In a list of jobs that wait, that of a job that waits for others has to say so.
    if state == JobState::Waiting { "blocked" } else { state.as_str() }
}

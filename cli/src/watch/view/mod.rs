//! The state as cells of a terminal: a function of the state and the area, and of nothing else.

mod brush;
mod help;
mod jobs;
mod pools;
mod side;
mod tiers;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::look::Look;
use super::state::State;
use crate::render::time::{rfc3339, short};
use brush::{Brush, Piece, fit};

/// The smallest terminal, columns.
pub const WIDTH_MIN: u16 = 60;
/// The smallest terminal, rows.
pub const HEIGHT_MIN: u16 = 16;
/// From so many columns on, parts stand side by side.
const WIDE: u16 = 130;

/// Columns of the head beside the name of the pipeline.
const HEAD_REST: usize = 56;

/// Parts of the view, top to bottom, and left to right where it is wide.
struct Parts {
    head: Rect,
    pools: Rect,
    tiers: Rect,
    jobs: Rect,
    why: Rect,
    feed: Rect,
    foot: Rect,
}

/// The view as cells.
#[must_use]
pub fn view(state: &State, look: Look, area: Rect) -> Buffer {
    let mut buffer = Buffer::empty(area);
    draw(state, look, area, &mut buffer);
    buffer
}

/// Draws the view into cells that are empty.
pub fn draw(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        too_small(area, buffer, look);
        return;
    }
    let parts = Parts::of(state, area);
    head(state, &mut Brush::new(buffer, parts.head, look));
    if let Some(overview) = &state.overview {
        pools::draw(overview, &mut Brush::new(buffer, parts.pools, look));
        tiers::draw(overview, &mut Brush::new(buffer, parts.tiers, look));
        jobs::draw(state, &mut Brush::new(buffer, parts.jobs, look));
        side::why(state, &mut Brush::new(buffer, parts.why, look));
        side::feed(state, &mut Brush::new(buffer, parts.feed, look));
    } else {
        let mut brush = Brush::new(buffer, parts.pools, look);
        let what = if state.fault.is_some() { "it can't be read yet" } else { "reading …" };
        brush.text(what, look.faint());
    }
    foot(state, &mut Brush::new(buffer, parts.foot, look));
    if state.has_help {
        help::draw(area, buffer, look);
    }
}

/// One sentence, broken into lines, with the way out.
fn too_small(area: Rect, buffer: &mut Buffer, look: Look) {
    let sentence = format!(
        "{}×{} is too small for this view, which takes {WIDTH_MIN}×{HEIGHT_MIN}: enlarge the terminal, or leave with q and \
         take `osprey queue`",
        area.width, area.height
    );
    let mut brush = Brush::new(buffer, area, look);
    for line in brush::wrapped(&sentence, usize::from(area.width)) {
        brush.text(&line, look.plain());
    }
}

impl Parts {
    fn of(state: &State, area: Rect) -> Self {
        let (head, rest) = cut_top(area, if state.fault.is_some() { 2 } else { 1 });
        let (rest, foot) = cut_bottom(rest, 1);
        let overview = state.overview.as_ref();
        if area.width >= WIDE {
            let (left, right) = halves(rest);
            let (pools, below) =
                cut_top(left, overview.map_or(1, |o| pools::height(o, left.width)).min(left.height / 2));
            let (tiers, feed) = cut_top(below, overview.map_or(0, |o| tiers::height(o, below.height * 2 / 3)));
            let (jobs, why) = cut_bottom(right, (right.height / 3).clamp(5, 14));
            return Self { head, pools, tiers, jobs, why, feed, foot };
        }
        let (pools, below) = cut_top(rest, overview.map_or(1, |o| pools::height(o, rest.width)).min(rest.height / 4));
        let (tiers, below) = cut_top(below, overview.map_or(0, |o| tiers::height(o, rest.height / 4 + 1)));
        let (below, feed) = cut_bottom(below, (below.height / 3).max(3));
        let (jobs, why) = cut_bottom(below, (below.height / 3).clamp(3, 8));
        Self { head, pools, tiers, jobs, why, feed, foot }
    }
}

fn cut_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let rest = Rect { y: area.y + height, height: area.height - height, ..area };
    (Rect { height, ..area }, rest)
}

fn cut_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    cut_top(area, area.height.saturating_sub(height))
}

/// Left and right, with a blank column between them.
fn halves(area: Rect) -> (Rect, Rect) {
    let width = (area.width - 2) / 2;
    let left = Rect { width, ..area };
    (left, Rect { x: area.x + width + 2, width: area.width - width - 2, ..area })
}

/// Where, when, how often; and what is wrong.
fn head(state: &State, brush: &mut Brush<'_>) {
    let look = brush.look();
    let mut pieces: Vec<Piece> = vec![(" osprey watch ".to_owned(), look.selected().patch(look.strong()))];
    // What stands behind it is worth more than the end of a long name.
    let most = brush.width().saturating_sub(HEAD_REST);
    let place = if brush::width(&state.place) > most { fit(&state.place, most) } else { state.place.clone() };
    pieces.push((format!(" {place}"), look.strong()));
    if let Some(overview) = &state.overview {
        pieces.push((format!("  {}", clock(overview.now_ms)), look.plain()));
        pieces.push((format!("  read in {}", took(state.took_ms)), look.faint()));
        if overview.is_cut {
            pieces.push(("  more jobs than are counted".to_owned(), look.alarming()));
        }
    }
    if state.is_paused {
        pieces.push(("  ‖ paused".to_owned(), look.alarming()));
    }
    brush.line(&pieces);
    if let Some(fault) = &state.fault {
        let width = brush.width();
        brush.line(&[(fit(&format!(" ! {fault}"), width), look.alarming())]);
    }
}

/// `2026-11-30 10:00:00Z`
fn clock(ms: i64) -> String {
    let time = rfc3339(ms);
    format!("{} {}Z", time.get(..10).unwrap_or_default(), time.get(11..19).unwrap_or_default())
}

fn took(ms: u64) -> String {
    if ms < 1_000 { format!("{ms} ms") } else { short(i64::try_from(ms).unwrap_or(i64::MAX)) }
}

/// The keys, or the filter while it is typed.
fn foot(state: &State, brush: &mut Brush<'_>) {
    let look = brush.look();
    if state.is_typing {
        brush.line(&[
            (" filter: ".to_owned(), look.strong()),
            (format!("{}▏", state.filter), look.plain()),
            ("   Enter keeps it, Esc drops it".to_owned(), look.faint()),
        ]);
        return;
    }
    let mut pieces: Vec<Piece> = Vec::new();
    for (key, what) in
        [("?", "help"), ("q", "quit"), ("/", "filter"), ("s", "show"), ("o", "order"), ("p", "pause"), ("↑↓", "select")]
    {
        pieces.push((format!(" {key}"), look.strong()));
        pieces.push((format!(" {what} "), look.faint()));
    }
    brush.line(&pieces);
}

//! Why the selected job is where it is, and what happens.

use super::brush::{Brush, Piece, fit, wrapped};
use crate::render::time::rfc3339;
use crate::watch::feed::Item;
use crate::watch::look::Look;
use crate::watch::state::State;

/// Columns of a name in the feed.
const NAME: usize = 18;
/// Columns of a label of `osprey why`, with the blanks around it.
const LABEL: usize = 12;

/// Draws the reason of the selected job.
pub(super) fn why(state: &State, brush: &mut Brush<'_>) {
    let look = brush.look();
    let Some(selected) = state.selected else {
        brush.heading("why", "");
        return;
    };
    let name = state.names.get(&selected).cloned().unwrap_or_else(|| selected.to_string());
    let most = brush.width() / 2;
    brush.heading("why", fit(&name, most).trim_end());
    let Some(text) = state.why_selected() else {
        brush.text("  reading …", look.faint());
        return;
    };
    // What the list of the jobs shows needs no line here.
    let is_shown = |line: &&str| ["  id ", "  state ", "  priority "].iter().any(|label| line.starts_with(label));
    for line in text.lines().filter(|line| !is_shown(line)) {
        labelled(line, brush);
    }
}

/// A line of `osprey why`, `  reason    …`, broken where it is too long.
fn labelled(line: &str, brush: &mut Brush<'_>) {
    let look = brush.look();
    let width = brush.width();
    let (label, rest) = line.split_at_checked(LABEL).unwrap_or((line, ""));
    for (number, part) in wrapped(rest, width.saturating_sub(LABEL + 1)).into_iter().enumerate() {
        let label = if number == 0 { label.to_owned() } else { " ".repeat(LABEL) };
        let style = if label.contains("reason") { look.strong() } else { look.plain() };
        brush.line(&[(label, look.faint()), (part, style)]);
    }
}

/// Draws what happens, the newest first.
pub(super) fn feed(state: &State, brush: &mut Brush<'_>) {
    let look = brush.look();
    let note = if state.left_out > 0 { format!("{} changes left out", state.left_out) } else { String::new() };
    brush.heading("what happens", &note);
    if state.feed.is_empty() {
        let since = state.since_ms.map(time).unwrap_or_default();
        brush.text(&format!("  nothing since {since}"), look.faint());
        return;
    }
    for item in state.feed.iter().rev().take(brush.room()) {
        let line = line(item, brush.width(), look);
        brush.line(&line);
    }
}

fn line(item: &Item, width: usize, look: Look) -> Vec<Piece> {
    let Item { at, kind, name, text, .. } = item;
    let rest = width.saturating_sub(10 + 2 + NAME + 1);
    vec![
        (format!(" {} ", time(*at)), look.faint()),
        (format!("{} ", kind.sign()), look.kind(*kind)),
        (format!("{} ", fit(name, NAME)), look.strong()),
        (fit(&format!("{}  {text}", kind.word()), rest), look.plain()),
    ]
}

/// `10:00:00`
fn time(ms: i64) -> String {
    rfc3339(ms).get(11..19).unwrap_or_default().to_owned()
}

//! The help, over the middle of the view.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::brush::{Brush, fit};
use crate::watch::feed::Kind;
use crate::watch::keys::HELP;
use crate::watch::look::Look;

/// Columns of a key.
const KEY: usize = 14;
/// Columns of the help.
const WIDTH: u16 = 80;

/// Draws the help.
pub(super) fn draw(area: Rect, buffer: &mut Buffer, look: Look) {
    let lines = lines();
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let width = WIDTH.min(area.width);
    let x = area.x + (area.width - width) / 2;
    let y = area.y + (area.height - height) / 2;
    let part = Rect { x, y, width, height };
    for row in part.rows() {
        buffer.set_string(row.x, row.y, " ".repeat(usize::from(width)), look.plain());
        buffer.set_style(row, ratatui::style::Style::reset());
    }
    let mut brush = Brush::new(buffer, part, look);
    brush.heading("help", "? closes it");
    for (key, what) in lines {
        brush.line(&[(format!("  {}", fit(&key, KEY)), look.strong()), (what, look.plain())]);
    }
    let rule = "─".repeat(brush.width());
    brush.text(&rule, look.faint());
}

fn lines() -> Vec<(String, String)> {
    let mut lines: Vec<(String, String)> =
        HELP.iter().map(|(key, what)| ((*key).to_owned(), (*what).to_owned())).collect();
    lines.push((String::new(), String::new()));
    lines.push(("jobs".to_owned(), "○ queued  → sent  ● running  ◇ waits for other jobs".to_owned()));
    for (label, kinds) in ["happens", ""].into_iter().zip(Kind::ALL.chunks(5)) {
        let signs: Vec<String> = kinds.iter().map(|kind| format!("{} {}", kind.sign(), kind.word())).collect();
        lines.push((label.to_owned(), signs.join("  ")));
    }
    lines.push(("‖".to_owned(), "drained by a person: nothing of it starts".to_owned()));
    lines.push(("!".to_owned(), "the oldest waits over 10 min (first tier), over 3 h (others)".to_owned()));
    lines
}

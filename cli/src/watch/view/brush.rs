//! Drawing line by line into a part of the view: what doesn't fit is left out, and never drawn over another part.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::watch::look::Look;

/// A text and how it looks.
pub(super) type Piece = (String, Style);

/// A part of the view, and the row that is drawn next.
pub(super) struct Brush<'b> {
    buffer: &'b mut Buffer,
    area: Rect,
    row: u16,
    look: Look,
}

impl<'b> Brush<'b> {
    /// A brush at the top of a part.
    pub(super) fn new(buffer: &'b mut Buffer, area: Rect, look: Look) -> Self {
        Self { buffer, area, row: 0, look }
    }

    /// How things look.
    pub(super) fn look(&self) -> Look {
        self.look
    }

    /// Columns.
    pub(super) fn width(&self) -> usize {
        usize::from(self.area.width)
    }

    /// Rows that are left.
    pub(super) fn room(&self) -> usize {
        usize::from(self.area.height.saturating_sub(self.row))
    }

    /// Draws a line of pieces.
    pub(super) fn line(&mut self, pieces: &[Piece]) {
        self.styled(pieces, Style::new());
    }

    /// Draws a line of pieces, over the whole width in a style.
    pub(super) fn styled(&mut self, pieces: &[Piece], style: Style) {
        if self.room() == 0 {
            return;
        }
        let (x, y) = (self.area.x, self.area.y + self.row);
        let spans = pieces.iter().map(|(text, style)| Span::styled(text.as_str(), *style));
        self.buffer.set_line(x, y, &Line::from_iter(spans), self.area.width);
        self.buffer.set_style(Rect { x, y, width: self.area.width, height: 1 }, style);
        self.row += 1;
    }

    /// Draws a text.
    pub(super) fn text(&mut self, text: &str, style: Style) {
        self.line(&[(text.to_owned(), style)]);
    }

    /// Draws a heading: a word in a rule, and what belongs to it on the right.
    pub(super) fn heading(&mut self, word: &str, note: &str) {
        let rule = self.width().saturating_sub(width(word) + width(note) + 5);
        let end = if note.is_empty() { "─".to_owned() } else { format!(" {note} ") };
        let look = self.look;
        self.line(&[
            ("─ ".to_owned(), look.faint()),
            (word.to_owned(), look.heading()),
            (format!(" {}", "─".repeat(rule)), look.faint()),
            (end, look.faint()),
        ]);
    }
}

/// Columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A text in so many columns: cut with `…`, or filled up with blanks.
pub(super) fn fit(text: &str, columns: usize) -> String {
    let own = width(text);
    if own <= columns {
        return format!("{text}{}", " ".repeat(columns - own));
    }
    let mut cut = String::new();
    let mut used = 0;
    for letter in text.chars() {
        let wide = width(letter.encode_utf8(&mut [0; 4]));
        if used + wide + 1 > columns {
            break;
        }
        cut.push(letter);
        used += wide;
    }
    if columns > 0 {
        cut.push('…');
        used += 1;
    }
    format!("{cut}{}", " ".repeat(columns.saturating_sub(used)))
}

/// A text to the right of so many columns.
pub(super) fn right(text: &str, columns: usize) -> String {
    let own = width(text);
    if own >= columns { fit(text, columns) } else { format!("{}{text}", " ".repeat(columns - own)) }
}

/// A text in lines of so many columns, broken between words.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let joined = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width(&joined) <= columns || line.is_empty() {
            line = joined;
        } else {
            lines.push(std::mem::replace(&mut line, word.to_owned()));
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_fits_into_its_columns_whatever_its_letters_take() {
        for (text, columns, want) in
            [("abc", 5, "abc  "), ("abcdef", 4, "abc…"), ("日本語", 5, "日本…"), ("日本語", 4, "日… "), ("a", 0, "")]
        {
            assert_eq!(fit(text, columns), want);
        }
        assert_eq!(right("7", 3), "  7");
    }

    #[test]
    fn a_text_is_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""; 0]);
    }
}

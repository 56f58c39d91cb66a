//! From byte offsets to lines and columns, also inside the strings of a TOML file.

use std::ops::Range;

/// Line and column, counted from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub line: usize,
    pub column: usize,
}

impl Default for Place {
    /// Where a file begins.
    fn default() -> Self {
        Self { line: 1, column: 1 }
    }
}

/// The line and column of a byte offset.
pub(crate) fn place(text: &str, offset: usize) -> Place {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    Place { line, column }
}

/// The byte offset in the file of an offset in the value of a TOML string.
///
/// `span` is the string as written, quotes included. A literal string maps one to one; in a basic string an escape is
/// longer than what it stands for, so the text is walked. What can't be mapped falls on the string's start.
pub(crate) fn offset_in_string(text: &str, span: &Range<usize>, inner: usize) -> usize {
    let raw = text.get(span.clone()).unwrap_or("");
    let (body, escapes) = opening(raw);
    let walked = raw.get(body..).map_or(0, |rest| if escapes { walk(rest, inner) } else { inner });
    (span.start + body + walked).min(span.end)
}

/// Length of the opening quote with the newline that TOML drops after it, and whether escapes count.
fn opening(raw: &str) -> (usize, bool) {
    let (quote, escapes) = match raw.as_bytes() {
        [b'\'', b'\'', b'\'', ..] => (3, false),
        [b'"', b'"', b'"', ..] => (3, true),
        [b'\'', ..] => (1, false),
        [b'"', ..] => (1, true),
        _ => (0, false),
    };
    let newline = match raw.as_bytes().get(quote..) {
        Some([b'\r', b'\n', ..]) if quote == 3 => 2,
        Some([b'\n', ..]) if quote == 3 => 1,
        _ => 0,
    };
    (quote + newline, escapes)
}

/// Bytes of `raw` that stand for the first `inner` bytes of the value, and any line break without a value behind them.
fn walk(raw: &str, inner: usize) -> usize {
    let (mut read, mut value) = (0, 0);
    while let Some(rest) = raw.get(read..).filter(|rest| !rest.is_empty()) {
        let (raw_len, value_len) = unit(rest);
        if value >= inner && value_len > 0 {
            break;
        }
        read += raw_len;
        value += value_len;
    }
    read
}

/// The first character or escape: bytes as written, bytes of the value.
fn unit(rest: &str) -> (usize, usize) {
    let mut chars = rest.chars();
    let first = chars.next().map_or(1, char::len_utf8);
    if !rest.starts_with('\\') {
        return (first, first);
    }
    match chars.next() {
        Some('u') => escaped_char(rest, 4),
        Some('U') => escaped_char(rest, 8),
        Some('x') => escaped_char(rest, 2),
        Some(c) if c.is_whitespace() => (1 + rest.chars().skip(1).take_while(|c| c.is_whitespace()).count(), 0),
        _ => (2, 1),
    }
}

fn escaped_char(rest: &str, digits: usize) -> (usize, usize) {
    let code = rest.get(2..2 + digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    (2 + digits, code.and_then(char::from_u32).map_or(1, char::len_utf8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters_and_lines_count_from_one() {
        for (text, offset, line, column) in [
            ("abc", 0, 1, 1),
            ("abc", 2, 1, 3),
            ("a\nbc", 3, 2, 2),
            ("é=1", 2, 1, 2),
            ("a\n", 2, 2, 1),
            ("a", 99, 1, 2),
        ] {
            assert_eq!(place(text, offset), Place { line, column }, "{text:?} {offset}");
        }
    }

    #[test]
    fn an_offset_in_a_string_is_found_behind_quotes_and_escapes() {
        // (as written, offset in the value, offset as written)
        for (raw, inner, want) in [
            ("'a == b'", 2, 3),
            (r#""a == b""#, 2, 3),
            (r#""x == \"8\" && y""#, 10, 13),
            ("'''\nab'''", 1, 5),
            ("'''ab'''", 1, 4),
            (r#""\u00e9 = 1""#, 3, 8),
            ("\"\"\"a \\\n   b\"\"\"", 2, 10),
        ] {
            assert_eq!(offset_in_string(raw, &(0..raw.len()), inner), want, "{raw}");
        }
    }
}

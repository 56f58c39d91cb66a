//! Sentences for expressions that can't be read. The parser speaks of tokens; people write `=` for `==`.

use cel::ParseErrors;
use osprey_model::message::words::quote;

use super::ExprError;
use crate::problem::PolicyErrorCode;

/// What people write for what they mean.
const SLIPS: [(&str, &str); 8] = [
    ("=", "write `==` to compare"),
    ("=>", "write `>=`"),
    ("=<", "write `<=`"),
    ("&", "write `&&` for and"),
    ("|", "write `||` for or"),
    ("and", "write `&&` for and"),
    ("or", "write `||` for or"),
    (">", "write `!=` for unequal"),
];

/// The first mistake; those behind it are mostly its echo.
pub(super) fn error(text: &str, errors: &ParseErrors) -> ExprError {
    // What the parser makes of a broken piece stands before the place where it broke.
    let broken = errors.errors.iter().find(|error| error.msg.starts_with("Syntax error"));
    let Some(first) = broken.or(errors.errors.first()) else {
        return at(0, "the expression can't be read".to_owned(), None);
    };
    let offset = offset_of(text, first.pos);
    if first.msg.contains("Recursion limit") {
        let message = "the expression is nested too deeply".to_owned();
        let help = Some("split it into several rules".to_owned());
        return ExprError { offset, code: PolicyErrorCode::ExprTooLarge, message, help };
    }
    describe(text, offset, &first.msg)
}

fn describe(text: &str, offset: usize, raw: &str) -> ExprError {
    let rest = text.get(offset..).unwrap_or("");
    if text.trim().is_empty() {
        return at(0, "the expression is empty".to_owned(), Some("write `true` for always".to_owned()));
    }
    if rest.trim().is_empty() {
        return at(text.trim_end().len(), "the expression ends too early".to_owned(), None);
    }
    if raw.contains("literal") {
        return at(offset, format!("{} is no number that fits", quote(word(rest))), None);
    }
    if rest.starts_with(['\'', '"']) && raw.contains("token recognition") {
        return at(offset, "a text without its closing quote, or with an unknown escape".to_owned(), None);
    }
    let found = word(rest);
    let slip = if word_before(text, offset) == "not" { Some("write `!` for not") } else { slip(text, offset, found) };
    at(offset, format!("unexpected {}", quote(found)), slip.map(ToOwned::to_owned))
}

fn slip(text: &str, offset: usize, found: &str) -> Option<&'static str> {
    let before = text.get(..offset).and_then(|before| before.chars().next_back());
    // `a <> b` stumbles over its second sign.
    match found {
        ">" if before != Some('<') => None,
        _ => SLIPS.iter().find(|(wrong, _)| *wrong == found).map(|(_, help)| *help),
    }
}

/// The word or sign at the beginning.
fn word(rest: &str) -> &str {
    let letters = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let signs = |c: char| !letters(c) && !c.is_whitespace();
    let end = match rest.chars().next() {
        Some(first) if letters(first) => rest.find(|c| !letters(c)),
        Some('=' | '<' | '>' | '&' | '|' | '!') => rest.find(|c| !signs(c)),
        Some(first) => Some(first.len_utf8()),
        None => None,
    };
    rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest)
}

fn word_before(text: &str, offset: usize) -> &str {
    text.get(..offset).and_then(|before| before.split_whitespace().next_back()).unwrap_or("")
}

fn at(offset: usize, message: String, help: Option<String>) -> ExprError {
    ExprError { offset, code: PolicyErrorCode::ExprSyntax, message, help }
}

/// The byte offset of the parser's line and column, both counted from 1 and columns in characters.
fn offset_of(text: &str, (line, column): (isize, isize)) -> usize {
    let skip = |number: isize| usize::try_from(number - 1).unwrap_or(0);
    let start: usize = text.split_inclusive('\n').take(skip(line)).map(str::len).sum();
    let chars = text.get(start..).unwrap_or("").chars().take(skip(column));
    start + chars.map(char::len_utf8).sum::<usize>()
}

//! Rust source taken apart, as far as the house rules need it: comments, code without them, functions, words.
//!
//! It is a scanner and no parser: it knows comments, strings, characters and braces.

use std::ops::Range;

/// Source with its comments and literals told apart. All three have as many lines as the source.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The code, with comments and the insides of strings and characters blanked.
    pub code: String,
    /// The comments, with everything else blanked.
    pub comments: String,
}

/// What the scanner is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Code,
    LineComment,
    BlockComment { depth: u32 },
    Text,
    RawText { hashes: usize },
}

/// What some characters are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

impl Source {
    /// Takes source apart.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut source = Self::default();
        let mut inside = Inside::Code;
        let mut at = 0;
        while let Some(rest) = chars.get(at..).filter(|rest| !rest.is_empty()) {
            let (length, kind, next) = step(rest, inside);
            for &c in rest.iter().take(length) {
                source.push(c, kind);
            }
            inside = next;
            at += length;
        }
        source
    }

    fn push(&mut self, c: char, kind: Kind) {
        let blank = if c == '\n' { '\n' } else { ' ' };
        self.code.push(if kind == Kind::Code { c } else { blank });
        self.comments.push(if kind == Kind::Comment { c } else { blank });
    }

    /// The code without what is behind `#[cfg(test)]`.
    #[must_use]
    pub fn code_without_tests(&self) -> String {
        let mut code = self.code.clone();
        while let Some(start) = code.find("#[cfg(test)]") {
            let from = start + "#[cfg(test)]".len();
            let end = item_end(&code, from).unwrap_or(code.len());
            let blanked: String =
                code.get(start..end).unwrap_or_default().chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
            code.replace_range(start..end, &blanked);
        }
        code
    }
}

/// How many characters to take (at least one), what they are, and what the scanner is in after them.
fn step(rest: &[char], inside: Inside) -> (usize, Kind, Inside) {
    let starts = |text: &str| text.chars().zip(rest).filter(|(a, b)| a == *b).count() == text.chars().count();
    match inside {
        Inside::LineComment => (1, Kind::Comment, if starts("\n") { Inside::Code } else { inside }),
        Inside::BlockComment { depth: 1 } if starts("*/") => (2, Kind::Comment, Inside::Code),
        Inside::BlockComment { depth } if starts("*/") => (2, Kind::Comment, Inside::BlockComment { depth: depth - 1 }),
        Inside::BlockComment { depth } if starts("/*") => (2, Kind::Comment, Inside::BlockComment { depth: depth + 1 }),
        Inside::BlockComment { .. } => (1, Kind::Comment, inside),
        Inside::Text if starts("\\") => (2, Kind::Literal, inside),
        Inside::Text => (1, Kind::Literal, if starts("\"") { Inside::Code } else { inside }),
        Inside::RawText { hashes } => {
            let closed = starts("\"") && rest.iter().skip(1).take(hashes).filter(|c| **c == '#').count() == hashes;
            if closed { (1 + hashes, Kind::Literal, Inside::Code) } else { (1, Kind::Literal, inside) }
        }
        Inside::Code if starts("//") => (2, Kind::Comment, Inside::LineComment),
        Inside::Code if starts("/*") => (2, Kind::Comment, Inside::BlockComment { depth: 1 }),
        Inside::Code if starts("\"") => (1, Kind::Literal, Inside::Text),
        Inside::Code if starts("'") => character(rest),
        Inside::Code => raw_text(rest).unwrap_or((word_length(rest), Kind::Code, Inside::Code)),
    }
}

/// A character literal, or the tick of a lifetime.
fn character(rest: &[char]) -> (usize, Kind, Inside) {
    let length = match rest.get(1) {
        Some('\\') => rest.iter().skip(3).position(|c| *c == '\'').map(|position| position + 4),
        _ => (rest.get(2) == Some(&'\'')).then_some(3),
    };
    length.map_or((1, Kind::Code, Inside::Code), |length| (length, Kind::Literal, Inside::Code))
}

/// The opening of a raw string, which may be a byte string or a C string.
fn raw_text(rest: &[char]) -> Option<(usize, Kind, Inside)> {
    let prefix = rest.iter().take_while(|c| matches!(c, 'b' | 'c' | 'r')).count();
    if prefix == 0 || prefix > 2 || rest.get(prefix - 1) != Some(&'r') {
        return None;
    }
    let hashes = rest.iter().skip(prefix).take_while(|c| **c == '#').count();
    let opens = rest.get(prefix + hashes) == Some(&'"');
    opens.then_some((prefix + hashes + 1, Kind::Literal, Inside::RawText { hashes }))
}

/// Length of the word that starts here, so that a word which ends in `r` opens no raw string; 1 for anything else.
fn word_length(rest: &[char]) -> usize {
    rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count().max(1)
}

/// Where the item after `from` ends: behind its closing brace, or behind its semicolon.
fn item_end(code: &str, from: usize) -> Option<usize> {
    let body = body_of(code, from)?;
    Some(body.end)
}

/// The braces that follow `from`, or the place of the semicolon when that comes first.
fn body_of(code: &str, from: usize) -> Option<Range<usize>> {
    let mut depth = 0_u32;
    let mut nested = 0_u32;
    let mut start = None;
    for (index, c) in code.char_indices().filter(|(index, _)| *index >= from) {
        match c {
            '(' | '[' if start.is_none() => nested += 1,
            ')' | ']' if start.is_none() => nested = nested.saturating_sub(1),
            ';' if start.is_none() && nested == 0 => return Some(index..index + 1),
            '{' if start.is_some() || nested == 0 => {
                start = start.or(Some(index));
                depth += 1;
            }
            '}' if start.is_some() => {
                depth -= 1;
                if depth == 0 {
                    return start.map(|start| start..index + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace.
    pub lines: usize,
}

/// Every function with a body in code without comments and literals.
#[must_use]
pub fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices("fn ") {
        let before = code.get(..start).unwrap_or_default();
        if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let after = code.get(start + 3..).unwrap_or_default();
        let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(body) = body_of(code, start) else { continue };
        let text = code.get(start..body.end).unwrap_or_default();
        if !name.is_empty() && text.ends_with('}') {
            found.push(Function { name, line: lines_of(before), lines: lines_of(text) });
        }
    }
    found
}

fn lines_of(text: &str) -> usize {
    text.matches('\n').count() + 1
}

/// The words of a text in lower case, with their lines: `maxWaitMs`, `max_wait_ms` and `MaxWaitMs` are three words.
#[must_use]
pub fn words(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut word = String::new();
        let mut before_is_lower = false;
        for c in line.chars().chain([' ']) {
            let starts_word = c.is_uppercase() && before_is_lower;
            if (!c.is_alphabetic() || starts_word) && !word.is_empty() {
                found.push((index + 1, std::mem::take(&mut word)));
            }
            if c.is_alphabetic() {
                word.extend(c.to_lowercase());
            }
            before_is_lower = c.is_lowercase();
        }
    }
    found
}

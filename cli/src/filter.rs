//! Which jobs and dead letters a list is wanted of: names with wildcards, and times.

use jiff::Timestamp;
use osprey_model::metadata::parse_duration;

/// A name as one asks for it: `train` is every name that begins so, `train-*-7` and `?` stand for what one likes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    pieces: Vec<char>,
}

impl NamePattern {
    /// Reads a pattern. Without `*` and `?` it is the beginning of a name.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut pieces: Vec<char> = text.chars().collect();
        if !text.contains(['*', '?']) {
            pieces.push('*');
        }
        Self { pieces }
    }

    /// Whether a name is meant. `*` is any text, also none; `?` one character.
    #[must_use]
    pub fn is_match(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut of) = (0, 0);
        // Where the last `*` stands, and up to where of the name it has taken.
        let mut star: Option<(usize, usize)> = None;
        while let Some(letter) = name.get(at) {
            match self.pieces.get(of) {
                Some('*') => {
                    star = Some((of, at));
                    of += 1;
                }
                Some(piece) if *piece == '?' || piece == letter => {
                    at += 1;
                    of += 1;
                }
                _ => {
                    let Some((star_of, taken)) = star else { return false };
                    star = Some((star_of, taken + 1));
                    at = taken + 1;
                    of = star_of + 1;
                }
            }
        }
        self.pieces.get(of..).unwrap_or_default().iter().all(|piece| *piece == '*')
    }
}

/// A moment: so long ago, or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// So many milliseconds ago.
    Ago(i64),
    /// At this time, milliseconds since 1970.
    At(i64),
}

impl Since {
    /// The moment, milliseconds since 1970, when it is `now`.
    #[must_use]
    pub fn at(self, now: i64) -> i64 {
        match self {
            Self::Ago(ms) => now.saturating_sub(ms),
            Self::At(at) => at,
        }
    }
}

/// Reads what `--since` takes: `2h`, `3 days`, or `2026-11-30T08:00:00Z`.
///
/// # Errors
/// What is wanted, in one sentence.
pub fn since(text: &str) -> Result<Since, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(Since::At(time.as_millisecond()));
    }
    let seconds = parse_duration(text)
        .map_err(|_| "write how long ago, such as `2h` or `3 days`, or a time such as `2026-11-30T08:00:00Z`")?;
    Ok(Since::Ago(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_beginning_or_has_wildcards() {
        for (pattern, name, want) in [
            ("train", "train-7", true),
            ("train", "retrain", false),
            ("*train", "retrain", true),
            ("*train", "retrain-7", false),
            ("train-?", "train-7", true),
            ("train-?", "train-71", false),
            ("*a*b*c", "xxaxbxbxc", true),
            ("*a*b*c", "xxaxcxb", false),
            ("", "anything", true),
            ("?", "", false),
            ("*", "", true),
            ("grün*", "grün-7", true),
        ] {
            assert_eq!(NamePattern::new(pattern).is_match(name), want, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let name = "a".repeat(2_000);
        assert!(!NamePattern::new(&"a*".repeat(40).replace("a*a*", "a*aa*")).is_match(&format!("{}b", "c".repeat(5))));
        assert!(!NamePattern::new(&format!("{}b", "*a".repeat(30))).is_match(&name));
    }

    #[test]
    fn since_is_a_duration_or_a_time() {
        assert_eq!(since("2h").map(|since| since.at(7_200_001)), Ok(1));
        assert_eq!(since("1970-01-01T00:00:01Z").map(|since| since.at(9)), Ok(1_000));
        assert!(since("yesterday").is_err_and(|sentence| sentence.contains("2h")));
    }
}

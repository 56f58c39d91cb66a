//! Words of a refusal: quoting what a user typed, and finding what he may have meant.

/// Most characters of user input in one quotation.
///
/// A member name or a value may be as long as the body, 1 MiB. A sentence that repeats it whole would be refused by
/// the item it is stored in and read by nobody; 80 characters fill one line of a terminal.
pub const QUOTE_CHARACTERS_MAX: usize = 80;

/// Longest word that is compared with known ones, in characters. No known word has more than 40.
const COMPARED_CHARACTERS_MAX: usize = 64;

/// Foreign text as a terminal or a log may show it: control characters and those that turn the direction of writing are
/// escaped, so that nobody can forge a line, clear a screen or hide what is written.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|character| push_shown(&mut shown, character));
    shown
}

fn push_shown(text: &mut String, character: char) {
    let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if character.is_control() || turns || matches!(character, '\u{2028}' | '\u{2029}') {
        text.extend(character.escape_unicode());
    } else {
        text.push(character);
    }
}

/// Puts user input in backticks: control characters escaped, backticks inside replaced, the rest cut at
/// [`QUOTE_CHARACTERS_MAX`].
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("`");
    for (count, character) in text.chars().enumerate() {
        if count == QUOTE_CHARACTERS_MAX {
            quoted.push('…');
            break;
        }
        match character {
            '`' => quoted.push('\''),
            c => push_shown(&mut quoted, c),
        }
    }
    quoted.push('`');
    quoted
}

/// The known word nearest to `word`, letter case aside; `None` when none is within a third of its length.
///
/// A suggestion further away than that is noise: any typo would get one.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let length = word.chars().count();
    if length > COMPARED_CHARACTERS_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    known
        .into_iter()
        .filter(|candidate| *candidate != word)
        // A word is at least as far away as it is longer or shorter; comparing letter by letter is dear.
        .filter(|candidate| candidate.chars().count().abs_diff(length).saturating_mul(3) <= length)
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| distance.saturating_mul(3) <= length)
        .min()
        .map(|(_, candidate)| candidate)
}

/// A number and its noun: `1 GPU`, `2 GPUs`.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// How often: `once`, `twice`, `3 times`.
#[must_use]
pub fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

/// Known words as a sentence lists them: `` `a`, `b` or `c` ``.
#[must_use]
pub fn either<'k>(words: impl IntoIterator<Item = &'k str>) -> String {
    joined(words, " or ")
}

/// Known words as a sentence lists them: `` `a`, `b` and `c` ``.
#[must_use]
pub fn all_of<'k>(words: impl IntoIterator<Item = &'k str>) -> String {
    joined(words, " and ")
}

fn joined<'k>(words: impl IntoIterator<Item = &'k str>, last: &str) -> String {
    let mut quoted: Vec<String> = words.into_iter().map(quote).collect();
    match quoted.pop() {
        None => String::new(),
        Some(tail) if quoted.is_empty() => tail,
        Some(tail) => format!("{}{last}{tail}", quoted.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_input_stays_on_one_line() {
        assert_eq!(quote("a\n`b`\u{0}"), "`a\\u{a}'b'\\u{0}`");
        assert_eq!(quote(&"x".repeat(200)).chars().count(), QUOTE_CHARACTERS_MAX + 3);
    }

    #[test]
    fn a_suggestion_is_near_or_absent() {
        for (word, known, want) in [
            ("enviroment", vec!["environment", "command"], Some("environment")),
            ("JOBNAME", vec!["jobName"], Some("jobName")),
            ("colour", vec!["jobName", "tags"], None),
            ("tag", vec!["tags"], Some("tags")),
            ("ab", vec!["ac"], None),
        ] {
            assert_eq!(nearest(word, known), want, "{word}");
        }
    }

    #[test]
    fn one_is_not_several() {
        assert_eq!((counted(1, "GPU"), counted(0, "GPU")), ("1 GPU".to_owned(), "0 GPUs".to_owned()));
        assert_eq!([1, 2, 3].map(times), ["once", "twice", "3 times"]);
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(either(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(all_of(["a", "b"]), "`a` and `b`");
        assert_eq!(either(["a"]), "`a`");
        assert_eq!(either([]), "");
    }
}

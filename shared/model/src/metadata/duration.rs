//! Durations: `4h`, `4 hours`, `1h30m`, `90m`, `1.5h`, `PT1H30M`, `3600`.

use super::amount::{AmountError, Piece, billionths, pieces, rounded_up};
use crate::limits::DURATION_SECONDS_MAX;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

const UNITS: [(u64, &[&str]); 5] = [
    (WEEK, &["w", "week", "weeks"]),
    (DAY, &["d", "day", "days"]),
    (HOUR, &["h", "hr", "hrs", "hour", "hours"]),
    (MINUTE, &["m", "min", "mins", "minute", "minutes"]),
    (1, &["s", "sec", "secs", "second", "seconds"]),
];

/// Reads a duration into seconds, rounded up to a whole one.
///
/// A number alone is seconds. Units may have spaces around them, go from large to small, and ignore letter case;
/// ISO 8601 durations of weeks, days and times are taken as well.
///
/// # Errors
/// [`AmountError`] says what stands in the way: a minus, a missing or unknown unit, more than 68 years.
pub fn parse_duration(text: &str) -> Result<u64, AmountError> {
    let text = text.trim();
    let total = match text.strip_prefix(['P', 'p']) {
        Some(rest) => iso(rest)?,
        None => plain(text)?,
    };
    let seconds = u64::try_from(rounded_up(total)).unwrap_or(u64::MAX);
    if seconds > DURATION_SECONDS_MAX { Err(AmountError::TooLarge("68 years")) } else { Ok(seconds) }
}

/// Writes a duration as [`parse_duration`] reads it: `1h30m`, `2d`, `45s`.
#[must_use]
pub fn format_duration(seconds: u64) -> String {
    let mut text = String::new();
    let mut rest = seconds;
    for (length, unit) in [(DAY, 'd'), (HOUR, 'h'), (MINUTE, 'm'), (1, 's')] {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

fn plain(text: &str) -> Result<u128, AmountError> {
    let found = pieces(text)?;
    if let [Piece { billionths, unit, .. }] = found.as_slice()
        && unit.is_empty()
    {
        return Ok(*billionths);
    }
    let mut sum = Sum::default();
    for piece in found {
        if piece.unit.is_empty() {
            return Err(AmountError::NoUnit(piece.digits));
        }
        let length = UNITS.iter().find(|(_, names)| names.contains(&piece.unit.as_str())).map(|(length, _)| *length);
        sum.add(piece.billionths, length.ok_or(AmountError::UnknownUnit { unit: piece.unit, of: "time" })?)?;
    }
    Ok(sum.total)
}

/// What follows the `P` of an ISO 8601 duration. After `T`, `M` is minutes; before it, months.
fn iso(text: &str) -> Result<u128, AmountError> {
    let mut sum = Sum::default();
    let mut digits = String::new();
    let mut in_time = false;
    for character in text.chars() {
        match character.to_ascii_uppercase() {
            '0'..='9' | '.' => digits.push(character),
            '-' => return Err(AmountError::Negative),
            'T' if !in_time && digits.is_empty() => in_time = true,
            unit => {
                let length = iso_unit(unit, in_time)?;
                if !digits.contains(|c: char| c.is_ascii_digit()) {
                    return Err(AmountError::NoNumber(unit.to_string()));
                }
                sum.add(one_number(&digits)?, length)?;
                digits.clear();
            }
        }
    }
    match (sum.last, digits.is_empty()) {
        (_, false) => Err(AmountError::NoUnit(digits)),
        (None, true) => Err(AmountError::Empty),
        (Some(_), true) => Ok(sum.total),
    }
}

fn one_number(digits: &str) -> Result<u128, AmountError> {
    if digits.matches('.').count() > 1 { Err(AmountError::Unreadable('.')) } else { billionths(digits) }
}

fn iso_unit(unit: char, in_time: bool) -> Result<u64, AmountError> {
    match (unit, in_time) {
        ('W', false) => Ok(WEEK),
        ('D', false) => Ok(DAY),
        ('H', true) => Ok(HOUR),
        ('M', true) => Ok(MINUTE),
        ('S', true) => Ok(1),
        ('Y' | 'M', false) => Err(AmountError::NoFixedLength),
        (other, _) if other.is_alphabetic() => Err(AmountError::UnknownUnit { unit: other.to_string(), of: "time" }),
        (other, _) => Err(AmountError::Unreadable(other)),
    }
}

/// A sum whose units only get smaller, so that `1h1h`, which is a slip, isn't read as two hours.
#[derive(Default)]
struct Sum {
    total: u128,
    last: Option<u64>,
}

impl Sum {
    fn add(&mut self, billionths: u128, length: u64) -> Result<(), AmountError> {
        if self.last.is_some_and(|last| length >= last) {
            return Err(AmountError::Order);
        }
        self.last = Some(length);
        self.total = self.total.saturating_add(billionths.saturating_mul(u128::from(length)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_in_every_spelling() {
        for (text, seconds) in [
            ("4h", 4 * HOUR),
            (" 4 h ", 4 * HOUR),
            ("4 Hours", 4 * HOUR),
            ("90m", 90 * MINUTE),
            ("1h30m", 90 * MINUTE),
            ("1 h 30 min", 90 * MINUTE),
            ("1.5h", 90 * MINUTE),
            (".5h", 30 * MINUTE),
            ("PT4H", 4 * HOUR),
            ("pt1h30m", 90 * MINUTE),
            ("P1DT2H", 26 * HOUR),
            ("P2W", 14 * DAY),
            ("PT0.5H", 30 * MINUTE),
            ("3600", HOUR),
            ("3600s", HOUR),
            ("2d", 2 * DAY),
            ("1w", WEEK),
            ("0", 0),
            ("0.2s", 1),
            ("2147483647", DURATION_SECONDS_MAX),
        ] {
            assert_eq!(parse_duration(text), Ok(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_says_why() {
        for (text, why) in [
            ("", "it is empty"),
            ("   ", "it is empty"),
            ("-4h", "it is negative"),
            ("PT-4H", "it is negative"),
            ("h", "a number is missing before `h`"),
            ("PTH", "a number is missing before `H`"),
            ("1h30", "a unit is missing after `30`"),
            ("PT30", "a unit is missing after `30`"),
            ("P", "it is empty"),
            ("4 parsecs", "`parsecs` is no unit of time"),
            ("4ms", "`ms` is no unit of time"),
            ("PT4D", "`D` is no unit of time"),
            ("P1Y", "years and months have no fixed length"),
            ("P1M", "years and months have no fixed length"),
            ("1h1h", "units go from large to small, each once"),
            ("30m1h", "units go from large to small, each once"),
            ("1,5h", "`,` has no place in it"),
            ("1\u{7f}s", "`\\u{7f}` has no place in it"),
            ("1.2.3h", "a unit is missing after `1.2`"),
            ("PT1.2.3H", "`.` has no place in it"),
            ("1:30", "`:` has no place in it"),
            ("+4h", "`+` has no place in it"),
            (".", "`.` has no place in it"),
            ("1.0000000001s", "it has more than 9 decimals"),
            ("69 years", "`years` is no unit of time"),
            ("2147483648", "it is more than 68 years"),
            ("99999999999999999999999999999999999999999999h", "it is more than 68 years"),
        ] {
            assert_eq!(parse_duration(text).map_err(|error| error.to_string()), Err(why.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn durations_are_written_short() {
        for (seconds, text) in [(0, "0s"), (90, "1m30s"), (5_400, "1h30m"), (14_400, "4h"), (90_061, "1d1h1m1s")] {
            assert_eq!(format_duration(seconds), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(seconds in 0..=DURATION_SECONDS_MAX) {
            prop_assert_eq!(parse_duration(&format_duration(seconds)), Ok(seconds));
        }

        #[test]
        fn no_text_breaks_the_reader(text in ".*") {
            let _ = parse_duration(&text);
        }

        #[test]
        fn no_text_near_a_duration_breaks_the_reader(text in "[-PTpt0-9.hmsdwHMSDWY ]{0,40}") {
            if let Ok(seconds) = parse_duration(&text) {
                prop_assert!(seconds <= DURATION_SECONDS_MAX);
            }
        }
    }
}

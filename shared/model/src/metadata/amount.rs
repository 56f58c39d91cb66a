//! Numbers with units: what durations and sizes have in common.

use std::iter::Peekable;
use std::str::Chars;

use crate::message::words::quote;

/// One whole in the unit that numbers are kept in, billionths: nine decimals are exact.
pub(super) const ONE: u128 = 1_000_000_000;

/// Most decimals of a number.
const DECIMALS_MAX: usize = 9;

/// Why a text is no duration or no size; follows "… was given: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AmountError {
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It has a minus sign.
    #[error("it is negative")]
    Negative,
    /// A unit stands without a number.
    #[error("a number is missing before {}", quote(.0))]
    NoNumber(String),
    /// A number stands without a unit.
    #[error("a unit is missing after {}", quote(.0))]
    NoUnit(String),
    /// A unit that isn't known.
    #[error("{} is no unit of {of}", quote(.unit))]
    UnknownUnit {
        /// What was written.
        unit: String,
        /// `time` or `size`.
        of: &'static str,
    },
    /// Years and months.
    #[error("years and months have no fixed length")]
    NoFixedLength,
    /// Units out of order, or one twice.
    #[error("units go from large to small, each once")]
    Order,
    /// More than one number where one is wanted.
    #[error("one number with one unit is wanted")]
    Several,
    /// A character that belongs nowhere.
    #[error("{} has no place in it", quote(&.0.to_string()))]
    Unreadable(char),
    /// More decimals than are kept.
    #[error("it has more than {DECIMALS_MAX} decimals")]
    TooPrecise,
    /// Above the bound.
    #[error("it is more than {0}")]
    TooLarge(&'static str),
}

/// A number and the unit behind it.
pub(super) struct Piece {
    /// As written, for a sentence.
    pub(super) digits: String,
    /// In billionths.
    pub(super) billionths: u128,
    /// Lower case; empty when none is given.
    pub(super) unit: String,
}

/// Cuts a text into numbers and their units: `1h 30m` is two pieces.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, AmountError> {
    let mut characters = text.chars().peekable();
    let mut found = Vec::new();
    skip_space(&mut characters);
    while characters.peek().is_some() {
        let digits = digits(&mut characters)?;
        skip_space(&mut characters);
        let unit = letters(&mut characters);
        let billionths = billionths(&digits)?;
        found.push(Piece { digits, billionths, unit });
        skip_space(&mut characters);
    }
    if found.is_empty() { Err(AmountError::Empty) } else { Ok(found) }
}

fn skip_space(characters: &mut Peekable<Chars<'_>>) {
    while characters.next_if(|character| character.is_whitespace()).is_some() {}
}

fn letters(characters: &mut Peekable<Chars<'_>>) -> String {
    let mut word = String::new();
    while let Some(letter) = characters.next_if(|character| character.is_alphabetic()) {
        word.extend(letter.to_lowercase());
    }
    word
}

/// Takes digits and at most one point among them.
fn digits(characters: &mut Peekable<Chars<'_>>) -> Result<String, AmountError> {
    let mut taken = String::new();
    while let Some(digit) = characters.next_if(|c| c.is_ascii_digit() || (*c == '.' && !taken.contains('.'))) {
        taken.push(digit);
    }
    if taken.contains(|c: char| c.is_ascii_digit()) {
        return Ok(taken);
    }
    Err(match characters.peek() {
        Some('-' | '−') => AmountError::Negative,
        Some(letter) if letter.is_alphabetic() => AmountError::NoNumber(letters(characters)),
        Some(other) => AmountError::Unreadable(*other),
        None => AmountError::Unreadable('.'),
    })
}

/// The value of `12`, `1.5`, `.5` or `2.`.
pub(super) fn billionths(digits: &str) -> Result<u128, AmountError> {
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    if decimals.len() > DECIMALS_MAX {
        return Err(AmountError::TooPrecise);
    }
    // Padding with zeros makes `1.5` the whole number 1500000000. What doesn't fit is above every bound.
    let padded = format!("{whole}{decimals:0<DECIMALS_MAX$}");
    Ok(padded.parse().unwrap_or(u128::MAX))
}

/// Whole units of an amount, rounded up, so that a part of a second still counts as one.
pub(super) fn rounded_up(billionths: u128) -> u128 {
    billionths.div_ceil(ONE)
}

//! Sizes: `2TB`, `2 tb`, `500GiB`, `1.5T`, `1048576`.

use super::amount::{AmountError, pieces, rounded_up};
use crate::limits::SIZE_BYTES_MAX;

/// Steps of the decimal units; the binary ones have the same letters and `i`.
const LETTERS: [&str; 6] = ["k", "m", "g", "t", "p", "e"];

/// Reads a size into bytes, rounded up to a whole one.
///
/// A number alone is bytes. `kB`, `MB`, `GB`, `TB`, `PB`, `EB` count in thousands, `KiB` to `EiB` in 1,024s; the `B`
/// may be left out, and letter case doesn't matter.
///
/// # Errors
/// [`AmountError`] says what stands in the way: a minus, an unknown unit, more than 8 EiB.
pub fn parse_size(text: &str) -> Result<u64, AmountError> {
    let mut found = pieces(text)?.into_iter();
    let (Some(piece), None) = (found.next(), found.next()) else {
        return Err(AmountError::Several);
    };
    let factor = factor_of(&piece.unit).ok_or(AmountError::UnknownUnit { unit: piece.unit, of: "size" })?;
    let bytes = rounded_up(piece.billionths.saturating_mul(u128::from(factor)));
    u64::try_from(bytes).ok().filter(|bytes| *bytes <= SIZE_BYTES_MAX).ok_or(AmountError::TooLarge("8 EiB"))
}

fn factor_of(unit: &str) -> Option<u64> {
    if matches!(unit, "" | "b" | "byte" | "bytes") {
        return Some(1);
    }
    let short = unit.strip_suffix('b').unwrap_or(unit);
    let (letter, step) = match short.strip_suffix('i') {
        Some(letter) => (letter, 1_024_u64),
        None => (short, 1_000),
    };
    let position = LETTERS.iter().position(|known| *known == letter)?;
    step.checked_pow(u32::try_from(position + 1).ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_in_every_spelling() {
        for (text, bytes) in [
            ("2TB", 2_000_000_000_000),
            ("2tb", 2_000_000_000_000),
            (" 2 TB ", 2_000_000_000_000),
            ("2T", 2_000_000_000_000),
            ("500GiB", 500 << 30),
            ("500 gib", 500 << 30),
            ("500Gi", 500 << 30),
            ("1.5kB", 1_500),
            ("1.5KiB", 1_536),
            ("0.1B", 1),
            ("1048576", 1 << 20),
            ("12 bytes", 12),
            ("0", 0),
            ("7EiB", 7 << 60),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_says_why() {
        for (text, why) in [
            ("", "it is empty"),
            ("-2TB", "it is negative"),
            ("TB", "a number is missing before `tb`"),
            ("2 tons", "`tons` is no unit of size"),
            ("2ib", "`ib` is no unit of size"),
            ("2TB 5GB", "one number with one unit is wanted"),
            ("1,000", "`,` has no place in it"),
            ("9EiB", "it is more than 8 EiB"),
            ("8EiB", "it is more than 8 EiB"),
        ] {
            assert_eq!(parse_size(text).map_err(|error| error.to_string()), Err(why.to_owned()), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn bytes_read_back(bytes in 0..=SIZE_BYTES_MAX) {
            prop_assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
            prop_assert_eq!(parse_size(&format!("{bytes} B")), Ok(bytes));
        }

        #[test]
        fn no_text_breaks_the_reader(text in ".*") {
            let _ = parse_size(&text);
        }
    }
}

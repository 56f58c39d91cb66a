//! Hexadecimal, percent and base64 text.

use std::fmt::Write as _;

/// Bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Hexadecimal digits as bytes; `None` for anything else.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(nibble).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| (high << 4) | low).collect())
}

fn nibble(c: char) -> Option<u8> {
    c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Text with everything percent-encoded but letters, digits, `-`, `.`, `_`, `~` and what is in `also`.
#[must_use]
pub fn percent_encoded(text: &[u8], also: &[u8]) -> String {
    text.iter().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || also.contains(byte) {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

/// The bytes that percent-encoded text stands for; a `%` without two digits stands for itself.
#[must_use]
pub fn percent_decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(text.len());
    while let [first, after @ ..] = rest {
        let (byte, tail) = match (first, after) {
            (b'%', [high, low, tail @ ..]) => match pair(*high, *low) {
                Some(byte) => (byte, tail),
                None => (b'%', after),
            },
            _ => (*first, after),
        };
        out.push(byte);
        rest = tail;
    }
    out
}

fn pair(high: u8, low: u8) -> Option<u8> {
    Some((nibble(char::from(high))? << 4) | nibble(char::from(low))?)
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes of base64 text with its padding; `None` for anything else.
#[must_use]
pub fn base64_decoded(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let (mut bits, mut count, mut out) = (0_u32, 0_u32, Vec::new());
    for byte in body.bytes() {
        let value = BASE64.iter().position(|known| *known == byte)?;
        bits = (bits << 6 | u32::try_from(value).ok()?) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_goes_there_and_back() {
        assert_eq!(hex(&[0, 15, 255]), "000fff");
        assert_eq!(unhex("000fff"), Some(vec![0, 15, 255]));
        assert_eq!((unhex("0"), unhex("0g"), unhex("é0")), (None, None, None));
    }

    #[test]
    fn percent_text_goes_there_and_back() {
        assert_eq!(percent_encoded("a/b c~é".as_bytes(), b"/"), "a/b%20c~%C3%A9");
        assert_eq!(percent_decoded("a%2Fb%20c~%C3%A9"), "a/b c~é".as_bytes());
        assert_eq!(percent_decoded("100%"), b"100%");
        assert_eq!(percent_decoded("%zz%4"), b"%zz%4");
    }

    #[test]
    fn base64_is_read_with_its_padding_only() {
        for (text, want) in [("", Some("")), ("Zg==", Some("f")), ("Zm8=", Some("fo")), ("Zm9v", Some("foo"))] {
            assert_eq!(base64_decoded(text), want.map(|want| want.as_bytes().to_vec()), "{text}");
        }
        assert_eq!(base64_decoded("Zm9vYmFyZm9vYmFy"), Some(b"foobarfoobar".to_vec()));
        for wrong in ["Zg", "Zg=", "Z===", "Zm9*", "===="] {
            assert_eq!(base64_decoded(wrong), None, "{wrong}");
        }
    }
}

//! Reading job files: one request, or JSON lines.

use std::io::Read as _;
use std::path::Path;

use crate::error::{CliError, ErrorCode, cause};

/// Most bytes of a job file; larger ones are refused instead of filling the memory.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// One request of a file, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Line of the file, from 1; the first line of a request that has several.
    pub line: u64,
    /// The bytes, without the line's end.
    pub bytes: Vec<u8>,
}

/// Reads a file whole; `-` is standard input.
///
/// # Errors
/// One sentence for a file that is missing, unreadable or too large.
pub fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let unreadable = |error: std::io::Error| {
        CliError::new(ErrorCode::FileUnreadable, format!("`{}` can't be read: {}", path.display(), cause(&error)))
    };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    } else {
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    if u64::try_from(bytes.len()).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err(CliError::new(
            ErrorCode::FileUnreadable,
            format!("`{}` is larger than {FILE_BYTES_MAX} bytes; split it", path.display()),
        ));
    }
    Ok(bytes)
}

/// Reads a text file.
///
/// # Errors
/// Those of [`read`], and for a file that isn't UTF-8.
pub fn read_text(path: &Path) -> Result<String, CliError> {
    text(path, read(path)?)
}

/// The text that a file's bytes are.
///
/// # Errors
/// When they aren't UTF-8.
pub fn text(path: &Path, bytes: Vec<u8>) -> Result<String, CliError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::new(
            ErrorCode::InvalidInput,
            format!("`{}` is not UTF-8: byte {at} begins no character", path.display()),
        )
    })
}

/// The lines of a file that aren't blank. A mark of the byte order at its start is no part of the first.
pub fn lines(bytes: &[u8]) -> Vec<Entry> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lines = bytes.split(|byte| *byte == b'\n').zip(1_u64..);
    lines
        .map(|(line, number)| (line.strip_suffix(b"\r").unwrap_or(line), number))
        .filter(|(line, _)| !line.trim_ascii().is_empty())
        .map(|(line, number)| Entry { line: number, bytes: line.to_owned() })
        .collect()
}

/// The requests of a file: one that may be spread over lines, or one a line.
///
/// A file of several lines is one request when it is JSON as a whole, or when none of its lines is.
pub fn requests(bytes: &[u8]) -> Vec<Entry> {
    let lines = lines(bytes);
    let is_json = |bytes: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
    let Some(first) = lines.first().filter(|_| lines.len() > 1) else { return lines };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if is_json(bytes) || !lines.iter().any(|entry| is_json(&entry.bytes)) {
        return vec![Entry { line: first.line, bytes: bytes.trim_ascii().to_owned() }];
    }
    lines
}

/// Whether a file is one document over several lines, with or without a fault in it, where one request a line is
/// wanted.
pub fn is_one_document(bytes: &[u8]) -> bool {
    let lines = lines(bytes);
    let Some(first) = lines.first().filter(|_| lines.len() > 1) else { return false };
    let is_json = |bytes: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
    let opens = matches!(first.bytes.trim_ascii(), b"{" | b"[");
    is_json(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
        || opens && !lines.iter().any(|entry| entry.bytes.trim_ascii().starts_with(b"{\"") && is_json(&entry.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(entries: Vec<Entry>) -> Vec<(u64, String)> {
        entries.into_iter().map(|e| (e.line, String::from_utf8(e.bytes).unwrap())).collect()
    }

    #[test]
    fn blank_lines_count_but_are_no_requests() {
        let found = texts(lines(b"\xef\xbb\xbf{}\r\n\n  \t\n{\"a\":1}"));
        assert_eq!(found, [(1, "{}".to_owned()), (4, "{\"a\":1}".to_owned())]);
    }

    #[test]
    fn a_request_may_be_spread_over_lines() {
        assert_eq!(texts(requests(b"\n{\n \"a\": 1\n}\n")), [(2, "{\n \"a\": 1\n}".to_owned())]);
    }

    #[test]
    fn one_document_over_several_lines_is_told_from_one_request_a_line() {
        for (text, want) in [
            ("{}\n{}\n", false),
            ("{\"a\":1}\n{\"half\n", false),
            ("{\"half\n{\"other half\n", false),
            ("{}", false),
            ("{\n\"a\": 1\n}\n", true),
            ("[\n{\"a\":1},\n{\"b\":1}\n]", true),
            ("{\n\"a\": 1,\n}\n", true),
            ("{\n{\"a\":1}\n", false),
        ] {
            assert_eq!(is_one_document(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn a_spread_request_with_a_fault_is_still_one() {
        assert_eq!(requests(b"{\n \"a\": 1,\n}\n").len(), 1);
    }

    #[test]
    fn a_bad_line_among_good_ones_is_its_own_request() {
        assert_eq!(requests(b"{}\n{\n{}\n").len(), 3);
    }
}

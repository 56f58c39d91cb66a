//! Reading workloads: CSV, the Standard Workload Format, Osprey's own history and requests, what AWS Batch says.
//!
//! A line that can't be used is never dropped in silence: it is told by its number, and counted.

pub mod batch;
pub mod csv;
mod history;
pub mod requests;
pub mod swf;

use osprey_model::metadata::Metadata;
use osprey_model::request::SubmitJobRequest;
use osprey_model::resources::Demand;

/// What a file says, before anything is decided about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The jobs that could be read, in the order of the file.
    pub entries: Vec<Entry>,
    /// The lines that couldn't.
    pub bad: Vec<BadLine>,
    /// What the reader did to make it usable, for people.
    pub notes: Vec<String>,
}

/// One job of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Line of the file, from 1.
    pub line: u64,
    /// Its name.
    pub id: String,
    /// When it was submitted, milliseconds in the trace's own time.
    pub submit_ms: u64,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// GPUs.
    pub gpus: u32,
    /// What is said of it besides.
    pub metadata: Metadata,
    /// Times that it had failed before.
    pub failures: u32,
    /// The number that the row says: of the priority column, of a column of that name, or of the request.
    pub priority: Option<u32>,
    /// How long it was believed to run, in milliseconds, where the trace says so.
    pub estimate_ms: Option<u64>,
    /// The request, where the trace has requests.
    pub request: Option<Box<SubmitJobRequest>>,
    /// What the request needs.
    pub demand: Option<Demand>,
}

/// A line that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: u64,
    /// Why, in lower case and without a period.
    pub message: String,
}

/// Seconds, possibly with decimals, as milliseconds; `None` for anything else and for more than 68 years.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(decimals) {
        return None;
    }
    let thousandths: String = decimals.chars().chain("000".chars()).take(3).collect();
    let whole: u64 = whole.parse().ok().filter(|seconds| *seconds <= SECONDS_MAX)?;
    Some(whole * 1_000 + thousandths.parse::<u64>().ok()?)
}

/// Seconds as milliseconds; `None` for what is negative, no number, or more than [`SECONDS_MAX`].
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
pub(crate) fn milliseconds(seconds: f64) -> Option<u64> {
    (0.0..=SECONDS_MAX as f64).contains(&seconds).then(|| (seconds * 1_000.0).round() as u64)
}

/// The latest time of a trace: Unix times of this century, and no overflow in any sum of them.
const SECONDS_MAX: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_may_have_decimals() {
        for (text, want) in [
            ("0", Some(0)),
            ("3890", Some(3_890_000)),
            ("1.5", Some(1_500)),
            ("1.0004", Some(1_000)),
            ("4294967296", Some(4_294_967_296_000)),
            ("4294967297", None),
            ("", None),
            ("-1", None),
            (".5", None),
            ("1e3", None),
            ("1.5.2", None),
        ] {
            assert_eq!(seconds(text), want, "{text}");
        }
    }
}

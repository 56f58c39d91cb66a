//! The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, comments behind `;`.
//!
//! Cleaning rules. GPUs are the allocated processors (field 5), or the requested ones (8) where that says nothing. The
//! run time (4) is cut at the requested time (9), as the machine would have done. A job that never ran (run time or
//! processors not above 0) is told as a bad line. The requested time is what is believed of the run time, user (12)
//! and group (13) become user and team, and everything else is ignored.

use super::{BadLine, Entry, Trace, seconds};

/// Fields of a line.
const FIELDS: usize = 18;

/// Reads a trace in the Standard Workload Format.
#[must_use]
pub fn read(text: &str) -> Trace {
    let mut trace = Trace::default();
    let mut cut = 0_usize;
    for (line, text) in (1_u64..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let text = text.trim();
        if let Some(comment) = text.strip_prefix(';') {
            trace.notes.extend(header(comment));
        } else if !text.is_empty() {
            match entry(line, text) {
                Ok((entry, was_cut)) => {
                    cut += usize::from(was_cut);
                    trace.entries.push(entry);
                }
                Err(message) => trace.bad.push(BadLine { line, message }),
            }
        }
    }
    if cut > 0 {
        trace.notes.push(format!("{cut} of the run times were longer than requested and were cut"));
    }
    trace
}

/// A header field that says something about the machine.
fn header(comment: &str) -> Option<String> {
    let (name, value) = comment.trim().split_once(':')?;
    let is_told = ["Computer", "MaxNodes", "MaxProcs", "UnixStartTime"].contains(&name.trim());
    is_told.then(|| format!("{}: {}", name.trim(), value.trim()))
}

fn entry(line: u64, text: &str) -> Result<(Entry, bool), String> {
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let found = fields.len();
    let fields: [&str; FIELDS] =
        fields.try_into().map_err(|_| format!("it has {found} fields, the format has {FIELDS}"))?;
    let [number, submit, _, run, allocated, _, _, requested, limit, _, _, user, group, ..] = fields;
    let run_ms = positive(run).ok_or_else(|| format!("it never ran: its run time is `{run}`"))?;
    let gpus = gpus(allocated).or_else(|| gpus(requested));
    let gpus = gpus.ok_or_else(|| format!("it never ran: its processors are `{allocated}` and `{requested}`"))?;
    let limit_ms = positive(limit);
    let mut entry = Entry {
        line,
        id: number.to_owned(),
        submit_ms: seconds(submit)
            .ok_or_else(|| format!("its submit time is `{submit}`; seconds from 0 up are meant"))?,
        duration_ms: limit_ms.map_or(run_ms, |limit_ms| run_ms.min(limit_ms)),
        gpus,
        estimate_ms: limit_ms,
        ..Entry::default()
    };
    entry.metadata.user = named(user).map(|user| format!("user-{user}"));
    entry.metadata.team = named(group).map(|group| format!("group-{group}"));
    let was_cut = entry.duration_ms < run_ms;
    Ok((entry, was_cut))
}

/// Seconds above 0 as milliseconds.
fn positive(field: &str) -> Option<u64> {
    seconds(field).filter(|ms| *ms > 0)
}

fn gpus(field: &str) -> Option<u32> {
    field.parse().ok().filter(|gpus| *gpus > 0)
}

/// The number of a user or group; -1 is none.
fn named(field: &str) -> Option<u64> {
    field.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_job() {
        let trace = read("; MaxProcs: 16\n; Note: x\n5 10 -1 604 -1 -1 -1 16 700 -1 1 7 3 -1 0 -1 -1 -1\n");
        let [entry] = trace.entries.as_slice() else { panic!("{trace:?}") };
        assert_eq!((entry.line, entry.id.as_str(), entry.submit_ms, entry.duration_ms), (3, "5", 10_000, 604_000));
        assert_eq!((entry.gpus, entry.estimate_ms), (16, Some(700_000)));
        assert_eq!(entry.metadata.user.as_deref(), Some("user-7"));
        assert_eq!(entry.metadata.team.as_deref(), Some("group-3"));
        assert_eq!(trace.notes, ["MaxProcs: 16"]);
    }

    #[test]
    fn run_times_are_cut_at_what_was_requested_and_allocated_processors_count() {
        let trace = read("1 0 0 604 4 0 0 16 600 0 1 1 1 1 1 1 -1 -1");
        let [entry] = trace.entries.as_slice() else { panic!("{trace:?}") };
        assert_eq!((entry.duration_ms, entry.gpus), (600_000, 4));
        assert_eq!(trace.notes, ["1 of the run times were longer than requested and were cut"]);
    }

    #[test]
    fn jobs_that_never_ran_and_lines_that_are_none_are_told() {
        let rest = "-1 -1 -1 -1 -1 -1 -1 -1 -1 -1";
        let text = format!("1 0 0 -1 4 0 0 4 {rest}\n2 0 0 5 -1 0 0 0 {rest}\n3 -5 0 5 1 0 0 1 {rest}\n4 0 0\n");
        let bad: Vec<(u64, String)> = read(&text).bad.into_iter().map(|bad| (bad.line, bad.message)).collect();
        let want = [
            (1, "it never ran: its run time is `-1`"),
            (2, "it never ran: its processors are `-1` and `0`"),
            (3, "its submit time is `-5`; seconds from 0 up are meant"),
            (4, "it has 3 fields, the format has 18"),
        ];
        assert_eq!(bad, want.map(|(line, message)| (line, message.to_owned())));
    }
}

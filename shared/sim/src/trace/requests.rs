//! Osprey's own lines: its history, as `osprey export` writes it, and `SubmitJob` requests, as its queue takes them.
//!
//! A request has no time of submission, so all of them come at once, in the order of the lines. The run time is
//! `expected-duration`, or `max-duration` where only that is given. An array is as many jobs as it has children.

use osprey_model::message::{self, Message, chosen_job_id};
use osprey_model::metadata::Metadata;
use osprey_model::request::SubmitJobRequest;
use osprey_model::resources::Demand;

use super::{BadLine, Entry, Trace, history};

/// Reads lines, each a job of an export or a request.
#[must_use]
pub fn read(text: &str) -> Trace {
    let mut trace = Trace::default();
    for (line, text) in (1_u64..).zip(text.trim_start_matches('\u{feff}').lines()) {
        if text.trim().is_empty() {
            continue;
        }
        match entries(line, text) {
            Ok(entries) => trace.entries.extend(entries),
            Err(message) => trace.bad.push(BadLine { line, message }),
        }
    }
    trace
}

fn entries(line: u64, text: &str) -> Result<Vec<Entry>, String> {
    if let Some(value) = serde_json::from_str(text).ok().filter(history::is_one) {
        return Ok(vec![history::entry(line, &value)?]);
    }
    let request = match message::parse(text).map_err(|rejection| rejection.message)? {
        Message::Submit(request) => request,
        Message::Action(_) => return Err("it is an action and no job".to_owned()),
    };
    let (metadata, _) = Metadata::read(&request, None)
        .map_err(|refusals| refusals.into_iter().map(|refusal| refusal.message).collect::<Vec<_>>().join("; "))?;
    let demand = Demand::of(&request, None).map_err(|refusal| refusal.message)?;
    if demand.gpus == 0 {
        return Err("it needs no GPU".to_owned());
    }
    let expected = metadata.expected_duration.or(metadata.max_duration);
    let expected =
        expected.ok_or("it says neither `expected-duration` nor `max-duration`, so nobody knows its run time")?;
    Ok(children(line, &request, metadata, demand, expected * 1_000))
}

fn children(line: u64, request: &SubmitJobRequest, metadata: Metadata, demand: Demand, duration_ms: u64) -> Vec<Entry> {
    let id = chosen_job_id(request).ok().flatten().map_or_else(|| line.to_string(), |id| id.to_string());
    let priority = request.scheduling_priority_override.and_then(|number| u32::try_from(number).ok());
    let one =
        Entry { line, duration_ms, gpus: demand.gpus, metadata, demand: Some(demand), priority, ..Entry::default() };
    let with_id = |id: String| Entry { id, request: Some(Box::new(request.clone())), ..one.clone() };
    match demand.array_size {
        0 | 1 => vec![with_id(id)],
        size => (0..size).map(|child| with_id(format!("{id}:{child}"))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"jobName":"a","jobDefinition":"d","containerOverrides":{"resourceRequirements":[{"type":"GPU","value":"2"}]},"tags":{"expected-duration":"90m"}}"#;

    #[test]
    fn a_request_becomes_a_job_at_the_start() {
        let trace = read(LINE);
        let [entry] = trace.entries.as_slice() else { panic!("{trace:?}") };
        assert_eq!((entry.id.as_str(), entry.submit_ms, entry.duration_ms, entry.gpus), ("1", 0, 5_400_000, 2));
    }

    #[test]
    fn a_line_of_an_export_is_told_from_a_request() {
        let export = r#"{"id":"x","created_at":"1970-01-01T00:00:05Z","run_seconds":3,"gpus":1}"#;
        let entries = read(&format!("{LINE}\n{export}")).entries;
        assert_eq!(
            entries.iter().map(|entry| (entry.id.as_str(), entry.submit_ms)).collect::<Vec<_>>(),
            [("1", 0), ("x", 5_000)]
        );
    }

    #[test]
    fn an_array_becomes_its_children() {
        let line = LINE.replace(r#""jobName""#, r#""arrayProperties":{"size":3},"jobName""#);
        let ids: Vec<String> = read(&line).entries.into_iter().map(|entry| entry.id).collect();
        assert_eq!(ids, ["1:0", "1:1", "1:2"]);
    }

    #[test]
    fn what_is_no_job_of_known_length_is_told() {
        let action = r#"{"action":"HoldJob","jobId":"6ba7b810-9dad-41d1-80b4-00c04fd430c8"}"#;
        let text =
            format!("{}\n\n{}\n{action}\nnonsense", LINE.replace("\"2\"", "\"0.5\""), LINE.replace("expected-", "x-"));
        let bad = read(&text).bad;
        assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [1, 3, 4, 5]);
        assert_eq!(
            bad.get(1).map(|bad| bad.message.as_str()),
            Some("it says neither `expected-duration` nor `max-duration`, so nobody knows its run time")
        );
        assert_eq!(bad.get(2).map(|bad| bad.message.as_str()), Some("it is an action and no job"));
    }
}

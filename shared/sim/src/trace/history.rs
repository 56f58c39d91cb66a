//! What Osprey remembers of a job: a line of `osprey export`.

use osprey_model::message::{self, Message};
use osprey_model::metadata::Metadata;
use osprey_model::request::SubmitJobRequest;
use osprey_model::resources::Demand;
use serde_json::Value;

use super::{Entry, milliseconds};

/// Whether a line is one of an export and no request.
pub(super) fn is_one(line: &Value) -> bool {
    line.get("run_seconds").is_some()
}

/// The job of a line: submitted when it was recorded, it runs for as long as its last run did.
pub(super) fn entry(line: u64, value: &Value) -> Result<Entry, String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let id = text("id").filter(|id| !id.is_empty()).ok_or("its `id` is missing")?;
    let created = text("created_at").unwrap_or_default();
    let created = created.parse::<jiff::Timestamp>().ok().and_then(|at| u64::try_from(at.as_millisecond()).ok());
    let submit_ms = created.ok_or("its `created_at` is no time")?;
    let run = value.get("run_seconds").unwrap_or(&Value::Null);
    if run.is_null() {
        return Err(format!("it never ran; its state is `{}`", text("state").unwrap_or("unknown")));
    }
    let duration_ms = run.as_f64().and_then(milliseconds).ok_or("its `run_seconds` is no number of seconds")?;
    let gpus = value.get("gpus").and_then(Value::as_u64).and_then(|gpus| u32::try_from(gpus).ok()).unwrap_or(0);
    if gpus == 0 {
        return Err("it held no GPU".to_owned());
    }
    let priority = value.get("priority").and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let mut entry = Entry { line, id: id.to_owned(), submit_ms, duration_ms, gpus, priority, ..Entry::default() };
    if let Some(request) = value.get("request").and_then(request) {
        said(&mut entry, request);
    }
    entry.metadata.team = entry.metadata.team.or_else(|| text("team").map(str::to_owned));
    Ok(entry)
}

fn request(body: &Value) -> Option<SubmitJobRequest> {
    match message::parse(&body.to_string()).ok()? {
        Message::Submit(request) => Some(*request),
        Message::Action(_) => None,
    }
}

/// Takes over what the request said. What it held is what counts, so a request that says other GPUs, such as one of an
/// array or of a definition, is read for its metadata alone.
fn said(entry: &mut Entry, request: SubmitJobRequest) {
    if let Ok((metadata, _)) = Metadata::read(&request, None) {
        entry.metadata = metadata;
    }
    if let Ok(demand) = Demand::of(&request, None)
        && demand.gpus == entry.gpus
        && demand.array_size <= 1
    {
        entry.demand = Some(demand);
        entry.request = Some(Box::new(request));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Entry, String> {
        entry(3, &serde_json::from_str(text).unwrap())
    }

    #[test]
    fn a_job_comes_when_it_was_recorded_and_runs_as_long_as_it_did() {
        let text = r#"{"id":"a","created_at":"1970-01-01T00:01:00.500Z","run_seconds":90.25,"gpus":2,"priority":700,
            "team":"ads","request":{"jobName":"a","jobDefinition":"d","tags":{"environment":"production"},
            "containerOverrides":{"resourceRequirements":[{"type":"GPU","value":"2"}]}}}"#;
        let entry = read(text).unwrap();
        assert_eq!((entry.line, entry.id.as_str(), entry.submit_ms, entry.duration_ms), (3, "a", 60_500, 90_250));
        assert_eq!((entry.gpus, entry.priority, entry.request.is_some()), (2, Some(700), true));
        assert_eq!(entry.metadata.environment.as_deref(), Some("production"));
        assert_eq!(entry.metadata.team.as_deref(), Some("ads"));
    }

    #[test]
    fn what_never_ran_or_held_nothing_is_told() {
        let line = |run: &str, gpus: u32| {
            format!(
                r#"{{"id":"a","state":"refused","created_at":"1970-01-01T00:00:00Z","run_seconds":{run},"gpus":{gpus}}}"#
            )
        };
        assert_eq!(read(&line("null", 1)).unwrap_err(), "it never ran; its state is `refused`");
        assert_eq!(read(&line("5", 0)).unwrap_err(), "it held no GPU");
        assert_eq!(read(&line("-5", 1)).unwrap_err(), "its `run_seconds` is no number of seconds");
        assert_eq!(read(&line("1e300", 1)).unwrap_err(), "its `run_seconds` is no number of seconds");
        assert_eq!(read(r#"{"id":"a","run_seconds":5}"#).unwrap_err(), "its `created_at` is no time");
        assert_eq!(read(r#"{"run_seconds":5}"#).unwrap_err(), "its `id` is missing");
    }
}

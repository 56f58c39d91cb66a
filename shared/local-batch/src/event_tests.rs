//! Events compared member by member with the samples in `tests-data`, whose origin each sample's name in AWS's
//! documentation or public reports gives: every member there is here, none is added, and each has the same type.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use osprey_model::definition::JobDefinition;
use osprey_model::request::SubmitJobRequest;
use serde_json::{Value, json};

use crate::attempt::{AttemptRow, StopCause};
use crate::clock::{Clock, real_now_ms};
use crate::dependency::Ended;
use crate::files::{Exit, Outcome};
use crate::observe::Seen;
use crate::{
    ComputeEnvironmentOrder, ComputeEnvironmentRequest, EnvironmentKind, FairShare, JobQueueRequest, LocalBatch,
    Options,
};

/// A clock that stands still until it is told otherwise.
pub(crate) struct Hand(AtomicI64);

impl Clock for Hand {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn real_duration(&self, virtual_ms: i64) -> std::time::Duration {
        std::time::Duration::from_millis(u64::try_from(virtual_ms).unwrap_or(0))
    }
}

/// The world of the samples, without processes: what the engine would see is told.
pub(crate) struct Stage {
    pub batch: LocalBatch,
    clock: Arc<Hand>,
    dir: std::path::PathBuf,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Stage {
    pub fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("local-batch-stage-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let clock = Arc::new(Hand(AtomicI64::new(1_765_040_400_000)));
        let options = Options { clock: clock.clone(), account: "123456789012".to_owned(), ..Options::default() };
        let batch = LocalBatch::open(&dir, options).unwrap();
        let environment = ComputeEnvironmentRequest {
            compute_environment_name: "spot-ce".to_owned(),
            kind: EnvironmentKind::Spot,
            ..Default::default()
        };
        batch.create_compute_environment(&environment).unwrap();
        batch.create_scheduling_policy("tiers", &FairShare::default()).unwrap();
        let queue = JobQueueRequest {
            job_queue_name: "tier-low-spot".to_owned(),
            scheduling_policy: Some("tiers".to_owned()),
            compute_environment_order: vec![ComputeEnvironmentOrder {
                order: 1,
                compute_environment: "spot-ce".to_owned(),
            }],
            ..Default::default()
        };
        batch.create_job_queue(&queue).unwrap();
        let definition: JobDefinition = serde_json::from_value(json!({
            "jobDefinitionName": "train", "type": "container", "platformCapabilities": ["EC2"],
            "containerProperties": {"image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1",
                "command": ["train"], "resourceRequirements": [
                    {"value": "4", "type": "VCPU"}, {"value": "16384", "type": "MEMORY"}]}
        }))
        .unwrap();
        batch.register_job_definition(&definition).unwrap();
        Self { batch, clock, dir }
    }

    pub fn submit(&self, change: &Value) -> String {
        let mut body = json!({
            "jobName": "train-step-3", "jobQueue": "tier-low-spot", "jobDefinition": "train",
            "shareIdentifier": "TeamA", "schedulingPriorityOverride": 4200, "propagateTags": true,
            "tags": {"team": "team-a", "tier": "low"},
            "retryStrategy": {"attempts": 3, "evaluateOnExit": [
                {"onStatusReason": "Host EC2*", "action": "RETRY"}, {"onReason": "*", "action": "EXIT"}]}
        });
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let request: SubmitJobRequest = serde_json::from_value(body).unwrap();
        self.batch.submit_job(&request).unwrap().job_id
    }

    /// Runs an engine's cycles until there is nothing to do at once; answers when there will be.
    pub fn cycle(&self) -> Option<i64> {
        loop {
            let (more, due) = self.batch.change(|change| change.cycle()).unwrap();
            if !more {
                return due.map(|at| at - self.now_ms());
            }
        }
    }

    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Lets time pass.
    pub fn pass(&self, ms: i64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
    }

    pub fn job(&self, id: &str) -> Value {
        self.batch.describe_jobs(&[id.to_owned()]).unwrap().pop().unwrap()
    }

    /// Places what waits, and ends every attempt that runs then: asked to stop for a cause, or by itself.
    pub fn play(&self, stop: Option<(StopCause, &str)>, outcome: &Outcome) {
        self.cycle();
        let now = real_now_ms();
        let started = (!matches!(outcome, Outcome::NotStarted(_))).then_some(now);
        let exit = Exit { outcome: outcome.clone(), started_real_ms: started, ended_real_ms: now };
        self.batch
            .change(|change| {
                change.settling(|ended: &mut Ended| {
                    for attempt in AttemptRow::live(change.db)? {
                        if let Some((cause, reason)) = stop {
                            change.ask_to_stop(attempt.job, cause, reason)?;
                            let mut asked = AttemptRow::live_of_job(change.db, attempt.job)?.unwrap();
                            asked.term_at = Some(change.now_ms);
                            asked.save(change.db)?;
                        }
                        change.conclude((attempt.job, attempt.number), &Seen::Ended(exit.clone()), ended)?;
                    }
                    Ok(())
                })
            })
            .map_err(|error: rusqlite::Error| error)
            .unwrap();
    }

    pub fn last_event_of(&self, id: &str) -> Value {
        let events = self.batch.fetch_events(1_000).unwrap();
        events.into_iter().rfind(|event| event.body["detail"]["jobId"] == id).unwrap().body
    }
}

/// Every path of a value with the type that stands there; times and ids are left open, words are not.
fn members(path: &str, value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if map.is_empty() {
                out.push(format!("{path} {{}}"));
            }
            map.iter().for_each(|(key, value)| members(&format!("{path}.{key}"), value, out));
        }
        Value::Array(list) => {
            if list.is_empty() {
                out.push(format!("{path} []"));
            }
            list.iter().enumerate().for_each(|(n, value)| members(&format!("{path}[{n}]"), value, out));
        }
        Value::Number(_) if path.ends_with("At") => out.push(format!("{path} time")),
        Value::String(text) if !kept(path, text) => out.push(format!("{path} text")),
        other => out.push(format!("{path} = {other}")),
    }
}

/// Whether a text must be the same, and not only a text.
fn kept(path: &str, text: &str) -> bool {
    let open = ["Arn", ".id", ".time", "jobId", "logStreamName", "jobDefinition", "jobArn"];
    !(open.iter().any(|end| path.ends_with(end)) || path.starts_with(".resources") || text.starts_with("Host EC2"))
}

fn sorted_members(value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    members("", value, &mut out);
    out.sort();
    out
}

fn check(name: &str, event: &Value) {
    let path = format!("{}/tests-data/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let sample: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (got, want) = (sorted_members(event), sorted_members(&sample));
    let missing: Vec<_> = want.iter().filter(|member| !got.contains(member)).collect();
    let added: Vec<_> = got.iter().filter(|member| !want.contains(member)).collect();
    assert!(missing.is_empty() && added.is_empty(), "{name}\nmissing {missing:#?}\nadded {added:#?}");
}

#[test]
fn events_of_jobs_that_end_by_themselves_are_those_of_the_samples() {
    let stage = Stage::new("ends");
    let id = stage.submit(&json!({}));
    stage.play(None, &Outcome::Code(0));
    check("succeeded", &stage.last_event_of(&id));

    let id = stage.submit(&json!({}));
    stage.play(None, &Outcome::OutOfMemory);
    check("out-of-memory", &stage.last_event_of(&id));

    let id = stage.submit(&json!({}));
    stage.play(None, &Outcome::NotStarted("no space left on device".to_owned()));
    let mut event = stage.last_event_of(&id);
    for container in ["/detail/container/reason", "/detail/attempts/0/container/reason"] {
        let reason = event.pointer_mut(container).unwrap();
        assert_eq!(reason, "CannotStartContainerError: no space left on device");
        *reason =
            json!("CannotPullContainerError: write /var/lib/docker/tmp/GetImageBlob887491687: no space left on device");
    }
    check("start-failure", &event);

    let id = stage.submit(&json!({"containerOverrides": {"environment": [{"name": "X", "value": "y".repeat(9_000)}]}}));
    stage.cycle();
    let mut event = stage.last_event_of(&id);
    event["detail"]["container"]["environment"] = json!([]);
    event["detail"]["shareIdentifier"] = json!("default");
    event["detail"]["schedulingPriority"] = json!(9_999);
    check("overrides", &event);
}

#[test]
fn events_of_jobs_that_are_stopped_are_those_of_the_samples() {
    let stage = Stage::new("stops");
    let id = stage.submit(&json!({}));
    let reason = "PREEMPTED by=descheduler for=9b1e77aa-0000-4000-8000-000000000001 gen=1";
    stage.cycle();
    stage.batch.terminate_job(&id, reason).unwrap();
    stage.play(Some((StopCause::Terminated, reason)), &Outcome::Signal(9));
    check("terminated", &stage.last_event_of(&id));

    let id = stage.submit(&json!({}));
    stage.batch.cancel_job(&id, "superseded by newer submission").unwrap();
    check("cancelled", &stage.last_event_of(&id));

    let id = stage.submit(&json!({"timeout": {"attemptDurationSeconds": 3600}}));
    stage.play(Some((StopCause::TimedOut, "Job attempt duration exceeded timeout")), &Outcome::Signal(9));
    check("timeout", &stage.last_event_of(&id));

    let id = stage.submit(&json!({}));
    let lost = Some((StopCause::HostLost, "Host EC2 (instance i-0737c70432d64f82a) terminated."));
    stage.play(lost, &Outcome::Code(0));
    check("requeued", &stage.last_event_of(&id));
    stage.play(lost, &Outcome::Signal(15));
    stage.play(lost, &Outcome::Signal(9));
    check("spot-reclaim", &stage.last_event_of(&id));

    let upstream = stage.submit(&json!({}));
    let id = stage.submit(&json!({"dependsOn": [{"jobId": upstream}]}));
    stage.batch.cancel_job(&upstream, "not needed").unwrap();
    let mut event = stage.last_event_of(&id);
    event["detail"]["dependsOn"][0]["jobId"] = json!("5d2b5c3e-1f0a-4a55-9d4b-000000000006");
    check("dependency", &event);
}

#[test]
fn events_of_arrays_are_those_of_the_samples() {
    let stage = Stage::new("arrays");
    let id = stage.submit(&json!({
        "arrayProperties": {"size": 10}, "retryStrategy": {"attempts": 1, "evaluateOnExit": [
            {"onStatusReason": "Host EC2*", "action": "RETRY"}, {"onReason": "*", "action": "EXIT"}]}
    }));
    stage.cycle();
    stage
        .batch
        .change(|change| {
            change.settling(|ended| {
                for attempt in AttemptRow::live(change.db)? {
                    let lost = attempt.job_id.ends_with(":7");
                    let exit =
                        Exit { outcome: Outcome::Code(0), started_real_ms: Some(0), ended_real_ms: real_now_ms() };
                    let seen = if lost { Seen::Lost } else { Seen::Ended(exit) };
                    if lost {
                        let started = crate::files::Started {
                            command: crate::process::Identity::own().unwrap(),
                            started_real_ms: 0,
                        };
                        change.conclude((attempt.job, 1), &Seen::Started(started), ended)?;
                    }
                    change.conclude((attempt.job, 1), &seen, ended)?;
                }
                Ok(())
            })
        })
        .map_err(|error: rusqlite::Error| error)
        .unwrap();
    let attempts = |mut event: Value| {
        assert_eq!(event["detail"]["retryStrategy"]["attempts"], 1);
        event["detail"]["retryStrategy"]["attempts"] = json!(3);
        event
    };
    check("array-child", &attempts(stage.last_event_of(&format!("{id}:7"))));
    check("array-parent", &attempts(stage.last_event_of(&id)));
}

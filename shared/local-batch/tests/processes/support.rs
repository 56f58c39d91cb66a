//! A local Batch in a directory of its own, and short ways to submit and to wait.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use osprey_local_batch::{
    ComputeEnvironmentOrder, ComputeEnvironmentRequest, Engine, EnvironmentKind, JobQueueRequest, LocalBatch, Options,
    ScaledClock,
};
use osprey_model::definition::{ContainerProperties, JobDefinition};
use osprey_model::request::{ContainerOverrides, ResourceRequirement, SubmitJobRequest};
use serde_json::Value;

pub const SUPERVISOR: &str = env!("CARGO_BIN_EXE_local-batch-supervisor");

/// A directory that is removed with its jobs at the end.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("local-batch-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn options(speed: f64) -> Options {
    Options {
        clock: Arc::new(ScaledClock::new(1_800_000_000_000, speed)),
        supervisor: vec![SUPERVISOR.into()],
        ..Options::default()
    }
}

/// A Batch with one node of `gpus` GPUs in `main` and one in `spot`, a queue on each, and its engine.
pub struct World {
    pub engine: Option<Engine>,
    pub batch: LocalBatch,
    pub dir: Dir,
}

pub fn world(name: &str, gpus: u32, options: Options) -> World {
    let dir = Dir::new(name);
    let batch = open(&dir.0, gpus, options);
    World { engine: Some(batch.engine().unwrap()), batch, dir }
}

pub fn open(dir: &Path, gpus: u32, options: Options) -> LocalBatch {
    let batch = LocalBatch::open(dir, options).unwrap();
    for (name, kind) in [("main", EnvironmentKind::Ec2), ("spot", EnvironmentKind::Spot)] {
        batch
            .ensure_compute_environment(&ComputeEnvironmentRequest {
                compute_environment_name: name.to_owned(),
                kind,
                nodes: 1,
                gpus_per_node: gpus,
                ..Default::default()
            })
            .unwrap();
        batch
            .ensure_job_queue(&JobQueueRequest {
                job_queue_name: name.to_owned(),
                priority: 1,
                compute_environment_order: vec![ComputeEnvironmentOrder {
                    order: 1,
                    compute_environment: name.to_owned(),
                }],
                ..Default::default()
            })
            .unwrap();
    }
    let definition = JobDefinition {
        job_definition_name: "shell".to_owned(),
        kind: "container".to_owned(),
        container_properties: Some(ContainerProperties {
            image: Some("busybox".to_owned()),
            command: vec!["true".to_owned()],
            ..Default::default()
        }),
        ..Default::default()
    };
    batch.ensure_job_definition(&definition).unwrap();
    batch
}

/// A request of one GPU for `main`.
pub fn request(command: &[&str]) -> SubmitJobRequest {
    SubmitJobRequest {
        job_name: "test".to_owned(),
        job_queue: Some("main".to_owned()),
        job_definition: "shell".to_owned(),
        container_overrides: Some(ContainerOverrides {
            command: Some(command.iter().map(|word| (*word).to_owned()).collect()),
            resource_requirements: Some(vec![ResourceRequirement { kind: "GPU".to_owned(), value: "1".to_owned() }]),
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub fn shell(script: &str) -> SubmitJobRequest {
    request(&["sh", "-c", script])
}

impl World {
    pub fn submit(&self, request: &SubmitJobRequest) -> String {
        self.batch.submit_job(request).unwrap().job_id
    }

    pub fn job(&self, id: &str) -> Value {
        self.batch.describe_jobs(&[id.to_owned()]).unwrap().pop().unwrap()
    }

    pub fn status(&self, id: &str) -> String {
        self.job(id)["status"].as_str().unwrap().to_owned()
    }

    /// Ticks until the condition holds; fails after a minute.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let limit = Instant::now() + Duration::from_secs(60);
        while !holds(self) {
            assert!(Instant::now() < limit, "waited too long: {what}");
            let due = self.engine.as_mut().unwrap().tick().unwrap();
            std::thread::sleep(due.min(Duration::from_millis(5)));
        }
    }

    pub fn until_status(&mut self, id: &str, status: &str) {
        self.until(&format!("{id} is {status}"), |world| world.status(id) == status);
    }

    /// Runs until a job has ended and answers its description.
    pub fn end_of(&mut self, id: &str) -> Value {
        self.until(&format!("{id} has ended"), |world| ["SUCCEEDED", "FAILED"].contains(&world.status(id).as_str()));
        self.job(id)
    }

    pub fn run(&mut self, request: &SubmitJobRequest) -> Value {
        let id = self.submit(request);
        self.end_of(&id)
    }

    pub fn log(&self, id: &str, attempt: u32) -> String {
        std::fs::read_to_string(self.batch.log_path(id, attempt)).unwrap_or_default()
    }

    /// Loses the engine as a crash does: nothing is told to anybody.
    pub fn crash(&mut self) {
        self.engine = None;
    }

    pub fn restart(&mut self, gpus: u32, options: Options) {
        self.batch = open(&self.dir.0, gpus, options);
        self.engine = Some(self.batch.engine().unwrap());
    }
}

/// One line of how a job ended: status, exit code, status reason, container reason.
pub fn ending(job: &Value) -> String {
    let text = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let container = &job["container"];
    [&job["status"], &container["exitCode"], &job["statusReason"], &container["reason"]].map(text).join(" | ")
}

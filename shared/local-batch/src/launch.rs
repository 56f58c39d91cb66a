//! Starting a supervisor: the command with its parameters, and the clean environment it gets.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use osprey_model::request::KeyValuePair;
use rusqlite::Connection;
use serde_json::Value;

use crate::attempt::AttemptRow;
use crate::batch::Inner;
use crate::error::plain;
use crate::files::AttemptFiles;
use crate::job::{JobRow, spec_detail};
use crate::requirement::substituted;
use crate::supervise::{MARK, arguments};

/// What a job inherits of the environment this process was started with; everything else is kept from it.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "TMPDIR", "TZ"];

/// Everything a supervisor is started with.
pub(crate) struct Launch {
    command: Vec<String>,
    environment: BTreeMap<String, String>,
}

impl Launch {
    /// Puts together what the attempt of a job runs with.
    pub fn new(db: &Connection, inner: &Inner, job: &JobRow, attempt: &AttemptRow) -> rusqlite::Result<Self> {
        let detail = spec_detail(db, job)?;
        let member = |path: &str| Value::Object(detail.clone()).pointer(path).cloned().unwrap_or_default();
        let command: Vec<String> = serde_json::from_value(member("/container/command")).unwrap_or_default();
        let parameters: BTreeMap<String, String> = serde_json::from_value(member("/parameters")).unwrap_or_default();
        let own: Vec<KeyValuePair> = serde_json::from_value(member("/container/environment")).unwrap_or_default();
        let mut environment = inherited();
        environment.extend(inner.options.environment.iter().cloned());
        environment.extend(own.into_iter().filter_map(|pair| Some((pair.name?, pair.value.unwrap_or_default()))));
        environment.extend(of_batch(db, job, attempt)?);
        let command = substituted(&command, |name| parameters.get(name).cloned());
        Ok(Self { command, environment })
    }

    /// Starts the supervisor; whether it or another one gets to run the command is between them.
    ///
    /// # Errors
    /// A sentence for the job's record.
    pub fn start(&self, inner: &Inner, attempt: &AttemptRow) -> Result<Child, String> {
        let files = AttemptFiles::new(&inner.jobs, &attempt.job_id, attempt.number);
        std::fs::create_dir_all(files.dir())
            .map_err(|error| format!("log directory can't be created: {}", plain(&error)))?;
        let (program, first) = inner.options.supervisor.split_first().ok_or("no supervisor is set")?;
        Command::new(program)
            .args(first)
            .args(arguments(&files, attempt.number, &attempt.token, &self.command))
            .env_clear()
            .envs(&self.environment)
            .current_dir(&inner.working_directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("supervisor can't be started: {}", plain(&error)))
    }
}

fn inherited() -> BTreeMap<String, String> {
    INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect()
}

/// The variables that Batch sets; nobody can override them.
fn of_batch(db: &Connection, job: &JobRow, attempt: &AttemptRow) -> rusqlite::Result<Vec<(String, String)>> {
    let mut variables = vec![
        ("AWS_BATCH_JOB_ID", job.id.clone()),
        ("AWS_BATCH_JOB_ATTEMPT", attempt.number.to_string()),
        ("AWS_BATCH_JQ_NAME", job.queue.clone()),
        ("AWS_BATCH_CE_NAME", attempt.environment.clone()),
        ("CUDA_VISIBLE_DEVICES", attempt.devices.clone()),
        (MARK, attempt.token.clone()),
    ];
    if let Some(node) = job.node {
        variables.extend(of_node(node, job));
    }
    if let (Some(index), Some(parent)) = (job.index, &job.parent) {
        variables.push(("AWS_BATCH_JOB_ARRAY_INDEX", index.to_string()));
        let size = JobRow::by_id(db, parent)?.and_then(|parent| parent.size).unwrap_or_default();
        variables.push(("AWS_BATCH_JOB_ARRAY_SIZE", size.to_string()));
    }
    Ok(variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// What a node of a multi-node job is told: all nodes are on this machine.
fn of_node(node: i64, job: &JobRow) -> Vec<(&'static str, String)> {
    let main = job.main_node.unwrap_or_default();
    let mut variables = vec![
        ("AWS_BATCH_JOB_NODE_INDEX", node.to_string()),
        ("AWS_BATCH_JOB_NUM_NODES", job.nodes.unwrap_or_default().to_string()),
        ("AWS_BATCH_JOB_MAIN_NODE_INDEX", main.to_string()),
    ];
    if node != main {
        variables.push(("AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS", "127.0.0.1".to_owned()));
    }
    variables
}

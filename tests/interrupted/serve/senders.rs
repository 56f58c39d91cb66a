//! The clients of a round, each on a thread of its own. They lose nothing: what wasn't answered is sent again.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Client;
use super::work::{Piece, QUEUE, Want, Way, definitions};
use crate::moments::Draws;

/// How long a command at a terminal is tried for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(25);

/// What the clients know when they have done.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// How often the message of a piece went out, at least.
    pub times: BTreeMap<String, u64>,
    /// Ids of the jobs of Batch, by name.
    pub batch: BTreeMap<String, String>,
}

/// Where everything is.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub round: u64,
    pub osprey: &'a Path,
    pub state: &'a Path,
}

fn of(pieces: &[Piece], way: Way) -> impl Iterator<Item = &Piece> {
    pieces.iter().filter(move |piece| piece.way == way).inspect(|piece| {
        thread::sleep(Duration::from_millis(piece.pause_ms));
    })
}

/// Sends messages to the submission queue.
pub fn over_sqs(place: Place<'_>, pieces: &[Piece]) -> Result<Sent, String> {
    let client = Client::new(place.state);
    let mut sent = Sent::default();
    for piece in of(pieces, Way::Queue) {
        sent.times.insert(piece.name.clone(), client.send(&piece.body)?);
    }
    Ok(sent)
}

/// Sets up a queue of its own, registers the definitions, and submits jobs to Batch.
pub fn over_rest(place: Place<'_>, pieces: &[Piece]) -> Result<Sent, String> {
    let client = Client::new(place.state);
    set_up(&client)?;
    let mut sent = Sent::default();
    for piece in of(pieces, Way::Batch) {
        let request: Value = serde_json::from_str(&piece.body).map_err(|error| error.to_string())?;
        let id = client.submit(QUEUE, &request)?;
        if piece.want == Want::Stopped {
            client.batch("terminatejob", &json!({ "jobId": id, "reason": "enough" }))?;
        }
        sent.batch.insert(piece.name.clone(), id);
    }
    Ok(sent)
}

fn set_up(client: &Client) -> Result<(), String> {
    for definition in definitions() {
        client.batch("registerjobdefinition", &definition)?;
    }
    let resources =
        json!({ "type": "EC2", "minvCpus": 0, "maxvCpus": 8, "instanceTypes": ["g5.xlarge"], "subnets": ["subnet-1"] });
    let environment = json!({ "computeEnvironmentName": QUEUE, "type": "MANAGED", "computeResources": resources });
    client.create("createcomputeenvironment", &environment)?;
    let order = json!([{ "order": 1, "computeEnvironment": QUEUE }]);
    client.create("createjobqueue", &json!({ "jobQueueName": QUEUE, "priority": 1, "computeEnvironmentOrder": order }))
}

/// Sends jobs with `osprey submit-job`, of which some are killed in the middle of it.
pub fn at_a_terminal(place: Place<'_>, pieces: &[Piece]) -> Result<Sent, String> {
    let mut draws = Draws::new(place.round, "terminal");
    let mut sent = Sent::default();
    for piece in of(pieces, Way::Terminal) {
        let until = Instant::now() + PATIENCE;
        let times = sent.times.entry(piece.name.clone()).or_default();
        loop {
            let patience = draws.percent(40).then(|| Duration::from_millis(draws.below(60)));
            *times += 1;
            if submitted(place, piece, patience)? {
                break;
            }
            if Instant::now() > until {
                return Err(format!("`osprey submit-job` did not send {}", piece.name));
            }
            thread::sleep(PAUSE);
        }
    }
    Ok(sent)
}

/// Whether the command ended well; it is killed when it takes longer than `patience`.
fn submitted(place: Place<'_>, piece: &Piece, patience: Option<Duration>) -> Result<bool, String> {
    let mut child = Command::new(place.osprey)
        .args(["submit-job", "--cli-input-json", &piece.body, "--local"])
        .arg(place.state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(patience) = patience {
        thread::sleep(patience);
        child.kill().map_err(|error| error.to_string())?;
    }
    Ok(child.wait().map_err(|error| error.to_string())?.success())
}

/// Looks at the jobs again and again from another terminal, until it is told that all is sent.
pub fn looking(place: Place<'_>, is_over: &AtomicBool) -> Result<(), String> {
    while !is_over.load(Ordering::Acquire) {
        thread::sleep(PAUSE * 8);
        if place.state.join("run.json").exists() {
            crate::runs::ask(place.osprey, place.state, &["jobs"])?;
        }
    }
    Ok(())
}

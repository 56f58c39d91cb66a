//! What is submitted in a round, and what has to come of it.

use serde_json::{Value, json};

use crate::moments::Draws;

/// The queue of Batch that clients submit to past Osprey.
pub const QUEUE: &str = "rounds";
/// The job definitions, registered once a round.
pub const DEFINITION: &str = "rounds";
pub const MESH: &str = "rounds-mesh";
/// The command of every job, from the root of the repository.
const SCRIPT: &str = "tests/interrupted/job.sh";

/// How it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// SQS's SendMessage, to the submission queue.
    Queue,
    /// `osprey submit-job`, to the state directory.
    Terminal,
    /// Batch's SubmitJob.
    Batch,
}

/// What has to come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// It runs once and succeeds.
    Once,
    /// The same for each of so many children.
    Children(u32),
    /// The same for its main node; the other one is started once at most.
    Nodes,
    /// It succeeds, though its host is taken away under it again and again when that comes in time.
    Reclaimed,
    /// It runs twice, fails twice and is dead.
    Dead,
    /// It is terminated by its client.
    Stopped,
    /// It runs once, after the job of this name has succeeded.
    After(String),
    /// It is turned away.
    Refused,
    /// It is no job.
    DeadLetter,
}

/// One thing that is sent.
#[derive(Clone, Debug)]
pub struct Piece {
    pub name: String,
    /// Id of the job, of those that Osprey is to know.
    pub id: String,
    pub way: Way,
    pub want: Want,
    /// The request, or what is sent in its place.
    pub body: String,
    /// Pause before it is sent, in milliseconds.
    pub pause_ms: u64,
}

/// Everything of a round.
pub fn pieces(round: u64, ledger: &str) -> Vec<Piece> {
    let mut maker = Maker { draws: Draws::new(round, "work"), ledger, round, pieces: Vec::new() };
    for _ in 0..8 {
        maker.add(Way::Queue, Want::Once, |_| {});
    }
    maker.add(Way::Queue, Want::Children(3), |request| put(request, "arrayProperties", json!({ "size": 3 })));
    maker.add(Way::Queue, Want::Nodes, |request| put(request, "jobDefinition", json!(MESH)));
    maker.add(Way::Queue, Want::Reclaimed, |request| {
        for (tag, value) in [("preemptible", "true"), ("checkpoint-interval", "1m"), ("max-duration", "10m")] {
            put_tag(request, tag, value);
        }
        put_tag(request, "osprey:local-reclaim-after", "10s");
    });
    maker.add(Way::Queue, Want::Dead, |request| put(request, "retryStrategy", json!({ "attempts": 2 })));
    let (parent, id) = maker.last(&Want::Once);
    maker.add(Way::Queue, Want::After(parent), |request| put(request, "dependsOn", json!([{ "jobId": id }])));
    maker.add(Way::Queue, Want::Refused, |request| put(request, "arrayProperties", json!({ "size": 1 })));
    maker.add(Way::Queue, Want::DeadLetter, |_| {});
    for _ in 0..4 {
        maker.add(Way::Terminal, Want::Once, |_| {});
    }
    for _ in 0..6 {
        maker.add(Way::Batch, Want::Once, |_| {});
    }
    maker.add(Way::Batch, Want::Stopped, |_| {});
    maker.pieces
}

struct Maker<'a> {
    draws: Draws,
    ledger: &'a str,
    round: u64,
    pieces: Vec<Piece>,
}

impl Maker<'_> {
    fn add(&mut self, way: Way, want: Want, change: impl FnOnce(&mut Value)) {
        let number = self.pieces.len();
        let name = format!("piece-{number}");
        let id = format!("00000000-0000-4000-8000-{:08x}{number:04x}", self.round & 0xffff_ffff);
        let mut request = self.request(&name, &id, way, &want);
        change(&mut request);
        let body = match want {
            Want::DeadLetter => "{\"jobName\":".to_owned(),
            _ => request.to_string(),
        };
        let pause_ms = self.draws.below(400);
        self.pieces.push(Piece { name, id, way, want, body, pause_ms });
    }

    /// Name and id of the newest piece of a kind.
    fn last(&self, want: &Want) -> (String, String) {
        let found = self.pieces.iter().rfind(|piece| piece.want == *want);
        found.map(|piece| (piece.name.clone(), piece.id.clone())).unwrap_or_default()
    }

    fn request(&mut self, name: &str, id: &str, way: Way, want: &Want) -> Value {
        let seconds = match want {
            Want::Stopped => "600".to_owned(),
            // Longer than its host stays.
            Want::Reclaimed => "1.5".to_owned(),
            _ => format!("{:.2}", f64::from(u32::try_from(self.draws.between(5, 120)).unwrap_or(5)) / 100.0),
        };
        let code = if *want == Want::Dead { "3" } else { "0" };
        let command = json!([SCRIPT, self.ledger, name, seconds, code]);
        let mut request = json!({ "jobName": name, "jobDefinition": DEFINITION });
        if *want == Want::Nodes {
            let range = json!({ "targetNodes": "0:", "containerOverrides": { "command": command } });
            put(&mut request, "nodeOverrides", json!({ "nodePropertyOverrides": [range] }));
        } else {
            put(&mut request, "containerOverrides", json!({ "command": command }));
        }
        match way {
            Way::Batch => put(&mut request, "jobQueue", json!(QUEUE)),
            Way::Queue | Way::Terminal => put_tag(&mut request, "osprey:job-id", id),
        }
        request
    }
}

/// Sets a member of a request.
fn put(request: &mut Value, member: &str, value: Value) {
    request.as_object_mut().and_then(|members| members.insert(member.to_owned(), value));
}

fn put_tag(request: &mut Value, tag: &str, value: &str) {
    let tags = request.as_object_mut().map(|members| members.entry("tags").or_insert_with(|| json!({})));
    tags.into_iter().for_each(|tags| put(tags, tag, json!(value)));
}

/// The definitions that the pieces name: one GPU, a whole node on each of two.
pub fn definitions() -> [Value; 2] {
    let container = |gpus: &str| {
        let needs = [("GPU", gpus), ("VCPU", "1"), ("MEMORY", "256")];
        let needs: Vec<Value> = needs.iter().map(|(kind, value)| json!({ "type": kind, "value": value })).collect();
        json!({ "image": "busybox", "command": ["true"], "resourceRequirements": needs })
    };
    let range = json!([{ "targetNodes": "0:", "container": container("2") }]);
    [
        json!({ "jobDefinitionName": DEFINITION, "type": "container", "containerProperties": container("1") }),
        json!({
            "jobDefinitionName": MESH,
            "type": "multinode",
            "nodeProperties": { "numNodes": 2, "mainNode": 0, "nodeRangeProperties": range },
        }),
    ]
}

//! What is fuzzed: each reader with what follows right behind it.

use std::path::PathBuf;

use osprey_local::{LocalWorld, StateDir, Time};
use osprey_local_batch::Options;
use osprey_local_server::http::Call;
use osprey_local_server::{Credentials, Service, batch, router, sqs};
use osprey_model::end::{self, StoppedBy};
use osprey_model::event::BatchEvent;
use osprey_model::facts::{Facts, LineageFacts, TeamFacts};
use osprey_model::job::{Attempt, Job};
use osprey_model::message::{self, Message};
use osprey_model::metadata::Metadata;
use osprey_model::request::SubmitJobRequest;
use osprey_model::resources::Demand;
use osprey_pipeline::dead::DeadLetter;
use osprey_pipeline::derive;
use osprey_pipeline::record::Record;
use osprey_policy::Policy;
use osprey_policy::admission::{AdmissionInput, admit};
use osprey_policy::identity::{self, Claims, Identity};
use osprey_sim::trace;

/// Calls after which the local endpoints get a fresh state: their answers grow with what is kept.
const CALLS_MAX: u32 = 2_000;

/// A reader of what strangers write.
pub enum Target {
    /// Bodies of the submission queue, as far as a decision.
    Messages(Box<Policy>),
    /// Events of Batch, as far as their class.
    Events,
    /// Policy files, with their own tests.
    Policies,
    /// Conditions of rules, evaluated.
    Conditions,
    /// Items of the table.
    Items,
    /// Calls of Batch's protocol, as if signed.
    Batch(Box<Endpoint>),
    /// Calls of SQS's protocol, as if signed.
    Sqs(Box<Endpoint>),
    /// Headers that say who calls.
    Signatures(Box<Endpoint>),
    /// Trace files.
    Traces,
}

impl Target {
    /// Every target.
    pub const NAMES: [&'static str; 9] =
        ["messages", "events", "policies", "conditions", "items", "batch", "sqs", "signatures", "traces"];

    /// The target of a name.
    pub fn new(name: &str) -> Result<Self, String> {
        Ok(match name {
            "messages" => Self::Messages(Box::new(policy(osprey_policy::DEFAULT)?)),
            "events" => Self::Events,
            "policies" => Self::Policies,
            "conditions" => Self::Conditions,
            "items" => Self::Items,
            "batch" => Self::Batch(Box::new(Endpoint::new(name)?)),
            "sqs" => Self::Sqs(Box::new(Endpoint::new(name)?)),
            "signatures" => Self::Signatures(Box::new(Endpoint::new(name)?)),
            "traces" => Self::Traces,
            other => return Err(format!("there is no target `{other}`")),
        })
    }

    /// Runs one input.
    pub fn run(&mut self, input: &[u8]) {
        match self {
            Self::Messages(policy) => submission(policy, input),
            Self::Events => event(input),
            Self::Policies => drop(Policy::load(&text(input)).map(|loaded| loaded.policy.run_tests())),
            Self::Conditions => condition(&text(input)),
            Self::Items => item(input),
            Self::Batch(endpoint) => endpoint.batch(input),
            Self::Sqs(endpoint) => endpoint.sqs(input),
            Self::Signatures(endpoint) => endpoint.signature(input),
            Self::Traces => traces(&text(input)),
        }
    }
}

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

fn policy(text: &str) -> Result<Policy, String> {
    Policy::load(text).map(|loaded| loaded.policy).map_err(|errors| format!("{errors:?}"))
}

fn submission(policy: &Policy, input: &[u8]) {
    if let Ok(Message::Submit(request)) = message::parse_bytes(input) {
        decide(policy, &request);
    }
}

/// What `submit` does with a request before it writes anything.
fn decide(policy: &Policy, request: &SubmitJobRequest) {
    let metadata = Metadata::read(request, None).map(|(metadata, _)| metadata).unwrap_or_default();
    let identity = Identity::new("nobody");
    let bounded = identity::bound(&identity, &Claims { request, definition: None, metadata: &metadata });
    let demand = Demand::of(request, None).unwrap_or_default();
    let facts = Facts {
        job: derive::job_facts(request, &bounded.metadata, &demand),
        lineage: LineageFacts::default(),
        team: TeamFacts::default(),
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    let derivation = policy.derive_for(&facts, Some(&identity));
    assert!(derivation.priority <= 9999, "a priority that Batch refuses");
    let admission = admit(&AdmissionInput {
        request,
        definition: None,
        definition_required: false,
        metadata: &bounded.metadata,
        demand: &demand,
        derivation: &derivation,
        pools: &[],
        policy,
        our_tags: 8,
    });
    for refusal in admission.refusals {
        let shown = refusal.message.chars().all(|character| !character.is_control());
        assert!(shown, "a sentence with a control character");
    }
}

fn event(input: &[u8]) {
    let Ok(event) = serde_json::from_slice::<BatchEvent>(input) else { return };
    for by in [StoppedBy::Nobody, StoppedBy::Person, StoppedBy::Eviction] {
        let _ = end::classify(&event.detail, by);
    }
    let _ = (end::succeeded_out_of_memory(&event.detail), event.detail.reasons(), event.detail.exit_code());
}

/// A rule with this condition: a mistake with its place, or a condition that ends.
fn condition(when: &str) {
    let quoted = toml_text(when);
    let file = format!(
        "name = \"x\"\n[[rule]]\nid = \"r\"\nwhen = {quoted}\nadd = 1\n[[rule]]\nid = \"s\"\nwhen = \"true\"\n\
         amount = {quoted}\n[[tier]]\nname = \"all\"\nat_least = 0\n"
    );
    if let Ok(loaded) = Policy::load(&file) {
        let _ = loaded.policy.derive(&Facts::default());
    }
}

fn toml_text(text: &str) -> String {
    // JSON's escapes are TOML's, but for the slash, which needs none, and DEL, which TOML wants escaped.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn item(input: &[u8]) {
    let _ = serde_json::from_slice::<Job>(input);
    let _ = serde_json::from_slice::<Attempt>(input);
    let _ = serde_json::from_slice::<Record>(input);
    let _ = serde_json::from_slice::<DeadLetter>(input);
}

fn traces(text: &str) {
    drop(trace::csv::read(text, None));
    drop(trace::csv::read(text, Some("priority")));
    drop(trace::swf::read(text));
    drop(trace::requests::read(text));
    drop(trace::batch::read(text));
}

/// The local endpoints on a state directory of their own, which is removed in the end.
pub struct Endpoint {
    service: Service,
    folder: PathBuf,
    calls: u32,
}

impl Endpoint {
    fn new(name: &str) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("osprey-fuzz-{}-{name}", std::process::id()));
        Ok(Self { service: service(&folder)?, folder, calls: 0 })
    }

    fn count(&mut self) {
        self.calls += 1;
        if self.calls.is_multiple_of(CALLS_MAX)
            && let Ok(service) = service(&self.folder)
        {
            self.service = service;
        }
    }

    /// The first line is the path, the rest the body.
    fn batch(&mut self, input: &[u8]) {
        self.count();
        let (path, body) = split(input);
        let call = Call { method: "POST".to_owned(), path, body: body.to_vec().into(), ..Call::default() };
        drop(batch::answer(&self.service, &call));
    }

    /// The first line is the operation, the rest the body.
    fn sqs(&mut self, input: &[u8]) {
        self.count();
        let (operation, body) = split(input);
        // A call that waits for messages is no hang.
        if body.windows(15).any(|word| word == b"WaitTimeSeconds") {
            return;
        }
        let mut call = Call { method: "POST".to_owned(), body: body.to_vec().into(), ..Call::default() };
        if let Ok(value) = format!("AmazonSQS.{operation}").parse() {
            call.headers.insert("x-amz-target", value);
        }
        drop(sqs::answer(&self.service, &call));
    }

    /// Each line is a header. None of them is signed with the key, so none may pass.
    fn signature(&mut self, input: &[u8]) {
        let mut call = Call { method: "POST".to_owned(), path: "/v1/listjobs".to_owned(), ..Call::default() };
        for line in text(input).lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let name = name.trim().parse::<hyper::header::HeaderName>();
            if let (Ok(name), Ok(value)) = (name, value.trim().parse()) {
                call.headers.append(name, value);
            }
        }
        let admitted = router::admit(&self.service, &call).is_ok();
        let answered = router::answer(&self.service, &call);
        assert!(!(admitted && answered.status == 200), "a forged signature passed");
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn split(input: &[u8]) -> (String, &[u8]) {
    let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (first, rest) = input.split_at(at);
    (text(first), rest.get(1..).unwrap_or_default())
}

fn service(folder: &std::path::Path) -> Result<Service, String> {
    let _ = std::fs::remove_dir_all(folder);
    let state = StateDir::open(folder).map_err(|error| error.to_string())?;
    let credentials = Credentials::of(folder).map_err(|error| error.to_string())?;
    let world =
        LocalWorld::open(&state, Time::Set { speed: 1.0 }, Options::default()).map_err(|error| error.to_string())?;
    Ok(Service::new(world, credentials, "http://127.0.0.1:1".to_owned()))
}

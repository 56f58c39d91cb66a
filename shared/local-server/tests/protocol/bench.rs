//! A server on a state directory of its own, and calls signed with its key.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use osprey_local::{LocalWorld, StateDir, Time};
use osprey_local_server::sign::{self, Scope, Signable};
use osprey_local_server::{Credentials, Options, Server, Service, server::Running};
use serde_json::{Value, json};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Queue that every bench has.
pub const QUEUE: &str = "osprey-local-critical";

pub struct Bench {
    dir: PathBuf,
    pub world: LocalWorld,
    key: Credentials,
    pub address: SocketAddr,
    running: Option<Running>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Name and sentence of an error.
    pub fn error(&self) -> String {
        let kind = self.header("x-amzn-errortype").map(str::to_owned);
        let kind = kind.or_else(|| Some(self.body["__type"].as_str()?.rsplit('#').next()?.to_owned()));
        format!("{} {}: {}", self.status, kind.unwrap_or_default(), self.body["message"].as_str().unwrap_or_default())
    }
}

impl Bench {
    pub fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("local-server-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let state = StateDir::open(&dir).unwrap();
        let world = LocalWorld::open(&state, Time::Set { speed: 1.0 }, osprey_local_batch::Options::default()).unwrap();
        let key = Credentials::of(&dir).unwrap();
        let server = Server::bind(Options::default()).unwrap();
        let endpoint = server.endpoint();
        let address = endpoint.trim_start_matches("http://").parse().unwrap();
        let running = server.serve(Service::new(world.clone(), key.clone(), endpoint)).unwrap();
        let bench = Self { dir, world, key, address, running: Some(running) };
        bench.furnish();
        bench
    }

    /// A queue with an environment and a definition, made by calls.
    fn furnish(&self) {
        let environment = json!({"computeEnvironmentName": "gpus", "type": "MANAGED", "computeResources":
            {"type": "EC2", "minvCpus": 0, "maxvCpus": 192, "instanceTypes": ["p4d.24xlarge"], "subnets": ["subnet-1"],
             "instanceRole": "ecsInstanceRole"}});
        let policy = json!({"name": "shares", "fairsharePolicy": {"shareDecaySeconds": 600, "shareDistribution":
            [{"shareIdentifier": "TeamA", "weightFactor": 0.5}]}, "tags": {"a": "1"}});
        let queue = json!({"jobQueueName": QUEUE, "priority": 3, "schedulingPolicyArn": arn("scheduling-policy/shares"),
            "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "gpus"}]});
        let definition = json!({"jobDefinitionName": "train", "type": "container", "containerProperties":
            {"image": "busybox", "command": ["true"], "readonlyRootFilesystem": true,
             "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]}});
        for (path, body) in [
            ("createcomputeenvironment", environment),
            ("createschedulingpolicy", policy),
            ("createjobqueue", queue),
            ("registerjobdefinition", definition),
        ] {
            self.batch(path, &body).unwrap();
        }
    }

    pub fn stop(&mut self) {
        self.running = None;
    }

    /// A call of Batch's protocol that succeeds, or the words of its error.
    pub fn batch(&self, path: &str, body: &Value) -> Result<Value, String> {
        outcome(self.call("POST", &format!("/v1/{path}"), "", None, body.to_string().as_bytes()))
    }

    /// A call of SQS's protocol that succeeds, or the words of its error.
    pub fn sqs(&self, operation: &str, body: &Value) -> Result<Value, String> {
        let target = format!("AmazonSQS.{operation}");
        outcome(self.call("POST", "/", "", Some(&target), body.to_string().as_bytes()))
    }

    pub fn call(&self, method: &str, path: &str, query: &str, target: Option<&str>, body: &[u8]) -> Answer {
        let head = self.head(method, path, query, target, body);
        self.raw(&[head.as_bytes(), body].concat())
    }

    /// The head of a signed request.
    pub fn head(&self, method: &str, path: &str, query: &str, target: Option<&str>, body: &[u8]) -> String {
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut headers = vec![("host".to_owned(), self.address.to_string()), ("x-amz-date".to_owned(), time.clone())];
        headers.extend(target.map(|target| ("x-amz-target".to_owned(), target.to_owned())));
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let service = if target.is_some() { "sqs" } else { "batch" };
        let scope = Scope { day: time.split('T').next().unwrap(), region: "us-east-1", service };
        let signable = Signable { method, path, query, headers: headers.clone(), payload: sign::sha256(body) };
        let text = sign::string_to_sign(&time, &scope, &sign::canonical_request(&signable));
        let signature = sign::signature(&self.key.secret, &scope, &text);
        let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!(
            "{method} {uri} HTTP/1.1\r\n{lines}authorization: AWS4-HMAC-SHA256 Credential={}/{}/us-east-1/{service}/aws4_request, \
             SignedHeaders={names}, Signature={signature}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.key.key_id,
            scope.day,
            body.len()
        )
    }

    /// Sends bytes and reads the answer until the server closes.
    pub fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        // A server that refuses early may close before everything is sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        read(&answer)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.running = None;
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn outcome(answer: Answer) -> Result<Value, String> {
    if answer.status == 200 { Ok(answer.body) } else { Err(answer.error()) }
}

pub fn read(answer: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_owned(), body: serde_json::from_str(body).unwrap_or_default() }
}

/// An ARN of Batch.
pub fn arn(what: &str) -> String {
    format!("arn:aws:batch:us-east-1:000000000000:{what}")
}

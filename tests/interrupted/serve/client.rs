//! A client of AWS's protocols that loses nothing: it signs, and tries again when the server died under it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use jiff::Timestamp;
use osprey_local_server::sign::{self, Scope, Signable};
use serde_json::{Value, json};

/// Pause before a call is made again.
const PAUSE: Duration = Duration::from_millis(25);
/// How long a call is made again for. Servers are back within seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an answer is waited for.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// A client of whatever server `aws.env` of a state directory names at the time of a call.
#[derive(Clone, Debug)]
pub struct Client {
    state: PathBuf,
}

/// An answer, whatever its status.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

/// What `aws.env` says.
struct Access {
    host: String,
    key_id: String,
    secret: String,
}

/// One call before it is signed.
struct Call<'a> {
    service: &'a str,
    path: &'a str,
    /// Of SQS: the operation.
    target: Option<&'a str>,
    body: String,
}

impl Client {
    pub fn new(state: &Path) -> Self {
        Self { state: state.to_owned() }
    }

    /// A message to the submission queue. Answers how often it was sent: more than once when an answer was lost.
    pub fn send(&self, text: &str) -> Result<u64, String> {
        let mut sent = 0;
        self.patiently(|| {
            let queue = format!("{}/000000000000/osprey-submissions", self.endpoint()?);
            let body = json!({ "QueueUrl": queue, "MessageBody": text }).to_string();
            sent += 1;
            self.call(&Call { service: "sqs", path: "/", target: Some("AmazonSQS.SendMessage"), body })
        })?;
        Ok(sent)
    }

    /// A call of Batch that may be made again.
    pub fn batch(&self, operation: &str, request: &Value) -> Result<Value, String> {
        self.patiently(|| self.batch_once(operation, request)).map(|answer| answer.body)
    }

    /// Something of Batch that is made once: an object that exists was made by a call whose answer was lost.
    pub fn create(&self, operation: &str, request: &Value) -> Result<(), String> {
        self.patiently(|| {
            let answer = self.batch_once(operation, request)?;
            let exists = answer.body.to_string().contains("Object already exists");
            Ok(if exists { Answer { status: 200, ..answer } } else { answer })
        })?;
        Ok(())
    }

    /// Submits a job to Batch. SubmitJob has no client token, so before a second call the first one is looked for.
    pub fn submit(&self, queue: &str, request: &Value) -> Result<String, String> {
        let name = request.get("jobName").and_then(Value::as_str).unwrap_or_default();
        let mut in_doubt = false;
        let answer = self.patiently(|| {
            if in_doubt {
                let found = self.named(queue, name)?;
                if let Some(first) = found.into_iter().next() {
                    return Ok(Answer { status: 200, body: first });
                }
            }
            in_doubt = true;
            self.batch_once("submitjob", request)
        })?;
        let id = answer.body.get("jobId").and_then(Value::as_str).map(str::to_owned);
        id.ok_or_else(|| format!("{name} has no id: {}", answer.body))
    }

    /// The jobs of a name in a queue.
    pub fn named(&self, queue: &str, name: &str) -> Result<Vec<Value>, String> {
        let filters = json!([{ "name": "JOB_NAME", "values": [name] }]);
        let answer = self.batch_once("listjobs", &json!({ "jobQueue": queue, "filters": filters }))?;
        match answer.body.get("jobSummaryList").and_then(Value::as_array) {
            Some(list) if answer.status == 200 => Ok(list.clone()),
            _ => Err(format!("{}: {}", answer.status, answer.body)),
        }
    }

    /// Makes a call until it is answered. A refusal is an answer, and is final.
    fn patiently(&self, mut call: impl FnMut() -> Result<Answer, String>) -> Result<Answer, String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let problem = match call() {
                Ok(answer) if answer.status == 200 => return Ok(answer),
                // Another server may listen on the port of one that died: it knows another key.
                Ok(answer) if answer.status < 500 && answer.status != 403 => {
                    return Err(format!("refused with {}: {}", answer.status, answer.body));
                }
                Ok(answer) => format!("answered with {}: {}", answer.status, answer.body),
                Err(problem) => problem,
            };
            if Instant::now() > until {
                return Err(format!("no answer within {} s: {problem}", PATIENCE.as_secs()));
            }
            thread::sleep(PAUSE);
        }
    }

    fn batch_once(&self, operation: &str, request: &Value) -> Result<Answer, String> {
        let (path, body) = (format!("/v1/{operation}"), request.to_string());
        self.call(&Call { service: "batch", path: &path, target: None, body })
    }

    fn access(&self) -> Result<Access, String> {
        let text = fs::read_to_string(self.state.join("aws.env")).map_err(|error| error.to_string())?;
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("export {name}=")));
            line.map(str::to_owned).ok_or_else(|| format!("aws.env has no {name}"))
        };
        let host = value("AWS_ENDPOINT_URL")?.trim_start_matches("http://").to_owned();
        Ok(Access { host, key_id: value("AWS_ACCESS_KEY_ID")?, secret: value("AWS_SECRET_ACCESS_KEY")? })
    }

    fn endpoint(&self) -> Result<String, String> {
        Ok(format!("http://{}", self.access()?.host))
    }

    fn call(&self, call: &Call<'_>) -> Result<Answer, String> {
        let access = self.access()?;
        let request = signed(&access, call, Timestamp::now());
        let failed = |error: std::io::Error| format!("{}: {error}", access.host);
        let mut stream = TcpStream::connect(&access.host).map_err(failed)?;
        stream.set_read_timeout(Some(ANSWER_MAX)).map_err(failed)?;
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).map_err(failed)?;
        parse(&String::from_utf8_lossy(&answer))
    }
}

/// The bytes of a call with its signature. The connection is for it alone.
fn signed(access: &Access, call: &Call<'_>, now: Timestamp) -> String {
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = now.strftime("%Y%m%d").to_string();
    let mut headers = vec![("host".to_owned(), access.host.clone()), ("x-amz-date".to_owned(), time.clone())];
    headers.extend(call.target.map(|target| ("x-amz-target".to_owned(), target.to_owned())));
    let payload = sign::sha256(call.body.as_bytes());
    let signable = Signable { method: "POST", path: call.path, query: "", headers: headers.clone(), payload };
    let scope = Scope { day: &day, region: "us-east-1", service: call.service };
    let text = sign::string_to_sign(&time, &scope, &sign::canonical_request(&signable));
    let signature = sign::signature(&access.secret, &scope, &text);
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let credential = format!("{}/{day}/us-east-1/{}/aws4_request", access.key_id, call.service);
    let authorization = format!(
        "{} Credential={credential}, SignedHeaders={}, Signature={signature}",
        sign::ALGORITHM,
        names.join(";")
    );
    let kind = if call.target.is_some() { "application/x-amz-json-1.0" } else { "application/json" };
    let mut lines = vec![format!("POST {} HTTP/1.1", call.path)];
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    lines.push(format!("content-type: {kind}"));
    lines.push(format!("authorization: {authorization}"));
    lines.push(format!("content-length: {}", call.body.len()));
    lines.push("connection: close".to_owned());
    format!("{}\r\n\r\n{}", lines.join("\r\n"), call.body)
}

/// Reads an answer that came whole; one that broke off is none.
fn parse(text: &str) -> Result<Answer, String> {
    let (head, body) = text.split_once("\r\n\r\n").ok_or("the answer broke off")?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or("the answer has no status")?;
    let body = serde_json::from_str(body).map_err(|error| format!("the answer is no JSON: {error}: {body}"))?;
    Ok(Answer { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_broke_off_is_none() {
        let whole = "HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"jobId\":\"\"}";
        assert_eq!(parse(whole).unwrap(), Answer { status: 200, body: json!({ "jobId": "" }) });
        for end in [0, 10, 30, whole.len() - 1] {
            assert!(parse(whole.get(..end).unwrap_or_default()).is_err(), "{end}");
        }
    }
}

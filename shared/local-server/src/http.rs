//! A call and its answer, apart from how they travel.

use std::sync::Arc;

use hyper::HeaderMap;
use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::failure::{Failure, Protocol};

/// A call: everything of its request.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Verb.
    pub method: String,
    /// Path, as it came.
    pub path: String,
    /// What stands behind `?`, as it came.
    pub query: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, whole.
    pub body: Bytes,
}

impl Call {
    /// A header; several of one name are joined with commas. `None` when there is none, or it isn't text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self.headers.get_all(name).iter().map(|v| v.to_str().ok()).collect::<Option<_>>()?;
        (!values.is_empty()).then(|| values.join(","))
    }

    /// Which protocol it is in: SQS's calls name their operation in a header.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        if self.headers.contains_key("x-amz-target") { Protocol::Sqs } else { Protocol::Batch }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: Arc<str>,
}

impl Reply {
    /// The answer to a call.
    #[must_use]
    pub fn of(protocol: Protocol, outcome: Result<Value, Failure>) -> Self {
        match outcome {
            Ok(value) => Self::with(protocol, 200, &value),
            Err(failure) => Self::failed(protocol, &failure),
        }
    }

    fn with(protocol: Protocol, status: u16, body: &Value) -> Self {
        let kind = match protocol {
            Protocol::Batch => "application/json",
            Protocol::Sqs => "application/x-amz-json-1.0",
        };
        let headers = vec![
            ("content-type", kind.to_owned()),
            ("x-amzn-requestid", uuid::Uuid::new_v4().hyphenated().to_string()),
        ];
        Self { status, headers, body: body.to_string().into() }
    }

    fn failed(protocol: Protocol, failure: &Failure) -> Self {
        let Failure { status, code, message } = failure;
        let body = match protocol {
            Protocol::Batch => json!({ "message": message }),
            Protocol::Sqs => json!({ "__type": format!("com.amazonaws.sqs#{code}"), "message": message }),
        };
        let mut reply = Self::with(protocol, *status, &body);
        match protocol {
            Protocol::Batch => reply.headers.push(("x-amzn-errortype", (*code).to_owned())),
            Protocol::Sqs => {
                let side = if *status >= 500 { "Receiver" } else { "Sender" };
                reply.headers.push(("x-amzn-query-error", format!("{};{side}", failure.query_code())));
            }
        }
        reply
    }
}

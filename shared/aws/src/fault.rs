//! What a failed call was: whether it may have had an effect, and what a person has to do about it.

use std::error::Error;

use aws_sdk_batch::config::http::HttpResponse;
use aws_sdk_batch::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use osprey_ports::{CallError, StoreError};

/// What a failed call was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Turned away for its rate; nothing happened.
    Throttled,
    /// The role may not make it; nothing happened. Names the missing action.
    Denied(String),
    /// Refused for what it says; nothing happened, and the same call will be refused again.
    Refused(String),
    /// It never reached the service, or the service didn't take it for ours: no connection, no credentials, a clock
    /// that is wrong. Nothing happened; another try may succeed.
    NotSent(String),
    /// Whether it took effect isn't known.
    Unknown(String),
}

/// Error codes of calls that came too fast.
const THROTTLES: [&str; 9] = [
    "TooManyRequestsException",
    "ThrottlingException",
    "Throttling",
    "ThrottledException",
    "RequestLimitExceeded",
    "ProvisionedThroughputExceededException",
    "RequestThrottled",
    "KMSThrottlingException",
    "LimitExceededException",
];

/// Error codes of calls that the service didn't take for ours. Signing again, later or with other credentials, helps.
const UNSIGNED: [&str; 11] = [
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

impl Fault {
    /// Reads a failed call of `action` (such as `batch:SubmitJob`).
    #[must_use]
    pub fn of<E>(action: &str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        match error {
            SdkError::ConstructionFailure(_) => Self::NotSent(story(error)),
            SdkError::DispatchFailure(_) if never_connected(error) => Self::NotSent(story(error)),
            SdkError::ServiceError(service) => {
                let status = service.raw().status().as_u16();
                let (code, message) = (service.err().code(), service.err().message());
                Self::answered(action, status, code.unwrap_or_default(), message.unwrap_or_default())
            }
            _ => Self::Unknown(story(error)),
        }
    }

    /// Reads an answer that is an error, by its status first and its code second: services answer with codes that
    /// their models don't name.
    #[must_use]
    pub fn answered(action: &str, status: u16, code: &str, message: &str) -> Self {
        if status == 429 || THROTTLES.contains(&code) {
            return Self::Throttled;
        }
        if UNSIGNED.contains(&code) {
            return Self::NotSent(format!("{}; look at the clock and the credentials", said(status, code, message)));
        }
        if is_denial(status, code) {
            let why = denial(action, message);
            tracing::error!(metric = "DeniedCalls", action, why, "a call was denied.");
            return Self::Denied(why);
        }
        match status {
            400..=499 => {
                Self::Refused(if message.is_empty() { said(status, code, message) } else { message.to_owned() })
            }
            _ => Self::Unknown(said(status, code, message)),
        }
    }
}

/// Reads an error that came inside an answer, without a status of its own.
#[must_use]
pub fn by_code(action: &str, code: &str, message: &str) -> Fault {
    let status = if code.starts_with("Internal") || code.starts_with("Service") { 500 } else { 400 };
    Fault::answered(action, status, code, message)
}

fn said(status: u16, code: &str, message: &str) -> String {
    let code = if code.is_empty() { "no code" } else { code };
    if message.is_empty() { format!("HTTP {status} ({code})") } else { format!("{message} (HTTP {status}, {code})") }
}

fn is_denial(status: u16, code: &str) -> bool {
    const DENIALS: [&str; 6] = [
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "AuthorizationErrorException",
        "UnauthorizedOperation",
        "KMSAccessDeniedException",
    ];
    status == 403 || DENIALS.contains(&code)
}

/// The sentence for a denied call. Services name the action that is missing; it may be another one than was called,
/// such as `batch:TagResource` for a job with tags.
fn denial(action: &str, message: &str) -> String {
    let missing = message
        .split_once("not authorized to perform: ")
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .map_or(action, |word| word.trim_end_matches(['.', ',', ';']));
    if message.is_empty() {
        format!("the role lacks `{missing}`")
    } else {
        format!("the role lacks `{missing}`: {message}")
    }
}

/// Whether no connection was had, so that nothing can have been sent.
pub(crate) fn never_connected(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(this) = next {
        if this
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect)
        {
            return true;
        }
        next = this.source();
    }
    false
}

/// An error and its causes on one line.
pub(crate) fn story(error: &(dyn Error + 'static)) -> String {
    let mut told = String::new();
    let mut next = Some(error);
    while let Some(this) = next {
        let text = this.to_string();
        if !told.contains(&text) {
            if !told.is_empty() {
                told.push_str(": ");
            }
            told.push_str(&text);
        }
        next = this.source();
    }
    if told.is_empty() { DisplayErrorContext(error).to_string() } else { told }
}

impl From<Fault> for CallError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Throttled => Self::Throttled,
            Fault::Denied(why) => Self::Denied(why),
            Fault::Refused(why) => Self::Refused(why),
            Fault::NotSent(why) | Fault::Unknown(why) => Self::Unknown(why),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Throttled => Self::Throttled,
            Fault::Denied(why) | Fault::Refused(why) => Self::Unusable(why),
            Fault::NotSent(why) | Fault::Unknown(why) => Self::Unknown(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_by_status_first_and_code_second() {
        let of = |status, code| Fault::answered("batch:SubmitJob", status, code, "m");
        assert_eq!(of(429, ""), Fault::Throttled);
        assert_eq!(of(400, "ThrottlingException"), Fault::Throttled);
        assert_eq!(of(400, "ClientException"), Fault::Refused("m".to_owned()));
        assert_eq!(
            of(500, "AuthorizerConfigurationException"),
            Fault::Unknown("m (HTTP 500, AuthorizerConfigurationException)".to_owned())
        );
        assert!(matches!(of(403, "ExpiredTokenException"), Fault::NotSent(_)), "other credentials may be good");
        assert!(matches!(of(403, "SignatureDoesNotMatch"), Fault::NotSent(_)));
    }

    #[test]
    fn a_denied_call_names_the_missing_action() {
        let message = "User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform: batch:TagResource on resource: \
                       arn:aws:batch:eu-west-1:1:job/x because no identity-based policy allows the batch:TagResource action";
        let Fault::Denied(sentence) = Fault::answered("batch:SubmitJob", 403, "AccessDeniedException", message) else {
            panic!("a denial")
        };
        assert!(sentence.starts_with("the role lacks `batch:TagResource`: User: "), "{sentence}");
        let Fault::Denied(sentence) = Fault::answered("sqs:SendMessage", 403, "AccessDenied", "") else {
            panic!("a denial")
        };
        assert_eq!(sentence, "the role lacks `sqs:SendMessage`");
    }
}

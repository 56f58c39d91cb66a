//! Errors as AWS's clients expect them.

use osprey_local_batch::{BatchError, ErrorCode};
use osprey_ports::CallError;

/// Whose protocol an answer is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Batch's REST with JSON.
    Batch,
    /// SQS's JSON 1.0, whose errors also carry the names of the older query protocol.
    Sqs,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// HTTP status.
    pub status: u16,
    /// Name of the error in the API model.
    pub code: &'static str,
    /// A sentence; AWS's own where it is known.
    pub message: String,
}

impl Failure {
    /// Any error.
    pub fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// Batch's error for a wrong request.
    pub fn client(message: impl Into<String>) -> Self {
        Self::new(400, "ClientException", message)
    }

    /// The error of a request that can't be read.
    pub fn serialization(message: impl Into<String>) -> Self {
        Self::new(400, "SerializationException", message)
    }

    /// SQS's error for a value that is out of range.
    pub fn parameter(message: impl Into<String>) -> Self {
        Self::new(400, "InvalidParameterValueException", message)
    }

    /// Something that AWS has and the local services don't.
    pub fn unsupported(protocol: Protocol, what: &str) -> Self {
        match protocol {
            Protocol::Batch => Self::client(format!("The local Batch does not offer {what}")),
            Protocol::Sqs => Self::new(400, "UnsupportedOperation", format!("The local queues do not offer {what}")),
        }
    }

    /// The failure of something here, not of the caller.
    pub fn server(protocol: Protocol, message: impl Into<String>) -> Self {
        match protocol {
            Protocol::Batch => Self::new(500, "ServerException", message),
            Protocol::Sqs => Self::new(500, "InternalFailure", message),
        }
    }

    /// Name of the error in the query protocol, which SQS sends in `x-amzn-query-error`.
    #[must_use]
    pub fn query_code(&self) -> String {
        match self.code {
            "QueueDoesNotExist" => "AWS.SimpleQueueService.NonExistentQueue".to_owned(),
            "QueueNameExists" => "QueueAlreadyExists".to_owned(),
            "BatchEntryIdsNotDistinct"
            | "BatchRequestTooLong"
            | "EmptyBatchRequest"
            | "InvalidBatchEntryId"
            | "MessageNotInflight"
            | "PurgeQueueInProgress"
            | "TooManyEntriesInBatchRequest"
            | "UnsupportedOperation" => format!("AWS.SimpleQueueService.{}", self.code),
            "UnrecognizedClientException" => "InvalidClientTokenId".to_owned(),
            "InvalidSignatureException" => "SignatureDoesNotMatch".to_owned(),
            "UnknownOperationException" => "InvalidAction".to_owned(),
            "MissingRequiredParameterException" => "MissingParameter".to_owned(),
            "ResourceNotFoundException" => self.code.to_owned(),
            other => other.strip_suffix("Exception").unwrap_or(other).to_owned(),
        }
    }
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        let code = match error.code {
            ErrorCode::ClientException => "ClientException",
            ErrorCode::ServerException => "ServerException",
            ErrorCode::TooManyRequestsException => "TooManyRequestsException",
        };
        Self::new(error.status, code, error.message)
    }
}

impl From<serde_json::Error> for Failure {
    /// What was checked against its shape and still can't be read.
    fn from(error: serde_json::Error) -> Self {
        Self::serialization(error.to_string())
    }
}

/// The failure of a queue's call; what the queue refuses was to be refused before.
#[must_use]
pub fn of_queue(error: CallError) -> Failure {
    match error {
        CallError::Throttled => Failure::new(400, "RequestThrottled", "Rate exceeded"),
        CallError::Refused(sentence) => Failure::parameter(sentence),
        CallError::Denied(sentence) | CallError::Unknown(sentence) => Failure::server(Protocol::Sqs, sentence),
    }
}

/// The failure of a call about documents of the local Batch.
#[must_use]
pub fn of_documents(error: CallError) -> Failure {
    match error {
        CallError::Throttled => Failure::new(429, "TooManyRequestsException", "Too Many Requests"),
        CallError::Refused(sentence) | CallError::Denied(sentence) | CallError::Unknown(sentence) => {
            Failure::server(Protocol::Batch, sentence)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_names_are_those_that_older_clients_know() {
        for (code, want) in [
            ("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"),
            ("EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest"),
            ("InvalidParameterValueException", "InvalidParameterValue"),
            ("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid"),
            ("ResourceNotFoundException", "ResourceNotFoundException"),
            ("MissingRequiredParameterException", "MissingParameter"),
        ] {
            assert_eq!(Failure::new(400, code, "").query_code(), want);
        }
    }
}

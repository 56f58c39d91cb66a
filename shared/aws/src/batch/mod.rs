//! AWS Batch.

pub mod cache;
pub mod definitions;
pub mod jobs;
pub mod queues;
pub mod submit;

use std::error::Error;

use aws_sdk_batch::Client;
use aws_sdk_batch::config::http::HttpResponse;
use aws_sdk_batch::error::{ProvideErrorMetadata, SdkError};
use osprey_model::definition::JobDefinition;
use osprey_ports::CallError;

use crate::clients::Clients;
use crate::fault::Fault;
use crate::tokens::SubmitTokens;
use cache::Cache;
use queues::QueueFacts;

/// Batch behind the ports.
#[derive(Debug)]
pub struct AwsBatch {
    client: Client,
    once: Client,
    tokens: SubmitTokens,
    definitions: Cache<JobDefinition>,
    queues: Cache<QueueFacts>,
}

impl AwsBatch {
    /// Batch, with `tokens` for the rate of SubmitJob.
    #[must_use]
    pub fn new(clients: &Clients, tokens: SubmitTokens) -> Self {
        Self {
            client: clients.batch.clone(),
            once: clients.batch_once.clone(),
            tokens,
            definitions: Cache::new(definitions::LIFETIME),
            queues: Cache::new(queues::LIFETIME),
        }
    }

    /// The tokens for SubmitJob.
    #[must_use]
    pub fn tokens(&self) -> &SubmitTokens {
        &self.tokens
    }
}

/// A call of Batch, or of what is behind it, that failed, as the ports tell it.
pub(crate) fn call_error<E>(action: &'static str) -> impl Fn(SdkError<E, HttpResponse>) -> CallError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    move |error| {
        let fault = Fault::of(action, &error);
        if fault == Fault::Throttled {
            tracing::info!(metric = "ApiThrottles", action, "a call was throttled.");
        }
        fault.into()
    }
}

/// An answer of Batch that isn't what it should be.
fn unreadable(action: &str) -> impl Fn(String) -> CallError {
    let action = action.to_owned();
    move |why| CallError::Unknown(format!("{action}: {why}"))
}

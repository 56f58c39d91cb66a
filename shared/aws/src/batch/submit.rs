//! `SubmitJob`: at most one request for each call.
//!
//! Batch has no token that would make a repetition harmless, so this client never repeats: whatever isn't known to
//! have had no effect is [`SubmitError::Unknown`], and is settled by looking for the job.
//!
//! The request is our own JSON, every member of it ([`crate::wire`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_batch::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_batch::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_batch::error::BoxError;
use jiff::Timestamp;
use osprey_model::id::{BatchJobId, QueueName};
use osprey_model::request::SubmitJobRequest;
use osprey_ports::{SubmitCall, SubmitError, SubmitJob};

use super::AwsBatch;
use crate::fault::Fault;
use crate::wire::Body;

const ACTION: &str = "batch:SubmitJob";

/// Looks at the clock after the request was signed and right before it is sent, and notes that it was.
#[derive(Clone, Debug)]
struct Gate {
    not_after: Timestamp,
    passed: Arc<AtomicBool>,
}

impl Intercept for Gate {
    fn name(&self) -> &'static str {
        "SubmitGate"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let now = Timestamp::now();
        if now > self.not_after {
            return Err(format!("it is {now}, and the claim holds until {}", self.not_after).into());
        }
        self.passed.store(true, Ordering::SeqCst);
        Ok(())
    }
}

impl AwsBatch {
    /// The request as its queue takes it: a FIFO queue takes neither share nor priority.
    async fn for_its_queue(&self, request: &SubmitJobRequest) -> SubmitJobRequest {
        let mut request = request.clone();
        let Some(queue) = request.job_queue.as_deref().filter(|_| request.share_identifier.is_some()) else {
            return request;
        };
        match self.queue_facts(&QueueName::new(queue)).await {
            Ok(Some(facts)) if !facts.is_fair_share() => {
                request.share_identifier = None;
                request.scheduling_priority_override = None;
            }
            Ok(_) => {}
            // The pool says what the queue is; Batch will tell when that is wrong.
            Err(error) => tracing::warn!(queue, %error, "a job queue could not be described."),
        }
        request
    }

    async fn send(&self, request: &SubmitJobRequest, not_after: Timestamp) -> Result<BatchJobId, SubmitError> {
        let body = serde_json::to_string(request).map_err(|fault| SubmitError::Refused(fault.to_string()))?;
        let gate = Gate { not_after, passed: Arc::default() };
        let passed = gate.passed.clone();
        let call = self.once.submit_job().customize().interceptor(Body(body)).interceptor(gate);
        let error = match call.send().await {
            Ok(made) => {
                // The SDK puts an empty text where a member that must be there isn't.
                let id = made.job_id.filter(|id| !id.is_empty()).map(BatchJobId::new);
                return id.ok_or_else(|| SubmitError::Unknown("the answer names no job".to_owned()));
            }
            Err(error) => error,
        };
        if !passed.load(Ordering::SeqCst) {
            return Err(SubmitError::NotSent(crate::fault::story(&error)));
        }
        Err(submit_error(Fault::of(ACTION, &error)))
    }
}

fn submit_error(fault: Fault) -> SubmitError {
    match fault {
        Fault::Throttled => SubmitError::Throttled,
        Fault::NotSent(why) => SubmitError::NotSent(why),
        Fault::Denied(why) | Fault::Refused(why) => SubmitError::Refused(why),
        Fault::Unknown(why) => SubmitError::Unknown(why),
    }
}

impl SubmitJob for AwsBatch {
    async fn submit_job(&self, call: &SubmitCall) -> Result<BatchJobId, SubmitError> {
        let request = self.for_its_queue(&call.request).await;
        if !self.tokens.take().await {
            return Err(SubmitError::Throttled);
        }
        let outcome = self.send(&request, call.not_after).await;
        if outcome == Err(SubmitError::Throttled) {
            tracing::info!(metric = "ApiThrottles", action = ACTION, "a submission was throttled.");
            self.tokens.drop_lease();
        }
        outcome
    }
}

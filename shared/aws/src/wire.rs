//! Bodies as they go over the wire.
//!
//! The SDK turns its own types into JSON and back. Ours are written for the same JSON, keep members that the SDK
//! doesn't know, and are the ones that events are read with. So a request's body is replaced before it is signed, and
//! an answer's is kept beside what the SDK makes of it.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_batch::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextMut,
};
use aws_sdk_batch::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_batch::error::BoxError;
use serde::de::DeserializeOwned;

/// Keeps the body of an answer.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    body: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Answer {
    /// Reads the body of the newest answer.
    ///
    /// # Errors
    /// A sentence when there was none, or it isn't what was expected.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        let body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        let body = body.as_ref().ok_or("the answer has no body")?;
        serde_json::from_slice(body).map_err(|fault| format!("the answer can't be read: {fault}"))
    }
}

impl Intercept for Answer {
    fn name(&self) -> &'static str {
        "KeepAnswer"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let bytes = context.response().body().bytes().map(<[u8]>::to_vec);
        *self.body.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
        Ok(())
    }
}

/// Replaces the body of a request.
#[derive(Clone, Debug)]
pub struct Body(pub String);

impl Intercept for Body {
    fn name(&self) -> &'static str {
        "ReplaceBody"
    }

    fn modify_before_signing(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request_mut();
        request.headers_mut().insert("content-length", self.0.len().to_string());
        *request.body_mut() = self.0.clone().into();
        Ok(())
    }
}

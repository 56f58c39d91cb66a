//! The local Batch and the local queues on loopback, in the protocols of AWS: Batch's REST with JSON, and SQS's JSON 1.0.
//! The AWS CLI, boto3 and the AWS SDKs work unchanged once `aws.env` of the state directory is sourced.
//!
//! A call goes [`server`] (limits of time, size and number) → [`auth`] (signature version 4 with the state directory's
//! own key) → [`router`] → [`batch`] or [`sqs`]. Both read their requests against the shapes of AWS's API models
//! ([`shape`]): members that no model knows are ignored, as on AWS, and a wrong type is told as AWS tells it.
//! [`target`] passes events on to an HTTP address.
//!
//! Nothing here decides about jobs; what a call means is in `osprey-local-batch` and `osprey-local`.

pub mod auth;
pub mod batch;
pub mod credentials;
pub mod encoding;
pub mod failure;
pub mod http;
pub mod page;
pub mod router;
pub mod server;
pub mod service;
pub mod shape;
pub mod sign;
pub mod sqs;
pub mod target;

pub use credentials::{Credentials, CredentialsError};
pub use server::{Options, Server, ServerError};
pub use service::Service;
pub use target::{EventTarget, Forwarder, TargetError};

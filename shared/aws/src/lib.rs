//! The ports on AWS: DynamoDB, SQS, AWS Batch, SNS. The only crate that names the SDK.
//!
//! Nothing here decides anything. Each module is one service and keeps the promises of `osprey-ports`: a call says
//! whether it may have had an effect. Start at [`World`]; how a failed call is told is in [`fault`].
//!
//! Three things differ from what the SDK does by itself:
//!
//! * `SubmitJob` is never repeated ([`batch::submit`]): Batch has no token that would make it safe.
//! * A plain write of the store carries a mark, so that a repetition after a lost reply is known for what it is
//!   ([`store`]).
//! * Requests and answers of Batch go as JSON that our own types write and read, so no member is lost that the SDK
//!   doesn't know yet ([`wire`]).

pub mod actions;
pub mod batch;
pub mod capacity;
pub mod clients;
pub mod clock;
pub mod events;
pub mod fault;
pub mod notify;
pub mod queues;
pub mod store;
#[cfg(feature = "terminal")]
pub mod terminal;
pub mod tokens;
pub mod wire;
pub mod world;

pub use clients::Clients;
pub use store::DynamoStore;
pub use tokens::SubmitTokens;
pub use world::{Wiring, World};

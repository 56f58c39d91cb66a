//! The words of Osprey: requests, metadata, records, events, reasons. Types and parsing, nothing else.
//!
//! Start with [`request`], the job message, and [`event`], what Batch says of a job. Nothing here reads a clock, the
//! environment, or anything outside its arguments, and every map is ordered, so equal inputs give equal outputs.

pub mod decision;
pub mod definition;
pub mod end;
pub mod event;
pub mod facts;
pub mod id;
pub mod job;
pub mod limits;
pub mod message;
pub mod metadata;
pub mod pool;
pub mod reason;
pub mod request;
pub mod resources;
pub mod sender;

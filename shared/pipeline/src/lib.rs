//! The steps that several functions share: records, claims, settlement, ends, dependents, dead letters.
//!
//! Each step loads a snapshot, decides purely, writes under the condition that the snapshot still holds, and acts only
//! after a claim. Start with [`dispatch`] (a queued job becomes a Batch job) and [`apply`] (an event moves it on).
//! Nothing here reads a clock except through the [`osprey_ports::Clock`] port, right before Batch is called.

pub mod account;
pub mod acted;
pub mod apply;
pub mod census;
pub mod checkpoint;
pub mod compact;
pub mod context;
pub mod dead;
pub mod dependents;
pub mod derive;
pub mod dispatch;
pub mod driver;
pub mod evict;
pub mod experience;
pub mod failure;
pub mod feedback;
pub mod forgotten;
pub mod guard;
pub mod in_force;
pub mod internal;
pub mod key;
pub mod line;
pub mod order;
pub mod outbox;
pub mod outgoing;
mod quota;
pub mod rate;
pub mod record;
pub mod redrive;
pub mod repository;
pub mod settle;
pub mod start;
pub mod stop;
pub mod usage;
pub mod view;
pub mod waits;
pub mod wake;

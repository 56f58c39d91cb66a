//! The world on one machine: the ports of Osprey on SQLite and on the local Batch.
//!
//! Everything that the handlers ask for is here with the semantics and the limits of AWS, so what runs here runs
//! there. Start at [`world`]; the store's rules are told in [`store`], the queues' in [`queues`].
//!
//! Nothing here decides anything, and nothing reads the system clock but [`clock`].

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub mod batch;
pub mod clock;
pub mod database;
pub mod documents;
mod events;
pub mod notify;
pub mod queues;
pub mod state_dir;
pub mod store;
pub mod world;

mod schema;

pub use batch::LocalBatchPorts;
pub use clock::{ManualClock, ScaledClock, VirtualClock};
pub use database::{Database, DatabaseOptions, OpenError};
pub use documents::LocalDocuments;
pub use notify::{KeptNotice, LocalNotify};
pub use queues::{Delivery, LedgerRow, Line, LineOutcome, LocalQueues, Outgoing, Place, QueueCounts, Receipt};
pub use schema::SCHEMA_VERSION;
pub use state_dir::{StateDir, StateError, StateLock};
pub use store::LocalStore;
pub use world::{LocalWorld, Time, WorldError};

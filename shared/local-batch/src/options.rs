//! Settings of a local Batch, all with defaults that suit a person at one machine.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};

/// How the local Batch behaves. Durations are virtual milliseconds: a scaled clock divides them.
#[derive(Clone)]
pub struct Options {
    /// Source of time.
    pub clock: Arc<dyn Clock>,
    /// Program and first arguments of a supervisor, such as `[osprey, __supervise]`; the program is best absolute.
    pub supervisor: Vec<OsString>,
    /// Time between SIGTERM and SIGKILL; 30 s as on AWS.
    pub grace_ms: i64,
    /// How events are delivered.
    pub events: EventOptions,
    /// Mean number of reclaims of one Spot node in one virtual hour; 0 for none.
    pub reclaims_per_node_hour: f64,
    /// Variables given to every job, before those of its definition.
    pub environment: Vec<(String, String)>,
    /// Directory the commands run in; `None` for the one this process was started in.
    pub working_directory: Option<PathBuf>,
    /// Region in ARNs and events.
    pub region: String,
    /// Account in ARNs and events, twelve digits.
    pub account: String,
    /// Time a new instance needs before it takes jobs.
    pub start_up_delay_ms: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            supervisor: Vec::new(),
            grace_ms: 30_000,
            events: EventOptions::default(),
            reclaims_per_node_hour: 0.0,
            environment: Vec::new(),
            working_directory: None,
            region: "us-east-1".to_owned(),
            account: "000000000000".to_owned(),
            start_up_delay_ms: 0,
        }
    }
}

/// How unkind the event bus is; AWS promises at least once, and no order.
#[derive(Clone, Debug, PartialEq)]
pub struct EventOptions {
    /// Delay of each delivery in virtual milliseconds; a range reorders.
    pub delay_ms: RangeInclusive<i64>,
    /// Share of events that are delivered twice, 0 to 1; the second time with the same content.
    pub duplicate_rate: f64,
    /// Share of events that are never delivered, 0 to 1.
    pub loss_rate: f64,
    /// Seed of these choices and of Spot reclaims; the same seed and history give the same choices.
    pub seed: u64,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self { delay_ms: 0..=0, duplicate_rate: 0.0, loss_rate: 0.0, seed: 1 }
    }
}

//! Time, from the system.

use jiff::Timestamp;
use osprey_ports::Clock;

/// The system's clock. Lambda keeps it within a few milliseconds of AWS's.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

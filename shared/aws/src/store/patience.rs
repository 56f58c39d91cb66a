//! Calls that were turned away because others write the same items: made again, a little later each time.

use std::time::Duration;

use osprey_ports::StoreError;
use uuid::Uuid;

/// Tries of one call, the first included; a call that was turned away so often was throttled.
pub(super) const TRIES: u32 = 7;
/// Pause before the second try; it doubles from there, and each is drawn between half and whole.
const PAUSE: Duration = Duration::from_millis(20);

/// What one try came to.
#[derive(Debug)]
pub(super) enum Tried {
    /// It is over.
    Done(Result<(), StoreError>),
    /// It was turned away, and nothing was written.
    Busy,
}

/// The pause after a try that was turned away; `turn` counts from 0.
pub(super) fn pause(turn: u32) -> Duration {
    let whole = PAUSE.saturating_mul(2_u32.saturating_pow(turn));
    let [draw, ..] = Uuid::new_v4().into_bytes();
    whole / 2 + whole.saturating_mul(u32::from(draw)) / 512
}

/// The mark or token of one call.
pub(super) fn nonce() -> Uuid {
    Uuid::new_v4()
}

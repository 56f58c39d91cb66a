//! Back-off: `min(cap, base · 2ⁿ)`, less a jitter that comes from the job and the attempt.
//!
//! The jitter spreads retries of many jobs without chance: the same job and attempt always get the same delay, so a
//! delay that was decided twice is decided alike.

use sha2::{Digest, Sha256};

use crate::rules::RequeueRules;

/// Doublings beyond which every delay is at its cap.
const DOUBLINGS_MAX: u32 = 40;

/// The delay in milliseconds after `tries` earlier tries of the same kind.
#[must_use]
pub fn delay_ms(rules: &RequeueRules, tries: u32, job: &str, attempt: u32) -> i64 {
    let doubled = rules.base_ms.saturating_mul(1 << tries.min(DOUBLINGS_MAX));
    let full = doubled.min(rules.cap_ms);
    let spread = full / 100 * u64::from(rules.jitter_percent.min(100));
    let cut = u128::from(spread) * u128::from(draw(job, attempt)) / u128::from(u64::MAX);
    let delay = full.saturating_sub(u64::try_from(cut).unwrap_or(spread));
    i64::try_from(delay).unwrap_or(i64::MAX)
}

/// An even number from the job and the attempt.
fn draw(job: &str, attempt: u32) -> u64 {
    let digest = Sha256::new().chain_update(job.as_bytes()).chain_update(attempt.to_be_bytes()).finalize();
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

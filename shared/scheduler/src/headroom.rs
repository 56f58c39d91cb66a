//! Step 6, headroom: GPUs that stay free for urgent jobs that haven't come yet.

use crate::priority::Standing;
use crate::rules::Headroom;

/// GPUs that must stay free when a job of so many starts.
///
/// Urgent jobs take the headroom, and jobs whose wait has brought them to the front needn't leave it. A job so large that
/// the pool can't leave as much beside it leaves what is left over.
pub(crate) fn of(headroom: Headroom, pool_gpus: u32, gpus: u32, standing: Standing) -> u32 {
    if standing.is_urgent || standing.goes_by_age() {
        return 0;
    }
    headroom.of(pool_gpus).min(pool_gpus.saturating_sub(gpus))
}

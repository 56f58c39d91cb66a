//! The order of the queue as a plan is looked for.

use super::problem::Problem;

/// The jobs in the order in which greedy takes them.
///
/// 1. Urgent ones, since a dive comes before everything.
/// 2. By number, the highest first.
/// 3. The larger first, since small ones fill what large ones leave.
/// 4. By place in the list, so that the order is total.
#[must_use]
pub fn by_priority(problem: &Problem) -> Vec<u32> {
    let mut order: Vec<(u32, &super::Job)> = (0_u32..).zip(problem.jobs()).collect();
    order.sort_by_key(|(_, job)| (!job.is_urgent, u32::MAX - job.weight, u32::MAX - job.slots));
    order.into_iter().map(|(job, _)| job).collect()
}

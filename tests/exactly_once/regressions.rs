//! Seeds that found faults, each named after the fault. With the fault put back, the seed fails; a run is what product
//! and harness make of a seed, so a seed may lose its meaning when either changes, and the rule that it broke is what
//! counts.
//!
//! Faults that seeds meet too seldom are in `staged`, await point by await point.

use osprey_tests::chaos::run_seed;

#[track_caller]
fn passes(seed: u64) {
    assert_eq!(run_seed(seed, None, false).violation, None, "seed {seed}");
}

/// Two jobs that named each other came at once, didn't see each other at the door, and waited for ever.
#[test]
fn a_circle_that_arrives_at_once_is_found() {
    passes(25);
    passes(65);
}

/// A dependency on a Batch job of ours that wasn't recorded yet was taken for one on a stranger's.
#[test]
fn a_batch_id_of_ours_means_the_job() {
    passes(80);
    passes(1593);
}

/// A job has the id of its message when nobody chose one: a redrive that arrived closed the dead letter of the job.
#[test]
fn a_jobs_dead_letter_is_not_its_messages() {
    passes(225);
}

/// The list of an array's failed children lagged behind the array's end, which then counted as a failure by exit code.
#[test]
fn an_array_is_judged_though_the_list_of_its_children_lags() {
    passes(65);
    passes(87);
}

/// The same request, once without `dependsOn` and once with an empty list, was refused for an id that was reused.
#[test]
fn an_empty_list_is_no_other_request() {
    passes(69);
    passes(81);
}

/// A job was let in as its own parent.
#[test]
fn a_job_is_not_its_own_parent() {
    passes(45);
    passes(53);
}

/// A run whose end nobody had heard of was told to go beside others' work of its size, which looked like it: nothing became
/// free for the job that started in its place.
#[test]
fn a_run_that_has_ended_is_not_evicted_for_what_others_hold() {
    passes(17862);
}

/// A run that was told to go and had gone, unheard of, hid others' work of its size while its place was taken.
#[test]
fn who_was_told_to_go_and_has_gone_hides_nobody() {
    passes(5394);
}

/// A job that went to another pool between a plan and its claim was claimed under the plan of the pool that it had left.
#[test]
fn a_job_that_went_to_another_pool_is_not_claimed_by_the_plan_of_its_old_one() {
    passes(1119);
}

/// A job of a team that had used up its hours was to be demoted, and was refused instead since it saves too seldom.
#[test]
fn a_job_that_is_demoted_is_let_in() {
    passes(725);
}

/// An array whose children fill nodes to the last GPU never started, and kept the pool for itself for ever.
#[test]
fn an_array_that_fills_its_nodes_starts() {
    passes(35);
    passes(667);
}

/// Each attempt lost up to a second of what it had used.
#[test]
fn usage_is_exact() {
    passes(97);
    passes(98);
}

/// A dead letter that wasn't there when its stranger's right was looked for, and was there a moment later, was sent through
/// again by that stranger.
#[test]
fn what_is_not_there_yet_is_nobodys_to_redrive() {
    passes(17724);
}

/// A run that was to be evicted had ended a moment before: what had been seen of its node then looked like others' work, beside
/// which an array was given fewer places than it takes.
#[test]
fn what_was_seen_of_who_has_gone_meanwhile_is_not_taken_for_others_work() {
    passes(27083);
}

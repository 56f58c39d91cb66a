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

/// Each attempt lost up to a second of what it had used.
#[test]
fn usage_is_exact() {
    passes(97);
    passes(98);
}

//! Goal: the checkers see what they are for. Method: plant breakages, and wait for a seed to fail. The `chaos` command
//! plants them all (`--breakages`); these are the quickest.

use osprey_tests::chaos::{Breakage, seeds_until_caught};

fn is_caught(breakage: Breakage, by: &str) {
    let caught = seeds_until_caught(breakage, 0, 10, 2);
    assert!(caught.as_ref().is_some_and(|(_, violation)| violation.contains(by)), "{breakage:?}: {caught:?}");
}

#[test]
fn counting_twice_is_caught() {
    is_caught(Breakage::CountTwice, "usage differs from Batch's log");
}

#[test]
fn releasing_dependents_early_is_caught() {
    is_caught(Breakage::ReleaseDependentsEarly, "on which it depends");
}

#[test]
fn claims_without_a_condition_are_caught() {
    // Two submissions of one claim, or a state overwritten by a slower writer: whichever a seed shows first.
    is_caught(Breakage::DropTheClaim, "");
}

#[test]
fn acknowledging_before_recording_is_caught() {
    is_caught(Breakage::AcknowledgeFirst, "ended in 0 places");
}

#[test]
fn every_breakage_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = Breakage::ALL.iter().map(|(_, name, _)| *name).collect();
    assert_eq!(names.len(), Breakage::ALL.len());
    for (breakage, name, _) in Breakage::ALL {
        assert_eq!(Breakage::named(name), Some(breakage));
    }
}

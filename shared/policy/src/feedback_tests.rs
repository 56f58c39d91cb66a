use osprey_model::decision::Derivation;
use osprey_model::facts::Facts;
use osprey_model::job::Reported;
use proptest::{prop_assert, proptest};

use super::*;
use crate::policy::DEFAULT;

fn policy() -> Policy {
    Policy::load(DEFAULT).unwrap().policy
}

fn rules() -> FeedbackRules {
    FeedbackRules { most: 200, step: 100, least: 10, pause_ms: 60_000 }
}

fn stood(points: i32, at: i64) -> Option<Reported> {
    Some(Reported { points, at })
}

/// A29
#[test]
fn a_report_moves_by_a_step_at_most_and_never_beyond_the_bound() {
    let after = |before, points| rules().after(before, points, 100_000).map(|reported| reported.points);
    assert_eq!(after(None, 80), Ok(80));
    assert_eq!(after(None, 500), Ok(100));
    assert_eq!(after(stood(100, 0), 500), Ok(200));
    assert_eq!(after(stood(200, 0), 500), Err(Unmoved::TooSmall { least: 10 }));
    assert_eq!(after(stood(200, 0), -500), Ok(100));
    assert_eq!(after(stood(80, 0), 0), Ok(0), "0 takes a report back");
}

#[test]
fn a_storm_of_reports_moves_once_a_pause_and_small_ones_move_nothing() {
    let after = |before, points, at| rules().after(before, points, at);
    assert_eq!(after(stood(80, 50_000), 20, 100_000), Err(Unmoved::TooSoon { pause_ms: 60_000 }));
    assert!(after(stood(80, 40_000), 20, 100_000).is_ok());
    assert_eq!(after(stood(80, 0), 89, 100_000), Err(Unmoved::TooSmall { least: 10 }));
    assert_eq!(after(stood(80, 100_001), 20, 100_000), Err(Unmoved::Older));
    assert_eq!(FeedbackRules { most: 0, ..rules() }.after(None, 50, 1), Err(Unmoved::Off));
}

fn derived(priority: u32) -> Derivation {
    let policy = policy();
    let tier = policy.tier_of(priority, false).name.clone();
    Derivation { priority, tier, ..policy.derive(&Facts::default()) }
}

fn moved(priority: u32, said: Said, identity: &Identity, class: Option<&str>) -> (u32, String) {
    let moved = policy().moved(derived(priority), said, identity, class);
    assert_eq!(moved.steps.last().map(|step| step.priority_after), Some(i64::from(moved.priority)));
    (moved.priority, moved.tier.as_str().to_owned())
}

#[test]
fn a_report_moves_the_number_and_its_tier_as_far_as_identity_and_class_reach() {
    let said = Said { reported: stood(150, 0), topped: false };
    let anybody = Identity::anybody();
    assert_eq!(moved(700, said, &anybody, None), (850, "production".to_owned()));
    let bounded = Identity { tier_at_most: Some("experimental".into()), ..Identity::anybody() };
    assert_eq!(moved(700, said, &bounded, None), (799, "experimental".to_owned()));
    assert_eq!(moved(700, said, &anybody, Some("experimental")), (799, "experimental".to_owned()));
    let less = Said { reported: stood(-150, 0), topped: false };
    assert_eq!(moved(100, less, &anybody, None), (0, "experimental".to_owned()));
}

#[test]
fn top_goes_to_the_front_of_the_tier_and_not_into_the_next() {
    let said = Said { reported: None, topped: true };
    let anybody = Identity::anybody();
    assert_eq!(moved(450, said, &anybody, None), (799, "experimental".to_owned()));
    assert_eq!(moved(950, said, &anybody, None), (1_099, "production".to_owned()));
    assert_eq!(moved(1_150, said, &anybody, None), (9_999, "critical".to_owned()));
}

#[test]
fn a_preemptible_job_stays_where_it_is_whatever_is_said() {
    let said = Said { reported: stood(200, 0), topped: true };
    let policy = policy();
    let spare = policy.preemptible_tier().unwrap().name.clone();
    let derivation = Derivation { priority: 0, tier: spare, ..policy.derive(&Facts::default()) };
    assert_eq!(policy.moved(derivation.clone(), said, &Identity::anybody(), None), derivation);
}

proptest! {
    /// Whatever is reported, in whatever order, what stands is within the bound, and one report moves one step at most.
    #[test]
    fn no_sequence_of_reports_leaves_the_bounds(reports in proptest::collection::vec((-9_999_i32..=9_999, 0_i64..200_000), 0..40)) {
        let (rules, mut stands) = (rules(), None);
        for (points, at) in reports {
            let before = stands.map_or(0, |stood: Reported| stood.points);
            if let Ok(after) = rules.after(stands, points, at) {
                prop_assert!(after.points.abs() <= 200 && (after.points - before).abs() <= 100);
                prop_assert!(stands.is_none_or(|stood| after.at >= stood.at + 60_000));
                stands = Some(after);
            }
        }
    }
}

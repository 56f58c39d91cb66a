use osprey_model::metadata::Sla;
use proptest::prelude::*;

use super::*;
use crate::policy::{DEFAULT, FOUR_TIERS_SLA, INTERACTIVE_FIRST, STRICT_METADATA};
use crate::schema;

fn policy(text: &str) -> Policy {
    Policy::load(text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy
}

/// A policy with these rules and one tier for all.
fn with_rules(rules: &str) -> Policy {
    policy(&format!(
        "name = \"x\"\n{rules}\n[[tier]]\nname = \"high\"\nat_least = 800\n[[tier]]\nname = \"low\"\nat_least = 0\n\
         [[tier]]\nname = \"yielding\"\ntakes = \"preemptible\"\n"
    ))
}

fn job(environment: &str, workload: &str, gpus: u32) -> Facts {
    let mut facts = Facts::default();
    facts.job.gpus = gpus;
    facts.job.metadata.environment = Some(environment.to_owned());
    facts.job.metadata.workload = Some(workload.to_owned());
    facts
}

fn short(derivation: &Derivation) -> Vec<(&str, bool, i64, i64)> {
    derivation.steps.iter().map(|s| (s.rule.as_str(), s.matched, s.contribution, s.priority_after)).collect()
}

/// REQUIREMENTS §3, by A6 (production), A7 (base), A8 (inference), A9 (size), A10 (preemptible), A11 (floor), A12
/// (failures), A33 (four tiers).
#[test]
fn the_acceptance_table_comes_out_number_for_number() {
    let policy = policy(DEFAULT);
    for (environment, workload, gpus, preemptible, failures, priority, tier) in [
        ("production", "inference", 1, false, 0, 1200, "critical"),
        ("production", "inference", 8, false, 0, 1150, "critical"),
        ("production", "training", 8, false, 0, 950, "production"),
        ("dev", "inference", 1, false, 0, 700, "experimental"),
        ("dev", "training", 8, false, 0, 450, "experimental"),
        ("dev", "training", 8, false, 3, 420, "experimental"),
        ("dev", "training", 1, false, 60, 0, "experimental"),
        ("production", "inference", 1, true, 0, 0, "preemptible"),
        ("production", "training", 64, true, 9, 0, "preemptible"),
    ] {
        let mut facts = job(environment, workload, gpus);
        facts.job.metadata.preemptible = Some(preemptible);
        facts.lineage.failures = failures;
        for as_team in [false, true] {
            let mut facts = facts.clone();
            if as_team {
                facts.job.metadata.team = facts.job.metadata.environment.take();
            }
            let derivation = policy.derive(&facts);
            let got = (derivation.priority, derivation.tier.as_str());
            assert_eq!(
                got,
                (priority, tier),
                "{environment} {workload} {gpus} {preemptible} {failures} as team: {as_team}"
            );
            assert_eq!(derivation.fallback, None);
        }
    }
}

/// REQUIREMENTS A9: more than four, not four.
#[test]
fn four_gpus_are_not_large_and_five_are() {
    let policy = policy(DEFAULT);
    let derived = |gpus| policy.derive(&job("dev", "training", gpus)).priority;
    assert_eq!((derived(4), derived(5)), (500, 450));
}

#[test]
fn every_rule_is_a_step_with_what_it_read_and_gave() {
    let mut facts = job("production", "training", 8);
    facts.lineage.failures = 2;
    let derivation = policy(DEFAULT).derive(&facts);
    assert_eq!(
        short(&derivation),
        [
            ("base", true, 500, 500),
            ("production", true, 500, 1000),
            ("inference", false, 0, 1000),
            ("large", true, -50, 950),
            ("large-dataset", false, 0, 950),
            ("failures", true, -20, 930),
            ("preemptible", false, 0, 930),
            ("clamp", false, 0, 930),
        ]
    );
    let because = |rule: &str| {
        let step = derivation.steps.iter().find(|step| step.rule == rule).expect("a step");
        serde_json::to_string(&step.because).expect("JSON")
    };
    assert_eq!(because("production"), r#"{"job.environment":"production","job.team":null}"#);
    assert_eq!(because("large"), r#"{"job.gpus":8}"#);
    assert_eq!(because("large-dataset"), r#"{"job.dataset_size":null}"#);
    assert_eq!(because("failures"), r#"{"lineage.failures":2}"#);
    assert_eq!(because("clamp"), "{}");
}

#[test]
fn rules_behind_a_final_one_that_matched_are_listed_as_not_tried() {
    let policy = with_rules(
        "[[rule]]\nid = \"a\"\nwhen = \"job.preemptible\"\nset = 7\nfinal = true\n[[rule]]\nid = \"b\"\nwhen = \"true\"\nadd = 1\n",
    );
    let mut facts = Facts::default();
    assert_eq!(policy.derive(&facts).priority, 501);
    facts.job.metadata.preemptible = Some(true);
    let derivation = policy.derive(&facts);
    assert_eq!((derivation.priority, derivation.tier.as_str()), (7, "yielding"));
    assert_eq!(short(&derivation)[2], ("b", false, 0, 7));
    assert_eq!(derivation.steps[2].error.as_deref(), Some("not tried: rule `a` is final"));
    assert_eq!(derivation.fallback, None);
}

/// REQUIREMENTS A24: 500 and an alarm, never a lost job.
#[test]
fn a_rule_that_fails_makes_the_whole_derivation_fall_back_to_500() {
    let policy = with_rules(
        "[[rule]]\nid = \"a\"\nwhen = \"true\"\nadd = 300\n[[rule]]\nid = \"ratio\"\nwhen = \"100 / lineage.failures > 3\"\nadd = 1\n\
         [[rule]]\nid = \"b\"\nwhen = \"true\"\nadd = 1\n",
    );
    let derivation = policy.derive(&Facts::default());
    assert_eq!((derivation.priority, derivation.tier.as_str()), (500, "low"));
    assert_eq!(derivation.fallback.as_deref(), Some("rule `ratio`: division by zero"));
    assert_eq!(
        short(&derivation),
        [
            ("base", true, 500, 500),
            ("a", true, 300, 800),
            ("ratio", false, 0, 800),
            ("b", false, 0, 800),
            ("fallback", true, -300, 500)
        ]
    );
    assert_eq!(derivation.steps[2].error.as_deref(), Some("division by zero"));
    assert_eq!(derivation.steps[3].error.as_deref(), Some("not tried: rule `ratio` failed"));
    let mut facts = Facts::default();
    facts.lineage.failures = 5;
    assert_eq!(policy.derive(&facts).fallback, None);
}

#[test]
fn an_amount_that_fails_falls_back_too() {
    let policy = with_rules("[[rule]]\nid = \"a\"\nwhen = \"true\"\namount = \"9223372036854775807 * job.gpus\"\n");
    assert_eq!(
        policy.derive(&job("dev", "training", 8)).fallback.as_deref(),
        Some("rule `a`: a number beyond 64 bits")
    );
}

#[test]
fn amounts_that_leave_64_bits_together_stop_at_the_ceiling() {
    let rule = |id: &str| format!("[[rule]]\nid = \"{id}\"\nwhen = \"true\"\namount = \"9223372036854775807\"\n");
    let derivation = with_rules(&format!("{}{}", rule("a"), rule("b"))).derive(&Facts::default());
    assert_eq!((derivation.priority, derivation.fallback), (9999, None));
}

#[test]
fn a_preemptible_job_that_falls_back_stays_preemptible() {
    let policy = with_rules("[[rule]]\nid = \"a\"\nwhen = \"true\"\namount = \"1 / lineage.failures\"\n");
    let mut facts = Facts::default();
    facts.job.metadata.preemptible = Some(true);
    let derivation = policy.derive(&facts);
    assert_eq!((derivation.priority, derivation.tier.as_str()), (500, "yielding"));
}

#[test]
fn an_amount_may_rely_on_what_its_condition_proves() {
    let policy = with_rules("[[rule]]\nid = \"a\"\nwhen = \"has(job.sla)\"\namount = \"max(0, 3600 - job.sla)\"\n");
    let mut facts = Facts::default();
    assert_eq!(policy.derive(&facts).priority, 500);
    facts.job.metadata.sla = Some(Sla::Within(3000));
    let derivation = policy.derive(&facts);
    assert_eq!(derivation.priority, 1100);
    assert_eq!(derivation.steps[1].because.get("job.sla"), Some(&FactValue::Int(3000)));
}

#[test]
fn a_priority_class_caps_just_below_the_next_tier_and_never_raises() {
    let policy = policy(DEFAULT);
    for (environment, class, priority, tier, step) in [
        ("production", Some("experimental"), 799, "experimental", Some((true, -401))),
        ("production", Some("production"), 1099, "production", Some((true, -101))),
        ("production", Some("critical"), 1200, "critical", Some((false, 0))),
        ("dev", Some("critical"), 700, "experimental", Some((false, 0))),
        ("dev", Some("preemptible"), 0, "preemptible", Some((true, -700))),
        ("production", Some("no-such-tier"), 1200, "critical", Some((false, 0))),
        ("production", None, 1200, "critical", None),
    ] {
        let mut facts = job(environment, "inference", 1);
        facts.job.metadata.priority_class = class.map(ToOwned::to_owned);
        let derivation = policy.derive(&facts);
        assert_eq!((derivation.priority, derivation.tier.as_str()), (priority, tier), "{environment} {class:?}");
        let found = derivation.steps.iter().find(|step| step.rule == "priority-class");
        assert_eq!(found.map(|step| (step.matched, step.contribution)), step, "{environment} {class:?}");
    }
}

#[test]
fn the_number_is_clamped_in_a_step_of_its_own() {
    let mut facts = job("dev", "training", 1);
    facts.lineage.failures = 60;
    let derivation = policy(DEFAULT).derive(&facts);
    assert_eq!(short(&derivation).last(), Some(&("clamp", true, 100, 0)));
}

/// REQUIREMENTS D1, D2, D9: four numeric tiers, the top one only for a deadline within the hour.
#[test]
fn in_four_tiers_only_a_deadline_within_the_hour_is_critical() {
    let policy = policy(FOUR_TIERS_SLA);
    let thresholds: Vec<_> = policy.tiers().iter().filter_map(crate::rules::Tier::at_least).collect();
    assert_eq!(thresholds, [1000, 500, 200, 0]);
    for (sla, critical) in [(None, false), (Some(3599), true), (Some(3600), false), (Some(86_400), false)] {
        let mut facts = job("production", "inference", 1);
        facts.job.metadata.sla = sla.map(Sla::Within);
        assert_eq!(policy.derive(&facts).tier.as_str() == "critical", critical, "{sla:?}");
    }
}

fn text() -> impl Strategy<Value = Option<String>> {
    prop::option::of(
        prop::sample::select(vec!["production", "dev", "inference", "training", "critical", "preemptible", "", "é"])
            .prop_map(str::to_owned),
    )
}

prop_compose! {
    fn any_facts()(
        words in prop::collection::vec(text(), 8), numbers in prop::collection::vec(prop::option::of(any::<u64>()), 5),
        counts in prop::collection::vec(any::<u32>(), 10), floats in prop::collection::vec(any::<f64>(), 4),
        preemptible in prop::option::of(any::<bool>()), at in any::<i64>(), now in -60_000_000_000_000_i64..200_000_000_000_000,
        retry in any::<bool>(), tags in prop::collection::btree_map("[a-z]{1,3}", ".{0,3}", 0..3),
    ) -> Facts {
        let mut facts = Facts { now: jiff::Timestamp::from_millisecond(now).unwrap_or_default(), ..Facts::default() };
        let metadata = &mut facts.job.metadata;
        let mut words = words.into_iter();
        metadata.team = words.next().flatten();
        metadata.project = words.next().flatten();
        metadata.user = words.next().flatten();
        metadata.environment = words.next().flatten();
        metadata.workload = words.next().flatten();
        metadata.priority_class = words.next().flatten();
        facts.job.name = words.next().flatten().unwrap_or_default();
        facts.job.definition = words.next().flatten().unwrap_or_default();
        metadata.preemptible = preemptible;
        (metadata.max_duration, metadata.expected_duration) = (numbers[0], numbers[1]);
        (metadata.checkpoint_interval, metadata.dataset_size) = (numbers[2], numbers[3]);
        metadata.sla = numbers[4].map(|n| if n % 2 == 0 { Sla::Within(n) } else { Sla::At(at) });
        (facts.job.gpus, facts.job.vcpus, facts.job.nodes, facts.job.array_size) = (counts[0], counts[1], counts[2], counts[3]);
        (facts.lineage.attempts, facts.lineage.failures, facts.lineage.preemptions) = (counts[4], counts[5], counts[6]);
        (facts.lineage.host_losses, facts.lineage.depth, facts.team.gpus_running) = (counts[7], counts[8], counts[9]);
        facts.lineage.retry_of_preempted = retry;
        facts.lineage.wasted_gpu_hours = floats[0];
        (facts.team.gpu_hours_day, facts.team.gpu_hours_week, facts.team.waste_ratio) = (floats[1], floats[2], floats[3]);
        facts.job.tags = tags;
        facts
    }
}

/// A policy that reads every fact there is.
fn reading_everything() -> Policy {
    use crate::schema::FactKind;
    let compare = |fact: &schema::Fact| match fact.kind {
        FactKind::Bool => fact.name.to_owned(),
        FactKind::Int => format!("{} > 3", fact.name),
        FactKind::Number => format!("{} > 0.5", fact.name),
        FactKind::Text => format!("{}.contains(\"a\")", fact.name),
    };
    let rule = |(index, fact): (usize, &schema::Fact)| {
        let guard = if fact.when_absent == schema::WhenAbsent::Guarded {
            format!("has({}) && ", fact.name)
        } else {
            String::new()
        };
        format!("[[rule]]\nid = \"r{index}\"\nwhen = '{guard}{}'\nadd = 10\n", compare(fact))
    };
    with_rules(&schema::FACTS.iter().enumerate().map(rule).collect::<String>())
}

/// Compiled once: a property tries hundreds of facts.
static POLICIES: std::sync::LazyLock<Vec<Policy>> = std::sync::LazyLock::new(|| {
    let shipped = [DEFAULT, INTERACTIVE_FIRST, FOUR_TIERS_SLA, STRICT_METADATA].map(policy);
    shipped.into_iter().chain([reading_everything()]).collect()
});

proptest! {
    #[test]
    fn derivation_is_total_deterministic_and_adds_up(facts in any_facts()) {
        for policy in &*POLICIES {
            let derivation = policy.derive(&facts);
            prop_assert!(derivation.priority <= 9999);
            prop_assert!(policy.tier(&derivation.tier).is_some());
            let sum: i64 = derivation.steps.iter().map(|step| step.contribution).sum();
            prop_assert_eq!(sum, i64::from(derivation.priority));
            prop_assert!(derivation.steps.windows(2).all(|pair| pair[0].priority_after + pair[1].contribution == pair[1].priority_after));
            // Texts, since a fact may be no number and such a one isn't equal to itself.
            prop_assert_eq!(format!("{:?}", policy.derive(&facts)), format!("{derivation:?}"));
        }
    }

    /// REQUIREMENTS A5, A6: production is never worth less.
    #[test]
    fn production_never_lowers_the_number(facts in any_facts()) {
        let policy = &POLICIES[0];
        let mut production = facts.clone();
        production.job.metadata.environment = Some("production".to_owned());
        prop_assert!(policy.derive(&production).priority >= policy.derive(&facts).priority);
    }

    /// REQUIREMENTS A12, E15: a failure never raises the number, and a preemption or a lost host changes nothing.
    #[test]
    fn failures_lower_and_interruptions_do_not(facts in any_facts(), more in 0_u32..100) {
        let policy = &POLICIES[0];
        let (mut failed, mut interrupted) = (facts.clone(), facts.clone());
        failed.lineage.failures = failed.lineage.failures.saturating_add(more);
        interrupted.lineage.preemptions = interrupted.lineage.preemptions.saturating_add(more);
        interrupted.lineage.host_losses = interrupted.lineage.host_losses.saturating_add(more);
        let number = policy.derive(&facts).priority;
        prop_assert!(policy.derive(&failed).priority <= number);
        prop_assert_eq!(policy.derive(&interrupted).priority, number);
    }

    #[test]
    fn a_priority_class_never_raises(facts in any_facts(), class in text()) {
        let policy = &POLICIES[0];
        let (mut without, mut with) = (facts.clone(), facts);
        (without.job.metadata.priority_class, with.job.metadata.priority_class) = (None, class);
        prop_assert!(policy.derive(&with).priority <= policy.derive(&without).priority);
    }
}

#[test]
fn a_job_over_its_teams_quota_is_moved_to_the_preemptible_tier_by_a_step_of_its_own() {
    let policy = policy(DEFAULT);
    let derivation = policy.derive(&Facts::default());
    let because = BTreeMap::from([("quota".to_owned(), FactValue::Text("used up".to_owned()))]);
    let demoted = policy.demoted(derivation.clone(), because.clone());
    assert_eq!((demoted.priority, demoted.tier.as_str()), (0, "preemptible"));
    let step = demoted.steps.last().expect("a step");
    assert_eq!((step.rule.as_str(), step.contribution, step.because.clone()), ("quota", -500, because.clone()));
    let sum: i64 = demoted.steps.iter().map(|step| step.contribution).sum();
    assert_eq!(sum, 0);
    assert_eq!(policy.demoted(demoted.clone(), because), demoted);
}

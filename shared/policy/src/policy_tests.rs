use super::*;

fn loaded(text: &str) -> Loaded {
    Policy::load(text)
        .unwrap_or_else(|errors| panic!("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))
}

#[test]
fn every_shipped_policy_loads_without_a_warning_and_passes_its_tests() {
    for text in [DEFAULT, INTERACTIVE_FIRST, FOUR_TIERS_SLA, STRICT_METADATA] {
        let Loaded { policy, warnings } = loaded(text);
        assert_eq!(warnings, [], "{}", policy.name());
        assert!(policy.tests().len() >= 5, "{}", policy.name());
        for outcome in policy.run_tests() {
            assert_eq!(outcome.failures, [] as [String; 0], "{}: {}", policy.name(), outcome.name);
        }
    }
}

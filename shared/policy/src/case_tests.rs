use crate::policy::{DEFAULT, FOUR_TIERS_SLA, INTERACTIVE_FIRST, Policy, STRICT_METADATA};

/// The outcome of a test of the default policy, with this in place of its own tests.
fn failures(test: &str) -> Vec<String> {
    let rules = DEFAULT.split("# ---- tests").next().unwrap_or_default();
    let text = format!("{rules}[[test]]\nname = \"t\"\n{test}\n");
    let policy = Policy::load(&text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy;
    policy.run_tests().remove(0).failures
}

#[test]
fn a_failed_test_says_everything_that_came_out_otherwise() {
    for (test, want) in [
        ("want = { priority = 500 }", vec![]),
        ("want = { priority = 501 }", vec!["wanted priority 501, got 500"]),
        ("want = { tier = \"critical\" }", vec!["wanted tier `critical`, got `experimental`"]),
        ("want = { rules = [\"large\"] }", vec!["wanted rule `large` to match, it didn't"]),
        ("want = { admitted = true }", vec![]),
        ("want = { admitted = false }", vec!["wanted it refused, it was admitted"]),
        ("want = { refused = \"ArrayTooWide\" }", vec!["wanted a refusal with `ArrayTooWide`, it was admitted"]),
        ("given = { array_size = 101 }\nwant = { refused = \"ArrayTooWide\" }", vec![]),
        ("given = { priority_class = \"kritical\" }\nwant = { refused = \"InvalidMetadata\" }", vec![]),
        (
            "given = { array_size = 101 }\nwant = { admitted = true, refused = \"MissingMetadata\", priority = 1 }",
            vec![
                "wanted priority 1, got 500",
                "wanted a refusal with `MissingMetadata`, it was refused with `ArrayTooWide`",
                "wanted it admitted, it was refused with `ArrayTooWide`",
            ],
        ),
    ] {
        assert_eq!(failures(test), want, "{test}");
    }
}

#[test]
fn a_test_gives_facts_as_a_job_would() {
    for (given, priority) in [
        ("ENV = \" Production \"", 1000),
        ("environment = \"production\", workload_type = \"Inference\"", 1200),
        ("preemptible-flag = \"yes\"", 0),
        ("preemptible = true", 0),
        ("dataset_size = \"1.1 TB\"", 495),
        ("dataset_size = 1000000000001", 495),
        ("team = { name = \"production\", gpus_running = 3 }", 1000),
        ("gpus = 16, nodes = 2, vcpus = 64, memory_mib = 1024", 450),
        ("lineage = { failures = 1, attempts = 2, depth = 1, wasted_gpu_hours = 1 }", 490),
    ] {
        let test = format!("given = {{ {given} }}\nwant = {{ priority = {priority} }}");
        assert_eq!(failures(&test), [] as [String; 0], "{given}");
    }
}

/// Which test of which shipped policy keeps which promise of REQUIREMENTS.
#[test]
fn promises_are_kept_by_tests_of_the_shipped_policies() {
    for (number, text, name) in [
        ("A6, A8", DEFAULT, "production inference on one GPU is critical"),
        ("A5, A6", DEFAULT, "the production team is production without an environment"),
        ("A7", DEFAULT, "a job that says nothing gets the base"),
        ("A9", DEFAULT, "training in development on eight GPUs is below the base"),
        ("A3", DEFAULT, "a dataset over 1 TB costs five"),
        ("A10, A26", DEFAULT, "a preemptible job is preemptible even in production"),
        ("A11, A12", DEFAULT, "sixty failures end at the floor and don't make a job preemptible"),
        ("A13", DEFAULT, "preemptions and lost hosts are no failures"),
        ("A23, C22", DEFAULT, "a preemptible job that checkpoints hourly would lose too much"),
        ("C1, C5", INTERACTIVE_FIRST, "a notebook for half an hour is interactive"),
        ("C2", INTERACTIVE_FIRST, "training keeps its reserve"),
        ("C19", INTERACTIVE_FIRST, "a job without a class is refused"),
        ("C21", INTERACTIVE_FIRST, "hourly checkpoints are too rare for batch-default"),
        ("C21", INTERACTIVE_FIRST, "checkpoints every ten minutes are fine for batch-default"),
        ("C21", INTERACTIVE_FIRST, "checkpoints every half hour are fine for training-reserved"),
        ("D1", FOUR_TIERS_SLA, "production inference with half an hour left is critical"),
        ("D1, D2", FOUR_TIERS_SLA, "anything else is low"),
        ("D4", FOUR_TIERS_SLA, "a preemptible job is low whatever else it says"),
        ("D9", FOUR_TIERS_SLA, "an hour left is not within the hour"),
        ("D9, D10", FOUR_TIERS_SLA, "training with a near deadline stays below critical"),
        ("A31", STRICT_METADATA, "a trial of five hours is too long"),
        ("A32", STRICT_METADATA, "a job that says everything is let in"),
        ("C30", STRICT_METADATA, "a wasteful team pays a little"),
    ] {
        let policy = Policy::load(text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy;
        let outcomes = policy.run_tests();
        let outcome =
            outcomes.iter().find(|outcome| outcome.name == name).unwrap_or_else(|| panic!("{number}: {name}"));
        assert!(outcome.passed(), "{number}: {:?}", outcome.failures);
    }
}

/// REQUIREMENTS C3, C4, D3, D6: who may preempt whom, in the examples.
#[test]
fn the_examples_say_who_may_preempt_whom() {
    let may = |text: &str| -> Vec<String> {
        let policy = Policy::load(text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy;
        let names =
            |tiers: &[osprey_model::id::TierName]| tiers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let line = |tier: &crate::rules::Tier| {
            format!("{}: {} | {}", tier.name, names(&tier.may_preempt), names(&tier.may_preempt_when_full))
        };
        policy.tiers().iter().map(line).collect()
    };
    assert_eq!(
        may(INTERACTIVE_FIRST),
        ["dev-interactive: batch-default | ", "training-reserved:  | ", "standard:  | ", "batch-default:  | "]
    );
    assert_eq!(may(FOUR_TIERS_SLA), ["critical: low | medium high", "high: low | ", "medium: low | ", "low:  | "]);
}

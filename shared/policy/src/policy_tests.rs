use osprey_model::pool::CapacityType;

use super::*;
use crate::key::MetadataKey;
use crate::rules::Victims;

fn loaded(text: &str) -> Loaded {
    Policy::load(text)
        .unwrap_or_else(|errors| panic!("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))
}

#[test]
fn every_shipped_policy_loads_and_passes_its_tests_and_only_the_strict_one_bounds_strangers() {
    for (text, bounded) in [
        (DEFAULT, false),
        (INTERACTIVE_FIRST, false),
        (FOUR_TIERS_SLA, false),
        (STRICT_METADATA, true),
        (STRICT_ORDER, false),
    ] {
        let Loaded { policy, warnings } = loaded(text);
        let (open, others): (Vec<_>, Vec<_>) = warnings.into_iter().partition(|odd| odd.path.starts_with("identity"));
        assert_eq!(others, [], "{}", policy.name());
        assert_eq!(open.is_empty(), bounded, "{}", policy.name());
        assert!(policy.tests().len() >= 5, "{}", policy.name());
        for outcome in policy.run_tests() {
            assert_eq!(outcome.failures, [] as [String; 0], "{}: {}", policy.name(), outcome.name);
        }
    }
}

/// What `policy check` has to tell of a file: place, path, code, sentence, help.
fn told(text: &str) -> String {
    let errors = Policy::load(text).expect_err("a policy with mistakes");
    let line = |error: &PolicyError| match &error.help {
        Some(help) => format!("{error}\n    help: {help}\n"),
        None => format!("{error}\n"),
    };
    errors.iter().map(line).collect()
}

#[test]
fn a_policy_with_thirty_nine_mistakes_is_told_all_of_them_at_once() {
    let told = told(include_str!("../fixtures/mistakes.toml"));
    assert_eq!(told.lines().filter(|line| !line.starts_with("    help:")).count(), 39);
    assert!(told == include_str!("../fixtures/mistakes.txt"), "{told}");
}

#[test]
fn text_that_is_no_toml_is_told_with_every_slip_and_nothing_else() {
    let text = "name = \"x\"\nderive = { base = 1, base = 2 }\n[requeue\ncap = \"5s\"\n[[tier]]\nname = tier\n";
    assert_eq!(
        told(text),
        "2:22: not TOML: duplicate key (TomlSyntax)\n    help: the rest is checked once the file is TOML\n\
         3:9: not TOML: unclosed table, expected `]` (TomlSyntax)\n    help: the rest is checked once the file is TOML\n\
         6:8: not TOML: invalid boolean, expected `true` (TomlSyntax)\n    help: the rest is checked once the file is TOML\n"
    );
}

/// A file with this in place of `RULES`, which must be the only mistake.
fn only_mistake(body: &str) -> String {
    let rest = if body.contains("[[tier]]") {
        ""
    } else {
        "\n[[tier]]\nname = \"all\"\nat_least = 0\n[[tier]]\nname = \"low\"\ntakes = \"preemptible\"\n"
    };
    told(&format!("name = \"x\"\n{body}{rest}"))
}

const VACUOUS: &str = "want a `priority`, a `tier`, `rules`, `refused` or `admitted` that could be otherwise";

#[test]
fn mistakes_one_by_one() {
    let rule = |keys: &str| format!("[[rule]]\nid = \"r\"\n{keys}");
    let test = |keys: &str| format!("[[rule]]\nid = \"r\"\nwhen = \"true\"\nadd = 1\n[[test]]\nname = \"t\"\n{keys}");
    for (body, want) in [
        (rule("add = 1"), "2:1: rule[0].when: `when` is missing (MissingKey)\n    help: write `when = \"true\"` for a rule that always matches\n".to_owned()),
        (rule("when = \"true\"\nset = -1"), "5:7: rule[0].set: `-1` is outside 0 to 9999 (OutOfRange)\n".to_owned()),
        (rule("when = \"true\"\nadd = 10000"), "5:7: rule[0].add: `10000` is outside -9999 to 9999 (OutOfRange)\n".to_owned()),
        (rule("when = \"true\"\nadd = 99999999999999999999"), "5:7: rule[0].add: `99999999999999999999` is outside -9999 to 9999 (OutOfRange)\n".to_owned()),
        (rule("when = true\nadd = 1"), "4:8: rule[0].when: expected text, found true or false (WrongType)\n".to_owned()),
        (rule("when = \"true\"\nadd = 1\nfinal = 1"), "6:9: rule[0].final: expected true or false, found a whole number (WrongType)\n".to_owned()),
        ("[[rule]]\nid = \"clamp\"\nwhen = \"true\"\nadd = 1".to_owned(), "3:6: rule[0].id: `clamp` stands for a step of derivation itself (Duplicate)\n    help: give it another id\n".to_owned()),
        ("rule = 5".to_owned(), "2:8: rule: expected a list of tables, found a whole number (WrongType)\n    help: write `[[rule]]`\n".to_owned()),
        (test("want = {}"), format!("8:8: test[0].want: the test wants nothing (VacuousTest)\n    help: {VACUOUS}\n")),
        (test("want = { rules = [] }"), format!("8:8: test[0].want: the test wants nothing (VacuousTest)\n    help: {VACUOUS}\n")),
        (test("want = { rules = [\"r\"] }"), format!("8:8: test[0].want: every job passes the test (VacuousTest)\n    help: {VACUOUS}\n")),
        (test("given = { preemptible = \"perhaps\" }\nwant = { priority = 1 }"), "8:25: test[0].given.preemptible: tag `preemptible` must be `true` or `false`; `perhaps` was given (InvalidValue)\n".to_owned()),
        (test("given = { env = \"a\", environment = \"b\" }\nwant = { priority = 1 }"), "8:9: test[0].given: tag `env` = `a` and tag `environment` = `b` say different things about `environment`; keep one (Duplicate)\n".to_owned()),
        (test("given = { now = \"noon\" }\nwant = { priority = 1 }"), "8:17: test[0].given.now: `noon` is no time (InvalidValue)\n    help: write it as `2026-12-01T08:00:00Z`\n".to_owned()),
        (test("given = { team = { waste_ratio = -0.5 } }\nwant = { priority = 1 }"), "8:34: test[0].given.team.waste_ratio: `-0.5` is no amount of 0 or more (OutOfRange)\n".to_owned()),
        ("[[tier]]\nname = \"top\"\nat_least = 50".to_owned(), "4:12: tier[0].at_least: no tier takes the numbers from 0 to 49 (TierOrder)\n    help: lower the last tier or raise the floor\n".to_owned()),
        ("[[tier]]\nname = \"Top Tier\"\nat_least = 0".to_owned(), "3:8: tier[0].name: `Top Tier` is no name of a tier (InvalidValue)\n    help: at most 32 lower-case letters, digits and hyphens, since queues carry it\n".to_owned()),
        ("[[tier]]\nname = \"a\"".to_owned(), "2:1: tier[0]: the tier takes no job (MissingKey)\n    help: give it `at_least` with a number, or `takes = \"preemptible\"`\n2:1: tier: no tier takes jobs that aren't preemptible (TierOrder)\n    help: give one `at_least = 0`\n".to_owned()),
        ("[[tier]]\nname = \"a\"\nat_least = 0\nmay_preempt = [\"a\"]".to_owned(), "5:16: tier[0].may_preempt[0]: `a` can't preempt `a`, which isn't below it (TierOrder)\n".to_owned()),
        ("[[tier]]\nname = \"a\"\nat_least = 9\n[[tier]]\nname = \"b\"\nat_least = 0\nmay_preempt = [\"a\"]".to_owned(), "8:16: tier[1].may_preempt[0]: `b` can't preempt `a`, which isn't below it (TierOrder)\n".to_owned()),
        ("[[tier]]\nname = \"a\"\nat_least = 0\ncapacity = []".to_owned(), "5:12: tier[0].capacity: a tier without capacity starts nothing (InvalidValue)\n    help: write `spot`, `on-demand` or both\n".to_owned()),
        ("[requeue]\nbase = \"1h\"\ncap = \"1m\"".to_owned(), "2:1: requeue: the first delay, 3600 s, is above the cap, 60 s (OutOfRange)\n".to_owned()),
        ("[requeue]\njitter = 1.5".to_owned(), "3:10: requeue.jitter: `1.5` is outside 0 to 1 (OutOfRange)\n".to_owned()),
        ("[admission]\nrequire = [\"team\", \"TEAM\"]".to_owned(), "3:20: admission.require[1]: `TEAM` is listed twice (Duplicate)\n".to_owned()),
        ("[order]\nstarving_after = \"0s\"".to_owned(), "3:18: order.starving_after: it must be at least a second (OutOfRange)\n".to_owned()),
        ("[order]\nweight_base = 0".to_owned(), "3:15: order.weight_base: `0` is below 1 (OutOfRange)\n".to_owned()),
        ("[preemption]\nnear_done = 1".to_owned(), "3:13: preemption.near_done: `1` is outside 0 to 0.99 (OutOfRange)\n".to_owned()),
        ("[preemption]\nwait = \"soon\"".to_owned(), "3:8: preemption.wait: `soon` is no duration: a number is missing before `soon` (InvalidValue)\n    help: write it as `90s`, `15m`, `4h30m` or `PT4H`\n".to_owned()),
        ("[preemption]\nvictims = \"longest\"".to_owned(), "3:11: preemption.victims: `longest` is no choice of victims (InvalidValue)\n    help: the choices are `cheapest` and `longest-left`\n".to_owned()),
        ("[preemption]\ntier_by_tier = \"yes\"".to_owned(), "3:16: preemption.tier_by_tier: expected true or false, found text (WrongType)\n".to_owned()),
        ("[preemption]\nrestrat = \"1m\"".to_owned(), "3:1: preemption.restrat: unknown key `restrat` (UnknownKey)\n    help: did you mean `restart`?\n".to_owned()),
        ("[quota]\ngpu_hours_day = -1".to_owned(), "3:17: quota.gpu_hours_day: `-1` is no amount of 0 or more (OutOfRange)\n".to_owned()),
        ("[quota]\ngpu_hours_week = 2e9".to_owned(), "3:18: quota.gpu_hours_week: `2000000000` is more than 1000000000 GPU-hours (OutOfRange)\n    help: leave it out for no limit\n".to_owned()),
        ("[quota]\nover = \"holt\"".to_owned(), "3:8: quota.over: `holt` is nothing that becomes of a job over its quota (InvalidValue)\n    help: did you mean `hold`?\n".to_owned()),
        ("[quota]\ngpus = { hi = 8 }".to_owned(), "3:15: quota.gpus.hi: unknown tier `hi` (UnknownTier)\n    help: the tiers are `all` and `low`\n".to_owned()),
        ("[quota]\nwaste_above = 15".to_owned(), "3:15: quota.waste_above: `15` is outside 0 to 1 (OutOfRange)\n".to_owned()),
        ("[quota]\nhalf_life = \"0s\"".to_owned(), "3:13: quota.half_life: it must be at least a second (OutOfRange)\n".to_owned()),
        ("[quota.team.search]\nweight = 0".to_owned(), "3:10: quota.team.search.weight: `0` is outside 1 to 1000 (OutOfRange)\n".to_owned()),
        ("[quota.team.search]\ngpu_hours = 5".to_owned(), "3:1: quota.team.search.gpu_hours: unknown key `gpu_hours` (UnknownKey)\n    help: known here: `gpu_hours_day`, `gpu_hours_week`, `gpus` and `weight`\n".to_owned()),
        ("[[quota.reserve]]\nname = \"r\"\nshare = 0.2".to_owned(), "2:1: quota.reserve[0].workload: `workload` is missing (MissingKey)\n    help: say whom it is for: a workload such as `\"interactive\"`, or a tier\n".to_owned()),
        ("[[quota.reserve]]\nname = \"r\"\ntier = \"al\"\nshare = 0.2".to_owned(), "4:8: quota.reserve[0].tier: unknown tier `al` (UnknownTier)\n    help: the tiers are `all` and `low`\n".to_owned()),
        ("[[quota.reserve]]\nname = \"r\"\nworkload = \"a\"\nshare = 0.6\n[[quota.reserve]]\nname = \"s\"\nworkload = \"b\"\nshare = 0.6".to_owned(), "2:1: quota.reserve: the reserves are 120 % of a pool (OutOfRange)\n    help: let the shares be at most 1 together\n".to_owned()),
        ("[order]\ndive_above = 10000".to_owned(), "3:14: order.dive_above: `10000` is outside 0 to 9999 (OutOfRange)\n".to_owned()),
    ] {
        assert_eq!(only_mistake(&body), want, "{body}");
    }
}

/// A test that no policy change could break says nothing.
#[test]
fn a_test_that_every_job_passes_is_a_mistake() {
    for (top, tiers, want) in [
        ("", "[[tier]]\nname = \"all\"\nat_least = 0\n", "tier = \"all\""),
        (
            "[derive]\nbase = 5\nfloor = 5\nceiling = 5\nfallback = 5\n",
            "[[tier]]\nname = \"all\"\nat_least = 5\n",
            "priority = 5, tier = \"all\"",
        ),
    ] {
        let told = told(&format!("name = \"x\"\n{top}{tiers}[[test]]\nname = \"t\"\nwant = {{ {want} }}\n"));
        assert!(told.contains("test[0].want: every job passes the test (VacuousTest)"), "{told}");
        assert_eq!(told.lines().count(), 2);
    }
}

#[test]
fn demoting_needs_a_tier_to_demote_to() {
    let told = told("name = \"x\"\n[[tier]]\nname = \"all\"\nat_least = 0\n[quota]\nover = \"demote\"\n");
    assert!(told.contains("quota.over: there is no tier of preemptible jobs to demote to (UnknownTier)"), "{told}");
}

/// C25, C6, C7
#[test]
fn quotas_are_read_with_what_each_team_has() {
    let text = r#"
name = "x"
[[tier]]
name = "high"
at_least = 0
[quota]
gpu_hours_day = 50
gpu_hours_week = 0.5
over = "reject"
borrowing = true
fair_share = true
half_life = "1d"
waste_above = 0.2
waste_floor = 0.4
waste_half_life = "2d"
[quota.team.search]
gpus = { high = 8 }
weight = 3
[[quota.reserve]]
name = "interactive"
workload = ["Interactive", "notebook"]
tier = "high"
share = 0.2
user_share = 0.5
"#;
    let Loaded { policy, warnings } = loaded(text);
    let quota = policy.quota();
    assert_eq!((quota.day_gpu_ms("ads"), quota.week_gpu_ms("ads")), (Some(180_000_000), Some(1_800_000)));
    assert_eq!((quota.over, quota.borrowing, quota.fair_share), (crate::rules::Over::Reject, true, true));
    assert_eq!(quota.half_life_ms, 86_400_000);
    let waste = crate::rules::WasteRules { above_percent: 20, floor_percent: 40, half_life_ms: 172_800_000 };
    assert_eq!(quota.waste, waste);
    assert_eq!((policy.team_gpus_max("search", &"high".into()), quota.weight("search")), (Some(8), 3));
    let reserve = crate::rules::Reserve {
        name: "interactive".to_owned(),
        workloads: vec!["interactive".to_owned(), "notebook".to_owned()],
        tiers: vec!["high".into()],
        share_percent: 20,
        user_percent: Some(50),
        ..crate::rules::Reserve::default()
    };
    assert_eq!(quota.reserves, [reserve]);
    assert!(policy.asks_of_teams() && !loaded(DEFAULT).policy.asks_of_teams());
    // Whoever names no team would have no quota.
    let odd: Vec<&str> = warnings.iter().map(|odd| odd.path.as_str()).filter(|path| *path == "quota").collect();
    assert_eq!(odd, ["quota"]);
}

#[test]
fn an_empty_file_says_what_a_policy_needs() {
    assert_eq!(
        told(""),
        "1:1: name: `name` is missing (MissingKey)\n    help: write `name = \"…\"` at the top\n\
         1:1: tier: the policy has no tier (MissingKey)\n    help: write at least one `[[tier]]` with `at_least = 0`\n"
    );
}

#[test]
fn the_longest_policy_is_read_and_a_longer_one_refused() {
    let text = |bytes: usize| format!("{DEFAULT}{}", "#".repeat(bytes - DEFAULT.len()));
    assert!(Policy::load(&text(crate::POLICY_BYTES_MAX)).is_ok());
    let refused = told(&text(crate::POLICY_BYTES_MAX + 1));
    assert_eq!(refused, "1:1: the policy has 262145 bytes, more than 262144 (TooLarge)\n");
}

#[test]
fn odd_rules_are_warned_of() {
    let text = DEFAULT.replace(
        "# ---- tiers",
        "[[rule]]\nid = \"never\"\nwhen = \"false\"\nadd = 1\n[[rule]]\nid = \"untested\"\nwhen = \"job.nodes > 1\"\nadd = 1\n\
         [[rule]]\nid = \"end\"\nwhen = \"true\"\nadd = 0\nfinal = true\n[[rule]]\nid = \"shadowed\"\nwhen = \"true\"\nadd = 1\n# ---- tiers",
    );
    let of_rules = |odd: &&Warning| odd.path.starts_with("rule");
    let warnings: Vec<_> = loaded(&text).warnings.iter().filter(of_rules).map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "51:1: rule[6]: rule `never` never matches",
            "55:1: rule[7]: no test makes rule `untested` match",
            "64:1: rule[9]: rule `shadowed` is never tried: `end` above it always ends",
        ]
    );
}

#[test]
fn the_revision_is_the_hash_of_the_text() {
    let revision = |text: &str| loaded(text).policy.revision().to_string();
    assert_eq!(revision(DEFAULT).len(), 12);
    assert_eq!(revision(DEFAULT), revision(DEFAULT));
    assert_ne!(revision(DEFAULT), revision(&format!("{DEFAULT} ")));
    let text = "name = \"x\"\n[[tier]]\nname = \"all\"\nat_least = 0\n";
    assert_eq!(revision(text), "982c30143adb");
}

/// What the default policy says beyond its tests: SPEC §4, REQUIREMENTS A33, C21, C22.
#[test]
fn the_default_policy_has_the_tiers_and_rules_of_the_design() {
    let policy = loaded(DEFAULT).policy;
    let tiers: Vec<_> = policy.tiers().iter().map(|tier| (tier.name.as_str(), tier.at_least())).collect();
    assert_eq!(
        tiers,
        [("critical", Some(1100)), ("production", Some(800)), ("experimental", Some(0)), ("preemptible", None)]
    );
    let names = |tiers: &[TierName]| tiers.iter().map(ToString::to_string).collect::<Vec<_>>();
    let [critical, production, experimental, preemptible] = policy.tiers() else { panic!("four tiers") };
    assert_eq!(names(&critical.may_preempt), ["preemptible", "experimental"]);
    assert_eq!(names(&critical.may_preempt_when_full), ["production"]);
    assert_eq!(names(&production.may_preempt), ["preemptible", "experimental"]);
    assert!(experimental.may_preempt.is_empty() && preemptible.may_preempt.is_empty());
    assert_eq!(preemptible.checkpoint_window_seconds, 900);
    assert_eq!(policy.requeue(), &RequeueRules::default());
    assert_eq!(policy.admission(), &AdmissionRules::default());
    let order = OrderRules {
        headroom: crate::rules::Headroom::Percent(9),
        starving_after_ms: Some(1_209_600_000),
        weight_base: 1_000,
        ..OrderRules::default()
    };
    assert_eq!(policy.order(), &order);
    let preemption = PreemptionRules { victims: Victims::LongestLeft, ..PreemptionRules::default() };
    assert_eq!(policy.preemption(), &preemption);
    assert_eq!(policy.derive_rules(), &DeriveRules::default());
}

#[test]
fn every_number_has_one_tier_and_preemptible_jobs_theirs() {
    let policy = loaded(DEFAULT).policy;
    for (priority, preemptible, want) in [
        (9999, false, "critical"),
        (1100, false, "critical"),
        (1099, false, "production"),
        (800, false, "production"),
        (799, false, "experimental"),
        (0, false, "experimental"),
        (0, true, "preemptible"),
        (9999, true, "preemptible"),
    ] {
        assert_eq!(policy.tier_of(priority, preemptible).name.as_str(), want, "{priority} {preemptible}");
    }
}

#[test]
fn without_a_preemptible_tier_the_number_decides() {
    let policy =
        loaded("name = \"x\"\n[[tier]]\nname = \"high\"\nat_least = 100\n[[tier]]\nname = \"low\"\nat_least = 0\n")
            .policy;
    assert_eq!(policy.tier_of(0, true).name.as_str(), "low");
    assert_eq!(policy.tier_of(100, true).name.as_str(), "high");
}

#[test]
fn every_key_of_the_data_is_read() {
    let text = r#"
name = "all"
[derive]
base = 100
floor = 10
ceiling = 2000
fallback = 200
[[tier]]
name = "top"
at_least = 500
may_preempt = ["low"]
may_preempt_when_full = ["rest"]
minimum_run = "10m"
grace = "30s"
checkpoint_window = "1h"
evictions_per_job = 3
evictions_per_window = 20
eviction_window = "30m"
team_gpus_max = 64
duration_max = "2d"
capacity = ["on-demand", "spot"]
[[tier]]
name = "rest"
at_least = 10
[[tier]]
name = "low"
takes = "preemptible"
[requeue]
failures_max = 1
interruptions_max = 2
base = "10s"
cap = "1h"
jitter = 0.5
on_demand_after = 4
memory_growth = 2
memory_cap_mib = 1024
dependency_grace = "1d"
[admission]
require = ["team", "max_duration"]
array_width_max = 7
duration_max = "7d"
[order]
dive_above = 900
starving_after = "7d"
weight_base = 7
[preemption]
wait = "1m"
wait_per_victim = "2m"
near_done = 0.5
restart = "3m"
eviction_cost = "4m"
victims = "longest-left"
tier_by_tier = true
"#;
    let policy = loaded(text).policy;
    let top = Tier {
        may_preempt: vec!["low".into()],
        may_preempt_when_full: vec!["rest".into()],
        minimum_run_seconds: 600,
        grace_seconds: 30,
        checkpoint_window_seconds: 3600,
        evictions_per_job: Some(3),
        evictions_per_window: Some(20),
        eviction_window_seconds: 1800,
        team_gpus_max: Some(64),
        duration_max_seconds: Some(172_800),
        capacity: vec![CapacityType::OnDemand, CapacityType::Spot],
        ..Tier::new("top".into(), Takes::AtLeast(500))
    };
    assert_eq!(policy.tiers().first(), Some(&top));
    let requeue = RequeueRules {
        failures_max: 1,
        interruptions_max: 2,
        base_ms: 10_000,
        cap_ms: 3_600_000,
        jitter_percent: 50,
        on_demand_after: 4,
        memory_growth_percent: 200,
        memory_cap_mib: Some(1024),
        dependency_grace_ms: 86_400_000,
    };
    assert_eq!(policy.requeue(), &requeue);
    let admission = AdmissionRules {
        require: vec![MetadataKey::Team, MetadataKey::MaxDuration],
        array_width_max: 7,
        duration_max_seconds: Some(604_800),
    };
    assert_eq!(policy.admission(), &admission);
    let order =
        OrderRules { dive_above: 900, starving_after_ms: Some(604_800_000), weight_base: 7, ..OrderRules::default() };
    assert_eq!(policy.order(), &order);
    let preemption = PreemptionRules {
        wait_ms: 60_000,
        wait_per_victim_ms: 120_000,
        near_done_percent: 50,
        restart_ms: 180_000,
        eviction_gpu_ms: 240_000,
        victims: Victims::LongestLeft,
        tier_by_tier: true,
    };
    assert_eq!(policy.preemption(), &preemption);
    assert_eq!(policy.derive_rules(), &DeriveRules { base: 100, floor: 10, ceiling: 2000, fallback: 200 });
}

proptest::proptest! {
    #[test]
    fn no_text_breaks_the_loader(text in ".{0,200}") {
        let _ = Policy::load(&text);
    }

    /// A slip of the hand anywhere in the default policy: a piece cut out, another put in.
    #[test]
    fn no_slip_breaks_the_loader(
        from in 0..DEFAULT.len(), length in 0_usize..40,
        put in proptest::sample::select(vec!["", "\"", "'", "[", "]", "[[rule]]\n", "=", "{", "}", "\n", "5", "-1", "true", "x = 1\n", "é"]),
    ) {
        let cut = |end: usize| DEFAULT.get(end.min(DEFAULT.len())..).unwrap_or("");
        let text = format!("{}{put}{}", DEFAULT.get(..from).unwrap_or(""), cut(from + length));
        if let Err(errors) = Policy::load(&text) {
            proptest::prop_assert!(!errors.is_empty());
            let places: Vec<_> = errors.iter().map(|error| (error.line, error.column)).collect();
            proptest::prop_assert!(places.is_sorted());
        }
    }
}

/// A policy is read once and shared by whatever runs side by side.
#[test]
fn a_policy_may_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Policy>();
}

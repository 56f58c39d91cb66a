//! A31, A32, C8, C19, C21, C22, E8, E13: what the policy asks of a job's metadata.

use serde_json::json;

use super::{Scene, TIERS};

/// The three worked cases of the checkpoint budget: each class with its own window.
const WINDOWS: &str = r#"
name = "windows"
[[tier]]
name = "dev-interactive"
at_least = 900
checkpoint_window = "5m"
[[tier]]
name = "training-reserved"
at_least = 600
checkpoint_window = "60m"
[[tier]]
name = "batch-default"
at_least = 0
checkpoint_window = "15m"
"#;

fn with(section: &str) -> String {
    format!("{TIERS}\n[admission]\n{section}")
}

#[test]
fn the_checkpoint_interval_of_a_preemptible_job_fits_its_tiers_window_c21_c22_e8() {
    let job = |tier: &'static str, interval: &str| {
        let mut scene =
            Scene::tags(json!({"preemptible": "true", "checkpoint-interval": interval})).tier(tier).policy(WINDOWS);
        scene.pools.iter_mut().for_each(|pool| pool.queues.clear());
        scene
    };
    for (tier, fits, too_rare, sentence) in [
        (
            "batch-default",
            "15m",
            "1h",
            "`checkpoint-interval` 1h is above the 15m that an eviction from tier `batch-default` may cost; save at least every 15m, or leave out `preemptible`",
        ),
        (
            "dev-interactive",
            "5m",
            "301s",
            "`checkpoint-interval` 5m1s is above the 5m that an eviction from tier `dev-interactive` may cost; save at least every 5m, or leave out `preemptible`",
        ),
        (
            "training-reserved",
            "60m",
            "2h",
            "`checkpoint-interval` 2h is above the 1h that an eviction from tier `training-reserved` may cost; save at least every 1h, or leave out `preemptible`",
        ),
    ] {
        assert_eq!(job(tier, fits).admitted(), "a", "{tier}");
        assert_eq!(job(tier, too_rare).refused(), format!("{sentence} (CheckpointTooRare)"), "{tier}");
    }
}

#[test]
fn a_job_that_is_demoted_is_not_refused_for_saving_as_it_does() {
    let demoted = |tags| Scene { is_demoted: true, ..Scene::tags(tags) };
    assert_eq!(demoted(json!({})).admitted(), "a");
    assert_eq!(demoted(json!({"checkpoint-interval": "1h"})).admitted(), "a");
    let asked = Scene { is_demoted: true, ..Scene::tags(json!({"preemptible": "true"})) };
    assert!(asked.refused().ends_with("(CheckpointMissing)"));
    assert!(Scene::tags(json!({})).tier("preemptible").refused().ends_with("(CheckpointMissing)"));
}

#[test]
fn a_preemptible_job_without_checkpoints_must_be_short_c21() {
    let job = |tags: serde_json::Value| Scene::tags(tags).tier("preemptible");
    assert_eq!(
        job(json!({"preemptible": "true"})).refused(),
        "a preemptible job of tier `preemptible` that may run for more than 15m needs a `checkpoint-interval`, and this one has no `max-duration`; give an interval or a `max-duration` of at most 15m (CheckpointMissing)"
    );
    assert_eq!(
        job(json!({"preemptible": "true", "max-duration": "4h"})).refused(),
        "a preemptible job of tier `preemptible` that may run for more than 15m needs a `checkpoint-interval`, and this one may run for 4h; give an interval or a `max-duration` of at most 15m (CheckpointMissing)"
    );
    assert_eq!(job(json!({"preemptible": "true", "max-duration": "15m"})).admitted(), "a");
    assert_eq!(job(json!({"preemptible": "true", "max-duration": "4h", "checkpoint-interval": "15m"})).admitted(), "a");
}

#[test]
fn jobs_that_are_not_preemptible_may_save_as_rarely_as_they_like_c8() {
    assert_eq!(Scene::tags(json!({"max-duration": "5d", "checkpoint-interval": "1d"})).admitted(), "a");
}

#[test]
fn a_run_longer_than_the_cap_is_refused_a31_e13() {
    let capped = with("duration_max = \"4h\"");
    let job = |tags: serde_json::Value| Scene::tags(tags).policy(&capped);
    assert_eq!(
        job(json!({"max-duration": "4h1m"})).refused(),
        "`max-duration` 4h1m is above the 4h of the policy; ask for at most 4h, and go on from a checkpoint in another job (DurationOverCap)"
    );
    assert_eq!(
        job(json!({"max-duration": "4h", "expected-duration": "5h"})).refused(),
        "`expected-duration` 5h is above the 4h of the policy; ask for at most 4h, and go on from a checkpoint in another job (DurationOverCap)"
    );
    assert_eq!(job(json!({"max-duration": "4h"})).admitted(), "a");
    // Without a word on its duration a job could run past the cap.
    assert_eq!(
        job(json!({"team": "a"})).refused(),
        "`max-duration` is missing, which the policy requires; give it as a tag or a variable such as `OSPREY_MAX_DURATION` (MissingMetadata)"
    );
}

#[test]
fn the_cap_of_a_tier_counts_beside_that_of_the_policy() {
    let text = TIERS.replace("at_least = 1100", "at_least = 1100\nduration_max = \"30m\"");
    let scene = Scene::tags(json!({"max-duration": "1h"})).tier("critical").policy(&text);
    assert_eq!(
        scene.refused(),
        "`max-duration` 1h is above the 30m of tier `critical`; ask for at most 30m, and go on from a checkpoint in another job (DurationOverCap)"
    );
    assert_eq!(Scene::tags(json!({"max-duration": "1h"})).policy(&text).admitted(), "a");
}

#[test]
fn required_metadata_is_asked_for_in_one_sentence_a32_c19() {
    let strict = with("require = [\"team\", \"workload\", \"max-duration\", \"preemptible\", \"priority-class\"]");
    let job = |tags: serde_json::Value| Scene::tags(tags).policy(&strict);
    assert_eq!(
        job(json!({"workload-type": "training", "preemptible-flag": "no"})).refused(),
        "`team`, `max-duration` and `priority-class` are missing, which the policy requires; give them as tags or variables such as `OSPREY_TEAM` (MissingMetadata)"
    );
    assert_eq!(
        job(json!({"team": "a", "workload": "training", "preemptible": "no", "max-duration": "1h"})).refused(),
        "`priority-class` is missing, which the policy requires; give it as a tag or a variable such as `OSPREY_PRIORITY_CLASS` (MissingMetadata)"
    );
    let tags = json!({"team": "a", "workload": "training", "preemptible": "no", "max-duration": "1h", "priority-class": "critical"});
    assert_eq!(job(tags).admitted(), "a");
}

#[test]
fn a_priority_class_names_a_tier_c19() {
    let job = |class: &str| Scene::tags(json!({"priority-class": class}));
    assert_eq!(job("Experimental").admitted(), "a");
    assert_eq!(
        job("experimantal").refused(),
        "`priority-class` `experimantal` is no tier of the policy; did you mean `experimental`? (InvalidMetadata)"
    );
    assert_eq!(
        job("urgent").refused(),
        "`priority-class` `urgent` is no tier of the policy; the tiers are `critical`, `reserved`, `experimental` and `preemptible` (InvalidMetadata)"
    );
}

#[test]
fn a_wide_array_is_refused_unless_its_children_may_run_singly() {
    let job = |size: u32, tags: serde_json::Value| {
        Scene::with(json!({"arrayProperties": {"size": size}, "tags": tags})).policy(&with("array_width_max = 10"))
    };
    assert_eq!(job(10, json!({})).admitted(), "a");
    assert_eq!(
        job(11, json!({})).refused(),
        "`arrayProperties.size` 11 is above the policy's 10; split the array, or let its children run singly: name the variable of their index in the tag `osprey:array-index` (ArrayTooWide)"
    );
    assert_eq!(job(10_000, json!({"osprey:array-index": "INDEX"})).admitted(), "a");
}

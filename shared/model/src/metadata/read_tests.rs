//! A17, A32: metadata from tags and variables of request and definition; and the sentence for each fault.

use serde_json::{Value, json};

use super::*;

/// A job request with more members.
fn request(members: Value) -> SubmitJobRequest {
    serde_json::from_value(with(json!({"jobName": "a", "jobDefinition": "b"}), members)).unwrap()
}

fn definition(members: Value) -> JobDefinition {
    serde_json::from_value(with(json!({"jobDefinitionName": "b"}), members)).unwrap()
}

fn with(body: Value, members: Value) -> Value {
    match (body, members) {
        (Value::Object(mut body), Value::Object(members)) => {
            body.extend(members);
            Value::Object(body)
        }
        other => panic!("{other:?}"),
    }
}

fn read(members: Value) -> Metadata {
    let (metadata, warnings) = Metadata::read(&request(members), None).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    metadata
}

fn refused(members: Value) -> Vec<String> {
    Metadata::read(&request(members), None).unwrap_err().iter().map(ToString::to_string).collect()
}

fn warned(members: Value) -> Vec<String> {
    Metadata::read(&request(members), None).unwrap().1
}

fn variables(pairs: &[(&str, &str)]) -> Value {
    Value::Array(pairs.iter().map(|(name, value)| json!({"name": name, "value": value})).collect())
}

fn everything() -> Metadata {
    Metadata {
        team: Some("research".into()),
        project: Some("Atlas 2".into()),
        user: Some("Ada".into()),
        environment: Some("production".into()),
        workload: Some("training".into()),
        preemptible: Some(true),
        max_duration: Some(14_400),
        expected_duration: Some(5_400),
        checkpoint_interval: Some(900),
        dataset_size: Some(2_000_000_000_000),
        sla: Some(Sla::Within(7_200)),
        parent_job_id: Some("6ba7b810-9dad-41d1-80b4-00c04fd430c8".into()),
        priority_class: Some("experimental".into()),
    }
}

#[test]
fn every_key_is_read_from_tags_with_odd_spellings() {
    let tags = json!({
        "Team": " Research ", "project": "Atlas 2", "OWNER": "Ada", "env": " Production ", "workload-type": "Training",
        "preemptibleFlag": "TRUE", "max_duration": "4 h", "expected-duration": "1h30m", "CheckpointInterval": "PT15M",
        "dataset-size": "2tb", "deadline": "2h", "parent_job_id": "6BA7B810-9dad-41d1-80b4-00c04fd430c8",
        "priority-class": "Experimental",
    });
    assert_eq!(read(json!({"tags": tags})), everything());
}

#[test]
fn every_key_is_read_from_variables() {
    let pairs = variables(&[
        ("OSPREY_TEAM", "research"),
        ("OSPREY_PROJECT", "Atlas 2"),
        ("OSPREY_OWNER", "Ada"),
        ("OSPREY_ENV", "production"),
        ("OSPREY_WORKLOAD_TYPE", "training"),
        ("OSPREY_PREEMPTIBLE", "yes"),
        ("OSPREY_MAX_DURATION", "14400"),
        ("OSPREY_EXPECTED_DURATION", "90m"),
        ("OSPREY_CHECKPOINT_INTERVAL", "15 min"),
        ("OSPREY_DATASET_SIZE", "2 TB"),
        ("OSPREY_SLA", "7200"),
        ("OSPREY_PARENT_JOB_ID", "6ba7b810-9dad-41d1-80b4-00c04fd430c8"),
        ("OSPREY_PRIORITY_CLASS", "experimental"),
        ("OSPREY_CHECKPOINT_URI", "s3://bucket/run"),
        ("TEAM", "other"),
    ]);
    assert_eq!(read(json!({"containerOverrides": {"environment": pairs}})), everything());
}

#[test]
fn variables_of_every_kind_of_job_count() {
    let pairs = variables(&[("OSPREY_TEAM", "a")]);
    let pod = json!({"podProperties": {"initContainers": [{"env": [{"name": "OSPREY_TEAM", "value": "a"}]}]}});
    let task = json!({"taskProperties": [{"containers": [{"environment": pairs}]}]});
    for members in [
        json!({"ecsPropertiesOverride": task}),
        json!({"eksPropertiesOverride": pod}),
        json!({"nodeOverrides": {"nodePropertyOverrides": [{"targetNodes": "0:", "containerOverrides": {"environment": pairs}}]}}),
        json!({"nodeOverrides": {"nodePropertyOverrides": [{"targetNodes": "0:", "ecsPropertiesOverride": task}]}}),
        json!({"nodeOverrides": {"nodePropertyOverrides": [{"targetNodes": "0:", "eksPropertiesOverride": pod}]}}),
    ] {
        assert_eq!(read(members.clone()).team.as_deref(), Some("a"), "{members}");
    }
}

#[test]
fn the_definition_speaks_when_the_request_is_silent() {
    let pairs = variables(&[("OSPREY_TEAM", "from-variable"), ("OSPREY_ENV", "dev")]);
    let node = json!({"numNodes": 2, "nodeRangeProperties": [{"targetNodes": "0:", "container": {"environment": pairs},
        "ecsProperties": {"taskProperties": [{"containers": [{"environment": variables(&[("OSPREY_USER", "ada")])}]}]}}]});
    let definition = definition(json!({"tags": {"team": "from-tag"}, "nodeProperties": node}));
    let (metadata, warnings) =
        Metadata::read(&request(json!({"tags": {"env": "production"}})), Some(&definition)).unwrap();
    assert_eq!(metadata.team.as_deref(), Some("from-tag"));
    assert_eq!(metadata.environment.as_deref(), Some("production"));
    assert_eq!(metadata.user.as_deref(), Some("ada"));
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn a_tag_wins_over_a_variable_and_says_so() {
    let environment = variables(&[("OSPREY_TEAM", "b"), ("OSPREY_MAX_DURATION", "240m")]);
    let members =
        json!({"tags": {"team": "a", "max-duration": "4h"}, "containerOverrides": {"environment": environment}});
    assert_eq!(warned(members), ["tag `team` = `a` wins over variable `OSPREY_TEAM` = `b`"]);
}

#[test]
fn one_key_spelt_twice_must_mean_one_thing() {
    assert_eq!(read(json!({"tags": {"max-duration": "4h", "maxDuration": "240m"}})).max_duration, Some(14_400));
    assert_eq!(
        refused(json!({"tags": {"max-duration": "5h", "maxDuration": "4h"}})),
        [
            "tag `max-duration` = `5h` and tag `maxDuration` = `4h` say different things about `max-duration`; keep one (AmbiguousMetadata)"
        ]
    );
    let environment = variables(&[("OSPREY_USER", "a"), ("OSPREY_OWNER", "b")]);
    assert_eq!(
        refused(json!({"containerOverrides": {"environment": environment}})),
        [
            "variable `OSPREY_USER` = `a` and variable `OSPREY_OWNER` = `b` say different things about `user`; keep one (AmbiguousMetadata)"
        ]
    );
}

#[test]
fn empty_values_are_absent() {
    let environment = variables(&[("OSPREY_TEAM", "b")]);
    let members =
        json!({"tags": {"team": "  ", "preemptible": ""}, "containerOverrides": {"environment": environment}});
    let metadata = read(members);
    assert_eq!((metadata.team.as_deref(), metadata.preemptible), (Some("b"), None));
}

#[test]
fn a_value_that_cannot_be_read_says_what_is_wanted() {
    for (key, value, want) in [
        ("preemptible", "maybe", "tag `preemptible` must be `true` or `false`; `maybe` was given"),
        (
            "max-duration",
            "4 parsecs",
            "tag `max-duration` must be a duration such as `4h`, `1h30m`, `PT4H` or a number of seconds; `4 parsecs` was given: `parsecs` is no unit of time",
        ),
        (
            "expected-duration",
            "-4h",
            "tag `expected-duration` must be a duration such as `4h`, `1h30m`, `PT4H` or a number of seconds; `-4h` was given: it is negative",
        ),
        (
            "checkpoint-interval",
            "0",
            "tag `checkpoint-interval` must be a duration such as `4h`, `1h30m`, `PT4H` or a number of seconds; `0` was given: it is zero",
        ),
        (
            "dataset-size",
            "big",
            "tag `dataset-size` must be a size such as `2TB`, `500GiB` or a number of bytes; `big` was given: a number is missing before `big`",
        ),
        (
            "sla",
            "tomorrow",
            "tag `sla` must be a duration such as `4h` or a time such as `2026-12-01T08:00:00Z`; `tomorrow` was given: a number is missing before `tomorrow`",
        ),
        (
            "sla",
            "2026-12-01",
            "tag `sla` must be a duration such as `4h` or a time such as `2026-12-01T08:00:00Z`; `2026-12-01` was given: a time needs date, time of day and offset",
        ),
        ("parent-job-id", "job-1", "tag `parent-job-id` must be the id of a job, a UUID; `job-1` was given"),
        (
            "team",
            "a\nb",
            "tag `team` must be one line of at most 256 characters; `a\\u{a}b` was given: it holds a control character",
        ),
    ] {
        assert_eq!(refused(json!({"tags": {key: value}})), [format!("{want} (InvalidMetadata)")], "{key} {value}");
    }
}

#[test]
fn a_text_is_at_most_as_long_as_a_tag() {
    let given = |length: usize| json!({"containerOverrides": {"environment": variables(&[("OSPREY_TEAM", &"x".repeat(length))])}});
    assert_eq!(read(given(METADATA_CHARACTERS_MAX)).team.map(|team| team.len()), Some(METADATA_CHARACTERS_MAX));
    assert!(refused(given(METADATA_CHARACTERS_MAX + 1))[0].ends_with("…` was given: it has 257 (InvalidMetadata)"));
}

#[test]
fn all_faults_come_at_once_in_the_order_of_the_keys() {
    let messages = refused(json!({"tags": {"sla": "x", "preemptible": "x", "env": "a", "environment": "b"}}));
    let codes: Vec<&str> = messages.iter().map(|message| message.split(' ').nth(1).unwrap()).collect();
    assert_eq!(codes, ["`env`", "`preemptible`", "`sla`"]);
}

#[test]
fn a_time_out_counts_as_the_longest_run() {
    let timeout = json!({"attemptDurationSeconds": 3600});
    assert_eq!(read(json!({"timeout": timeout})).max_duration, Some(3_600));
    assert_eq!(read(json!({"timeout": timeout, "tags": {"max-duration": "4h"}})).max_duration, Some(3_600));
    assert_eq!(read(json!({"timeout": timeout, "tags": {"max-duration": "30m"}})).max_duration, Some(1_800));
    assert_eq!(read(json!({"timeout": {"attemptDurationSeconds": -1}})).max_duration, None);
    let definition = definition(json!({"timeout": timeout}));
    assert_eq!(Metadata::read(&request(json!({})), Some(&definition)).unwrap().0.max_duration, Some(3_600));
}

#[test]
fn a_deadline_may_be_a_time() {
    let read = |value: &str| read(json!({"tags": {"sla": value}})).sla;
    assert_eq!(read("1970-01-01T01:00:00+00:00"), Some(Sla::At(3_600_000)));
    assert_eq!(read("2026-12-01T08:00:00.5Z"), Some(Sla::At(1_796_112_000_500)));
    assert_eq!(read("2026"), Some(Sla::Within(2_026)));
}

#[test]
fn a_parent_may_be_a_child_of_an_array() {
    let id = "6ba7b810-9dad-41d1-80b4-00c04fd430c8:12";
    assert_eq!(read(json!({"tags": {"parent-job-id": id}})).parent_job_id.as_deref(), Some(id));
}

#[test]
fn near_misses_are_told_and_others_pass() {
    let environment = variables(&[
        ("OSPREY_MAX_DURTION", "4h"),
        ("OSPREY_CHECKPOINT_DIR", "/x"),
        ("OSPREY_", "x"),
        ("OSPREY_JOB_IDS", "x"),
    ]);
    assert_eq!(
        warned(
            json!({"tags": {"preemptable": "true", "name": "x", "product": "y"}, "containerOverrides": {"environment": environment}})
        ),
        [
            "tag `preemptable` is not read; did you mean `preemptible`?",
            "variable `OSPREY_MAX_DURTION` is not read; did you mean `OSPREY_MAX_DURATION`?",
        ]
    );
}

proptest::proptest! {
    #[test]
    fn no_tag_breaks_the_reader(key in "[a-zA-Z_-]{0,12}", value in ".*") {
        for key in [key.as_str(), "max-duration", "sla", "dataset-size", "team", "parent-job-id", "preemptible"] {
            let _ = Metadata::read(&request(json!({"tags": {key: value.clone()}})), None);
        }
    }
}

#[test]
fn a_job_that_is_its_own_parent_is_refused() {
    let own = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    let upper = own.to_uppercase();
    for parent in [own, upper.as_str(), "6ba7b810-9dad-41d1-80b4-00c04fd430c8:3"] {
        let given = parent.to_lowercase();
        assert_eq!(
            refused(json!({"tags": {"osprey:job-id": own, "parent-job-id": parent}})),
            [format!("`parent-job-id` names the job itself (`{given}`); leave it out (SelfParent)")]
        );
    }
    let other = read(json!({"tags": {"osprey:job-id": "00000000-0000-4000-8000-000000000001", "parent-job-id": own}}));
    assert_eq!(other.parent_job_id.as_deref(), Some(own));
    assert_eq!(read(json!({"tags": {"parent-job-id": own}})).parent_job_id.as_deref(), Some(own));
}

//! Every rule of Batch's `SubmitJob`, at its limit and beyond it, with the sentence for each.

use osprey_model::limits::{
    OVERRIDES_CHARACTERS_MAX, OVERRIDES_CHARACTERS_OURS, REQUEST_BYTES_MAX, REQUEST_BYTES_OURS, TAGS_MAX,
};
use serde_json::{Value, json};

use super::{OUR_TAGS, Scene};

fn padded(length: usize) -> String {
    "x".repeat(length)
}

#[test]
fn a_request_keeps_room_for_what_osprey_adds() {
    let job = |length: usize| Scene::with(json!({"parameters": {"input": padded(length)}}));
    let empty = serde_json::to_string(&job(0).request()).unwrap().len();
    let most = REQUEST_BYTES_MAX - REQUEST_BYTES_OURS - empty;
    assert_eq!(job(most).admitted(), "a");
    assert_eq!(
        job(most + 1).refused(),
        "the request may have 28672 bytes, which is Batch's 30720 less 2048 that Osprey adds; 28673 were given; put large input into S3 and pass its address (RequestTooLarge)"
    );
}

#[test]
fn overrides_keep_room_for_ospreys_variables() {
    let job = |length: usize| Scene::with(json!({"containerOverrides": {"command": [padded(length)]}}));
    let empty = r#"{"command":[""]}"#.len();
    let most = OVERRIDES_CHARACTERS_MAX - OVERRIDES_CHARACTERS_OURS - empty;
    assert_eq!(job(most).admitted(), "a");
    assert_eq!(
        job(most + 1).refused(),
        "`containerOverrides` may have 7296 characters, which is the container service's 8192 less 896 that Osprey adds; 7297 were given; put large input into S3 and pass its address (OverridesTooLong)"
    );
    let wide = json!([{"name": "a", "command": [padded(7_000)]}, {"name": "b"}]);
    let scene = Scene::with(json!({"ecsPropertiesOverride": {"taskProperties": [{"containers": wide}]}}));
    assert_eq!(
        scene.refused(),
        "`ecsPropertiesOverride` may have 6400 characters, which is the container service's 8192 less 1792 that Osprey adds; 7078 were given; put large input into S3 and pass its address (OverridesTooLong)"
    );
}

#[test]
fn single_members_that_batch_would_refuse() {
    for (sentence, members, want) in [
        (
            "a name with spaces",
            json!({"jobName": "my job!"}),
            "`jobName` must have 1 to 128 letters, digits, `-` and `_`, the first a letter or digit; `my job!` was given; `my-job` would do (InvalidJobName)",
        ),
        (
            "a name that begins with a hyphen",
            json!({"jobName": "-a"}),
            "`jobName` must have 1 to 128 letters, digits, `-` and `_`, the first a letter or digit; `-a` was given; `a` would do (InvalidJobName)",
        ),
        (
            "no name",
            json!({"jobName": ""}),
            "`jobName` must have 1 to 128 letters, digits, `-` and `_`, the first a letter or digit; `` was given (InvalidJobName)",
        ),
        (
            "a share with a hyphen",
            json!({"shareIdentifier": "team-a"}),
            "`shareIdentifier` must have 1 to 255 letters and digits; `team-a` was given; `teama` would do (InvalidShare)",
        ),
        (
            "a priority above the range",
            json!({"schedulingPriorityOverride": 10_000}),
            "`schedulingPriorityOverride` must be from 0 to 9999; 10000 was given (InvalidPriority)",
        ),
        (
            "a priority below the range",
            json!({"schedulingPriorityOverride": -1}),
            "`schedulingPriorityOverride` must be from 0 to 9999; -1 was given (InvalidPriority)",
        ),
        (
            "an array of one",
            json!({"arrayProperties": {"size": 1}}),
            "`arrayProperties.size` must be from 2 to 10000; 1 was given; leave `arrayProperties` out for a single job (InvalidArraySize)",
        ),
        (
            "an array above the range",
            json!({"arrayProperties": {"size": 10_001}, "tags": {"osprey:array-index": "INDEX"}}),
            "`arrayProperties.size` must be from 2 to 10000; 10001 was given; split it (InvalidArraySize)",
        ),
        (
            "a short time-out",
            json!({"timeout": {"attemptDurationSeconds": 59}}),
            "`timeout.attemptDurationSeconds` must be from 60 to 2147483647 seconds; 59 was given (InvalidTimeout)",
        ),
        (
            "a time-out beyond 32 bits",
            json!({"timeout": {"attemptDurationSeconds": 2_147_483_648_u64}}),
            "`timeout.attemptDurationSeconds` must be from 60 to 2147483647 seconds; 2147483648 was given (InvalidTimeout)",
        ),
        (
            "a negative quantity",
            json!({"consumableResourcePropertiesOverride": {"consumableResourceList": [{"consumableResource": "l", "quantity": -1}]}}),
            "`consumableResourcePropertiesOverride.consumableResourceList[0].quantity` must be at least 0; -1 was given (InvalidResource)",
        ),
    ] {
        assert_eq!(Scene::with(members).refused(), want, "{sentence}");
    }
}

#[test]
fn members_at_their_limits_enter() {
    for members in [
        json!({"jobName": padded(128)}),
        json!({"shareIdentifier": padded(255)}),
        json!({"shareIdentifier": "team*"}),
        json!({"schedulingPriorityOverride": 0}),
        json!({"schedulingPriorityOverride": 9_999}),
        json!({"arrayProperties": {"size": 2}}),
        json!({"arrayProperties": {"size": 10_000}, "tags": {"osprey:array-index": "INDEX"}}),
        json!({"timeout": {"attemptDurationSeconds": 60}}),
        json!({"timeout": {"attemptDurationSeconds": 2_147_483_647}}),
    ] {
        assert_eq!(Scene::with(members.clone()).admitted(), "a", "{members}");
    }
    assert!(Scene::with(json!({"jobName": padded(129)})).refused().ends_with("(InvalidJobName)"));
    assert!(Scene::with(json!({"shareIdentifier": padded(256)})).refused().ends_with("(InvalidShare)"));
}

#[test]
fn a_priority_of_the_users_own_is_not_used_and_he_is_told_so() {
    assert_eq!(
        Scene::with(json!({"schedulingPriorityOverride": 500})).warnings(),
        ["`schedulingPriorityOverride` 500 is not used: the priority is derived"]
    );
}

#[test]
fn dependencies_say_one_thing_each() {
    let id = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
    let array = json!({"size": 2});
    for (sentence, dependency, is_array, want) in [
        ("nothing", json!({}), false, "`dependsOn[0]` names no job; give its `jobId`"),
        (
            "sequential with a job",
            json!({"type": "SEQUENTIAL", "jobId": id}),
            true,
            "`dependsOn[0]` is `SEQUENTIAL`, which orders the children of this job; leave out its `jobId`",
        ),
        (
            "sequential without an array",
            json!({"type": "SEQUENTIAL"}),
            false,
            "`dependsOn[0]` is `SEQUENTIAL`, which only an array can be; give `arrayProperties.size` or leave out the `type`",
        ),
        (
            "child by child without a job",
            json!({"type": "N_TO_N"}),
            true,
            "`dependsOn[0]` is `N_TO_N`, which waits for another array; give its `jobId`",
        ),
        (
            "child by child without an array",
            json!({"type": "N_TO_N", "jobId": id}),
            false,
            "`dependsOn[0]` is `N_TO_N`, which only an array can be; give `arrayProperties.size` or leave out the `type`",
        ),
        (
            "a type that doesn't exist",
            json!({"type": "N_TO_M", "jobId": id}),
            true,
            "`dependsOn[0].type` must be `N_TO_N` or `SEQUENTIAL`; `N_TO_M` was given; did you mean `N_TO_N`?",
        ),
    ] {
        let mut members = json!({"dependsOn": [dependency]});
        if is_array {
            members["arrayProperties"] = array.clone();
        }
        assert_eq!(Scene::with(members).refused(), format!("{want} (InvalidDependency)"), "{sentence}");
    }
    let waits = Scene::with(
        json!({"dependsOn": [{"type": "N_TO_N", "jobId": id}, {"type": "SEQUENTIAL"}], "arrayProperties": array}),
    );
    assert_eq!(waits.admitted(), "a");
    assert_eq!(
        waits.warnings(),
        ["`dependsOn[0]` is `N_TO_N`: the job waits until the whole array has succeeded, not child by child"]
    );
}

#[test]
fn at_most_twenty_dependencies() {
    let job = |count: usize| {
        Scene::with(json!({"dependsOn": vec![json!({"jobId": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"}); count]}))
    };
    assert_eq!(job(20).admitted(), "a");
    assert_eq!(
        job(21).refused(),
        "`dependsOn` takes at most 20 jobs; 21 were given; let some meet in a job of their own and depend on that (TooManyDependencies)"
    );
}

#[test]
fn overrides_that_exclude_each_other_or_the_definition() {
    let container = json!({"jobDefinitionName": "train", "revision": 1, "containerProperties": {"command": ["a"]}});
    let fargate =
        json!({"jobDefinitionName": "train", "platformCapabilities": ["FARGATE"], "nodeProperties": {"numNodes": 2}});
    let pod = json!({"jobDefinitionName": "train", "eksProperties": {}});
    for (sentence, members, definition, want) in [
        (
            "two kinds",
            json!({"containerOverrides": {}, "eksPropertiesOverride": {}}),
            container.clone(),
            "`containerOverrides` and `eksPropertiesOverride` exclude each other; keep the one that fits the job definition",
        ),
        (
            "the wrong kind",
            json!({"ecsPropertiesOverride": {}}),
            container.clone(),
            "`ecsPropertiesOverride` does not fit the job definition `train`; give `containerOverrides` instead",
        ),
        (
            "nodes on Fargate",
            json!({"nodeOverrides": {"numNodes": 2}}),
            fargate,
            "a multi-node job can't run on Fargate; take a job definition for EC2",
        ),
        (
            "tags of a pod",
            json!({"propagateTags": true}),
            pod.clone(),
            "`propagateTags` is not for EKS jobs; leave it out",
        ),
        (
            "an instance type for one container",
            json!({"containerOverrides": {"instanceType": "p4d.24xlarge"}}),
            container,
            "`containerOverrides.instanceType` is for multi-node jobs; leave it out",
        ),
        (
            "a namespace of the cluster",
            json!({"eksPropertiesOverride": {"podProperties": {"metadata": {"namespace": "kube-system"}}}}),
            pod,
            "`eksPropertiesOverride.podProperties.metadata.namespace` `kube-system` belongs to the cluster itself; name one that is made for jobs",
        ),
    ] {
        let refused = Scene::with(members).defined(definition).refused();
        assert_eq!(refused, format!("{want} (ConflictingOverrides)"), "{sentence}");
    }
}

#[test]
fn commands_and_variables_that_batch_would_refuse() {
    let variable = |name: &str| json!({"environment": [{"name": name, "value": "x"}]});
    for (sentence, overrides, want) in [
        (
            "an empty word",
            json!({"command": ["sh", ""]}),
            "`containerOverrides.command[1]` is empty, which Batch refuses; give it text or leave it out (InvalidCommand)",
        ),
        (
            "a variable without a name",
            json!({"environment": [{"value": "x"}]}),
            "`containerOverrides.environment[0].name` is missing; give the variable a name or leave it out (InvalidEnvironment)",
        ),
        (
            "a variable of Batch's",
            variable("AWS_BATCH_JOB_ID"),
            "variable `AWS_BATCH_JOB_ID` is refused: names that begin with `AWS_BATCH` belong to Batch; rename it (InvalidEnvironment)",
        ),
        (
            "a name with its value in it",
            variable("A=1"),
            "variable `A=1` is refused: a name must not hold `=`; put what follows it into `value` (InvalidEnvironment)",
        ),
    ] {
        assert_eq!(Scene::with(json!({"containerOverrides": overrides})).refused(), want, "{sentence}");
    }
    assert_eq!(
        Scene::with(json!({"containerOverrides": variable("OSPREY_ATTEMPT")})).warnings(),
        ["variable `OSPREY_ATTEMPT` is set by Osprey: the value given is replaced"]
    );
}

#[test]
fn containers_of_tasks_nodes_and_pods_are_checked_as_well() {
    let task = json!({"taskProperties": [{"containers": [{"command": [""]}]}]});
    let pod = json!({"podProperties": {"containers": [{"env": [{"name": "AWS_BATCH_X"}]}]}});
    for (members, want) in [
        (
            json!({"ecsPropertiesOverride": task}),
            "`ecsPropertiesOverride.taskProperties[0].containers[0].command[0]` is empty, which Batch refuses; give it text or leave it out (InvalidCommand)",
        ),
        (
            json!({"nodeOverrides": {"nodePropertyOverrides": [{"targetNodes": "0:", "containerOverrides": {"command": [""]}}]}}),
            "`nodeOverrides.nodePropertyOverrides[0].containerOverrides.command[0]` is empty, which Batch refuses; give it text or leave it out (InvalidCommand)",
        ),
        (
            json!({"eksPropertiesOverride": pod}),
            "variable `AWS_BATCH_X` is refused: names that begin with `AWS_BATCH` belong to Batch; rename it (InvalidEnvironment)",
        ),
    ] {
        assert_eq!(Scene::with(members).refused(), want);
    }
}

#[test]
fn retry_strategies_that_batch_would_refuse() {
    let rule =
        |member: &str, pattern: &str| json!({"attempts": 3, "evaluateOnExit": [{member: pattern, "action": "exit"}]});
    for (sentence, strategy, want) in [
        ("no attempt", json!({"attempts": 0}), "`retryStrategy.attempts` must be from 1 to 10; 0 was given"),
        ("too many attempts", json!({"attempts": 11}), "`retryStrategy.attempts` must be from 1 to 10; 11 was given"),
        (
            "rules without attempts",
            json!({"evaluateOnExit": [{"onExitCode": "1", "action": "RETRY"}]}),
            "`retryStrategy.attempts` is missing, which `evaluateOnExit` needs; give from 1 to 10",
        ),
        (
            "too many rules",
            json!({"attempts": 3, "evaluateOnExit": vec![json!({"onExitCode": "1", "action": "RETRY"}); 6]}),
            "`retryStrategy.evaluateOnExit` takes at most 5 rules; 6 were given; join those with the same action by `*`",
        ),
        (
            "a bracket in a pattern",
            rule("onStatusReason", "Host EC2 (instance i-1) terminated."),
            "`retryStrategy.evaluateOnExit[0].onStatusReason` may hold up to 512 letters, digits, `.`, `:` and spaces, and end with `*`; `Host EC2 (instance i-1) terminated.` was given; write `Host EC2 *`",
        ),
        (
            "letters in an exit code",
            rule("onExitCode", "1x"),
            "`retryStrategy.evaluateOnExit[0].onExitCode` may hold up to 512 digits, and end with `*`; `1x` was given; write `1*`",
        ),
        (
            "an action that doesn't exist",
            json!({"attempts": 3, "evaluateOnExit": [{"onExitCode": "1", "action": "STOP"}]}),
            "`retryStrategy.evaluateOnExit[0].action` must be `RETRY` or `EXIT`; `STOP` was given",
        ),
    ] {
        let refused = Scene::with(json!({"retryStrategy": strategy})).refused();
        assert_eq!(refused, format!("{want} (InvalidRetryStrategy)"), "{sentence}");
    }
    for strategy in [
        json!({"attempts": 10, "evaluateOnExit": vec![json!({"onReason": "*", "action": "Retry"}); 5]}),
        rule("onReason", &padded(512)),
        rule("onExitCode", "13*"),
    ] {
        assert_eq!(Scene::with(json!({"retryStrategy": strategy})).admitted(), "a");
    }
    assert!(
        Scene::with(json!({"retryStrategy": rule("onReason", &padded(513))}))
            .refused()
            .ends_with("(InvalidRetryStrategy)")
    );
}

fn numbered(count: usize) -> Value {
    Value::Object((0..count).map(|n| (format!("tag-{n}"), json!("x"))).collect())
}

#[test]
fn tags_count_with_ospreys_own() {
    assert_eq!(Scene::tags(numbered(TAGS_MAX - OUR_TAGS)).admitted(), "a");
    assert_eq!(
        Scene::tags(numbered(TAGS_MAX - OUR_TAGS + 1)).refused(),
        "a job takes at most 50 tags with 4 of Osprey; 47 were given; keep at most 46 (TooManyTags)"
    );
    let mut with_id = numbered(TAGS_MAX - OUR_TAGS);
    with_id["osprey:job-id"] = json!("6ba7b810-9dad-41d1-80b4-00c04fd430c8");
    assert_eq!(Scene::tags(with_id).admitted(), "a");
}

#[test]
fn tags_that_travel_count_with_the_definitions() {
    let definition = |propagates: bool| json!({"jobDefinitionName": "train", "propagateTags": propagates, "tags": {"a": "1", "b": "2", "tag-0": "3"}});
    let tags = || numbered(TAGS_MAX - OUR_TAGS - 1);
    assert_eq!(Scene::tags(tags()).defined(definition(false)).admitted(), "a");
    assert_eq!(
        Scene::tags(tags()).defined(definition(true)).refused(),
        "a job takes at most 50 tags with 4 of Osprey and 2 of the job definition; 45 were given; keep at most 44 (TooManyTags)"
    );
}

#[test]
fn tags_that_aws_or_osprey_would_refuse() {
    for (sentence, name, value, want) in [
        ("no name", "", "x", "the name of a tag has 1 to 128 characters; `` has 0"),
        (
            "a sign in the name",
            "te#am",
            "x",
            "the name of tag `te#am` may hold letters, digits, spaces and `_.:/=+-@`; `#` was given",
        ),
        (
            "a line break in the value",
            "note",
            "a\nb",
            "the value of tag `note` may hold letters, digits, spaces and `_.:/=+-@`; `\\u{a}` was given",
        ),
        (
            "a name of AWS",
            "aws:team",
            "x",
            "tag `aws:team` is refused: names that begin with `aws:` belong to AWS; rename it",
        ),
        (
            "a name of Osprey",
            "osprey:tier",
            "critical",
            "tag `osprey:tier` is refused: names that begin with `osprey:` belong to Osprey; a job may set `osprey:job-id`, `osprey:local-reclaim-after` and `osprey:array-index`",
        ),
        (
            "no duration",
            "osprey:local-reclaim-after",
            "soon",
            "tag `osprey:local-reclaim-after` must be a duration such as `3s`; `soon` was given: a number is missing before `soon`",
        ),
        (
            "no variable",
            "osprey:array-index",
            "1 x",
            "tag `osprey:array-index` must be the name of the variable that tells a child its index, such as `INDEX`; `1 x` was given",
        ),
    ] {
        assert_eq!(Scene::tags(json!({name: value})).refused(), format!("{want} (InvalidTag)"), "{sentence}");
    }
    assert_eq!(
        Scene::tags(json!({"osprey:job-id": "job-1"})).refused(),
        "tag `osprey:job-id` must be a UUID such as `6ba7b810-9dad-41d1-80b4-00c04fd430c8`; `job-1` was given (InvalidJobId)"
    );
}

#[test]
fn tags_at_their_limits_enter() {
    assert_eq!(Scene::tags(json!({padded(128): padded(256), "größe": " Grün @ 1.5 "})).admitted(), "a");
    assert!(Scene::tags(json!({padded(129): "x"})).refused().ends_with("has 129 (InvalidTag)"));
    assert_eq!(
        Scene::tags(json!({"note": padded(257)})).refused(),
        "the value of a tag has at most 256 characters; that of `note` has 257; put long text into a variable (InvalidTag)"
    );
}

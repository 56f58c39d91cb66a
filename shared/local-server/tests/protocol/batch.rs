//! Batch's calls, from the request to the answer. What they mean is tested where they are; here every member arrives.

use serde_json::{Value, json};

use crate::bench::{Bench, QUEUE, arn};

fn submit(bench: &Bench, change: &Value) -> Result<String, String> {
    let mut request = json!({"jobName": "a", "jobQueue": QUEUE, "jobDefinition": "train", "shareIdentifier": "TeamA",
        "schedulingPriorityOverride": 7});
    for (key, value) in change.as_object().unwrap() {
        request[key] = value.clone();
    }
    bench.batch("submitjob", &request).map(|answer| answer["jobId"].as_str().unwrap().to_owned())
}

#[test]
fn a_job_is_submitted_listed_described_and_cancelled() {
    let bench = Bench::new();
    let id = submit(&bench, &json!({"tags": {"team": "vision"}})).unwrap();
    let listed = bench.batch("listjobs", &json!({"jobQueue": QUEUE, "jobStatus": "SUBMITTED"})).unwrap();
    assert_eq!(listed["jobSummaryList"][0]["jobId"], json!(id));
    assert_eq!(listed["jobSummaryList"][0]["shareIdentifier"], json!("TeamA"));
    let seen = bench.batch("describejobs", &json!({"jobs": [id]})).unwrap();
    let job = &seen["jobs"][0];
    assert_eq!((&job["schedulingPriority"], &job["tags"]), (&json!(7), &json!({"team": "vision"})));
    assert_eq!(job["container"]["readonlyRootFilesystem"], json!(true), "every member is kept");
    assert_eq!(bench.batch("canceljob", &json!({"jobId": id, "reason": "no need"})), Ok(json!({})));
    let seen = bench.batch("describejobs", &json!({"jobs": [id]})).unwrap();
    let job = &seen["jobs"][0];
    assert_eq!(
        (&job["status"], &job["statusReason"], &job["isCancelled"]),
        (&json!("FAILED"), &json!("no need"), &json!(true))
    );
}

#[test]
fn a_submission_is_refused_in_batchs_words() {
    let bench = Bench::new();
    let refused = |change: Value| submit(&bench, &change).unwrap_err();
    let cases = [
        (json!({"jobName": null}), "jobName must be specified."),
        (json!({"jobDefinition": "none"}), "JobDefinition none not found."),
        (json!({"jobQueue": "none"}), "JobQueue none not found."),
        (json!({"shareIdentifier": null}), "shareIdentifier must be specified."),
        (
            json!({"schedulingPriorityOverride": null}),
            "Either schedulingPriority in job definition or schedulingPriorityOverride should be specified.",
        ),
        (json!({"schedulingPriorityOverride": 10_000}), "schedulingPriorityOverride must be between 0 and 9999"),
        (json!({"arrayProperties": {"size": 1}}), "Array size must be between 2 and 10000, got 1"),
        (
            json!({"timeout": {"attemptDurationSeconds": 59}}),
            "attemptDurationSeconds must be at least 60 seconds, got 59",
        ),
        (json!({"parameters": {"x": "y".repeat(31 * 1024)}}), "Job size must be less than 30 KiB, got 32 KiB"),
    ];
    for (change, want) in cases {
        assert_eq!(refused(change), format!("400 ClientException: {want}"));
    }
}

#[test]
fn several_jobs_are_stopped_in_one_call_and_unknown_ones_count_as_done() {
    let bench = Bench::new();
    let id = submit(&bench, &json!({})).unwrap();
    let answer = bench.batch("terminatejobs", &json!({"jobs": [id, "unknown"], "reason": "r"}));
    assert_eq!(answer, Ok(json!({"successful": [id, "unknown"], "errors": []})));
    let refused = |path: &str, body: Value| bench.batch(path, &body).unwrap_err();
    let many: Vec<String> = (0..51).map(|n| n.to_string()).collect();
    assert_eq!(
        refused("canceljobs", json!({"jobs": many, "reason": "r"})),
        "400 ClientException: jobs must have 1 to 50 entries, got 51"
    );
    assert_eq!(refused("canceljobs", json!({"jobs": ["a"]})), "400 ClientException: reason must be specified.");
    assert_eq!(
        refused("canceljob", json!({"jobId": "", "reason": "r"})),
        "400 ClientException: jobId must be specified."
    );
}

#[test]
fn environments_keep_what_was_said_of_them_and_become_nodes() {
    let bench = Bench::new();
    let nodes = bench.world.batch().describe_nodes().unwrap();
    assert_eq!((nodes.len(), nodes[0].devices.len()), (2, 8), "192 vCPUs of p4d.24xlarge are two nodes of 8 GPUs");
    let change = json!({"computeEnvironment": arn("compute-environment/gpus"), "state": "DISABLED",
        "computeResources": {"maxvCpus": 96, "securityGroupIds": ["sg-1"]}});
    bench.batch("updatecomputeenvironment", &change).unwrap();
    let seen = bench.batch("describecomputeenvironments", &json!({"computeEnvironments": ["gpus"]})).unwrap();
    let one = &seen["computeEnvironments"][0];
    assert_eq!((&one["state"], &one["status"], &one["type"]), (&json!("DISABLED"), &json!("VALID"), &json!("MANAGED")));
    let want = json!({"type": "EC2", "minvCpus": 0, "maxvCpus": 96, "instanceTypes": ["p4d.24xlarge"],
        "subnets": ["subnet-1"], "instanceRole": "ecsInstanceRole", "securityGroupIds": ["sg-1"], "desiredvCpus": 0});
    assert_eq!(one["computeResources"], want);
    assert_eq!(bench.world.batch().describe_nodes().unwrap().iter().filter(|node| node.open).count(), 0);
}

#[test]
fn environments_that_do_not_fit_a_machine_are_refused() {
    let bench = Bench::new();
    let create = |kind: &str, resources: Value| {
        let body = json!({"computeEnvironmentName": "x", "type": kind, "computeResources": resources});
        bench.batch("createcomputeenvironment", &body).unwrap_err()
    };
    let cases = [
        (
            "MANAGED",
            json!({"type": "FARGATE", "maxvCpus": 4}),
            "The local Batch does not offer compute environments of type FARGATE",
        ),
        (
            "UNMANAGED",
            json!({"type": "EC2", "maxvCpus": 4}),
            "The local Batch does not offer unmanaged compute environments",
        ),
        ("OTHER", json!({"type": "EC2", "maxvCpus": 4}), "type must be one of [MANAGED, UNMANAGED], got OTHER"),
        ("MANAGED", json!({"type": "EC2"}), "maxvCpus must be specified."),
        (
            "MANAGED",
            json!({"type": "EC2", "maxvCpus": 4, "minvCpus": 5}),
            "desiredvCpus 5 must be between minvCpus 5 and maxvCpus 4",
        ),
    ];
    for (kind, resources, want) in cases {
        assert_eq!(create(kind, resources), format!("400 ClientException: {want}"));
    }
}

#[test]
fn queues_keep_their_time_limits() {
    let bench = Bench::new();
    let limit = |seconds: i64| {
        json!([{"reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", "state": "RUNNABLE", "maxTimeSeconds": seconds,
            "action": "CANCEL"}])
    };
    let update = |seconds| json!({"jobQueue": QUEUE, "priority": 9, "jobStateTimeLimitActions": limit(seconds)});
    bench.batch("updatejobqueue", &update(600)).unwrap();
    let seen = bench.batch("describejobqueues", &json!({"jobQueues": [arn(&format!("job-queue/{QUEUE}"))]})).unwrap();
    let queue = &seen["jobQueues"][0];
    assert_eq!((&queue["jobStateTimeLimitActions"], &queue["priority"]), (&limit(600), &json!(9)));
    assert_eq!(queue["schedulingPolicyArn"], json!(arn("scheduling-policy/shares")));
    let want = "400 ClientException: maxTimeSeconds must be between 600 and 86400, got 599";
    assert_eq!(bench.batch("updatejobqueue", &update(599)), Err(want.to_owned()));
}

#[test]
fn policies_are_listed_described_and_changed() {
    let bench = Bench::new();
    let shares = arn("scheduling-policy/shares");
    let listed = bench.batch("listschedulingpolicies", &json!({})).unwrap();
    assert_eq!(listed, json!({"schedulingPolicies": [{"arn": shares}]}));
    let policy = json!({"shareDecaySeconds": 0, "computeReservation": 10, "shareDistribution": []});
    bench.batch("updateschedulingpolicy", &json!({"arn": shares, "fairsharePolicy": policy})).unwrap();
    let seen = bench.batch("describeschedulingpolicies", &json!({"arns": [shares]})).unwrap();
    let want = json!([{"name": "shares", "arn": shares, "fairsharePolicy": policy, "tags": {"a": "1"}}]);
    assert_eq!(seen["schedulingPolicies"], want);
    let unknown = bench.batch("updateschedulingpolicy", &json!({"arn": "none"})).unwrap_err();
    assert_eq!(unknown, "400 ClientException: none does not exist");
    let overlapping = json!({"name": "x", "fairsharePolicy": {"shareDistribution":
        [{"shareIdentifier": "a*"}, {"shareIdentifier": "ab"}]}});
    let want = "400 ClientException: share identifiers must not overlap: a* and ab";
    assert_eq!(bench.batch("createschedulingpolicy", &overlapping), Err(want.to_owned()));
}

#[test]
fn definitions_keep_every_member_and_can_be_taken_out_of_use() {
    let bench = Bench::new();
    let properties = json!({"image": "i", "command": ["Ref::x"], "ulimits": [{"hardLimit": 1, "name": "n", "softLimit": 1}],
        "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}],
        "linuxParameters": {"sharedMemorySize": 64}});
    let body = json!({"jobDefinitionName": "train", "type": "container", "containerProperties": properties,
        "parameters": {"x": "1"}, "platformCapabilities": ["EC2"]});
    let answer = bench.batch("registerjobdefinition", &body).unwrap();
    assert_eq!(answer["revision"], json!(2));
    bench.batch("deregisterjobdefinition", &json!({"jobDefinition": "train:1"})).unwrap();
    let active = json!({"jobDefinitionName": "train", "status": "ACTIVE"});
    let seen = bench.batch("describejobdefinitions", &active).unwrap();
    let list = seen["jobDefinitions"].as_array().unwrap();
    assert_eq!((list.len(), &list[0]["revision"], &list[0]["containerProperties"]), (1, &json!(2), &properties));
    let want = "400 ClientException: JobDefinition train:1 not found.";
    assert_eq!(submit(&bench, &json!({"jobDefinition": "train:1"})), Err(want.to_owned()));
    let without = json!({"jobDefinitionName": "x", "type": "container"});
    assert!(
        bench.batch("registerjobdefinition", &without).unwrap_err().starts_with("400 ClientException: Exactly one of")
    );
}

#[test]
fn tags_are_set_read_and_removed_below_their_arn() {
    let bench = Bench::new();
    for what in [
        "job-queue/osprey-local-critical",
        "scheduling-policy/shares",
        "compute-environment/gpus",
        "job-definition/train:1",
    ] {
        let path = format!("/v1/tags/{}", arn(what).replace(':', "%3A").replace('/', "%2F"));
        let before = bench.call("GET", &path, "", None, b"").body["tags"].clone();
        let body = json!({"tags": {"x": "1", "y z": "2"}}).to_string();
        assert_eq!(bench.call("POST", &path, "", None, body.as_bytes()).status, 200, "{what}");
        assert_eq!(bench.call("DELETE", &path, "tagKeys=x&tagKeys=none", None, b"").status, 200);
        let mut want = before;
        want["y z"] = json!("2");
        assert_eq!(bench.call("GET", &path, "", None, b"").body["tags"], want, "{what}");
    }
    let answer = bench.call("GET", "/v1/tags/nonsense", "", None, b"");
    assert_eq!(answer.error(), "400 ClientException: nonsense is not a valid resource ARN");
}

#[test]
fn a_snapshot_shows_no_job_before_one_can_run() {
    let bench = Bench::new();
    submit(&bench, &json!({})).unwrap();
    let snapshot = bench.batch("getjobqueuesnapshot", &json!({"jobQueue": QUEUE})).unwrap();
    assert_eq!(snapshot["frontOfQueue"]["jobs"], json!([]));
    assert_eq!(snapshot["queueUtilization"]["fairshareUtilization"]["activeShareCount"], json!(1));
    let want = "400 ClientException: none does not exist";
    assert_eq!(bench.batch("getjobqueuesnapshot", &json!({"jobQueue": "none"})), Err(want.to_owned()));
}

#[test]
fn lists_come_in_pages() {
    let bench = Bench::new();
    for number in 0..3 {
        let body = json!({"jobDefinitionName": format!("d{number}"), "type": "container",
            "containerProperties": {"resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]}});
        bench.batch("registerjobdefinition", &body).unwrap();
    }
    let mut names = Vec::new();
    let mut token = Value::Null;
    loop {
        let page = bench.batch("describejobdefinitions", &json!({"maxResults": 2, "nextToken": token})).unwrap();
        let list = page["jobDefinitions"].as_array().unwrap();
        assert!(list.len() <= 2);
        names.extend(list.iter().map(|one| one["jobDefinitionName"].as_str().unwrap().to_owned()));
        token = page["nextToken"].clone();
        if token.is_null() {
            break;
        }
    }
    assert_eq!(names, ["d0", "d1", "d2", "train"]);
}

//! The shape of a `SubmitJob` request and of each action, every member. Source: the Batch API reference and its
//! `generate-cli-skeleton`; a test holds the two together.

use super::shape::Shape::{Flag, JobId, List, Object, Text, TextMap, Whole};
use super::shape::{Member, Shape, may, must};

const COMMAND: Shape = List(&Text("python3"));

const ENVIRONMENT: Shape = List(&Object(&[may("name", Text("OSPREY_TEAM")), may("value", Text("research"))]));

const REQUIREMENTS: Shape = List(&Object(&[must("value", Text("8")), must("type", Text("GPU"))]));

const CONTAINER_OVERRIDES: Shape = Object(&[
    may("vcpus", Whole(4)),
    may("memory", Whole(16_384)),
    may("command", COMMAND),
    may("instanceType", Text("p4d.24xlarge")),
    may("environment", ENVIRONMENT),
    may("resourceRequirements", REQUIREMENTS),
]);

const ECS_OVERRIDE: Shape = Object(&[may(
    "taskProperties",
    List(&Object(&[may(
        "containers",
        List(&Object(&[
            may("command", COMMAND),
            may("environment", ENVIRONMENT),
            may("name", Text("main")),
            may("resourceRequirements", REQUIREMENTS),
        ])),
    )])),
)]);

const EKS_CONTAINERS: Shape = List(&Object(&[
    may("name", Text("main")),
    may("image", Text("registry/image:1")),
    may("command", COMMAND),
    may("args", List(&Text("--epochs=3"))),
    may("env", List(&Object(&[must("name", Text("OSPREY_TEAM")), may("value", Text("research"))]))),
    may("resources", Object(&[may("limits", TextMap), may("requests", TextMap)])),
]));

const EKS_OVERRIDE: Shape = Object(&[may(
    "podProperties",
    Object(&[
        may("containers", EKS_CONTAINERS),
        may("initContainers", EKS_CONTAINERS),
        may(
            "metadata",
            Object(&[may("labels", TextMap), may("annotations", TextMap), may("namespace", Text("training"))]),
        ),
    ]),
)]);

const CONSUMABLES: Shape = Object(&[may(
    "consumableResourceList",
    List(&Object(&[may("consumableResource", Text("licences")), may("quantity", Whole(1))])),
)]);

const NODE_OVERRIDES: Shape = Object(&[
    may("numNodes", Whole(2)),
    may(
        "nodePropertyOverrides",
        List(&Object(&[
            must("targetNodes", Text("0:3")),
            may("containerOverrides", CONTAINER_OVERRIDES),
            may("ecsPropertiesOverride", ECS_OVERRIDE),
            may("instanceTypes", List(&Text("p4d.24xlarge"))),
            may("eksPropertiesOverride", EKS_OVERRIDE),
            may("consumableResourcePropertiesOverride", CONSUMABLES),
        ])),
    ),
]);

const RETRY_STRATEGY: Shape = Object(&[
    may("attempts", Whole(3)),
    may(
        "evaluateOnExit",
        List(&Object(&[
            may("onStatusReason", Text("Host EC2*")),
            may("onReason", Text("CannotPullContainerError*")),
            may("onExitCode", Text("137")),
            must("action", Text("RETRY")),
        ])),
    ),
]);

/// Members of a `SubmitJob` request.
pub(super) const SUBMIT_JOB: &[Member] = &[
    must("jobName", Text("train-llm")),
    may("jobQueue", Text("pool-a")),
    may("shareIdentifier", Text("research")),
    may("schedulingPriorityOverride", Whole(500)),
    may("arrayProperties", Object(&[may("size", Whole(10))])),
    may("dependsOn", List(&Object(&[may("jobId", Text(super::JOB_ID_EXAMPLE)), may("type", Text("N_TO_N"))]))),
    must("jobDefinition", Text("train:3")),
    may("parameters", TextMap),
    may("containerOverrides", CONTAINER_OVERRIDES),
    may("nodeOverrides", NODE_OVERRIDES),
    may("retryStrategy", RETRY_STRATEGY),
    may("propagateTags", Flag),
    may("timeout", Object(&[may("attemptDurationSeconds", Whole(3_600))])),
    may("tags", TextMap),
    may("eksPropertiesOverride", EKS_OVERRIDE),
    may("ecsPropertiesOverride", ECS_OVERRIDE),
    may("consumableResourcePropertiesOverride", CONSUMABLES),
];

const ACTION: Member = must("action", Text("CancelJob"));
const JOB: Member = must("jobId", JobId);
const REASON: Member = may("reason", Text("no longer needed"));

/// Each action: its name and its members. Cancelling needs a reason, as in Batch.
pub(super) const ACTIONS: &[(&str, &[Member])] = &[
    ("CancelJob", &[ACTION, JOB, must("reason", Text("no longer needed"))]),
    ("RequeueJob", &[ACTION, JOB, REASON]),
    ("HoldJob", &[ACTION, JOB, REASON]),
    ("ReleaseJob", &[ACTION, JOB, REASON]),
    ("PreemptJob", &[ACTION, JOB, REASON]),
    ("ReportCheckpoint", &[ACTION, JOB, must("uri", Text("s3://bucket/run/step-500")), may("progress", Whole(40))]),
    ("TopJob", &[ACTION, JOB, REASON]),
    ("ReportPriority", &[ACTION, JOB, must("points", Whole(100)), REASON]),
    ("DrainPool", &[ACTION, must("pool", Text("main")), may("tier", Text("experimental")), REASON]),
    ("ResumePool", &[ACTION, must("pool", Text("main")), may("tier", Text("experimental")), REASON]),
    (
        "Reserve",
        &[
            ACTION,
            must("pool", Text("main")),
            must("team", Text("search")),
            must("gpus", Whole(8)),
            may("until", Text("2030-01-31T18:00:00Z")),
            REASON,
        ],
    ),
    ("ApplyPolicy", &[ACTION, must("policy", Text("name = 'default'")), REASON]),
    ("SetMode", &[ACTION, must("pool", Text("main")), may("mode", Text("observe")), may("preemption", Flag), REASON]),
    ("RedriveDeadLetter", &[ACTION, must("deadLetterId", Text("dl-1"))]),
    ("DiscardDeadLetter", &[ACTION, must("deadLetterId", Text("dl-1")), REASON]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    fn paths_of(value: &Value, path: String, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) if object.keys().eq(["KeyName"]) => {
                into.insert(format!("{path}.*"));
            }
            Value::Object(object) => {
                for (name, member) in object {
                    let dot = if path.is_empty() { "" } else { "." };
                    paths_of(member, format!("{path}{dot}{name}"), into);
                }
            }
            Value::Array(list) => paths_of(&list[0], format!("{path}[0]"), into),
            _ => {
                into.insert(path);
            }
        }
    }

    #[test]
    fn the_schema_has_exactly_the_members_of_the_published_skeleton() {
        let skeleton = serde_json::from_str(include_str!("../../testdata/submit-job-skeleton.json")).unwrap();
        let mut published = BTreeSet::new();
        paths_of(&skeleton, String::new(), &mut published);
        let mut ours = Vec::new();
        super::super::shape::tests::paths(SUBMIT_JOB, "", &mut ours);
        assert_eq!(ours.into_iter().collect::<BTreeSet<_>>(), published);
    }
}

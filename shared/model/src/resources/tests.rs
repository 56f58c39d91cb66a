//! A14, D18: what a job needs, and the sentence for each amount that can't be.

use serde_json::{Value, json};

use super::*;

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

fn needs(list: &[(&str, &str)]) -> Value {
    let list: Vec<Value> = list.iter().map(|(kind, value)| json!({"type": kind, "value": value})).collect();
    json!({"resourceRequirements": list})
}

fn named(name: &str, list: &[(&str, &str)]) -> Value {
    with(json!({"name": name}), needs(list))
}

fn demand(request_members: Value, definition_members: Value) -> Demand {
    Demand::of(&request(request_members), Some(&definition(definition_members))).unwrap()
}

fn refused(members: Value) -> String {
    Demand::of(&request(members), None).unwrap_err().to_string()
}

const NOTHING: Demand = Demand { gpus_per_node: 0, nodes: 1, gpus: 0, vcpus: 0, memory_mib: 0, array_size: 1 };

#[test]
fn a_job_that_says_nothing_needs_nothing() {
    assert_eq!(Demand::of(&request(json!({})), None), Ok(NOTHING));
}

#[test]
fn the_override_wins_over_the_definition_amount_by_amount() {
    let own = needs(&[("GPU", "4"), ("MEMORY", "1024"), ("VCPU", "8")]);
    let got = demand(json!({"containerOverrides": needs(&[("GPU", "8")])}), json!({"containerProperties": own}));
    assert_eq!(got, Demand { gpus_per_node: 8, gpus: 8, vcpus: 8, memory_mib: 1_024, ..NOTHING });
}

#[test]
fn the_deprecated_members_count_behind_the_list() {
    let overrides = with(json!({"vcpus": 2, "memory": 512}), needs(&[("VCPU", "4")]));
    let got =
        demand(json!({"containerOverrides": overrides}), json!({"containerProperties": {"vcpus": 16, "memory": 64}}));
    assert_eq!((got.vcpus, got.memory_mib), (4, 512));
}

#[test]
fn vcpus_may_be_parts_and_are_rounded_up_once() {
    let tasks =
        json!({"taskProperties": [{"containers": [named("a", &[("VCPU", "0.25")]), named("b", &[("VCPU", "0.5")])]}]});
    assert_eq!(demand(json!({}), json!({"ecsProperties": tasks})).vcpus, 1);
}

#[test]
fn containers_of_a_task_are_summed_a14() {
    let tasks = json!({"taskProperties": [{"containers": [named("main", &[("GPU", "4")]), named("side", &[("GPU", "1")]), {"name": "log"}]}]});
    let over = json!({"taskProperties": [{"containers": [named("side", &[("GPU", "2"), ("MEMORY", "100")])]}]});
    assert_eq!(demand(json!({}), json!({"ecsProperties": tasks})).gpus, 5);
    let got = demand(json!({"ecsPropertiesOverride": over}), json!({"ecsProperties": tasks}));
    assert_eq!((got.gpus, got.gpus_per_node, got.memory_mib), (6, 6, 100));
    assert_eq!(Demand::of(&request(json!({"ecsPropertiesOverride": over})), None).unwrap().gpus, 2);
}

#[test]
fn containers_of_a_pod_are_summed_and_init_containers_are_not() {
    let gpu = |name: &str, count: &str| json!({"name": name, "resources": {"limits": {"nvidia.com/gpu": count, "cpu": "500m", "memory": "2048Mi"}}});
    let pod = json!({"podProperties": {"containers": [gpu("a", "2"), gpu("b", "1")], "initContainers": [with(gpu("i", "4"), json!({"imagePullPolicy": "Always"}))]}});
    let got = demand(json!({}), json!({"eksProperties": pod}));
    assert_eq!(got, Demand { gpus_per_node: 4, gpus: 4, vcpus: 1, memory_mib: 4_096, ..NOTHING });
    let over =
        json!({"podProperties": {"containers": [{"name": "b", "resources": {"requests": {"nvidia.com/gpu": "6"}}}]}});
    assert_eq!(demand(json!({"eksPropertiesOverride": over}), json!({"eksProperties": pod})).gpus, 8);
    assert_eq!(Demand::of(&request(json!({"eksPropertiesOverride": over})), None).unwrap().gpus, 6);
}

#[test]
fn nodes_multiply_and_ranges_may_differ() {
    let range = |nodes: &str, gpus: &str| json!({"targetNodes": nodes, "container": needs(&[("GPU", gpus), ("VCPU", "2"), ("MEMORY", "10")])});
    let uniform = json!({"nodeProperties": {"numNodes": 4, "nodeRangeProperties": [range("0:", "8")]}});
    let got = demand(json!({}), uniform.clone());
    assert_eq!(got, Demand { gpus_per_node: 8, nodes: 4, gpus: 32, vcpus: 8, memory_mib: 40, array_size: 1 });
    assert_eq!(demand(json!({"nodeOverrides": {"numNodes": 2}}), uniform.clone()).gpus, 16);
    let nested =
        json!({"nodeProperties": {"numNodes": 4, "nodeRangeProperties": [range("0:3", "8"), range("0", "1")]}});
    assert_eq!((demand(json!({}), nested.clone()).gpus, demand(json!({}), nested).gpus_per_node), (25, 8));
    let over = json!({"nodeOverrides": {"nodePropertyOverrides": [{"targetNodes": "1:2", "containerOverrides": needs(&[("GPU", "4")])}]}});
    assert_eq!(demand(over, uniform).gpus, 24);
    let alone = json!({"nodeOverrides": {"numNodes": 3, "nodePropertyOverrides": [{"targetNodes": "0:", "containerOverrides": needs(&[("GPU", "2")])}]}});
    assert_eq!(Demand::of(&request(alone), None).unwrap().gpus, 6);
}

#[test]
fn nodes_may_hold_tasks_of_several_containers() {
    let task = json!({"taskProperties": [{"containers": [named("a", &[("GPU", "4")]), named("b", &[("GPU", "4")])]}]});
    let nodes = json!({"nodeProperties": {"numNodes": 2, "nodeRangeProperties": [{"targetNodes": "0:", "ecsProperties": task}]}});
    assert_eq!(demand(json!({}), nodes).gpus, 16);
}

#[test]
fn an_array_says_how_many_children_there_are() {
    assert_eq!(Demand::of(&request(json!({"arrayProperties": {"size": 50}})), None).unwrap().array_size, 50);
    assert_eq!(Demand::of(&request(json!({"arrayProperties": {"size": -5}})), None).unwrap().array_size, 1);
}

#[test]
fn amounts_that_cannot_be_say_why() {
    let whole = "`containerOverrides.resourceRequirements[0].value` must be a whole number of GPUs from 1 to 65536";
    let vcpus = "`containerOverrides.resourceRequirements[0].value` must be a number of vCPUs above 0 and up to 65536, such as `4` or `0.25`";
    let memory =
        "`containerOverrides.resourceRequirements[0].value` must be a whole number of MiB from 4 to 1073741824";
    for (kind, value, want) in [
        ("GPU", "0.5", format!("{whole}; `0.5` was given; parts of a GPU need MIG, which Batch can't ask for: ask for `1`")),
        ("GPU", "2.5", format!("{whole}; `2.5` was given; parts of a GPU need MIG, which Batch can't ask for: ask for `3`")),
        ("GPU", "-1", format!("{whole}; `-1` was given; ask for as many as the job uses")),
        ("GPU", "0", format!("{whole}; `0` was given; a job without GPUs leaves it out")),
        ("GPU", "65537", format!("{whole}; `65537` was given; ask for as many as the job uses")),
        ("GPU", "99999999999999999999", format!("{whole}; `99999999999999999999` was given; ask for as many as the job uses")),
        ("GPU", "eight", format!("{whole}; `eight` was given; ask for as many as the job uses")),
        ("GPU", "", format!("{whole}; `` was given; ask for as many as the job uses")),
        ("VCPU", "0", format!("{vcpus}; `0` was given")),
        ("VCPU", "-4", format!("{vcpus}; `-4` was given")),
        ("VCPU", "1e3", format!("{vcpus}; `1e3` was given")),
        ("MEMORY", "3", format!("{memory}; `3` was given")),
        ("MEMORY", "-4", format!("{memory}; `-4` was given")),
        ("MEMORY", "16GiB", format!("{memory}; `16GiB` was given; write `16384`")),
        ("MEMORY", "2000000000", format!("{memory}; `2000000000` was given")),
        (
            "gpu",
            "1",
            "`containerOverrides.resourceRequirements[0].type` must be `GPU`, `VCPU` or `MEMORY`; `gpu` was given; did you mean `GPU`?".into(),
        ),
        ("DISK", "1", "`containerOverrides.resourceRequirements[0].type` must be `GPU`, `VCPU` or `MEMORY`; `DISK` was given".into()),
    ] {
        let members = json!({"containerOverrides": needs(&[(kind, value)])});
        assert_eq!(refused(members), format!("{want} (InvalidResource)"), "{kind} {value}");
    }
}

#[test]
fn the_greatest_and_the_least_amounts_are_taken() {
    let got = demand(
        json!({"containerOverrides": needs(&[("GPU", "65536"), ("VCPU", "65536"), ("MEMORY", "1073741824")])}),
        json!({}),
    );
    assert_eq!((got.gpus, got.vcpus, got.memory_mib), (65_536, 65_536, 1 << 30));
    let got =
        demand(json!({"containerOverrides": needs(&[("GPU", "1"), ("VCPU", "0.001"), ("MEMORY", "4")])}), json!({}));
    assert_eq!((got.gpus, got.vcpus, got.memory_mib), (1, 1, 4));
}

#[test]
fn sums_beyond_a_number_stay_at_its_end() {
    let range = json!({"targetNodes": "0:", "containerOverrides": needs(&[("GPU", "65536"), ("VCPU", "65536")])});
    let containers: Vec<Value> = (0..20).map(|n| named(&n.to_string(), &[("GPU", "65536")])).collect();
    let many = json!({"targetNodes": "0:", "ecsPropertiesOverride": {"taskProperties": [{"containers": containers}]}});
    let got = |range: &Value| {
        Demand::of(&request(json!({"nodeOverrides": {"numNodes": 5000, "nodePropertyOverrides": [range]}})), None)
            .unwrap()
            .gpus
    };
    assert_eq!(got(&range), 327_680_000);
    assert_eq!(got(&many), u32::MAX);
}

#[test]
fn lists_and_nodes_that_contradict_themselves_are_refused() {
    for (members, want) in [
        (
            json!({"containerOverrides": needs(&[("GPU", "1"), ("GPU", "2")])}),
            "`containerOverrides.resourceRequirements` names `GPU` twice; keep one",
        ),
        (
            json!({"containerOverrides": {"vcpus": -1}}),
            "`containerOverrides.vcpus` must be a number of vCPUs above 0 and up to 65536, such as `4` or `0.25`; `-1` was given",
        ),
        (
            json!({"nodeOverrides": {"numNodes": 0}}),
            "`nodeOverrides.numNodes` must be from 1 to 5000 nodes; 0 was given",
        ),
        (
            json!({"nodeOverrides": {"numNodes": 5001}}),
            "`nodeOverrides.numNodes` must be from 1 to 5000 nodes; 5001 was given",
        ),
        (
            json!({"nodeOverrides": {"nodePropertyOverrides": [{"targetNodes": "3:0"}]}}),
            "`nodeOverrides.nodePropertyOverrides[0].targetNodes` must be a range of nodes such as `0:3` or `4:`; `3:0` was given",
        ),
        (
            json!({"nodeOverrides": {"nodePropertyOverrides": vec![json!({"targetNodes": "0:"}); 101]}}),
            "`nodeOverrides.nodePropertyOverrides` takes at most 100 ranges; 101 were given",
        ),
        (
            json!({"eksPropertiesOverride": {"podProperties": {"containers": [{"resources": {"limits": {"memory": "much"}}}]}}}),
            "`eksPropertiesOverride.podProperties.containers[0].resources.limits.memory` must be a whole number of MiB from 4 to 1073741824; `much` was given; write such as `2048Mi`",
        ),
    ] {
        assert_eq!(refused(members), format!("{want} (InvalidResource)"));
    }
}

#[test]
fn a_fault_of_the_definition_names_the_definition() {
    let definition = definition(json!({"containerProperties": needs(&[("GPU", "0.5")])}));
    let refusal = Demand::of(&request(json!({})), Some(&definition)).unwrap_err();
    assert!(
        refusal.message.starts_with("`job definition: containerProperties.resourceRequirements[0].value` must be"),
        "{refusal}"
    );
}

proptest::proptest! {
    #[test]
    fn no_amount_breaks_the_reader(kind in "GPU|VCPU|MEMORY", value in ".*") {
        let _ = Demand::of(&request(json!({"containerOverrides": needs(&[(&kind, &value)])})), None);
    }

    #[test]
    fn no_range_breaks_the_reader(range in "[0-9:]{0,12}", nodes in proptest::num::i64::ANY) {
        let _ = Demand::of(&request(json!({"nodeOverrides": {"numNodes": nodes, "nodePropertyOverrides": [{"targetNodes": range}]}})), None);
    }
}

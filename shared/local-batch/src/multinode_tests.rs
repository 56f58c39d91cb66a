//! What each node gets, told in sentences.

use super::*;

fn properties(body: &Value) -> NodeProperties {
    serde_json::from_value(body.clone()).unwrap()
}

/// `first-last:command:gpus` of each run, or the refusal.
fn spelled(defined: &Value, asked: &Value) -> String {
    let overrides: NodeOverrides = serde_json::from_value(asked.clone()).unwrap();
    match Gang::spelled_out(&properties(defined), Some(&overrides)) {
        Err(error) => error.message,
        Ok(gang) => {
            let command = |run: &Run| run.container["command"][0].as_str().unwrap_or("-").to_owned();
            let one = |run: &Run| format!("{}-{}:{}:{}", run.first, run.last, command(run), run.need.gpus);
            gang.runs.iter().map(one).collect::<Vec<_>>().join(" ")
        }
    }
}

fn nodes(range: &str, command: &str, gpus: &str) -> Value {
    let requirements = json!([{"type": "GPU", "value": gpus}]);
    json!({"targetNodes": range, "container": {"command": [command], "resourceRequirements": requirements}})
}

fn two() -> Value {
    json!({"numNodes": 4, "mainNode": 0, "nodeRangeProperties": [nodes("0:", "all", "1"), nodes("0:0", "main", "2")]})
}

fn of(range: &str, overrides: &Value) -> Value {
    json!({"targetNodes": range, "containerOverrides": overrides})
}

#[test]
fn each_node_is_spoken_for_by_the_narrowest_range() {
    let main_last = json!({"numNodes": 2, "mainNode": 5, "nodeRangeProperties": [nodes("0:", "x", "1")]});
    let closed = json!({"numNodes": 2, "nodeRangeProperties": [nodes("0:1", "x", "1")]});
    let gap = json!({"numNodes": 3, "nodeRangeProperties": [nodes("0:0", "x", "1"), nodes("2:", "y", "1")]});
    let beyond = json!({"numNodes": 2, "nodeRangeProperties": [nodes("0:", "x", "1"), nodes("7:8", "y", "1")]});
    let wrong = json!({"numNodes": 2, "nodeRangeProperties": [nodes("3:1", "x", "1")]});
    let nothing = json!({});
    let cases = [
        ("nested ranges override wider ones", two(), nothing.clone(), "0-0:main:2 1-3:all:1"),
        ("the number of nodes can be overridden", two(), json!({"numNodes": 2}), "0-0:main:2 1-1:all:1"),
        (
            "an override speaks for its nodes only",
            two(),
            json!({"nodePropertyOverrides": [of("2:", &json!({"command": ["late"]}))]}),
            "0-0:main:2 1-1:all:1 2-3:late:1",
        ),
        (
            "an override of an amount leaves the command",
            two(),
            json!({"nodePropertyOverrides": [of("0:1", &json!({"resourceRequirements": [{"type": "GPU", "value": "4"}]}))]}),
            "0-0:main:4 1-1:all:4 2-3:all:1",
        ),
        ("the main node is one of them", main_last, nothing.clone(), "mainNode 5 must be fewer than numNodes 2"),
        (
            "a closed definition keeps its number of nodes",
            closed.clone(),
            json!({"numNodes": 3}),
            "numNodes can only be overridden when a node range of the job definition has no upper boundary",
        ),
        ("the same number is no override", closed, json!({"numNodes": 2}), "0-1:x:1"),
        ("every node has a range", gap, nothing.clone(), "The node ranges must account for all nodes; node 1 has none"),
        (
            "a range begins below the number of nodes",
            beyond,
            nothing.clone(),
            "The node range from 7 must begin below numNodes 2",
        ),
        ("a range is a range", wrong, nothing, "targetNodes must be a range of nodes such as 0:3 or 4:, got \"3:1\""),
        ("no job has no node", two(), json!({"numNodes": 0}), "numNodes must be between 1 and 1000, got 0"),
        ("nor too many", two(), json!({"numNodes": 1001}), "numNodes must be between 1 and 1000, got 1001"),
    ];
    for (sentence, defined, asked, want) in cases {
        assert_eq!(spelled(&defined, &asked), want, "{sentence}");
    }
}

#[test]
fn more_ranges_than_the_most_are_refused() {
    let many: Vec<Value> = (0..=RANGES_MAX).map(|_| nodes("0:", "x", "1")).collect();
    let defined = json!({"numNodes": 2, "nodeRangeProperties": many});
    assert_eq!(spelled(&defined, &json!({})), "A job must have at most 100 ranges of nodes, got 101");
}

#[test]
fn needs_and_containers_survive_the_way_through_the_store() {
    let gang = Gang::spelled_out(&properties(&two()), None).unwrap();
    let needs = needs_of(&gang.needs());
    assert_eq!(needs.iter().map(|need| need.gpus).collect::<Vec<_>>(), [2, 1, 1, 1]);
    assert_eq!(gang.total(), Need { gpus: 5, vcpus_milli: 4_000, memory_mib: 0 });
    let detail = gang.detail();
    assert_eq!(container_of(&detail, 0)["command"], json!(["main"]));
    assert_eq!(container_of(&detail, 3)["command"], json!(["all"]));
    assert_eq!(container_of(&detail, 4), json!({}));
    assert!(gang.has_commands());
}

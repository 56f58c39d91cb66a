//! What a cycle decides, told in sentences.

use super::*;

fn node(environment: usize, index: i64, free_devices: &[i64]) -> Node {
    let total = Need { gpus: 8, vcpus_milli: 8_000, memory_mib: 1_000 };
    Node { environment, index, free_devices: free_devices.to_vec(), free: total, total, ..Node::default() }
}

fn job(job: i64, gpus: i64) -> Candidate {
    Candidate { job, demand: Demand::One(Need { gpus, vcpus_milli: 1_000, memory_mib: 1 }) }
}

fn fifo(environments: &[usize], jobs: &[Candidate]) -> Queue {
    let share = Share { weight: 1.0, jobs: jobs.to_vec(), ..Share::default() };
    Queue { environments: environments.to_vec(), shares: vec![share], vcpus_left_milli: None }
}

/// `job@environment/index:devices`, one place after the other, then `job!` for a head that waits its turn and
/// `job!Reason` for one that waits for something else.
fn decide(mut nodes: Vec<Node>, queues: impl AsRef<[Queue]>) -> String {
    let cycle = cycle(&mut nodes, queues.as_ref());
    let seat = |seat: &Seat| {
        let node = &nodes[seat.node];
        let devices: Vec<String> = seat.devices.iter().map(i64::to_string).collect();
        format!("@{}/{}:{}", node.environment, node.index, devices.join(","))
    };
    let placed = cycle.placements.iter().map(|p| format!("{}{}", p.job, p.seats.iter().map(seat).collect::<String>()));
    let why = |wait: Wait| if wait == Wait::Busy { String::new() } else { format!("{wait:?}") };
    let blocked = cycle.blocked.iter().map(|b| format!("{}!{}", b.job, why(b.wait)));
    placed.chain(blocked).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_cycle_places_as_batch_does() {
    let cases = [
        (
            "jobs of a queue start in order while they fit",
            decide(vec![node(0, 0, &[0, 1])], [fifo(&[0], &[job(1, 1), job(2, 1), job(3, 1)])]),
            "1@0/0:0 2@0/0:1 3!",
        ),
        (
            "a head that doesn't fit blocks the smaller jobs behind it",
            decide(vec![node(0, 0, &[0, 1])], [fifo(&[0], &[job(1, 4), job(2, 1)])]),
            "1!",
        ),
        (
            "a blocked queue doesn't keep capacity from lower queues",
            decide(vec![node(0, 0, &[0, 1])], [fifo(&[0], &[job(1, 4)]), fifo(&[0], &[job(2, 1)])]),
            "2@0/0:0 1!",
        ),
        (
            "the higher queue takes all it can before the lower one gets any",
            decide(vec![node(0, 0, &[0, 1])], [fifo(&[0], &[job(1, 1), job(2, 1)]), fifo(&[0], &[job(3, 1)])]),
            "1@0/0:0 2@0/0:1 3!",
        ),
        (
            "the node with the fewest free GPUs that suffices wins",
            decide(
                vec![node(0, 0, &[0, 1, 2, 3]), node(0, 1, &[8]), node(0, 2, &[16, 17])],
                [fifo(&[0], &[job(1, 2)])],
            ),
            "1@0/2:16,17",
        ),
        (
            "of nodes with equally many free GPUs the lowest index wins",
            decide(vec![node(0, 1, &[8]), node(0, 0, &[0])], [fifo(&[0], &[job(1, 1)])]),
            "1@0/0:0",
        ),
        (
            "devices of two nodes don't add up",
            decide(vec![node(0, 0, &[0]), node(0, 1, &[8])], [fifo(&[0], &[job(1, 2)])]),
            "1!",
        ),
        (
            "a job wider than any node can never fit",
            decide(vec![node(0, 0, &[])], [fifo(&[0], &[job(1, 9)])]),
            "1!NodeTooSmall",
        ),
        (
            "environments of a queue are tried in its order, and others never",
            decide(
                vec![node(0, 0, &[0]), node(1, 0, &[8, 9]), node(2, 0, &[16])],
                [fifo(&[1, 0], &[job(1, 1), job(2, 1), job(3, 1), job(4, 1)])],
            ),
            "1@1/0:8 2@1/0:9 3@0/0:0 4!",
        ),
        (
            "a job without GPUs takes no device and runs beside full nodes",
            decide(vec![node(0, 0, &[])], [fifo(&[0], &[job(1, 0)])]),
            "1@0/0:",
        ),
        (
            "vCPUs and memory bound a node too",
            decide(
                vec![node(0, 0, &[0, 1])],
                [fifo(
                    &[0],
                    &[Candidate { job: 1, demand: Demand::One(Need { gpus: 0, vcpus_milli: 8_001, memory_mib: 0 }) }],
                )],
            ),
            "1!NodeTooSmall",
        ),
        (
            "a closed node takes nothing, and its jobs wait for it",
            decide(vec![Node { state: NodeState::Closed, ..node(0, 0, &[0]) }], [fifo(&[0], &[job(1, 1)])]),
            "1!",
        ),
        (
            "a retired node counts for nothing",
            decide(
                vec![Node { state: NodeState::Closed, retired: true, ..node(0, 0, &[0]) }],
                [fifo(&[0], &[job(1, 1)])],
            ),
            "1!NodeTooSmall",
        ),
    ];
    for (sentence, got, want) in cases {
        assert_eq!(got, want, "{sentence}");
    }
}

fn share(id: &str, usage: f64, weight: f64, jobs: &[i64]) -> Share {
    let jobs = jobs.iter().map(|n| job(*n, 1)).collect();
    Share { id: id.to_owned(), usage, weight, jobs, more: false }
}

#[test]
fn shares_take_turns_by_what_they_have_had_for_their_weight() {
    let run = |shares: Vec<Share>| {
        let queue = Queue { environments: vec![0], shares, vcpus_left_milli: None };
        decide(vec![node(0, 0, &[0, 1, 2, 3])], [queue])
    };
    let even = run(vec![share("a", 0.0, 1.0, &[1, 2]), share("b", 0.0, 1.0, &[3, 4])]);
    assert_eq!(even, "1@0/0:0 3@0/0:1 2@0/0:2 4@0/0:3", "equal shares alternate, the first by name first");
    let used = run(vec![share("a", 1e9, 1.0, &[1, 2]), share("b", 0.0, 1.0, &[3, 4])]);
    assert_eq!(used, "3@0/0:0 4@0/0:1 1@0/0:2 2@0/0:3", "who has used more waits");
    let weighted = run(vec![share("a", 100.0, 0.125, &[1]), share("b", 50.0, 1.0, &[3])]);
    assert_eq!(weighted, "1@0/0:0 3@0/0:1", "a lower weight factor gets more");
}

/// A node of eight devices with nothing on it.
fn empty(index: i64) -> Node {
    let devices: Vec<i64> = (8 * index..8 * index + 8).collect();
    node(0, index, &devices)
}

fn gang(job: i64, nodes: usize, gpus: i64) -> Candidate {
    Candidate { job, demand: Demand::Gang(vec![Need { gpus, vcpus_milli: 1_000, memory_mib: 1 }; nodes]) }
}

#[test]
fn a_multi_node_job_starts_on_all_its_nodes_or_on_none() {
    let spot = |index| Node { spot: true, ..empty(index) };
    let held = |index| Node { free: Need { vcpus_milli: 7_000, ..empty(0).free }, ..empty(index) };
    let cases = [
        ("each node has a host", decide(vec![empty(0), empty(1)], [fifo(&[0], &[gang(1, 2, 1)])]), "1@0/0:0@0/1:8"),
        (
            "a host that something runs on is none",
            decide(vec![empty(0), held(1), empty(2)], [fifo(&[0], &[gang(1, 2, 1)])]),
            "1@0/0:0@0/2:16",
        ),
        (
            "one host too few, and none is taken",
            decide(vec![empty(0), held(1)], [fifo(&[0], &[gang(1, 2, 1)]), fifo(&[0], &[job(2, 8)])]),
            "2@0/0:0,1,2,3,4,5,6,7 1!",
        ),
        (
            "its hosts take nothing else",
            decide(vec![empty(0), empty(1)], [fifo(&[0], &[gang(1, 2, 1), job(2, 0)])]),
            "1@0/0:0@0/1:8 2!",
        ),
        (
            "an environment with fewer nodes will never do",
            decide(vec![empty(0)], [fifo(&[0], &[gang(1, 2, 1)])]),
            "1!TooFewNodes",
        ),
        (
            "nor one with smaller ones",
            decide(vec![empty(0), empty(1)], [fifo(&[0], &[gang(1, 2, 9)])]),
            "1!NodeTooSmall",
        ),
        ("nor Spot", decide(vec![spot(0), spot(1)], [fifo(&[0], &[gang(1, 2, 1)])]), "1!NodeTooSmall"),
        (
            "hosts of two environments don't add up",
            decide(vec![empty(0), Node { environment: 1, ..empty(1) }], [fifo(&[0, 1], &[gang(1, 2, 1)])]),
            "1!TooFewNodes",
        ),
    ];
    for (sentence, got, want) in cases {
        assert_eq!(got, want, "{sentence}");
    }
}

#[test]
fn a_share_of_which_more_waits_than_is_known_ends_the_cycle_when_its_turn_comes() {
    let known = Share { more: true, ..share("a", 0.0, 1.0, &[1, 2]) };
    let other = share("b", 0.0, 1.0, &[3, 4, 5, 6]);
    let queues =
        [Queue { environments: vec![0], shares: vec![known, other], vcpus_left_milli: None }, fifo(&[0], &[job(9, 0)])];
    let cycle = cycle(&mut [empty(0)], &queues);
    let jobs: Vec<i64> = cycle.placements.iter().map(|placement| placement.job).collect();
    assert_eq!((jobs, cycle.more), (vec![1, 3, 2, 4], true), "and neither the other share nor a lower queue goes on");
}

#[test]
fn what_is_kept_for_shares_to_come_is_left_alone() {
    let mut queue = fifo(&[0], &[job(1, 0), job(2, 0), job(3, 0)]);
    queue.vcpus_left_milli = Some(2_000);
    assert_eq!(decide(vec![empty(0)], [queue]), "1@0/0: 2@0/0: 3!");
}

#[test]
fn the_order_of_a_queue_is_that_of_its_starts() {
    let queue = Queue {
        environments: vec![0],
        shares: vec![share("a", 0.0, 1.0, &[1, 2, 3]), share("b", 0.0, 0.5, &[4, 5, 6])],
        vcpus_left_milli: None,
    };
    assert_eq!(order(&queue), [1, 4, 5, 2, 6, 3]);
    let cycle = cycle(&mut [empty(0)], std::slice::from_ref(&queue));
    assert_eq!(cycle.placements.iter().map(|placement| placement.job).collect::<Vec<_>>(), order(&queue));
}

#[test]
fn nodes_are_started_for_what_waits_and_no_more() {
    let with = |state: NodeState, index: i64| Node { state, ..empty(index) };
    let run = |nodes: &[Node], jobs: &[Candidate]| wanted(nodes.to_vec(), &[fifo(&[0], jobs)]);
    use NodeState::{Down, Open, Starting, Unobtainable};
    let cases = [
        (
            "one for each that needs a whole node",
            run(&[with(Down, 0), with(Down, 1), with(Down, 2)], &[job(1, 8), job(2, 8)]),
            vec![0, 1],
        ),
        ("small ones share one", run(&[with(Down, 0), with(Down, 1)], &[job(1, 4), job(2, 4)]), vec![0, 0]),
        ("one that is starting up is counted on", run(&[with(Down, 0), with(Starting, 1)], &[job(1, 8)]), vec![1]),
        ("a multi-node job wants all its hosts", run(&[with(Open, 0), with(Down, 1)], &[gang(1, 2, 1)]), vec![0, 1]),
        ("what can't be had isn't asked for", run(&[with(Unobtainable, 0)], &[job(1, 1)]), vec![]),
        ("nothing behind a head that never fits counts", run(&[with(Down, 0)], &[job(1, 9), job(2, 1)]), vec![]),
    ];
    for (sentence, got, want) in cases {
        assert_eq!(got, want, "{sentence}");
    }
    let short = decide(vec![with(Unobtainable, 0)], [fifo(&[0], &[job(1, 1)])]);
    assert_eq!(short, "1!NoCapacity");
}

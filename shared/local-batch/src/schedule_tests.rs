//! What a cycle decides, told in sentences.

use super::*;

fn node(environment: usize, index: i64, free_devices: &[i64]) -> Node {
    let total = Need { gpus: 8, vcpus_milli: 8_000, memory_mib: 1_000 };
    Node { environment, index, open: true, retired: false, free_devices: free_devices.to_vec(), free: total, total }
}

fn job(job: i64, gpus: i64) -> Candidate {
    Candidate { job, need: Need { gpus, vcpus_milli: 1_000, memory_mib: 1 } }
}

fn fifo(environments: &[usize], jobs: &[Candidate]) -> Queue {
    let share = Share { weight: 1.0, jobs: jobs.to_vec(), ..Share::default() };
    Queue { environments: environments.to_vec(), shares: vec![share] }
}

/// `job@environment/index:devices`, then `job!` for a head that waits and `job!!` for one that never fits.
fn decide(mut nodes: Vec<Node>, mut queues: Vec<Queue>) -> String {
    let cycle = cycle(&mut nodes, &mut queues);
    let placed = cycle.placements.iter().map(|p| {
        let node = &nodes[p.node];
        let devices: Vec<String> = p.devices.iter().map(i64::to_string).collect();
        format!("{}@{}/{}:{}", p.job, node.environment, node.index, devices.join(","))
    });
    let blocked = cycle.blocked.iter().map(|b| format!("{}{}", b.job, if b.never_fits { "!!" } else { "!" }));
    placed.chain(blocked).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_cycle_places_as_batch_does() {
    let cases = [
        (
            "jobs of a queue start in order while they fit",
            decide(vec![node(0, 0, &[0, 1])], vec![fifo(&[0], &[job(1, 1), job(2, 1), job(3, 1)])]),
            "1@0/0:0 2@0/0:1 3!",
        ),
        (
            "a head that doesn't fit blocks the smaller jobs behind it",
            decide(vec![node(0, 0, &[0, 1])], vec![fifo(&[0], &[job(1, 4), job(2, 1)])]),
            "1!",
        ),
        (
            "a blocked queue doesn't keep capacity from lower queues",
            decide(vec![node(0, 0, &[0, 1])], vec![fifo(&[0], &[job(1, 4)]), fifo(&[0], &[job(2, 1)])]),
            "2@0/0:0 1!",
        ),
        (
            "the higher queue takes all it can before the lower one gets any",
            decide(vec![node(0, 0, &[0, 1])], vec![fifo(&[0], &[job(1, 1), job(2, 1)]), fifo(&[0], &[job(3, 1)])]),
            "1@0/0:0 2@0/0:1 3!",
        ),
        (
            "the node with the fewest free GPUs that suffices wins",
            decide(
                vec![node(0, 0, &[0, 1, 2, 3]), node(0, 1, &[8]), node(0, 2, &[16, 17])],
                vec![fifo(&[0], &[job(1, 2)])],
            ),
            "1@0/2:16,17",
        ),
        (
            "of nodes with equally many free GPUs the lowest index wins",
            decide(vec![node(0, 1, &[8]), node(0, 0, &[0])], vec![fifo(&[0], &[job(1, 1)])]),
            "1@0/0:0",
        ),
        (
            "devices of two nodes don't add up",
            decide(vec![node(0, 0, &[0]), node(0, 1, &[8])], vec![fifo(&[0], &[job(1, 2)])]),
            "1!",
        ),
        (
            "a job wider than any node can never fit",
            decide(vec![node(0, 0, &[])], vec![fifo(&[0], &[job(1, 9)])]),
            "1!!",
        ),
        (
            "environments of a queue are tried in its order, and others never",
            decide(
                vec![node(0, 0, &[0]), node(1, 0, &[8, 9]), node(2, 0, &[16])],
                vec![fifo(&[1, 0], &[job(1, 1), job(2, 1), job(3, 1), job(4, 1)])],
            ),
            "1@1/0:8 2@1/0:9 3@0/0:0 4!",
        ),
        (
            "a job without GPUs takes no device and runs beside full nodes",
            decide(vec![node(0, 0, &[])], vec![fifo(&[0], &[job(1, 0)])]),
            "1@0/0:",
        ),
        (
            "vCPUs and memory bound a node too",
            decide(
                vec![node(0, 0, &[0, 1])],
                vec![fifo(&[0], &[Candidate { job: 1, need: Need { gpus: 0, vcpus_milli: 8_001, memory_mib: 0 } }])],
            ),
            "1!!",
        ),
        (
            "a closed node takes nothing, and its jobs wait for it",
            decide(vec![Node { open: false, ..node(0, 0, &[0]) }], vec![fifo(&[0], &[job(1, 1)])]),
            "1!",
        ),
        (
            "a retired node counts for nothing",
            decide(vec![Node { open: false, retired: true, ..node(0, 0, &[0]) }], vec![fifo(&[0], &[job(1, 1)])]),
            "1!!",
        ),
    ];
    for (sentence, got, want) in cases {
        assert_eq!(got, want, "{sentence}");
    }
}

fn share(id: &str, usage: f64, weight: f64, jobs: &[i64]) -> Share {
    let jobs = jobs.iter().map(|n| job(*n, 1)).collect();
    Share { id: id.to_owned(), usage, weight, jobs }
}

#[test]
fn shares_take_turns_by_what_they_have_had_for_their_weight() {
    let run = |shares: Vec<Share>| {
        let queue = Queue { environments: vec![0], shares };
        decide(vec![node(0, 0, &[0, 1, 2, 3])], vec![queue])
    };
    let even = run(vec![share("a", 0.0, 1.0, &[1, 2]), share("b", 0.0, 1.0, &[3, 4])]);
    assert_eq!(even, "1@0/0:0 3@0/0:1 2@0/0:2 4@0/0:3", "equal shares alternate, the first by name first");
    let used = run(vec![share("a", 1e9, 1.0, &[1, 2]), share("b", 0.0, 1.0, &[3, 4])]);
    assert_eq!(used, "3@0/0:0 4@0/0:1 1@0/0:2 2@0/0:3", "who has used more waits");
    let weighted = run(vec![share("a", 100.0, 0.125, &[1]), share("b", 50.0, 1.0, &[3])]);
    assert_eq!(weighted, "1@0/0:0 3@0/0:1", "a lower weight factor gets more");
}

use proptest::prelude::*;

use super::super::{Head, Job, Node};
use super::*;

/// The best objective by trying every node for every job.
fn brute_force(problem: &Problem) -> f64 {
    fn go(problem: &Problem, job: usize, plan: &mut Plan, best: &mut f64) {
        let Some(of) = problem.jobs().get(job) else {
            *best = best.max(problem.objective(plan).unwrap_or(f64::NEG_INFINITY));
            return;
        };
        go(problem, job + 1, plan, best);
        let nodes = u32::try_from(problem.nodes().len()).unwrap();
        let choices: Vec<Vec<u32>> = if of.slots > problem.node_slots_max {
            (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| vec![a, b])).collect()
        } else {
            (0..nodes).map(|node| vec![node]).collect()
        };
        for choice in choices {
            plan.nodes[job] = choice;
            // Too much on a node stays too much.
            if problem.objective(plan).is_ok() {
                go(problem, job + 1, plan, best);
            }
            plan.nodes[job].clear();
        }
    }
    let (mut plan, mut best) = (Plan { nodes: vec![Vec::new(); problem.jobs().len()] }, f64::NEG_INFINITY);
    go(problem, 0, &mut plan, &mut best);
    best
}

fn node(free: u32) -> Node {
    Node { slots: 4, free, spare: free }
}

fn job(slots: u32, weight: u32) -> Job {
    Job { slots, weight, is_urgent: weight > 800, outlasts: false }
}

prop_compose! {
    fn problems()(
        nodes in prop::collection::vec((0_u32..=4).prop_map(node), 1..4),
        jobs in prop::collection::vec((prop::sample::select(vec![1, 2, 3, 4, 8]), 0_u32..1200), 0..6),
        alpha in prop::sample::select(vec![0.0, 0.25, 0.3333, 2.0]),
    ) -> Problem {
        Problem::new(nodes, jobs.into_iter().map(|(slots, weight)| job(slots, weight)).collect(), alpha).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_exact_plan_is_the_best_of_all(problem in problems()) {
        let solved = exact(&problem).unwrap();
        let (worth, best) = (problem.objective(&solved.plan).unwrap(), brute_force(&problem));
        prop_assert!(solved.is_proven);
        prop_assert!((worth - best).abs() < 1e-5, "{worth} {best} {problem:?}");
    }

    #[test]
    fn the_proof_needs_no_good_plan_to_begin_with(problem in problems()) {
        let nothing = Plan { nodes: vec![Vec::new(); problem.jobs().len()] };
        let solved = Small::of(&problem).unwrap().solve(nothing);
        let worth = problem.objective(&solved.plan).unwrap();
        prop_assert!((worth - brute_force(&problem)).abs() < 1e-5, "{worth} {problem:?}");
    }
}

#[test]
fn what_isnt_small_is_told() {
    let too_large = |nodes: Vec<Node>, jobs: Vec<Job>| exact(&Problem::new(nodes, jobs, 0.25).unwrap()).unwrap_err();
    let wide = |slots| Node { slots, free: slots, spare: slots };
    assert_eq!(too_large(vec![wide(32)], (1..=17).map(|slots| job(slots, 1)).collect()), TooLarge::Kinds);
    assert_eq!(too_large(vec![wide(8)], vec![job(1, 1); 256]), TooLarge::Kinds);
    assert_eq!(
        too_large(vec![wide(96)], (1..=8).flat_map(|slots| vec![job(slots, 1); 96]).collect()),
        TooLarge::Patterns
    );
    assert_eq!(too_large(vec![wide(8), wide(4)], vec![job(16, 1)]), TooLarge::MixedNodes);
    let gangs = [2, 3, 4, 5].iter().flat_map(|nodes| vec![job(4 * nodes, 1); 60]).collect();
    assert_eq!(too_large(vec![wide(4); 200], gangs), TooLarge::Branches);
    let long = Job { outlasts: true, ..job(1, 1) };
    let reserved = Problem::new(vec![wide(8)], vec![long], 0.25).unwrap().beside(Head { slot_price: 1.0 });
    assert_eq!(exact(&reserved), Err(TooLarge::Reserved));
}

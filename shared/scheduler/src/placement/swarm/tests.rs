use proptest::prelude::*;

use super::super::{Job, Node, greedy};
use super::agent::{Agent, View};
use super::moves::Moves;
use super::random::Random;
use super::*;

fn problem(nodes: u32, jobs: usize, seed: u64) -> Problem {
    let mut random = Random::of(seed, 99);
    let nodes = (0..nodes).map(|_| Node { slots: 8, free: 8, spare: 8 }).collect();
    let job = |_| {
        let slots = [1, 1, 1, 2, 2, 4, 4, 8, 3, 6][random.below(10)];
        let weight = u32::try_from(random.below(1200)).unwrap();
        Job { slots, weight, is_urgent: weight > 800, outlasts: false }
    };
    Problem::new(nodes, (0..jobs).map(job).collect(), 0.25).unwrap()
}

fn worth(problem: &Problem, plan: &Plan) -> f64 {
    problem.objective(plan).unwrap()
}

prop_compose! {
    fn problems()(
        nodes in prop::collection::vec((0_u32..=8).prop_map(|free| Node { slots: 8, free, spare: free }), 0..12),
        jobs in prop::collection::vec((prop::sample::select(vec![1, 2, 3, 4, 5, 8, 16, 24]), 0_u32..1200), 0..40),
        alpha in prop::sample::select(vec![0.0, 0.25, 1.0]),
    ) -> Problem {
        let job = |(slots, weight)| Job { slots, weight, is_urgent: weight > 800, outlasts: false };
        Problem::new(nodes, jobs.into_iter().map(job).collect(), alpha).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    // B7: the plan is what best fit makes of the best order that was found.
    #[test]
    fn a_plan_can_be_carried_out_and_is_never_worth_less_than_greedy(problem in problems(), seed in 0_u64..1000) {
        let settings = Settings { seed, evaluations_max: 300, ..Settings::default() };
        let flown = osprey(&problem, &settings);
        prop_assert!(worth(&problem, &flown.plan) >= worth(&problem, &greedy(&problem)) - 1e-9);
        prop_assert!(worth(&problem, &flown.plan) <= ceiling(&problem) / 1000.0 + 1e-9);
        prop_assert!((flown.syncs.last().unwrap().best - worth(&problem, &flown.plan)).abs() < 1e-9);
    }
}

#[test]
fn the_work_is_bounded_by_tried_orders_and_by_rounds() {
    let problem = problem(16, 120, 1);
    for evaluations_max in [500, 2000, 5000] {
        let flown = osprey(&problem, &Settings { evaluations_max, patience_syncs: 1000, ..Settings::default() });
        assert!(flown.evaluations <= evaluations_max + 1, "{}", flown.evaluations);
    }
    let settings = Settings { rounds_max: 7, evaluations_max: u32::MAX, patience_syncs: 100, ..Settings::default() };
    assert_eq!(osprey(&problem, &settings).syncs.last().unwrap().round, 7);
}

#[test]
fn the_search_ends_when_nothing_better_comes_or_nothing_better_can_be() {
    let problem = self::problem(4, 12, 3);
    let settings = Settings { rounds_max: 10_000, evaluations_max: u32::MAX, patience_syncs: 5, ..Settings::default() };
    assert!(osprey(&problem, &settings).syncs.last().unwrap().round < 200);
    let node = Node { slots: 8, free: 8, spare: 8 };
    let job = Job { slots: 8, weight: 500, is_urgent: false, outlasts: false };
    let full = Problem::new(vec![node], vec![job], 0.25).unwrap();
    assert_eq!(osprey(&full, &settings).evaluations, 1);
}

// B2, B3, B12
#[test]
fn there_is_a_sub_swarm_a_node_with_five_to_ten_agents_each() {
    let agents = |settings: &Settings, nodes| {
        let swarms = sub_swarms_of(settings, nodes);
        (swarms.len(), swarms.iter().min().copied(), swarms.iter().max().copied())
    };
    assert_eq!(agents(&Settings::default(), 10), (10, Some(5), Some(5)));
    assert_eq!(agents(&Settings::default(), 200), (32, Some(5), Some(5)));
    assert_eq!(agents(&Settings { agents: Some(50), ..Settings::default() }, 10), (10, Some(5), Some(5)));
    assert_eq!(agents(&Settings { agents: Some(7), ..Settings::default() }, 10), (7, Some(1), Some(1)));
    let Settings { inertia, local_pull, global_pull, .. } = Settings::default();
    assert_eq!((inertia, local_pull, global_pull), (0.9, 1.2, 0.8));
}

fn sub_swarms_of(settings: &Settings, nodes: u32) -> Vec<usize> {
    let problem = problem(nodes, 5, 1);
    let start = by_priority(&problem);
    sub_swarms(&problem, settings, &start).iter().map(|swarm| swarm.agents().len()).collect()
}

// B5, B14
#[test]
fn an_osprey_whose_plan_leaves_an_urgent_job_waiting_dives_for_it() {
    let problem = problem(4, 60, 5);
    let (moves, mut packer) = (Moves::of(&problem), Packer::new(&problem));
    let backwards: Vec<u32> = by_priority(&problem).into_iter().rev().collect();
    let mut agent = Agent::new(Random::of(1, 0), &backwards, 0, &moves, &mut packer);
    let (settings, global) = (Settings::default(), agent.perch.clone());
    let view =
        View { settings: &settings, moves: &moves, round: 1, local: &backwards, global: &global, fish: &backwards };
    let flight = agent.fly(view, &mut packer);
    assert_eq!(flight.dives, 1);
    let first = agent.glided.order.first().copied().unwrap();
    assert!(problem.jobs()[first as usize].is_urgent, "job {first} is in front");
}

/// Gliding alone, from random orders, as the code that the tuning is from: the share of the agents that have the same job in front.
fn herd(problem: &Problem, local_pull: f64, global_pull: f64, seed: u64, rounds: u32) -> f64 {
    let settings = Settings { local_pull, global_pull, ..Settings::default() };
    let (moves, mut packer) = (Moves::of(problem), Packer::new(problem));
    let start = by_priority(problem);
    let new = |number| Agent::new(Random::of(seed, number), &start, 1000, &moves, &mut packer);
    let mut agents: Vec<Agent> = (0..50).map(new).collect();
    let best = |agents: &[Agent]| {
        agents.iter().map(|agent| &agent.perch).max_by(|a, b| a.score.total_cmp(&b.score)).unwrap().clone()
    };
    for round in 1..=rounds {
        let global = best(&agents);
        let locals: Vec<Found> = agents.chunks(5).map(best).collect();
        for (number, agent) in agents.iter_mut().enumerate() {
            let local = &locals[number / 5].order;
            let view = View { settings: &settings, moves: &moves, round, local, global: &global, fish: local };
            agent.glide(view, &mut packer, &mut agent::Flight::default());
        }
    }
    let mut first: Vec<u32> = agents.iter().map(|agent| agent.glided.order[0]).collect();
    first.sort_unstable();
    let herd = first.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap();
    herd as f64 / agents.len() as f64
}

// B13: with both pulls at 2.0 more of the agents soon go for one job than with the tuned ones.
#[test]
fn strong_pulls_make_the_agents_herd() {
    let urgent = problem(10, 100, 2);
    // Dives make agents alike too; without them only the pulls do.
    let jobs = urgent.jobs().iter().map(|job| Job { is_urgent: false, ..*job }).collect();
    let problem = Problem::new(urgent.nodes().to_vec(), jobs, 0.25).unwrap();
    let herd = |local_pull, global_pull, rounds| {
        (1..=20).map(|seed| herd(&problem, local_pull, global_pull, seed, rounds)).sum::<f64>() / 20.0
    };
    for rounds in [4, 8] {
        let (strong, tuned) = (herd(2.0, 2.0, rounds), herd(1.2, 0.8, rounds));
        assert!(strong > tuned + 0.02, "after {rounds} rounds: {strong} {tuned}");
    }
}

/// Two nodes of four GPUs, of which two of the second are held, and jobs of these sizes, all of one worth.
fn four_and_two(sizes: &[u32]) -> Problem {
    let node = |free| Node { slots: 4, free, spare: free };
    let job = |slots: &u32| Job { slots: *slots, weight: 500, is_urgent: false, outlasts: false };
    Problem::new(vec![node(4), node(2)], sizes.iter().map(job).collect(), 0.25).unwrap()
}

// B1, B17, E4
#[test]
fn what_fits_is_worth_its_priority_and_its_gpus_and_what_is_stranded_costs() {
    let worth = |sizes: &[u32], nodes: &[&[u32]]| {
        let nodes = nodes.iter().map(|nodes| nodes.to_vec()).collect();
        self::worth(&four_and_two(sizes), &Plan { nodes })
    };
    // Nothing starts: two GPUs are stranded on the second node.
    let nothing = worth(&[2], &[&[]]);
    assert!((nothing + 0.5).abs() < 1e-9, "{nothing}");
    // A job that fits is worth more than one that waits, and exactly filling two is worth more than leaving three idle.
    let (exact, idle) = (worth(&[2], &[&[1]]), worth(&[1], &[&[0]]));
    assert!(exact > nothing && exact - idle > 0.5 + 0.25, "{exact} {idle} {nothing}");
    // What doesn't fit can't be placed, and is worth nothing.
    assert!(four_and_two(&[3]).objective(&Plan { nodes: vec![vec![1]] }).is_err());
    let flown = osprey(&four_and_two(&[8, 2]), &Settings::default());
    assert_eq!(flown.plan.nodes, [vec![], vec![1]]);
}

// B4
#[test]
fn inertia_and_either_pull_move_an_osprey_and_without_them_it_stays() {
    let problem = problem(4, 60, 5);
    let jobs = problem.jobs().iter().map(|job| Job { is_urgent: false, ..*job }).collect();
    let problem = Problem::new(problem.nodes().to_vec(), jobs, 0.25).unwrap();
    let (moves, mut packer) = (Moves::of(&problem), Packer::new(&problem));
    let start = by_priority(&problem);
    let backwards: Vec<u32> = start.iter().rev().copied().collect();
    let global = Found { score: packer.pack(&backwards), order: backwards.clone() };
    let mut glided = |inertia, local_pull, global_pull, rounds: u32| {
        let mut agent = Agent::new(Random::of(1, 0), &start, 0, &moves, &mut packer);
        let strong = Settings { inertia: 1.0, local_pull: 1.0, global_pull: 1.0, ..Settings::default() };
        let settings = Settings { inertia, local_pull, global_pull, ..Settings::default() };
        for round in 1..=rounds {
            // The first round gives it a velocity where inertia is looked at.
            let settings = if round == 1 && rounds > 1 { &strong } else { &settings };
            let view = View { settings, moves: &moves, round, local: &backwards, global: &global, fish: &start };
            agent.glide(view, &mut packer, &mut agent::Flight::default());
        }
        agent.glided.order
    };
    assert_eq!(glided(0.0, 0.0, 0.0, 1), start);
    assert_ne!(glided(0.0, 1.2, 0.0, 1), start);
    assert_ne!(glided(0.0, 0.0, 0.8, 1), start);
    assert_ne!(glided(0.9, 0.0, 0.0, 2), glided(0.0, 0.0, 0.0, 2));
}

// B18
#[test]
fn an_osprey_that_finds_nothing_better_hovers() {
    // One order is as good as any other: everything fits.
    let problem = four_and_two(&[1, 1]);
    let (moves, mut packer) = (Moves::of(&problem), Packer::new(&problem));
    let start = by_priority(&problem);
    let mut agent = Agent::new(Random::of(1, 0), &start, 0, &moves, &mut packer);
    let (settings, global) = (Settings::default(), agent.perch.clone());
    let mut evaluations = |round| {
        let view = View { settings: &settings, moves: &moves, round, local: &start, global: &global, fish: &start };
        agent.fly(view, &mut packer).evaluations
    };
    let tried: Vec<u32> = (1..=7).map(&mut evaluations).collect();
    // It waits for a round after the second, and for two after it has looked twice more.
    assert!(tried[0] > 0 && tried[1] > 0 && tried[2] == 0 && tried[3] > 0, "{tried:?}");
}

/// Flies sub-swarms the other way round.
struct Backwards;

impl Pace for Backwards {
    fn each<'p>(&self, swarms: &mut [SubSwarm<'p>], fly: &(dyn Fn(&mut SubSwarm<'p>) + std::marker::Sync)) {
        swarms.iter_mut().rev().for_each(fly);
    }
}

// B6, B8, B9, B10, E5
#[test]
fn five_hundred_ospreys_share_nothing_between_two_syncs_and_the_best_of_all_only_grows() {
    let problem = problem(16, 120, 4);
    let settings = Settings { agents: Some(500), evaluations_max: 50_000, ..Settings::default() };
    let start = by_priority(&problem);
    let flown = search(&problem, &settings, &start, &InTurn);
    assert_eq!(flown, search(&problem, &settings, &start, &Backwards));
    assert!(flown.syncs.len() > 2 && flown.syncs.is_sorted_by(|a, b| a.best <= b.best), "{:?}", flown.syncs);
    assert!((flown.syncs.last().unwrap().best - worth(&problem, &flown.plan)).abs() < 1e-9);
}

//! Instances that are made up, each with its exact plan.

use osprey_scheduler::placement::swarm::Settings;
use osprey_scheduler::placement::{exact, greedy, osprey};
use osprey_sim::kernel::random::{Random, fork};

use crate::checker::{FileJob, FileNode, Instance};
use crate::{Checked, SHARE};

/// How an instance is made: nodes, jobs, the share of nodes that are partly used, and sizes with their weights.
type Recipe = (&'static str, u32, u32, f64, &'static [(u32, f64)]);

const RECIPES: [Recipe; 5] = [
    ("tight", 32, 60, 0.3, &[(3, 1.0), (4, 1.0), (5, 1.0), (6, 1.0)]),
    ("small", 10, 60, 0.3, &[(3, 1.0), (4, 1.0), (5, 1.0), (6, 1.0), (7, 1.0)]),
    ("odd", 32, 120, 0.3, &[(3, 1.0), (5, 1.0), (6, 1.0), (7, 1.0)]),
    ("usual", 32, 300, 0.6, &[(1, 50.0), (2, 15.0), (4, 15.0), (8, 15.0), (16, 3.0), (32, 1.0)]),
    (
        "gangs",
        32,
        300,
        0.5,
        &[(1, 5.0), (2, 4.0), (3, 4.0), (5, 4.0), (6, 4.0), (7, 4.0), (8, 4.0), (16, 3.0), (24, 2.0), (32, 1.0)],
    ),
];

fn made(recipe: Recipe, number: u64) -> Instance {
    let (name, nodes, jobs, occupied, sizes) = recipe;
    let mut random = fork(number, name);
    let used = |random: &mut Random| {
        if random.chance(occupied) { u32::try_from(random.below(8)).unwrap_or(0) } else { 0 }
    };
    let nodes = (0..nodes).map(|id| FileNode { id, used: used(&mut random) }).collect();
    let job = |id| FileJob {
        id,
        gpus: random.weighted(sizes).unwrap_or(1),
        priority: u32::try_from(random.below(1200)).unwrap_or(0),
    };
    Instance { gpus_per_node: 8, alpha: 0.25, nodes, jobs: (0..jobs).map(job).collect() }
}

#[test]
fn ospreys_find_almost_all_that_there_is_in_instances_that_nobody_has_seen() -> Checked {
    for recipe in RECIPES {
        for number in 1..=3 {
            let instance = made(recipe, number);
            let problem = instance.problem()?;
            let solved = exact(&problem).map_err(|too_large| too_large.to_string())?;
            assert!(solved.is_proven, "{} {number}", recipe.0);
            let best = instance.worth(&instance.named(&solved.plan))?;
            let floor = instance.worth(&instance.named(&greedy(&problem)))?;
            for seed in 1..=3 {
                let flown = osprey(&problem, &Settings { seed, ..Settings::default() });
                let worth = instance.worth(&instance.named(&flown.plan))?;
                let is_enough = worth >= SHARE * best && worth >= floor && worth <= best + 1e-9;
                assert!(is_enough, "{} {number}, seed {seed}: {floor} {worth} {best}", recipe.0);
            }
        }
    }
    Ok(())
}

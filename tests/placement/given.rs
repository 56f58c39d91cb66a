//! Instances with known answers.

use osprey_scheduler::placement::swarm::Settings;
use osprey_scheduler::placement::{exact, greedy, osprey};

use crate::checker::{Instance, known_plan};
use crate::{Checked, SEEDS, SHARE};

/// The instances: what the best known plan is worth, and the share of it that greedy finds.
pub(crate) const GIVEN: [(&str, f64, f64); 6] = [
    ("seed_cli_n10_j100", 76.83, 1.0),
    ("n10_j100_occ", 61.42, 1.0),
    ("n32_j100_empty", 202.39, 1.0),
    ("n32_j100_occ", 138.38, 1.0),
    ("n32_j120_odd", 150.60, 0.9958),
    ("hard_n32_j120_tight", 115.743, 0.9575),
];

#[test]
fn the_known_plans_are_worth_what_is_said_of_them() -> Checked {
    for (name, best, _) in GIVEN {
        let worth = Instance::load(name)?.worth(&known_plan(name)?)?;
        assert!((worth - best).abs() < 1e-9, "{name}: {worth}");
    }
    Ok(())
}

#[test]
fn greedy_finds_the_share_that_is_known_of_it() -> Checked {
    for (name, best, share) in GIVEN {
        let instance = Instance::load(name)?;
        let worth = instance.worth(&instance.named(&greedy(&instance.problem()?)))?;
        assert!((worth / best - share).abs() < 1e-4, "{name}: {worth}");
    }
    Ok(())
}

/// The known plan of the hardest one was the best of 90 seconds, with a bound of 124.31: it is the best there is.
#[test]
fn exact_proves_that_the_known_plans_are_the_best() -> Checked {
    for (name, best, _) in GIVEN {
        let instance = Instance::load(name)?;
        let solved = exact(&instance.problem()?).map_err(|too_large| too_large.to_string())?;
        assert!(solved.is_proven, "{name}");
        let worth = instance.worth(&instance.named(&solved.plan))?;
        assert!((worth - best).abs() < 1e-9 && (solved.bound - best).abs() < 1e-9, "{name}: {worth}");
    }
    Ok(())
}

#[test]
fn ospreys_find_the_exact_plan_or_almost_with_every_seed_and_never_less_than_greedy() -> Checked {
    for (name, best, share) in GIVEN {
        let instance = Instance::load(name)?;
        let problem = instance.problem()?;
        for seed in 1..=SEEDS {
            let flown = osprey(&problem, &Settings { seed, ..Settings::default() });
            let worth = instance.worth(&instance.named(&flown.plan))?;
            assert!(worth >= SHARE * best && worth >= share * best - 1e-2, "{name}, seed {seed}: {worth}");
        }
    }
    Ok(())
}

// B19
#[test]
fn a_seed_says_everything() -> Checked {
    let problem = Instance::load("hard_n32_j120_tight")?.problem()?;
    let flown = |seed| osprey(&problem, &Settings { seed, ..Settings::default() });
    assert_eq!(flown(3), flown(3));
    assert_ne!(flown(3).plan, flown(4).plan);
    Ok(())
}

// B16: two or three cycles are enough.
#[test]
fn the_best_plan_is_found_within_three_syncs() -> Checked {
    for (name, best, _) in GIVEN {
        let flown = osprey(&Instance::load(name)?.problem()?, &Settings::default());
        let at_third = flown.syncs.iter().take(4).next_back().map(|sync| sync.best);
        assert!(at_third.is_some_and(|found| found >= SHARE * best), "{name}: {at_third:?}");
    }
    Ok(())
}

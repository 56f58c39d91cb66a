//! `osprey place`: which jobs of one queue start where, on nodes that are partly used.

mod answer;
mod instance;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use osprey_scheduler::placement::swarm::{self, Settings};
use osprey_scheduler::placement::{Plan, Problem, by_priority, exact, greedy};

use super::Exit;
use crate::error::{CliError, ErrorCode};
use crate::threads::Threads;
use crate::ui::Ui;
use answer::{Account, Answer};
use instance::Instance;

/// Solve one placement instance: which jobs start now, and on which nodes.
///
/// A plan is worth the sum of priority / 1000 × GPUs over the jobs that start, minus alpha × the GPUs left free on partly
/// used nodes. `greedy` walks down the queue once; `osprey` searches around that, and never falls below it; `exact`
/// proves the best plan of a small instance. docs/osprey.md describes them and what an instance is made of.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey place instance.json
  osprey place instance.json --strategy exact
  osprey place instance.json --strategy osprey --seed 7 --output json")]
pub struct PlaceArgs {
    /// The instance; `-` is standard input
    #[arg(value_name = "INSTANCE.json")]
    instance: PathBuf,
    /// How the plan is found: greedy, osprey or exact
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Strategy::Osprey, hide_possible_values = true)]
    strategy: Strategy,
    /// Seed of the search; the same seed finds the same plan
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    swarm: SwarmArgs,
    /// Threads of the search; what it finds doesn't depend on them [default: as many as the machine runs at once]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// The priority above which a job is urgent: ospreys dive for it
    #[arg(long, value_name = "PRIORITY", default_value_t = 800)]
    dive_above: u32,
}

/// The size of a swarm.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct SwarmArgs {
    /// Agents of the placement search in all [default: 5 for each node, up to 32 nodes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(Settings::AGENTS_MAX)))]
    pub ospreys: Option<u32>,
    /// Most rounds of the placement search [default: until 10,000 orders were tried or nothing better comes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: Option<u32>,
}

impl SwarmArgs {
    /// The settings of the search. Rounds that were asked for are flown, however many orders they try.
    #[must_use]
    pub fn settings(self, seed: u64) -> Settings {
        let usual = Settings { seed, agents: self.ospreys, ..Settings::default() };
        match self.rounds {
            Some(rounds_max) => Settings { rounds_max, evaluations_max: u32::MAX, ..usual },
            None => usual,
        }
    }
}

/// How a plan is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Strategy {
    Greedy,
    Osprey,
    Exact,
}

impl Strategy {
    fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Osprey => "osprey",
            Self::Exact => "exact",
        }
    }
}

/// Solves and shows.
pub fn place(args: &PlaceArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let instance = Instance::read(&args.instance, args.dive_above)?;
    let began = Instant::now();
    let (plan, account) = solve(&instance.problem, args)?;
    let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
    let objective = instance.problem.objective(&plan).map_err(|infeasible| CliError::failed(infeasible.to_string()))?;
    let (strategy, seed) = (args.strategy.name(), args.seed);
    let answer = Answer { instance: &instance, strategy, seed, plan, objective, milliseconds, account };
    if ui.is_json() {
        ui.json(&answer.json())?
    } else {
        ui.text(&answer.text())?
    }
    Ok(Exit::Ok)
}

fn solve(problem: &Problem, args: &PlaceArgs) -> Result<(Plan, Account), CliError> {
    match args.strategy {
        Strategy::Greedy => Ok((greedy(problem), Account::None)),
        Strategy::Osprey => {
            let settings = args.swarm.settings(args.seed);
            let flown = swarm::search(problem, &settings, &by_priority(problem), &Threads::of(args.threads));
            Ok((flown.plan.clone(), Account::Flown(flown)))
        }
        Strategy::Exact => {
            let solved = exact(problem).map_err(|too_large| {
                CliError::new(
                    ErrorCode::InvalidInput,
                    format!("the instance is too large to be solved exactly: {too_large}"),
                )
                .help("`--strategy osprey` finds a good plan without a proof")
            })?;
            let account = Account::Solved { bound: solved.bound, is_proven: solved.is_proven };
            Ok((solved.plan, account))
        }
    }
}

//! `osprey bench cycle`: how long the scheduling decision takes on a backlog.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use osprey_model::id::PoolName;
use osprey_scheduler::{Rules, Strategy, decide};
use osprey_sim::backlog::{NOW_MS, backlog};
use serde_json::json;

use super::{digits, median_and_longest};
use crate::command::Exit;
use crate::error::{CliError, ErrorCode};
use crate::policy_file;
use crate::render::table::Columns;
use crate::ui::Ui;

/// Time one scheduling decision on made-up backlogs: order, placement, reservations, backfill and a reason for each job.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey bench cycle
  osprey bench cycle --pending 1001,4001 --gpus 256 --output json
  osprey bench cycle --pending 100000 --gpus 4096 --strategy fifo")]
pub struct CycleArgs {
    /// Jobs that wait, with commas between the sizes
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_values_t = [1_001, 4_001, 100_000],
          value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pending: Vec<u32>,
    /// GPUs of the pool, one for each size or one for all
    #[arg(long, value_name = "X,Y", value_delimiter = ',', default_values_t = [256, 256, 4_096],
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    gpus: Vec<u32>,
    /// The strategy: fifo, priority, sjf, backfill or osprey
    #[arg(long, value_name = "NAME", default_value = "backfill", value_parser = strategy)]
    strategy: Strategy,
    /// The policy; the built-in default without it
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Times that each is run
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Seed of the backlogs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// Reads the name of a strategy.
pub fn strategy(name: &str) -> Result<Strategy, String> {
    let names = || Strategy::ALL.into_iter().map(Strategy::name);
    Strategy::ALL
        .into_iter()
        .find(|strategy| strategy.name() == name)
        .ok_or_else(|| format!("the strategies are {}", names().collect::<Vec<_>>().join(", ")))
}

/// Milliseconds of the runs of one size.
struct Timed {
    pending: u32,
    gpus: u32,
    median: f64,
    max: f64,
}

pub(super) fn cycle(args: &CycleArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let gpus = match args.gpus.as_slice() {
        [one] => vec![*one; args.pending.len()],
        many if many.len() == args.pending.len() => many.to_vec(),
        many => {
            let message = format!("`--pending` has {} sizes and `--gpus` {}", args.pending.len(), many.len());
            return Err(CliError::new(ErrorCode::Usage, message).help("give one of GPUs for each, or one for all"));
        }
    };
    let policy = policy_file::load(args.policy.as_deref())?;
    let rules = Rules { strategy: args.strategy, ..Rules::of(&policy, &PoolName::default()) };
    let timed: Vec<Timed> = args
        .pending
        .iter()
        .zip(gpus)
        .map(|(pending, gpus)| {
            let snapshot = backlog(&policy, *pending, gpus, args.seed);
            let run = || {
                let began = Instant::now();
                black_box(decide(black_box(&snapshot), &rules, NOW_MS));
                began.elapsed().as_secs_f64() * 1_000.0
            };
            // Once beforehand, so that nobody pays for memory that was never touched.
            run();
            let (median, max) = median_and_longest((0..args.runs).map(|_| run()).collect());
            Timed { pending: *pending, gpus, median, max }
        })
        .collect();
    show(&timed, args.runs, ui)?;
    Ok(Exit::Ok)
}

fn show(timed: &[Timed], runs: u32, ui: &mut Ui) -> Result<(), CliError> {
    if ui.is_json() {
        let all: Vec<_> = timed
            .iter()
            .map(|Timed { pending, gpus, median, max }| {
                json!({ "pending": pending, "gpus": gpus, "milliseconds_median": digits(*median),
                        "milliseconds_max": digits(*max), "runs": runs })
            })
            .collect();
        return ui.json(&all);
    }
    let mut columns = Columns::new(&[">PENDING", ">GPUS", ">MEDIAN", ">LONGEST"]);
    for Timed { pending, gpus, median, max } in timed {
        let ms = |ms: f64| format!("{:.3} ms", digits(ms));
        columns.row([pending.to_string(), gpus.to_string(), ms(*median), ms(*max)]);
    }
    ui.text(&columns.render())
}

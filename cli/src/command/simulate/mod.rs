//! `osprey simulate`: what these jobs would have done on this cluster, under one strategy or several side by side.

mod answer;
mod cluster;
mod picture;
mod schedule_file;
mod source;
mod spread;
mod strategy;
mod table;

use std::path::PathBuf;

use clap::Args;
use osprey_sim::advice::{self, Result as Advised};
use osprey_sim::replay::Record;

use super::Exit;
use crate::error::CliError;
use crate::policy_file;
use crate::ui::Ui;
use answer::{Answer, Outcome};
use source::Source;

/// Replay jobs on a cluster that isn't there, under one strategy or several side by side.
///
/// Jobs come from a trace, or are made up to look like a published cluster. Numbers and tiers are derived by the
/// policy, or taken from a column of the trace. At one instant all completions come first, then all submissions, then
/// one scheduling pass; docs/simulator.md says what each strategy does.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey simulate --nodes 10 --jobs 100 --seed 1
  osprey simulate --nodes 10 --jobs 100 --seeds 20 --strategy fifo,backfill
  osprey simulate --trace jobs.csv --nodes 32 --strategy fifo,easy,backfill
  osprey simulate --trace jobs.csv --priority-column priority --strategy dive --schedule dive.csv
  osprey simulate --trace SDSC-SP2.swf --nodes 16 --output json

Strategies: fifo easy sjf first-fit srtf priority priority-easy priority-preempt dive (references, which admit
everybody), backfill (the production decision), batch-fifo batch-fairshare (AWS Batch without Osprey).")]
pub struct SimulateArgs {
    /// The trace; made-up jobs without it
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Its format; by the ending of its name without it: `.swf`, `.jsonl` for requests, else CSV
    #[arg(long, value_enum, value_name = "csv|swf|osprey", requires = "trace", hide_possible_values = true)]
    format: Option<source::Format>,
    /// The column that gives number and tier; derived by the policy without it
    #[arg(long, value_name = "NAME", requires = "trace")]
    priority_column: Option<String>,
    /// The policy; the built-in default without it
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Strategies, with commas between them
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "fifo,priority,backfill")]
    strategy: Vec<String>,
    /// Whether GPUs are counted, or nodes matter [default: count with a trace, node without]
    #[arg(long, value_enum, value_name = "count|node", hide_possible_values = true)]
    placement: Option<cluster::PlacementArg>,
    /// Nodes [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=cluster::NODES_MAX))]
    nodes: Option<u32>,
    /// GPUs of each node [default: 8]
    #[arg(long, value_name = "G", value_parser = clap::value_parser!(u32).range(1..=cluster::GPUS_PER_NODE_MAX))]
    gpus_per_node: Option<u32>,
    /// The cluster as JSON: `{"nodes": [{"id": "a", "gpus": 8}]}`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nodes", "gpus_per_node"])]
    cluster: Option<PathBuf>,
    /// Jobs to make up
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "trace",
          value_parser = clap::value_parser!(u32).range(1..=source::JOBS_MAX))]
    jobs: u32,
    /// The published cluster that made-up jobs look like: philly, helios, seren or pai
    #[arg(long, value_name = "NAME", default_value = "helios", conflicts_with = "trace", value_parser = source::profile)]
    profile: osprey_sim::synthetic::Profile,
    /// Work that arrives over work that the cluster can do
    #[arg(long, value_name = "SHARE", default_value = "0.8", conflicts_with = "trace", value_parser = source::load)]
    load: f64,
    /// What `backfill` believes of run times: exact, trace (what the trace says), noise (a factor of about 2), classes
    /// (half an hour, 4 hours, a day, 14 days), averages (of jobs of one size) or unknown
    #[arg(long, value_enum, value_name = "KIND", default_value_t = strategy::EstimatesArg::Exact,
          hide_possible_values = true)]
    estimates: strategy::EstimatesArg,
    /// Seed of everything that is left to chance
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// How many seeds, from `--seed` on; numbers are then means with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["trace", "schedule"],
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// Agents of the placement search, which this version doesn't have yet
    #[arg(long, value_name = "N")]
    ospreys: Option<u32>,
    /// Rounds of the placement search, which this version doesn't have yet
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Write `id,start,end,preemptions`; with several strategies one FILE-STRATEGY.csv each
    #[arg(long, value_name = "FILE.csv")]
    schedule: Option<PathBuf>,
}

/// Replays and shows.
pub fn simulate(args: &SimulateArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let strategies = strategy::parse(&args.strategy)?;
    let policy = policy_file::load(args.policy.as_deref())?;
    let cluster = cluster::of(args)?;
    if args.ospreys.is_some() || args.rounds.is_some() {
        ui.note("the placement search comes in a later version: `--ospreys` and `--rounds` change nothing yet");
    }
    let mut rounds = Vec::new();
    for seed in (args.seed..).take(usize::try_from(args.seeds).unwrap_or(1)) {
        let source = Source::load(args, &policy, cluster, seed)?;
        if rounds.is_empty() {
            source.tell(ui);
        }
        let draws = !ui.is_json() && args.seeds == 1 && picture::is_drawn(&cluster);
        let record = if draws { Record::Segments } else { Record::Outcomes };
        let dive_above = policy.order().dive_above;
        let settings = strategy::Settings { dive_above, record, estimates: args.estimates.into(), seed };
        let outcomes: Vec<Outcome> =
            strategies.iter().map(|strategy| strategy::run(*strategy, &source, settings)).collect();
        if rounds.is_empty() {
            tell_advice(&source, dive_above, &outcomes, ui);
        }
        schedule_file::write(args.schedule.as_deref(), &outcomes)?;
        rounds.push((source, outcomes));
    }
    show(&Answer::new(args.seed, rounds), ui)?;
    Ok(Exit::Ok)
}

fn tell_advice(source: &Source, dive_above: u32, outcomes: &[Outcome], ui: &mut Ui) {
    // Strategies that admit everybody and those that don't may have run different jobs; advice is about the first.
    let Some(first) = outcomes.first() else { return };
    let same = outcomes.iter().filter(|outcome| outcome.workload.jobs.len() == first.workload.jobs.len());
    let results: Vec<Advised<'_>> = same
        .map(|outcome| Advised { strategy: outcome.strategy, schedule: &outcome.schedule, metrics: &outcome.metrics })
        .collect();
    for line in advice::advice(&first.workload, &source.cluster, dive_above, &results) {
        let label = ui.paint().advice("advice:");
        ui.note(&format!("{label} {line}"));
    }
}

fn show(answer: &Answer, ui: &mut Ui) -> Result<(), CliError> {
    if ui.is_json() {
        return ui.json(&answer.json());
    }
    ui.text(&table::render(answer))?;
    let picture = picture::render(answer);
    if picture.is_empty() { Ok(()) } else { ui.text(&format!("\n{picture}")) }
}

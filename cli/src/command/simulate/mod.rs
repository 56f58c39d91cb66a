//! `osprey simulate`: what these jobs would have done on this cluster, under one strategy or several side by side.

pub(super) mod answer;
pub(super) mod cluster;
mod etas;
mod page;
mod picture;
pub(super) mod progress;
mod schedule_file;
pub(super) mod source;
mod spread;
pub(super) mod strategy;
mod swarm;
mod table;
mod why;

use std::path::PathBuf;

use clap::Args;
use osprey_model::metadata::parse_duration;
use osprey_policy::Policy;
use osprey_sim::advice::{self, Result as Advised};
use osprey_sim::replay::Record;

use super::Exit;
use super::place::SwarmArgs;
use crate::error::{CliError, ErrorCode};
use crate::policy_file;
use crate::ui::Ui;
use answer::{Answer, Outcome};
use progress::Progress;
use source::Source;
use strategy::{EstimatesArg, Strategy};

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
  osprey simulate --nodes 12 --spot-nodes 4 --reclaims-per-day 2 --failure-rate 0.05 --start-up 4m
  osprey simulate --trace jobs.csv --nodes 32 --why 231 --at 90m
  osprey simulate --trace jobs.csv --nodes 32 --strategy osprey --estimates learned --etas 500
  osprey export --local > history.jsonl && osprey simulate --trace history.jsonl --html what-if.html

Strategies: fifo easy sjf first-fit srtf priority priority-easy priority-preempt dive (references: they admit everybody,
derive nothing and pay nothing for restarts), backfill and osprey (the production decision), batch-fifo batch-fairshare (AWS Batch without Osprey).")]
pub struct SimulateArgs {
    #[command(flatten)]
    jobs: source::JobsArgs,
    /// The policy; the built-in default without it
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Strategies, with commas between them [default: fifo,priority,backfill; easy in place of priority where rows say
    /// no number]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    strategy: Option<Vec<String>>,
    #[command(flatten)]
    cluster: cluster::ClusterArgs,
    /// What `backfill` believes of run times: exact, trace (what the trace says), noise (a factor of about 2), classes
    /// (half an hour, 4 hours, a day, 14 days), averages (of jobs of one size), learned (of what has ended by then),
    /// unknown (one average) or none
    #[arg(long, value_enum, value_name = "KIND", default_value_t = strategy::EstimatesArg::Exact,
          hide_possible_values = true)]
    estimates: strategy::EstimatesArg,
    /// How many seeds, from `--seed` on; numbers are then means with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["schedule", "html"],
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    #[command(flatten)]
    swarm: SwarmArgs,
    /// Say why this job waits at `--at`, in place of the table: `backfill`, or the production strategy that is named
    #[arg(long, value_name = "JOB", requires = "at", conflicts_with_all = ["html", "schedule", "seeds"])]
    why: Option<String>,
    /// The moment for `--why`, from the first submission on, such as 90m or 5400
    #[arg(long, value_name = "TIME", requires = "why", value_parser = parse_duration)]
    at: Option<u64>,
    /// Say how often what `why` foretells of a start comes true, of a waiting job at each of N moments, in place of the table
    #[arg(long, value_name = "N", conflicts_with_all = ["why", "html", "schedule", "seeds"],
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    etas: Option<u32>,
    /// Write a page for browsers, complete in itself
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
    /// Write `id,start,end,preemptions`; with several strategies one FILE-STRATEGY.csv each
    #[arg(long, value_name = "FILE.csv")]
    schedule: Option<PathBuf>,
}

/// Replays and shows.
pub fn simulate(args: &SimulateArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let asked = args.strategy.as_deref().map(strategy::parse).transpose()?;
    let policy = policy_file::load(args.policy.as_deref())?;
    let described = cluster::of(&args.cluster, &policy, args.jobs.trace.is_some())?;
    if args.seeds > 1 && args.jobs.trace.is_some() && !described.has_chance() && args.estimates != EstimatesArg::Noise {
        return Err(CliError::new(ErrorCode::Usage, "with a trace and `--seeds` something has to be left to chance")
            .help("add `--spot-nodes`, `--failure-rate` or `--estimates noise`, or leave `--seeds` out"));
    }
    if let (Some(job), Some(at)) = (&args.why, args.at) {
        let source = Source::load(&args.jobs, &policy, described, args.jobs.seed)?;
        source.tell(ui);
        let answer = why::why(args, (job, at.saturating_mul(1_000)), &policy, &source)?;
        return crate::render::why::show(&answer, ui).map(|()| Exit::Ok);
    }
    if let Some(count) = args.etas {
        let source = Source::load(&args.jobs, &policy, described, args.jobs.seed)?;
        source.tell(ui);
        let hits = etas::etas(args, count, &policy, &source)?;
        return etas::show(&hits, ui).map(|()| Exit::Ok);
    }
    let mut rounds = Vec::new();
    for seed in (args.jobs.seed..).take(usize::try_from(args.seeds).unwrap_or(1)) {
        let source = Source::load(&args.jobs, &policy, described.clone(), seed)?;
        if rounds.is_empty() {
            source.tell(ui);
        }
        let strategies = chosen(asked.as_deref(), &source)?;
        let outcomes = replays(args, &strategies, &source, &policy, ui);
        if rounds.is_empty() {
            tell_advice(&source, policy.order().dive_above, &outcomes, ui);
        }
        schedule_file::write(args.schedule.as_deref(), &outcomes)?;
        rounds.push((source, outcomes));
    }
    let answer = Answer::new(args.jobs.seed, rounds);
    let flown = swarm::fly(args.swarm, &answer)?;
    if let Some(path) = &args.html {
        page::write(path, &answer, ui)?;
    }
    show(&answer, flown.as_ref(), ui)?;
    Ok(Exit::Ok)
}

/// The strategies that were asked for; the usual ones where none were. A reference that orders by a number needs one in
/// every row.
fn chosen(asked: Option<&[Strategy]>, source: &Source) -> Result<Vec<Strategy>, CliError> {
    let Some(asked) = asked else {
        let second = if source.unnumbered.is_none() { "priority" } else { "easy" };
        return strategy::parse(&["fifo", second, "backfill"].map(str::to_owned));
    };
    if let (Some(line), Some(strategy)) = (source.unnumbered, asked.iter().find(|strategy| strategy.needs_numbers())) {
        let (name, noun) = (strategy.name(), source.noun);
        let message = format!(
            "`{name}` orders by the number that each row says, and {noun} {line} of `{}` says none; references derive nothing",
            source.name
        );
        return Err(CliError::new(ErrorCode::Usage, message)
            .help("name a column with `--priority-column NAME`; `backfill` orders by the derived number"));
    }
    Ok(asked.to_vec())
}

fn replays(
    args: &SimulateArgs,
    strategies: &[Strategy],
    source: &Source,
    policy: &Policy,
    ui: &mut Ui,
) -> Vec<Outcome> {
    let is_drawn = !ui.is_json() && args.seeds == 1 && picture::is_drawn(&source.described);
    let record = if is_drawn || args.html.is_some() { Record::Segments } else { Record::Outcomes };
    let settings = strategy::Settings::of(policy, source, args.estimates.into(), record);
    let progress = Progress::new(ui, source.workload.jobs.len());
    let replay = |strategy: &Strategy| {
        progress.begin(strategy.name());
        strategy::run(*strategy, source, &settings, Some(&|submitted| progress.show(submitted)))
    };
    let outcomes = strategies.iter().map(replay).collect();
    progress.clear();
    outcomes
}

fn tell_advice(source: &Source, dive_above: u32, outcomes: &[Outcome], ui: &mut Ui) {
    // Strategies that admit everybody and those that don't may have run different jobs; advice is about the first.
    let Some(first) = outcomes.first() else { return };
    let same = outcomes.iter().filter(|outcome| outcome.workload.jobs.len() == first.workload.jobs.len());
    let results: Vec<Advised<'_>> = same
        .map(|outcome| Advised { strategy: outcome.strategy, schedule: &outcome.schedule, metrics: &outcome.metrics })
        .collect();
    for line in advice::advice(&first.workload, source.described.gpus(), dive_above, &results) {
        let label = ui.paint().advice("advice:");
        ui.note(&format!("{label} {line}"));
    }
}

fn show(answer: &Answer, flown: Option<&swarm::Flown<'_>>, ui: &mut Ui) -> Result<(), CliError> {
    if ui.is_json() {
        let mut json = answer.json();
        if let (Some(members), Some(flown)) = (json.as_object_mut(), flown) {
            members.insert("swarm".to_owned(), flown.json());
        }
        return ui.json(&json);
    }
    ui.text(&table::render(answer))?;
    let picture = picture::render(answer, ui.width(), ui.paint());
    let flown = flown.map_or_else(String::new, |flown| flown.text(ui.paint()));
    for part in [picture, flown].iter().filter(|part| !part.is_empty()) {
        ui.text(&format!("\n{part}"))?;
    }
    Ok(())
}

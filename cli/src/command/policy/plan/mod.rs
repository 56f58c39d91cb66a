//! `osprey policy plan`: what a new policy would have done to the same jobs.

mod answer;
mod change;
mod limits;
mod numbers;
mod waits;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::{Args, ValueEnum};
use osprey_policy::Policy;
use osprey_scheduler::Strategy as Production;
use osprey_sim::replay::Record;
use osprey_sim::workload::Job;

use super::Policies;
use crate::command::Exit;
use crate::command::simulate::answer::Outcome;
use crate::command::simulate::cluster::{self, ClusterArgs};
use crate::command::simulate::progress::Progress;
use crate::command::simulate::source::{Jobs, JobsArgs, Source};
use crate::command::simulate::strategy::{self, EstimatesArg, Settings, Strategy};
use crate::error::CliError;
use crate::ui::Ui;
use answer::{Answer, Refused};
use limits::Limit;
use numbers::Names;

/// Show what a new policy would have done to the same jobs: who changes tier, who waits longer, and the numbers.
///
/// The jobs of a trace, of an exported history, or made-up ones are derived, admitted and scheduled under both policies
/// by the decision that production makes. A limits file says how far the numbers may move; a limit that is broken ends
/// with exit code 3, so that a pipeline can stop a change.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey policy plan default policy.toml --trace jobs.csv --nodes 12
  osprey policy plan old.toml new.toml --trace jobs.csv --nodes 12 --limits limits.toml
  osprey export --stack osprey | osprey policy plan old.toml new.toml --trace - --format osprey --nodes 12

A limits file:
  [[limit]]
  metric = \"mean_wait_seconds\"    # a number of the JSON
  tier = \"critical\"               # or `team`; of all jobs without either
  rise_percent_max = 10           # or `fall_percent_max`, `max`, `min`

Exit code 3 when a limit is broken, 4 when a policy or the limits can't be used.")]
pub struct PlanArgs {
    #[command(flatten)]
    policies: Policies,
    /// How far the numbers may move
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    #[command(flatten)]
    jobs: JobsArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Schedule the jobs that a policy would refuse as well: traces seldom say all that a policy asks for
    #[arg(long)]
    admit_all: bool,
    /// The decision: osprey evicts as the policies say, backfill never does
    #[arg(long, value_enum, value_name = "osprey|backfill", default_value_t = Decision::Osprey,
          hide_possible_values = true)]
    strategy: Decision,
    /// What is believed of run times: exact, trace, noise, classes, averages, learned, unknown or none
    #[arg(long, value_enum, value_name = "KIND", default_value_t = EstimatesArg::Exact, hide_possible_values = true)]
    estimates: EstimatesArg,
}

/// Decisions that pools make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Decision {
    Osprey,
    Backfill,
}

impl From<Decision> for Production {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Osprey => Self::Osprey,
            Decision::Backfill => Self::Backfill,
        }
    }
}

/// Compares what two policies do.
pub fn plan(args: &PlanArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let limits = limits_of(args)?;
    let [old, new] = args.policies.load()?;
    let [before, after] = sources(args, [&old.policy, &new.policy])?;
    let names = names([&before, &after]);
    let file = args.limits.as_deref().unwrap_or(Path::new(""));
    limits.iter().try_for_each(|limit| limit.check(file, &names))?;
    before.tell_bad(ui);
    tell_refused(args, [&before, &after], ui);
    let changes = change::changes(&before.workload, &after.workload);
    let refused = [&before, &after].map(Refused::of);
    let outcomes = replays(args, [(before, &old.policy), (after, &new.policy)], ui);
    let dive_above = [&old.policy, &new.policy].map(|policy| policy.order().dive_above);
    let mut answer = Answer::new(names.tiers, changes, refused, &outcomes, dive_above);
    answer.limits = limits.iter().map(|limit| limit.held(&answer.before, &answer.after)).collect();
    if ui.is_json() {
        ui.json(&answer.json())?;
    } else {
        ui.text(&answer.text(ui.paint()))?;
    }
    Ok(if answer.is_within_limits() { Exit::Ok } else { Exit::Negative })
}

fn limits_of(args: &PlanArgs) -> Result<Vec<Limit>, CliError> {
    args.limits.as_deref().map_or_else(|| Ok(Vec::new()), limits::read)
}

/// Says how jobs that are refused can be compared all the same.
fn tell_refused(args: &PlanArgs, sources: [&Source; 2], ui: &mut Ui) {
    if !args.admit_all && sources.iter().any(|source| !source.refused.is_empty()) {
        let label = ui.paint().advice("advice:");
        ui.note(&format!("{label} jobs that are refused don't run; `--admit-all` schedules them too"));
    }
}

/// The jobs as each policy sees them; they are read once, since standard input can't be read twice.
fn sources(args: &PlanArgs, [old, new]: [&Policy; 2]) -> Result<[Source; 2], CliError> {
    let described = |policy: &Policy| cluster::of(&args.cluster, policy, args.jobs.trace.is_some());
    let before = described(old)?;
    let jobs = Jobs::read(&args.jobs, &before, args.jobs.seed)?;
    let before = Source::of(jobs.clone(), old, before, args.jobs.seed)?;
    Ok([before, Source::of(jobs, new, described(new)?, args.jobs.seed)?])
}

/// What can be limited: the tiers of both policies, those of the old one first, and the teams of the jobs.
fn names([before, after]: [&Source; 2]) -> Names {
    let mut tiers = before.workload.tiers.clone();
    tiers.extend(after.workload.tiers.iter().filter(|tier| !before.workload.tiers.contains(tier)).cloned());
    Names::new(tiers, before.workload.teams.clone())
}

fn replays(args: &PlanArgs, sources: [(Source, &Policy); 2], ui: &mut Ui) -> [Outcome; 2] {
    let jobs = sources.iter().map(|(source, _)| source.workload.jobs.len()).max().unwrap_or(0);
    let progress = Progress::new(ui, jobs);
    let mut labels = ["the old policy", "the new policy"].into_iter();
    let outcomes = sources.map(|(source, policy)| {
        progress.begin(labels.next().unwrap_or_default());
        replay(args, source, policy, &progress)
    });
    progress.clear();
    outcomes
}

fn replay(args: &PlanArgs, mut source: Source, policy: &Policy, progress: &Progress<'_>) -> Outcome {
    if args.admit_all {
        source.refused.clear();
        let admitted = source.workload.jobs.iter().map(|job| Job { is_refused: false, ..job.clone() });
        let mut workload = (*source.workload).clone();
        workload.jobs = admitted.collect();
        source.workload = Rc::new(workload);
    }
    let settings = Settings::of(policy, &source, args.estimates.into(), Record::Outcomes);
    let strategy = Strategy::Production(args.strategy.into());
    strategy::run(strategy, &source, &settings, Some(&|submitted| progress.show(submitted)))
}

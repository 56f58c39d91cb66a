//! `osprey why`: the one reason for which a job is where it is.

use std::path::{Path, PathBuf};

use clap::Args;
use osprey_model::id::{MessageId, PoolName};
use osprey_model::job::{Job, JobState};
use osprey_schedule::load::Loaded;
use osprey_schedule::why::Look;
use osprey_scheduler::{Rules, Strategy, decide};

use super::bench::strategy;
use super::{Exit, Place};
use crate::error::{CliError, ErrorCode};
use crate::joined::{Depth, Joined, ahead, decided};
use crate::policy_file;
use crate::render::time;
use crate::render::why::{self, Answer};
use crate::snapshot_file::Scene;
use crate::ui::Ui;

/// Show why a job waits, or where it is: one reason with its numbers, what would start it, and when it starts by itself.
///
/// A job in the line of its pool is asked after by the decision that a cycle would make now, so the answer can't differ
/// from what happens. Each change under `sooner` is the least of its kind: with it alone the decision was made again, and
/// starts the job. docs/REASONS.md explains each code.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey why training-231 --local
  osprey why training-231 --local my-state --output json
  osprey why training-231 --stack osprey --reason
  osprey why long --snapshot tests/golden/waiting/would-delay.json")]
pub struct WhyArgs {
    /// The job: its id, its name, or a beginning that only one job has
    #[arg(value_name = "JOB")]
    job: String,
    /// Decide about a pool as this file says it is, in place of a pipeline's: what would happen there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["local", "stack", "table"])]
    snapshot: Option<PathBuf>,
    /// The policy for `--snapshot`; the built-in default without it
    #[arg(long, value_name = "FILE", requires = "snapshot")]
    policy: Option<PathBuf>,
    /// The strategy for `--snapshot`: fifo, priority, sjf, backfill or osprey
    #[arg(long, value_name = "NAME", requires = "snapshot", default_value = "backfill", value_parser = strategy)]
    strategy: Strategy,
    /// Only the reason: no changes, and no time at which it starts
    #[arg(long)]
    reason: bool,
    #[command(flatten)]
    place: Place,
}

/// Says why.
pub fn why(args: &WhyArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let answer = match &args.snapshot {
        Some(file) => of_file(args, file, ui)?,
        None => {
            let joined = Joined::of(&args.place)?;
            let answer = joined.why(joined.find(&args.job)?, depth(args))?;
            if answer.ahead.is_some() {
                joined.say_who_runs(ui)?;
            }
            answer
        }
    };
    why::show(&answer, ui).map(|()| Exit::Ok)
}

fn depth(args: &WhyArgs) -> Depth {
    if args.reason { Depth::Reason } else { Depth::Changes }
}

/// What a decision about a pool would be that a file describes.
fn of_file(args: &WhyArgs, file: &Path, ui: &mut Ui) -> Result<Answer, CliError> {
    let policy = policy_file::load(args.policy.as_deref())?;
    let rules = Rules { strategy: args.strategy, ..Rules::of(&policy, &PoolName::default()) };
    let scene = Scene::read(file, &policy, &rules)?;
    let Some(named) = scene.find(&args.job) else {
        let message = format!("no job `{}` waits in `{}`", args.job, file.display());
        let waiting: Vec<&str> = scene.names().collect();
        return Err(CliError::new(ErrorCode::UnknownJob, message).help(format!("there wait {}", waiting.join(", "))));
    };
    let message = MessageId::new(named.name);
    let job = Job {
        id: named.id,
        name: named.name.to_owned(),
        priority: named.priority,
        tier: named.tier.clone(),
        pool: "snapshot".into(),
        state: JobState::Queued,
        ..Job::new(named.id, message, scene.now_ms)
    };
    let plan = decide(&scene.snapshot, &rules, scene.now_ms);
    let (now_ms, snapshot) = (scene.now_ms, scene.snapshot.clone());
    if let Some(told) = age(now_ms, jiff::Timestamp::now().as_millisecond()) {
        ui.note(&told);
    }
    let look = Look { loaded: Loaded::default(), snapshot, rules, plan, now_ms };
    let answer = decided(&job, &look);
    let gpus_per_node = scene.snapshot.nodes.iter().map(|node| node.gpus).max();
    Ok(match depth(args) {
        Depth::Reason => answer,
        Depth::Changes => {
            let as_of = Some(time::rfc3339(now_ms));
            Answer { as_of, ..ahead(answer, job.id, &look, gpus_per_node, |job| scene.name(job)) }
        }
    })
}

/// A snapshot that is older than this says little of now, in milliseconds: two rhythms of a cycle.
const FRESH_MS: i64 = 60_000;

/// What is said of the age of a snapshot; `None` for a fresh one, and for one of a time to come.
fn age(of_ms: i64, now_ms: i64) -> Option<String> {
    let age_ms = now_ms.saturating_sub(of_ms);
    (age_ms > FRESH_MS).then(|| {
        format!("the snapshot is {} old: what it says was so at {}", time::short(age_ms), time::rfc3339(of_ms))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_snapshot_says_its_age_and_a_fresh_one_nothing() {
        let old = "the snapshot is 2h07m old: what it says was so at 1970-01-01T00:00:00.000Z";
        assert_eq!(age(0, 7_620_000).as_deref(), Some(old));
        assert_eq!((age(0, 60_000), age(7_620_000, 0)), (None, None));
    }
}

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
use crate::joined::{Joined, decided};
use crate::policy_file;
use crate::render::why::{self, Answer};
use crate::snapshot_file::Scene;
use crate::ui::Ui;

/// Show why a job waits, or where it is: one reason with its numbers, and how many are before it.
///
/// A job in the line of its pool is asked after by the decision that a cycle would make now, so the answer can't differ
/// from what happens. docs/REASONS.md explains each code.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey why training-231 --local
  osprey why training-231 --local my-state --output json
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
    #[command(flatten)]
    place: Place,
}

/// Says why.
pub fn why(args: &WhyArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let answer = match &args.snapshot {
        Some(file) => of_file(args, file)?,
        None => {
            let joined = Joined::of(&args.place)?;
            joined.why(joined.find(&args.job)?)?
        }
    };
    if ui.is_json() {
        ui.json(&answer)?;
    } else {
        ui.text(&why::answer(&answer))?;
    }
    Ok(Exit::Ok)
}

/// What a decision about a pool would be that a file describes.
fn of_file(args: &WhyArgs, file: &Path) -> Result<Answer, CliError> {
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
    Ok(decided(&job, &Look { loaded: Loaded::default(), snapshot, rules, plan, now_ms }))
}

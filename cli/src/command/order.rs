//! `osprey top`, `report-priority`, `drain`, `resume`, `reserve` and `set-mode`: who goes first, and what a pool starts. Each sends a
//! message, like the other actions.

use clap::Args;
use jiff::{Timestamp, ToSpan as _};
use osprey_model::id::{PoolName, TierName};
use osprey_model::message::Action;
use osprey_model::message::words::either;
use osprey_model::metadata::parse_duration;
use osprey_model::pool::PoolMode;

use super::action::{self, Target};
use super::{Exit, Place};
use crate::error::{CliError, ErrorCode};
use crate::joined::Joined;
use crate::ui::Ui;

/// Move a waiting job to the front of its tier.
///
/// It gets the greatest number of its tier, and never goes into the next one. Exit code 3 when it doesn't wait, or the
/// policy doesn't let you.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey top training-231 --reason 'the demo is at ten' --local
  osprey top training-231 --dry-run --local")]
pub struct TopArgs {
    #[command(flatten)]
    target: Target,
}

/// Say, as a step of a graph of jobs, that what comes after it matters more or less than was derived.
///
/// It moves the jobs that wait for JOB, directly or through others, and those that name one of them as their parent later,
/// by points above or below what the policy derives for each; `[feedback]` in the policy bounds it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey report-priority agent-step-3 --points 100 --reason 'the user waits' --local
  osprey report-priority agent-step-3 --points=-50 --local
  osprey report-priority agent-step-3 --points 0 --local     take it back

A job finds its own id in OSPREY_JOB_ID. Exit code 3 when the report moves nothing.")]
pub struct ReportPriorityArgs {
    #[command(flatten)]
    target: Target,
    /// Points above what is derived, or below when negative
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    points: i32,
}

/// Let a pool, or one tier of it, start nothing more; what runs goes on.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey drain main --reason 'new image on Monday' --stack osprey
  osprey drain main --tier experimental --stack osprey
  osprey drain main --dry-run --stack osprey

Jobs keep their place in line. `osprey resume` ends it, and `osprey why` says of each job that it waits for that.")]
pub struct DrainArgs {
    #[command(flatten)]
    pool: OnPool,
    /// Only this tier
    #[arg(long, value_name = "TIER")]
    tier: Option<TierName>,
}

/// Let a drained pool or tier start jobs again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey resume main --stack osprey
  osprey resume main --tier experimental --stack osprey

Without `--tier` all of the pool is resumed, its tiers included.")]
pub struct ResumeArgs {
    #[command(flatten)]
    pool: OnPool,
    /// Only this tier
    #[arg(long, value_name = "TIER")]
    tier: Option<TierName>,
}

/// Keep GPUs of a pool for a team until a time.
///
/// What the team's jobs hold counts as kept already. Nobody is evicted for it: as jobs of others end, what they held stays
/// free until the team has its number.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey reserve main --team search --gpus 16 --for 8h --reason 'the launch' --stack osprey
  osprey reserve main --team search --gpus 16 --until 2030-01-31T18:00:00Z --stack osprey
  osprey reserve main --team search --gpus 0 --stack osprey     end it")]
pub struct ReserveArgs {
    #[command(flatten)]
    pool: OnPool,
    /// The team
    #[arg(long, value_name = "TEAM")]
    team: String,
    /// GPUs; 0 ends what was kept
    #[arg(long, value_name = "N")]
    gpus: u32,
    /// Until when, RFC 3339
    #[arg(long, value_name = "TIME", conflicts_with = "duration")]
    until: Option<Timestamp>,
    /// For how long from now
    #[arg(long = "for", value_name = "DURATION", value_parser = seconds)]
    duration: Option<u64>,
}

/// Set how jobs of a pool reach Batch, or whether it evicts; on AWS, within a minute.
///
/// observe: decide and log, and submit as asked. direct: derive, route and submit at once. held: hold jobs until they are
/// about to start. pass-through: submit as asked, and decide nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey set-mode main held --stack osprey
  osprey set-mode main pass-through --reason 'break glass' --stack osprey
  osprey set-mode main --preemption off --stack osprey")]
pub struct SetModeArgs {
    #[command(flatten)]
    pool: OnPool,
    /// The mode; without one it stays
    #[arg(value_name = "MODE", value_parser = mode, required_unless_present = "preemption")]
    mode: Option<PoolMode>,
    /// Whether running jobs may be evicted for more urgent ones
    #[arg(long, value_name = "on|off", value_parser = switch)]
    preemption: Option<bool>,
}

fn mode(text: &str) -> Result<PoolMode, String> {
    let found = PoolMode::ALL.into_iter().find(|mode| mode.as_str() == text);
    found.ok_or_else(|| format!("write {}", either(PoolMode::ALL.map(PoolMode::as_str))))
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("write `on` or `off`".to_owned()),
    }
}

/// Sets a mode.
pub fn set_mode(args: &SetModeArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let OnPool { pool, reason, .. } = &args.pool;
    let (mode, preemption) = (args.mode, args.preemption);
    let action = Action::SetMode { pool: pool.clone(), mode, preemption, reason: reason.clone() };
    on_pool(&args.pool, ui, |_| Ok(action))
}

/// What orders about a pool take.
#[derive(Debug, Args)]
struct OnPool {
    /// The pool
    #[arg(value_name = "POOL")]
    pool: PoolName,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Say what would happen, and send nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

fn seconds(text: &str) -> Result<u64, String> {
    let seconds = parse_duration(text).map_err(|error| error.to_string())?;
    if seconds == 0 { Err("it must be longer than nothing".to_owned()) } else { Ok(seconds) }
}

/// Moves a job forward.
pub fn top(args: &TopArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    action::on_job(&args.target, ui, |job_id, reason| Action::TopJob { job_id, reason })
}

/// Reports.
pub fn report_priority(args: &ReportPriorityArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let points = args.points;
    action::on_job(&args.target, ui, |job_id, reason| Action::ReportPriority { job_id, points, reason })
}

/// Drains.
pub fn drain(args: &DrainArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let OnPool { pool, reason, .. } = &args.pool;
    let action = Action::DrainPool { pool: pool.clone(), tier: args.tier.clone(), reason: reason.clone() };
    on_pool(&args.pool, ui, |_| Ok(action))
}

/// Resumes.
pub fn resume(args: &ResumeArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let OnPool { pool, reason, .. } = &args.pool;
    let action = Action::ResumePool { pool: pool.clone(), tier: args.tier.clone(), reason: reason.clone() };
    on_pool(&args.pool, ui, |_| Ok(action))
}

/// Keeps GPUs.
pub fn reserve(args: &ReserveArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let OnPool { pool, reason, .. } = &args.pool;
    on_pool(&args.pool, ui, |joined| {
        let until = match (args.until, args.duration) {
            (None, Some(seconds)) => Some(later(joined.now_ms(), seconds)?),
            (None, None) if args.gpus > 0 => {
                return Err(CliError::new(ErrorCode::Usage, "until when the GPUs are kept isn't said")
                    .help("add `--for 8h` or `--until TIME`; `--gpus 0` ends what was kept"));
            }
            (until, _) => until,
        };
        let (team, gpus) = (args.team.clone(), args.gpus);
        Ok(Action::Reserve { pool: pool.clone(), team, gpus, until, reason: reason.clone() })
    })
}

fn later(now_ms: i64, seconds: u64) -> Result<Timestamp, CliError> {
    let long = || CliError::new(ErrorCode::Usage, "the time is too far away").help("give a shorter `--for`");
    let now = Timestamp::from_millisecond(now_ms).map_err(|_| long())?;
    let span =
        i64::try_from(seconds).ok().and_then(|seconds| 0.seconds().try_seconds(seconds).ok()).ok_or_else(long)?;
    now.checked_add(span).map_err(|_| long())
}

fn on_pool(
    order: &OnPool,
    ui: &mut Ui,
    action: impl FnOnce(&Joined) -> Result<Action, CliError>,
) -> Result<Exit, CliError> {
    let joined = Joined::of(&order.place)?;
    let action = action(&joined)?;
    if order.dry_run {
        return action::told(ui, &action, joined.preview_order(&action)?);
    }
    action::ask(&joined, ui, &action)
}

//! `osprey queue`: the pools, and who waits in them for how long.

use clap::Args;

use super::{Exit, Place};
use crate::error::{CliError, ErrorCode};
use crate::joined::Joined;
use crate::render::pools;
use crate::ui::Ui;

/// Show each pool and tier: who waits, how long the middle one and the oldest do, what runs, which GPUs are free.
///
/// The oldest wait is the starvation index: it grows when a tier gets nothing. WANTED are the GPUs that waiting jobs want,
/// BLOCKED jobs wait for other jobs, SENT ones are on their way to a node, RESERVED is what jobs hold of what the policy
/// or a person keeps for them. Jobs that a person holds are in no line: `osprey jobs --state held` lists them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey queue --local
  osprey queue --local --pool local --output json
  osprey queue --stack osprey")]
pub struct QueueArgs {
    /// Only this pool
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Shows.
pub fn queue(args: &QueueArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let overview = joined.overview(args.pool.as_deref())?;
    if let (Some(pool), true) = (&args.pool, overview.pools.is_empty()) {
        let all = joined.overview(None)?;
        let names: Vec<String> = all.pools.iter().map(|pool| format!("`{}`", pool.name)).collect();
        let there = if names.is_empty() { "no pool is known".to_owned() } else { names.join(", ") };
        let message = format!("there is no pool `{pool}` in {}", joined.name());
        return Err(CliError::new(ErrorCode::Usage, message).help(format!("the pools are {there}")));
    }
    if ui.is_json() {
        ui.json(&pools::document(&overview))?;
    } else if overview.pools.is_empty() {
        ui.note("no pool is known here, and no job waits or runs");
    } else {
        ui.text(&pools::tables(&overview))?;
    }
    overview.faults.iter().for_each(|fault| ui.note(fault));
    if overview.is_cut {
        ui.note("there are more jobs than are counted");
    }
    if !joined.knows_pools() {
        ui.note("what the pools have isn't known by a table alone; `--stack NAME` says it");
    }
    Ok(Exit::Ok)
}

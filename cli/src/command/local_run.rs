//! `osprey local run`: the whole pipeline on this machine.

use std::path::{Path, PathBuf};

use clap::Args;
use osprey_local::{StateDir, StateLock};
use osprey_local_batch::EventOptions;
use osprey_model::pool::PoolMode;

use super::Exit;
use crate::definitions::Definitions;
use crate::error::{CliError, ErrorCode};
use crate::input::Entry;
use crate::local::cluster::{Cluster, GPUS_PER_NODE_MAX, Kept, NODES_MAX, usual_mode, usual_preemption};
use crate::local::place;
use crate::local::run::{self, Ended, Plan};
use crate::render::run as render;
use crate::ui::Ui;
use crate::{input, policy_file};

/// GPU slots of a node, and nodes, of a cluster that nobody described.
const USUAL: (u32, u32) = (8, 3);

/// Run a file of jobs, or what a state directory holds, through the whole pipeline on this machine.
///
/// The real functions run on an embedded store and a local Batch, which runs each job as a process on GPU slots, in
/// the directory of this command. The run ends when every job has ended; a held job keeps it going. Ctrl-C stops it:
/// jobs that run go on, and the same --state takes them up.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey local run events/backlog.jsonl
  osprey local run jobs.jsonl --state my-state --nodes 4 --gpus-per-node 8
  osprey local run --state my-state        what was sent there by `osprey submit-job`, or is still open
  osprey local run jobs.jsonl --speed 20 --output json
  osprey local run jobs.jsonl --event-duplicates 0.3 --event-delay 2 --reclaim-rate 60

Ends with 0 when every line of the file is accounted for, however its job ended; a line that holds an action counts as
succeeded when it was carried out. `.osprey/latest` then leads to the state directory, which `--local` alone means.")]
pub struct LocalRunArgs {
    /// Jobs, one `SubmitJob` request a line; `-` is standard input. Without it, the jobs that `--state` holds
    #[arg(value_name = "FILE.jsonl")]
    file: Option<PathBuf>,
    #[command(flatten)]
    pipeline: PipelineArgs,
}

/// What a pipeline on this machine is started with.
#[derive(Debug, Args)]
pub struct PipelineArgs {
    /// The state directory; a new one in `.osprey` without it. One that was used before goes on where it stopped
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Nodes [default: 3, or as before]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(NODES_MAX)))]
    nodes: Option<u32>,
    /// GPU slots of each node [default: 8, or as before]
    #[arg(long, value_name = "G", value_parser = clap::value_parser!(u32).range(0..=i64::from(GPUS_PER_NODE_MAX)))]
    gpus_per_node: Option<u32>,
    /// Spot nodes among them [default: one in five, or as before]
    #[arg(long, value_name = "S")]
    spot_nodes: Option<u32>,
    /// Whether jobs are held until they are about to start, or handed to the local Batch at once, which then orders
    /// them as AWS Batch does [default: held, or as before]
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// Whether running jobs may be evicted for more urgent ones, where the policy lets those [default: on, or as before]
    #[arg(long, value_name = "SWITCH")]
    preemption: Option<Switch>,
    /// How many times as fast Osprey's timers run; commands run as fast as they do. The clock of the state directory
    /// runs as much faster, and stays ahead of the real one for good: times on record are that clock's
    #[arg(long, value_name = "X", default_value = "1", value_parser = speed)]
    speed: f64,
    /// The policy; the built-in default without it
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Job definitions to register; one that isn't registered runs the request's own command
    #[arg(long, value_name = "FILE")]
    definitions: Option<PathBuf>,
    /// How often a Spot node is taken back, times an hour
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = not_negative)]
    reclaim_rate: f64,
    /// Share of Batch's events that come twice, 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    event_duplicates: f64,
    /// Share of Batch's events that never come, 0 to 1; `watch` finds out what they would have said
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    event_loss: f64,
    /// Longest delay of Batch's events in seconds; each takes some of it, so they overtake each other
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = not_negative)]
    event_delay: f64,
    /// Seed of these choices
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Switch {
    /// It is.
    On,
    /// It isn't.
    Off,
}

/// How jobs reach the local Batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    /// When they are about to start.
    Held,
    /// At once.
    Direct,
}

impl From<Mode> for PoolMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Held => Self::Held,
            Mode::Direct => Self::Direct,
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(|| "a number is wanted".to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    let wanted = format!("a number above 0 and at most {} is wanted", osprey_local::clock::SPEED_MAX);
    number(text).ok().filter(|n| *n > 0.0 && *n <= osprey_local::clock::SPEED_MAX).ok_or(wanted)
}

fn not_negative(text: &str) -> Result<f64, String> {
    let wanted = "a number from 0 to 1000000 is wanted";
    number(text).ok().filter(|n| (0.0..=1e6).contains(n)).ok_or_else(|| wanted.to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    number(text).ok().filter(|n| (0.0..=1.0).contains(n)).ok_or_else(|| "a number from 0 to 1 is wanted".to_owned())
}

/// Runs.
pub fn local_run(args: &LocalRunArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let entries = entries(args)?;
    let (plan, state, _lock) = args.pipeline.plan(args.file.clone(), entries)?;
    ui.progress(&render::opening(&plan));
    plan.cluster.warning(&plan.policy).iter().for_each(|warning| ui.note(warning));
    let ended = run::run(&plan, &state, ui)?;
    conclude(&plan, ended, ui)
}

/// The lines of the file. There may be none where a state directory has jobs of its own.
fn entries(args: &LocalRunArgs) -> Result<Vec<Entry>, CliError> {
    let has_state = args.pipeline.state().is_some_and(|dir| StateDir::existing(dir).is_ok());
    let Some(file) = &args.file else {
        return if has_state { Ok(Vec::new()) } else { Err(nothing_to_run(args.pipeline.state())) };
    };
    let bytes = input::read(file)?;
    if input::is_one_document(&bytes) {
        return Err(spread(file));
    }
    let entries = input::lines(&bytes);
    if entries.is_empty() && !has_state {
        return Err(CliError::new(ErrorCode::FileEmpty, format!("`{}` is empty", file.display()))
            .help("write one `SubmitJob` request a line, as `aws batch submit-job --cli-input-json` takes it"));
    }
    Ok(entries)
}

fn nothing_to_run(state: Option<&Path>) -> CliError {
    let message = match state {
        None => "no file of jobs is given".to_owned(),
        Some(dir) => format!("no file of jobs is given, and there is no state in `{}`", dir.display()),
    };
    CliError::new(ErrorCode::Usage, message)
        .help("name a file, `-` for standard input, or with `--state DIR` a folder in which a run was before")
}

fn spread(file: &Path) -> CliError {
    let name = file.display();
    CliError::new(ErrorCode::InvalidInput, format!("`{name}` looks like one JSON document over several lines"))
        .help("write one request a line, or send it with `osprey submit-job --cli-input-json file://PATH`")
}

fn conclude(plan: &Plan, ended: Ended, ui: &mut Ui) -> Result<Exit, CliError> {
    match ended {
        Ended::Complete(summary, fates) => {
            if ui.is_json() {
                ui.json(&summary)?;
            } else {
                ui.text(&render::closing(&summary, &fates, &plan.policy, &plan.dir))?;
            }
            Ok(Exit::Ok)
        }
        Ended::Interrupted { open } => {
            let error = interrupted(plan, open);
            if ui.is_json() {
                return Err(error);
            }
            // Whoever stops a run knows why it ends: this is no fault of anybody.
            ui.note(&error.message);
            Ok(Exit::Failed)
        }
    }
}

fn interrupted(plan: &Plan, open: usize) -> CliError {
    let jobs = crate::render::policy::counted(open, "job");
    let again = again(plan.file.as_deref(), &plan.dir);
    CliError::new(
        ErrorCode::Interrupted,
        format!("stopped with {jobs} open; those that run go on under their supervisors, and `{again}` takes them up"),
    )
}

fn again(file: Option<&Path>, dir: &Path) -> String {
    let file = file.map(|file| format!(" {}", file.display())).unwrap_or_default();
    format!("osprey local run{file} --state {}", dir.display())
}

impl PipelineArgs {
    /// Takes the state directory and says what is to run in it.
    ///
    /// # Errors
    /// When an argument or a file can't be used, or the directory can't be had.
    pub fn plan(&self, file: Option<PathBuf>, entries: Vec<Entry>) -> Result<(Plan, StateDir, StateLock), CliError> {
        let given = self.policy.as_deref().map(|path| policy_file::text(Some(path))).transpose()?;
        let given =
            given.map(|(text, name)| policy_file::parse(&text, &name).map(|policy| (policy, text))).transpose()?;
        let definitions = Definitions::load(self.definitions.as_deref())?;
        let early = self.cluster(None)?;
        let dir = match &self.state {
            Some(dir) => dir.clone(),
            None => place::fresh(jiff::Timestamp::now())?,
        };
        let (state, lock) = run::take(&dir)?;
        crate::log::to_file(&dir)?;
        let kept = Kept::load(&dir)?;
        let (policy, policy_text) = match (given, &kept) {
            (Some(given), _) => given,
            (None, Some(kept)) => (kept.policy(&dir)?, kept.policy.clone()),
            (None, None) => (policy_file::load(None)?, policy_file::text(None)?.0),
        };
        let cluster = match kept {
            Some(kept) => self.cluster(Some(kept.cluster))?,
            None => early,
        };
        let events = EventOptions {
            delay_ms: run::delay_range(self.event_delay),
            duplicate_rate: self.event_duplicates,
            loss_rate: self.event_loss,
            seed: self.seed,
        };
        let plan = Plan {
            file,
            entries,
            dir,
            cluster,
            speed: self.speed,
            policy,
            policy_text,
            definitions,
            reclaim_rate: self.reclaim_rate,
            events,
        };
        Ok((plan, state, lock))
    }

    /// The state directory that was named.
    pub fn state(&self) -> Option<&Path> {
        self.state.as_deref()
    }

    /// The cluster asked for; what isn't said is as it was before.
    fn cluster(&self, before: Option<Cluster>) -> Result<Cluster, CliError> {
        let nodes = self.nodes.or(before.map(|before| before.nodes)).unwrap_or(USUAL.1);
        let as_before = before.filter(|before| before.nodes == nodes).map(|before| before.spot_nodes);
        let spot_nodes = self.spot_nodes.or(as_before).unwrap_or_else(|| Cluster::usual_spot_nodes(nodes));
        if spot_nodes > nodes {
            return Err(CliError::new(
                ErrorCode::Usage,
                format!("`--spot-nodes {spot_nodes}` are more than the {nodes} nodes that there are"),
            )
            .help("Spot nodes are counted among the nodes"));
        }
        let gpus_per_node = self.gpus_per_node.or(before.map(|before| before.gpus_per_node)).unwrap_or(USUAL.0);
        let mode = self.mode.map(PoolMode::from).or(before.map(|before| before.mode)).unwrap_or_else(usual_mode);
        let asked = self.preemption.map(|switch| switch == Switch::On);
        let preemption = asked.or(before.map(|before| before.preemption)).unwrap_or_else(usual_preemption);
        Ok(Cluster { nodes, gpus_per_node, spot_nodes, mode, preemption })
    }
}

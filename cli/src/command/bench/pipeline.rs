//! `osprey bench pipeline`: how soon an urgent job is handed to Batch, and how soon `why` answers, behind a backlog.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use osprey_local::{LocalWorld, StateDir, Time};
use osprey_local_batch::Options;
use osprey_model::id::{JobId, MessageId};
use osprey_model::job::{Claim, Job, JobState};
use osprey_model::pool::PoolMode;
use osprey_pipeline::context::{Context, Settings};
use osprey_pipeline::repository;
use osprey_ports::{Clock as _, Expect, QueueKind, SendMessage as _};
use osprey_schedule::load::WINDOW;
use serde_json::json;

use super::{digits, median_and_longest};
use crate::command::Exit;
use crate::error::{CliError, ErrorCode};
use crate::joined::{Depth, Joined};
use crate::local::block_on;
use crate::local::cluster::{Cluster, Kept};
use crate::local::pipeline::Pipeline;
use crate::policy_file;
use crate::render::table::Columns;
use crate::ui::Ui;

/// Nodes of eight GPUs: every job of the backlog needs all of them.
const NODES: u32 = 64;
/// Jobs that are recorded in one transaction.
const AT_ONCE: usize = 40;
/// Steps of the pipeline after which an urgent job must have been handed on.
const STEPS_MAX: u32 = 1_000;

/// Time the pipeline of this machine behind a made-up backlog: from an urgent job's arrival to the answer of `SubmitJob`,
/// and `osprey why` for the last in line. Nothing is run; the state is in a temporary folder, and gone afterwards.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey bench pipeline
  osprey bench pipeline --queued 100 --runs 5 --output json")]
pub struct PipelineArgs {
    /// Jobs that wait
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    queued: u32,
    /// Times that each is measured
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
}

/// Measures it.
pub(super) fn pipeline(args: &PipelineArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let scene = Scene::new(args.queued)?;
    let arrivals: Vec<f64> = (0..args.runs).map(|run| scene.arrival(run)).collect::<Result<_, _>>()?;
    let joined = Joined::open(&scene.dir)?;
    let (mut whys, mut changes) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        let began = Instant::now();
        joined.why(scene.last, Depth::Reason)?;
        whys.push(began.elapsed().as_secs_f64() * 1_000.0);
        let began = Instant::now();
        joined.why(scene.seen, Depth::Changes)?;
        changes.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    show(args, [arrivals, whys, changes].map(median_and_longest), ui)?;
    Ok(Exit::Ok)
}

fn show(args: &PipelineArgs, [arrival, why, changes]: [(f64, f64); 3], ui: &mut Ui) -> Result<(), CliError> {
    if ui.is_json() {
        return ui.json(&json!({
            "queued": args.queued,
            "runs": args.runs,
            "arrival_milliseconds_median": digits(arrival.0),
            "arrival_milliseconds_max": digits(arrival.1),
            "why_milliseconds_median": digits(why.0),
            "why_milliseconds_max": digits(why.1),
            "changes_milliseconds_median": digits(changes.0),
            "changes_milliseconds_max": digits(changes.1),
        }));
    }
    let mut columns = Columns::new(&["WHAT", ">MEDIAN", ">LONGEST"]);
    let rows = [
        ("urgent arrival to SubmitJob", arrival),
        ("why, for the last in line", why),
        ("why with changes and forecast, for one that is looked at", changes),
    ];
    for (what, (median, longest)) in rows {
        columns.row([what.to_owned(), format!("{:.1} ms", median), format!("{:.1} ms", longest)]);
    }
    ui.text(&columns.render())
}

/// A pipeline with a backlog.
pub(super) struct Scene {
    /// Its state directory.
    pub(super) dir: PathBuf,
    world: LocalWorld,
    cluster: Cluster,
    policy: osprey_policy::Policy,
    settings: Settings,
    /// The last in line.
    last: JobId,
    /// The last that a cycle looks at.
    seen: JobId,
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Scene {
    /// A pipeline in whose line so many jobs stand.
    pub(super) fn new(queued: u32) -> Result<Self, CliError> {
        let unusable = |sentence: String| CliError::new(ErrorCode::StateUnusable, sentence);
        let dir = std::env::temp_dir().join(format!("osprey-bench-{}", std::process::id()));
        let state = StateDir::open(&dir).map_err(|error| unusable(error.to_string()))?;
        let world = LocalWorld::open(&state, Time::Set { speed: 1.0 }, Options::default());
        let world = world.map_err(|error| unusable(error.to_string()))?;
        let (policy_text, _) = policy_file::text(None)?;
        let policy = policy_file::load(None)?;
        let cluster = Cluster { nodes: NODES, gpus_per_node: 8, spot_nodes: 0, mode: PoolMode::Held, preemption: true };
        cluster.set_up(world.batch(), &policy)?;
        Kept { cluster, policy: policy_text }.save(&dir)?;
        let mut scene = Self {
            dir,
            world,
            cluster,
            policy,
            settings: Settings::local(),
            last: JobId::of_message(&MessageId::new("bench")),
            seen: JobId::of_message(&MessageId::new("bench")),
        };
        scene.fill(queued)?;
        Ok(scene)
    }

    /// Puts jobs into the line that need every node, and one of eight GPUs on its way into Batch, so that none of them
    /// starts.
    fn fill(&mut self, queued: u32) -> Result<(), CliError> {
        let now = self.world.now().as_millisecond();
        let claim = Claim { at: now, queue: "osprey-local-experimental".into(), empty_lists: 0 };
        let on_its_way = Job { state: JobState::Claimed, attempt: 1, claim: Some(claim), gpus: 8, ..self.job(0, now) };
        let waiting = (1..=queued).map(|number| Job { gpus: self.cluster.gpus(), ..self.job(number, now) });
        let jobs: Vec<Job> = std::iter::once(on_its_way).chain(waiting).collect();
        for some in jobs.chunks(AT_ONCE) {
            let mut writes = Vec::new();
            for job in some {
                writes.extend(repository::writes(None, job, &self.settings, Expect::Absent)?);
            }
            self.world.store().write(&writes)?;
        }
        self.last = jobs.last().map_or(self.last, |job| job.id);
        self.seen = jobs.get(WINDOW).map_or(self.last, |job| job.id);
        Ok(())
    }

    fn job(&self, number: u32, now: i64) -> Job {
        let message = MessageId::new(format!("bench-{number}"));
        Job {
            payload: "0".repeat(16),
            name: "train".to_owned(),
            state: JobState::Queued,
            tier: "experimental".into(),
            priority: 450,
            pool: "local".into(),
            policy: self.policy.revision().clone(),
            scheduled: true,
            updated_at: now,
            ..Job::new(JobId::of_message(&message), message, now + i64::from(number))
        }
    }

    /// Sends an urgent job; milliseconds until Batch has it.
    fn arrival(&self, run: u32) -> Result<f64, CliError> {
        let pools = self.cluster.pools(&self.policy);
        let context = Context { policy: &self.policy, pools: &pools, settings: &self.settings };
        let mut pipeline = Pipeline::new(&self.world, context);
        let body = json!({
            "jobName": format!("urgent-{run}"), "jobDefinition": "serve",
            "containerOverrides": { "command": ["true"], "resourceRequirements": [{ "type": "GPU", "value": "1" }] },
            "tags": { "environment": "production", "workload-type": "inference" },
        });
        let began = Instant::now();
        let message = block_on(self.world.send_message(QueueKind::Submissions, &body.to_string(), 0))?;
        let id = JobId::of_message(&message);
        for _ in 0..STEPS_MAX {
            pipeline.step()?;
            let job = block_on(repository::load(&self.world, id))?.map(|loaded| loaded.job);
            if job.is_some_and(|job| job.state == JobState::Submitted) {
                return Ok(began.elapsed().as_secs_f64() * 1_000.0);
            }
        }
        Err(CliError::failed("an urgent job wasn't handed to the local Batch: a fault of Osprey"))
    }
}

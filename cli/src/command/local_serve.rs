//! `osprey local serve`: the pipeline on this machine, kept running and spoken to by AWS's own clients.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use osprey_local::LocalWorld;
use osprey_local_server::{Credentials, EventTarget, Forwarder, Options, Server, Service, credentials, sqs};
use osprey_pipeline::context::Context;
use osprey_ports::Clock as _;
use serde_json::json;

use super::Exit;
use super::local_run::PipelineArgs;
use crate::error::{CliError, ErrorCode};
use crate::local::cluster::Kept;
use crate::local::engine::EngineThread;
use crate::local::patience::Patience;
use crate::local::pipeline::Pipeline;
use crate::local::run::{self, Plan};
use crate::local::signal;
use crate::ui::Ui;

/// Where it is served unless told otherwise.
const PORT: u16 = 9324;
/// Sleep when there was nothing to do.
const IDLE: Duration = Duration::from_millis(5);

/// Keep the pipeline running on this machine, and let the AWS CLI and boto3 speak to it.
///
/// The local Batch answers Batch's calls and the queue `osprey-submissions` answers SQS's, on 127.0.0.1 only. `aws.env`
/// in the state directory holds the endpoint and a key that only you can read: source it, and `aws batch list-jobs`,
/// `aws sqs send-message` and boto3 work unchanged. Ctrl-C stops it: jobs that run go on, and the same --state takes
/// them up.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey local serve --state my-state
  osprey local serve --state my-state --port 0 --nodes 1 --gpus-per-node 2
  osprey local serve --event-target http://127.0.0.1:8080/events

In another terminal:
  . my-state/aws.env && aws batch describe-job-queues
  osprey jobs --local my-state")]
pub struct LocalServeArgs {
    /// Port of 127.0.0.1; 0 takes any that is free
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// Also send every event of Batch there: `http://127.0.0.1:PORT/PATH` or `sqs:QUEUE`; may be given several times
    #[arg(long, value_name = "TARGET", value_parser = target)]
    event_target: Vec<EventTarget>,
    #[command(flatten)]
    pipeline: PipelineArgs,
}

fn target(text: &str) -> Result<EventTarget, String> {
    EventTarget::parse(text).map_err(|error| error.to_string())
}

/// Serves.
pub fn local_serve(args: &LocalServeArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let server = bind(args.port)?;
    if let Some(dir) = args.pipeline.state() {
        credentials::create_private(dir).map_err(|error| unusable(&error))?;
    }
    let (plan, state, _lock) = args.pipeline.plan(None, Vec::new())?;
    plan.cluster.warning(&plan.policy).iter().for_each(|warning| ui.note(warning));
    let key = Credentials::of(&plan.dir).map_err(|error| unusable(&error))?;
    let copies = args.event_target.iter().map(EventTarget::queue).collect();
    let world = run::open(&plan, &state)?.with_event_copies(copies);
    prepare(&plan, &world, &args.event_target)?;
    let interrupted = signal::listen(None)?;
    let mut engine = EngineThread::start(world.batch())?;
    let forwarders: Vec<Forwarder> = forward(&world, &args.event_target)?;
    let endpoint = server.endpoint();
    let env = key.write_env(&plan.dir, &endpoint).map_err(|error| unusable(&error))?;
    let service = Service::new(world.clone(), key, endpoint.clone());
    let running = server.serve(service).map_err(|error| unusable(&error))?;
    say(ui, &endpoint, &plan.dir, &env)?;
    let outcome = drive(&plan, &world, &mut engine, ui, || interrupted.load(Ordering::Acquire));
    drop((running, forwarders));
    outcome?;
    let dir = plan.dir.display();
    ui.note(&format!("stopped; jobs that run go on, and `osprey local serve --state {dir}` takes them up"));
    Ok(Exit::Ok)
}

fn bind(port: u16) -> Result<Server, CliError> {
    Server::bind(Options { port, ..Options::default() }).map_err(|error| {
        CliError::failed(error.to_string()).help("take another one with `--port`, or any that is free with `--port 0`")
    })
}

fn prepare(plan: &Plan, world: &LocalWorld, targets: &[EventTarget]) -> Result<(), CliError> {
    plan.cluster.set_up(world.batch(), &plan.policy)?;
    run::register(world, &plan.definitions)?;
    Kept { cluster: plan.cluster, policy: plan.policy_text.clone() }.save(&plan.dir)?;
    for target in targets {
        if let EventTarget::Queue(name) = target {
            sqs::ensure(world.documents(), name, world.now().as_millisecond()).map_err(|error| {
                CliError::new(ErrorCode::Usage, format!("`sqs:{name}` can't be an event target: {error}"))
            })?;
        }
    }
    Ok(())
}

fn forward(world: &LocalWorld, targets: &[EventTarget]) -> Result<Vec<Forwarder>, CliError> {
    let start = |target: &EventTarget| Forwarder::start(world, target).transpose();
    let started: Result<Vec<Forwarder>, std::io::Error> = targets.iter().filter_map(start).collect();
    started.map_err(|error| CliError::failed(format!("no thread can be started: {error}")))
}

fn say(ui: &mut Ui, endpoint: &str, dir: &Path, env: &Path) -> Result<(), CliError> {
    if ui.is_json() {
        ui.json(&json!({ "endpoint": endpoint, "state": dir, "env": env }))?;
    } else {
        // A path without a slash would be looked for on the search path.
        let env = if env.components().count() > 1 { env.to_owned() } else { Path::new(".").join(env) };
        ui.text(&format!(
            "Batch and SQS are served on {endpoint}; Ctrl-C stops it. In another terminal:\n\n  \
             . {}\n  \
             aws sqs send-message --endpoint-url \"$AWS_ENDPOINT_URL\" \\\n    \
             --queue-url {endpoint}/000000000000/osprey-submissions --message-body \
             '{{\"jobName\":\"hello\",\"jobDefinition\":\"shell\",\"containerOverrides\":{{\"command\":[\"echo\",\"hello\"]}}}}'\n\n\
             osprey jobs --local {} shows the same jobs",
            env.display(),
            dir.display(),
        ))?;
    }
    ui.flush()
}

/// Steps the pipeline until somebody asks it to stop.
fn drive(
    plan: &Plan,
    world: &LocalWorld,
    engine: &mut EngineThread,
    ui: &mut Ui,
    is_over: impl Fn() -> bool,
) -> Result<(), CliError> {
    let pools = plan.cluster.pools(&plan.policy);
    let settings = run::settings(&plan.dir, plan.speed);
    let context = Context { policy: &plan.policy, pools: &pools, settings: &settings };
    let mut pipeline = Pipeline::new(world, context);
    let mut patience = Patience::default();
    while !is_over() {
        run::still_there(&plan.dir)?;
        engine.check(ui)?;
        match pipeline.step() {
            Ok(stepped) => {
                patience.restored(ui);
                if !stepped.did_something() {
                    std::thread::sleep(IDLE);
                }
            }
            Err(error) => patience.tried(error, ui)?,
        }
    }
    Ok(())
}

fn unusable(error: &dyn std::error::Error) -> CliError {
    CliError::new(ErrorCode::StateUnusable, error.to_string())
}

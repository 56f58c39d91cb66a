//! `osprey simulate --why JOB --at TIME`: why a job waits at a moment of a simulation, as `osprey why` says it.

use std::cell::RefCell;

use osprey_model::id::{JobId, MessageId, TierName};
use osprey_model::job::{Job as Record, JobState};
use osprey_model::message::words::nearest;
use osprey_policy::Policy;
use osprey_schedule::load::Loaded;
use osprey_schedule::why::Look;
use osprey_scheduler::Strategy as Production;
use osprey_sim::decided::{Onlooker, Sight, place_of};
use osprey_sim::replay::Record as Recorded;
use osprey_sim::schedule::Outcome;
use osprey_sim::workload::{Job, Workload};
use serde_json::{Value, json};

use super::SimulateArgs;
use super::source::Source;
use super::strategy::{self, Settings, Strategy};
use crate::error::{CliError, ErrorCode};
use crate::joined::{Simulated, ahead, decided, simulated};
use crate::render::time;
use crate::render::why::Answer;

/// Says why a job waits at a time, milliseconds since the first submission.
///
/// # Errors
/// For a strategy that decides nothing itself, and for a job that isn't there.
pub fn why(
    args: &SimulateArgs,
    (id, at_ms): (&str, u64),
    policy: &Policy,
    source: &Source,
) -> Result<Answer, CliError> {
    let strategy = production(args)?;
    let settings = Settings::of(policy, source, args.estimates.into(), Recorded::Outcomes);
    let place = place(id, source, strategy)?;
    let seen: RefCell<Option<Look>> = RefCell::default();
    let see = |sight: &Sight<'_>| {
        let is_it = |job: JobId| place_of(job) == Some(place);
        let waits = sight.snapshot.queued.iter().any(|queued| is_it(queued.job));
        if u64::try_from(sight.now_ms).is_ok_and(|now_ms| now_ms <= at_ms) && waits {
            *seen.borrow_mut() = Some(look(sight));
        }
    };
    let (workload, schedule) = strategy::run_seen(strategy, source, &settings, Onlooker(&see));
    let Some(job) = workload.jobs.get(place) else { return Err(unknown(id, &workload, source)) };
    let outcome = schedule.outcomes.get(place).copied().unwrap_or_default();
    let record = record(job, policy, source);
    if let Some(elsewhere) = not_waiting(&record, job, &outcome, at_ms) {
        return Ok(elsewhere);
    }
    let Some(look) = seen.into_inner() else {
        return Err(CliError::failed(format!("no pass of `{}` has seen job `{id}` by then", strategy.name())));
    };
    let Some(own) = look.snapshot.queued.iter().map(|queued| queued.job).find(|job| place_of(*job) == Some(place))
    else {
        return Err(unknown(id, &workload, source));
    };
    let record = Record { id: own, ..record };
    let name = |job: JobId| {
        let known = place_of(job).and_then(|place| workload.jobs.get(place));
        known.map_or_else(|| job.to_string(), |job| job.id.clone())
    };
    let is_on_nodes = look.snapshot.nodes.len() > 1;
    let gpus_per_node = is_on_nodes.then_some(source.described.cluster.gpus_per_node);
    let told = ahead(decided(&record, &look), own, &look, gpus_per_node, name);
    Ok(Answer { as_of: Some(as_of(look.now_ms)), job: job.id.clone(), ..told })
}

/// The production decision that is asked: the one that was named, or `backfill`.
pub(super) fn production(args: &SimulateArgs) -> Result<Production, CliError> {
    let asked = args.strategy.as_deref().map(strategy::parse).transpose()?.unwrap_or_default();
    match asked.as_slice() {
        [] => Ok(Production::Backfill),
        [Strategy::Production(production)] => Ok(*production),
        _ => Err(CliError::new(
            ErrorCode::Usage,
            "`--why` and `--etas` ask the production decision, and one of its strategies",
        )
        .help("take `--strategy backfill` or `--strategy osprey`")),
    }
}

/// The place of a job among those that the strategy runs.
fn place(id: &str, source: &Source, strategy: Production) -> Result<usize, CliError> {
    if source.workload.jobs.iter().any(|job| job.id == id && job.is_refused) {
        let message = format!("job `{id}` isn't admitted by the policy, so `{}` never sees it", strategy.name());
        return Err(CliError::new(ErrorCode::Refused, message).help("the lines above say why jobs aren't admitted"));
    }
    let admitted = source.workload.jobs.iter().filter(|job| !job.is_refused);
    admitted
        .enumerate()
        .find_map(|(place, job)| (job.id == id).then_some(place))
        .ok_or_else(|| unknown(id, &source.workload, source))
}

fn unknown(id: &str, workload: &Workload, source: &Source) -> CliError {
    let ids = workload.jobs.iter().map(|job| job.id.as_str());
    let near = nearest(id, ids).map(|near| format!("did you mean `{near}`? "));
    CliError::new(ErrorCode::UnknownJob, format!("there is no job `{id}` in `{}`", source.name))
        .help(format!("{}ids are those of the trace; made-up jobs are numbered from 0", near.unwrap_or_default()))
}

/// What a pass saw, as a look at a pool.
pub(super) fn look(sight: &Sight<'_>) -> Look {
    Look {
        loaded: Loaded::default(),
        snapshot: sight.snapshot.clone(),
        rules: sight.rules.clone(),
        plan: sight.plan.clone(),
        now_ms: sight.now_ms,
    }
}

/// A job of a simulation as a record has it.
fn record(job: &Job, policy: &Policy, source: &Source) -> Record {
    let message = MessageId::new(job.id.as_str());
    let tier = policy.tiers().get(usize::from(job.tier)).map_or_else(TierName::default, |tier| tier.name.clone());
    let pools = source.described.scenario.as_ref();
    let pool = pools.and_then(|scenario| scenario.pools.get(usize::from(job.pool))).map(|pool| pool.name.as_str());
    Record {
        name: job.id.clone(),
        priority: job.priority,
        tier,
        pool: pool.unwrap_or("simulated").into(),
        state: JobState::Queued,
        ..Record::new(JobId::of_message(&message), message, i64::try_from(job.submit_ms).unwrap_or(i64::MAX))
    }
}

/// Where a job is that doesn't wait then.
fn not_waiting(record: &Record, job: &Job, outcome: &Outcome, at_ms: u64) -> Option<Answer> {
    let says = |state: &str, moment: Simulated, since_ms: u64, evidence: Value| {
        let told = simulated(record, moment, &seconds(since_ms), evidence);
        Some(Answer { job: job.id.clone(), state: state.to_owned(), as_of: Some(seconds(at_ms)), ..told })
    };
    if at_ms < job.submit_ms {
        let evidence = json!({ "submitted_at_ms": job.submit_ms });
        return says("not submitted", Simulated::NotSubmitted, job.submit_ms, evidence);
    }
    if let Some(end_ms) = outcome.end_ms.filter(|end_ms| *end_ms <= at_ms) {
        return says("succeeded", Simulated::Succeeded, end_ms, json!({ "ended_at_ms": end_ms }));
    }
    // One that was stopped may wait again; without stops its one run goes from start to end.
    let start_ms = outcome.start_ms.filter(|start_ms| *start_ms <= at_ms && outcome.stops() == 0)?;
    let evidence = json!({ "started_at_ms": start_ms, "ends_at_ms": outcome.end_ms });
    says("running", Simulated::Running, start_ms, evidence)
}

/// A time of a simulation.
fn seconds(ms: u64) -> String {
    format!("{} s", ms / 1_000)
}

fn as_of(now_ms: i64) -> String {
    format!("{} ({} after the first submission)", seconds(now_ms.max(0).unsigned_abs()), time::short(now_ms))
}

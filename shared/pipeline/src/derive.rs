//! Deciding what a job deserves: gathers the facts, then calls the policy.

use std::collections::BTreeMap;

use osprey_model::decision::{Decision, Derivation};
use osprey_model::definition::JobDefinition;
use osprey_model::facts::{Facts, JobFacts, LineageFacts, TeamFacts};
use osprey_model::id::{BatchJobId, JobId, PoolName};
use osprey_model::job::{Attempt, Charge, Job, Needs, Reported};
use osprey_model::metadata::Metadata;
use osprey_model::pool::{CapacityType, Pool, PoolMode};
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::SubmitJobRequest;
use osprey_model::resources::{self, Demand};
use osprey_model::sender::Sender;
use osprey_policy::admission::{self, AdmissionInput};
use osprey_policy::estimate::Estimate;
use osprey_policy::feedback::Said as Moved;
use osprey_policy::identity::{self, Claims, Identity};
use osprey_ports::{Clock, DescribeJobDefinition, GetItem, QueryIndex, QueryItems};

use crate::context::Context;
use crate::experience::{self, Asked};
use crate::failure::Failure;
use crate::quota::Judged;
use crate::record::{self, Record};
use crate::repository::Loaded;
use crate::{dispatch, feedback, key, outgoing, quota, repository, usage};

/// Longest chain of parents that is followed; a longer one counts as this deep.
const DEPTH_MAX: u32 = 32;

/// Everything decided about a request.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The definition, where it is registered.
    pub definition: Option<JobDefinition>,
    /// What tags and variables say.
    pub metadata: Metadata,
    /// What it needs.
    pub demand: Demand,
    /// Number, tier, pool, and the account. The pool is empty for a refused request.
    pub decision: Decision,
    /// Why it is refused; empty for an admitted one.
    pub refusals: Vec<Refusal>,
    /// Ancestors by `parent-job-id`.
    pub depth: u32,
    /// How long it is expected to run; `None` when nobody knows, or its pool doesn't ask.
    pub expected: Option<Estimate>,
    /// Whose use it counts as.
    pub charge: Charge,
    /// What the steps before it reported.
    pub reported: Option<Reported>,
}

/// What a request says, as far as its sender may say it.
struct Said {
    metadata: Metadata,
    /// Tags as rules see them.
    tags: BTreeMap<String, String>,
    demand: Demand,
    refusals: Vec<Refusal>,
    warnings: Vec<String>,
    /// Whether something couldn't be read: metadata that can't be read isn't missing as well.
    unreadable: bool,
}

fn said(request: &SubmitJobRequest, definition: Option<&JobDefinition>, identity: &Identity) -> Said {
    let mut refusals = Vec::new();
    let (metadata, mut warnings) = Metadata::read(request, definition).unwrap_or_else(|faults| {
        refusals.extend(faults);
        (Metadata::default(), Vec::new())
    });
    let demand = Demand::of(request, definition).unwrap_or_else(|fault| {
        refusals.push(fault);
        Demand::default()
    });
    let unreadable = !refusals.is_empty();
    let bounded = identity::bound(identity, &Claims { request, definition, metadata: &metadata });
    refusals.extend(bounded.refusals);
    warnings.extend(bounded.warnings);
    Said { metadata: bounded.metadata, tags: bounded.tags, demand, refusals, warnings, unreadable }
}

/// Evaluates a request of a sender, whose identity bounds what it may claim. `job` is the record of a job that was
/// admitted before: its history counts, and it is routed but not refused again. `reported` is what the jobs before a new
/// one were told last ([`crate::feedback`]); a recorded job has its own.
///
/// # Errors
/// When the store or Batch fails.
pub async fn evaluate<P>(
    ctx: &Context<'_>,
    ports: &P,
    request: &SubmitJobRequest,
    sender: &Sender,
    job: Option<&Job>,
    reported: Option<Reported>,
) -> Result<Evaluation, Failure>
where
    P: GetItem + QueryItems + QueryIndex + DescribeJobDefinition + Clock + Sync,
{
    let definition = ports
        .describe_job_definition(&request.job_definition)
        .await
        .map_err(Failure::call("DescribeJobDefinitions"))?;
    let identity = ctx.policy.identity_of(sender);
    let Said { metadata, tags, demand, mut refusals, mut warnings, unreadable } =
        said(request, definition.as_ref(), identity);
    let parent = parent(ports, &metadata).await?;
    let mut facts = facts(ports, request, &metadata, &demand, (job, parent.as_ref())).await?;
    facts.job.tags = tags;
    let (derivation, is_new) = (ctx.policy.derive_for(&facts, Some(identity)), job.is_none());
    let reported = feedback::newest([reported, parent.as_ref().filter(|_| is_new).and_then(|parent| parent.reported)]);
    let moved = job.map_or(Moved { reported, topped: false }, Moved::of);
    let derivation = ctx.policy.moved(derivation, moved, identity, metadata.priority_class.as_deref());
    let judged = quota::judge(ctx, ports, (&metadata, &demand), derivation, is_new).await?;
    let Judged { derivation, charge, refusals: over } = judged;
    refusals.extend(over);
    let pools = identity.open_pools(ctx.pools);
    let admission = admission::admit(&AdmissionInput {
        request,
        definition: definition.as_ref(),
        definition_required: ctx.settings.definition_required,
        metadata: &metadata,
        demand: &demand,
        derivation: &derivation,
        pools: &pools,
        policy: ctx.policy,
        our_tags: outgoing::TAGS.len(),
    });
    for refusal in admission.refusals {
        let echo = unreadable && refusal.code == ReasonCode::MissingMetadata;
        if !echo && !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }
    if !ctx.settings.multi_node && resources::is_multi_node(request, definition.as_ref()) {
        refusals.push(multi_node());
    }
    warnings.extend(admission.warnings);
    if let Some(why) = &derivation.fallback {
        warnings.push(format!("the policy could not be evaluated, so the fallback priority stands: {why}"));
    }
    let routed = Routed { request, demand: &demand, derivation: &derivation, pools: &pools };
    let pool = job.and_then(|job| elsewhere(ctx, &routed, job)).or(admission.pool);
    let chosen = pool.as_ref().and_then(|pool| ctx.pool(pool)).filter(|_| is_new);
    refusals.extend(chosen.and_then(|pool| quota::kept_from(ctx.policy, &charge, &demand, pool)));
    let asks = pool.as_ref().and_then(|pool| ctx.pool(pool)).is_some_and(|pool| pool.mode == PoolMode::Held);
    let asked = Asked {
        request,
        definition: definition.as_ref(),
        metadata: &metadata,
        parent: parent.as_ref().map(|parent| parent.id),
    };
    let expected = if asks { experience::expected(ports, ctx.policy.estimates(), &asked).await? } else { None };
    let decision = Decision {
        derivation,
        pool: pool.unwrap_or_default(),
        policy_revision: ctx.policy.revision().clone(),
        decided_at: ports.now(),
        warnings,
    };
    let depth = facts.lineage.depth;
    let reported = moved.reported;
    Ok(Evaluation { definition, metadata, demand, decision, refusals, depth, expected, charge, reported })
}

impl Evaluation {
    /// What a scheduling cycle has to know of a job beside its GPUs.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let several = |count: u32| if count > 1 { count } else { 0 };
        let demand = &self.demand;
        Needs {
            vcpus: demand.vcpus.saturating_mul(demand.array_size.max(1)),
            nodes: several(demand.nodes),
            children: several(demand.array_size),
            expected_seconds: self.expected.map_or(0, |expected| expected.run_ms.div_ceil(1_000).max(1)),
            expected_by: self.expected.map(|expected| expected.source),
            longest_seconds: self.metadata.max_duration.unwrap_or(0),
            saves_every_seconds: self.metadata.checkpoint_interval,
        }
    }
}

/// A queued job as it was read, and what it deserves by now.
#[derive(Clone, Debug)]
pub struct Again {
    /// The job.
    pub loaded: Loaded,
    /// The message that it came with.
    pub record: Record,
    /// The request in it.
    pub request: SubmitJobRequest,
    /// What is decided about it now.
    pub evaluation: Evaluation,
}

/// Derives a job again before it is started: its message is read, and what policy and history say of it now.
///
/// # Errors
/// When the store or Batch fails.
pub async fn again<P>(ctx: &Context<'_>, ports: &P, loaded: Loaded) -> Result<Again, Failure>
where
    P: GetItem + QueryItems + QueryIndex + DescribeJobDefinition + Clock + Sync,
{
    let record = record::of_job(ports, loaded.job.id).await?;
    let request = dispatch::request_of(&record, loaded.job.id)?;
    let evaluation = evaluate(ctx, ports, &request, &record.from(), Some(&loaded.job), None).await?;
    Ok(Again { loaded, record, request, evaluation })
}

fn multi_node() -> Refusal {
    Refusal::new(
        ReasonCode::MultiNodeUnsupported,
        "the local Batch runs no multi-node jobs; submit a container job of at most one node, or run it on AWS",
    )
}

/// What a pool is chosen for.
struct Routed<'a> {
    request: &'a SubmitJobRequest,
    demand: &'a Demand,
    derivation: &'a Derivation,
    pools: &'a [Pool],
}

/// The pool of a job that something keeps from the usual one: a pool that couldn't get capacity, or Spot. `None` when
/// there is no other that it fits in, and then the usual one has to do.
fn elsewhere(ctx: &Context<'_>, routed: &Routed<'_>, job: &Job) -> Option<PoolName> {
    let Routed { request, demand, derivation, pools } = routed;
    let route = |pools: &[Pool]| {
        admission::route(request, demand, derivation, pools, ctx.policy, job.avoid_spot).ok().filter(|name| {
            !job.avoid_spot || ctx.pool(name).is_some_and(|pool| pool.capacity == CapacityType::OnDemand)
        })
    };
    let others: Vec<Pool> = pools.iter().filter(|pool| !job.avoid_pools.contains(&pool.name)).cloned().collect();
    if !job.avoid_pools.is_empty()
        && let Some(pool) = route(&others)
    {
        return Some(pool);
    }
    if job.avoid_spot { route(pools) } else { None }
}

async fn facts<P>(
    ports: &P,
    request: &SubmitJobRequest,
    metadata: &Metadata,
    demand: &Demand,
    (job, parent): (Option<&Job>, Option<&Job>),
) -> Result<Facts, Failure>
where
    P: GetItem + QueryItems + QueryIndex + Clock + Sync,
{
    let team = match metadata.team.as_deref() {
        Some(team) => usage::team_facts(ports, team, ports.now()).await?,
        None => TeamFacts::default(),
    };
    Ok(Facts {
        job: job_facts(request, metadata, demand),
        lineage: lineage_facts(ports, job, parent).await?,
        team,
        now: ports.now(),
    })
}

/// Facts of the request itself.
#[must_use]
pub fn job_facts(request: &SubmitJobRequest, metadata: &Metadata, demand: &Demand) -> JobFacts {
    JobFacts {
        metadata: metadata.clone(),
        gpus: demand.gpus,
        vcpus: demand.vcpus,
        memory_mib: demand.memory_mib,
        nodes: demand.nodes,
        array_size: demand.array_size,
        name: request.job_name.clone(),
        definition: request.job_definition.clone(),
        tags: request.tags.clone().unwrap_or_default(),
    }
}

async fn lineage_facts<P>(ports: &P, job: Option<&Job>, parent: Option<&Job>) -> Result<LineageFacts, Failure>
where
    P: QueryItems + Sync,
{
    let mut facts = job.map(own_lineage).unwrap_or_default();
    let Some(parent) = parent else { return Ok(facts) };
    facts.depth = parent.depth.saturating_add(1).min(DEPTH_MAX);
    facts.parent_runtime_seconds = last_runtime_seconds(ports, parent.id).await?;
    Ok(facts)
}

fn own_lineage(job: &Job) -> LineageFacts {
    LineageFacts {
        attempts: job.attempt,
        failures: job.counts.failures,
        preemptions: job.counts.preemptions,
        host_losses: job.counts.host_losses,
        retry_of_preempted: job.last_end == Some(osprey_model::end::EndClass::Preempted),
        wasted_gpu_hours: usage::hours(job.counts.wasted_gpu_ms),
        ..LineageFacts::default()
    }
}

/// The job that `parent-job-id` names, by our id or by Batch's; `None` when nobody knows it.
async fn parent<P: GetItem + Sync>(ports: &P, metadata: &Metadata) -> Result<Option<Job>, Failure> {
    match metadata.parent_job_id.as_deref() {
        Some(id) => Ok(find(ports, id).await?.map(|loaded| loaded.job)),
        None => Ok(None),
    }
}

/// A job by our id, or by the Batch id of one of its attempts.
///
/// # Errors
/// When the store fails.
pub async fn find<P: GetItem + Sync>(ports: &P, id: &str) -> Result<Option<repository::Loaded>, Failure> {
    if let Some(ours) = JobId::parse(id)
        && let Some(loaded) = repository::load(ports, ours).await?
    {
        return Ok(Some(loaded));
    }
    match owner(ports, &BatchJobId::new(id)).await? {
        Some((job, _)) => repository::load(ports, job).await,
        None => Ok(None),
    }
}

/// The job and the attempt that a Batch job belongs to, as recorded when it was submitted.
///
/// # Errors
/// When the store fails.
pub async fn owner<P: GetItem + Sync>(ports: &P, id: &BatchJobId) -> Result<Option<(JobId, u32)>, Failure> {
    match ports.get_item(&key::batch(id)).await? {
        Some(item) => {
            let owner: outgoing::Owner = repository::read(&item)?;
            Ok(Some((owner.job, owner.attempt)))
        }
        None => Ok(None),
    }
}

async fn last_runtime_seconds<P: QueryItems + Sync>(ports: &P, id: JobId) -> Result<u64, Failure> {
    let items = repository::all(ports, key::job_partition(id), key::ATTEMPT).await?;
    let Some(item) = items.last() else { return Ok(0) };
    let attempt: Attempt = repository::read(item)?;
    let started = attempt.started_at.unwrap_or(attempt.stopped_at);
    Ok(u64::try_from(attempt.stopped_at.saturating_sub(started) / 1000).unwrap_or(0))
}

//! Deriving and admitting without any state: the decision functions on a request, a policy, and nothing else.
//!
//! Nodes have 8 GPUs and there is no end of them, job definitions are taken as given, and lineage never refuses.

use std::collections::BTreeMap;

use jiff::Timestamp;
use osprey_model::facts::{Facts, JobFacts, LineageFacts, TeamFacts};
use osprey_model::id::{PoolName, QueueName};
use osprey_model::message::words::quote;
use osprey_model::metadata::Metadata;
use osprey_model::pool::{CapacityType, Pool, PoolMode};
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::SubmitJobRequest;
use osprey_model::resources::Demand;
use osprey_model::sender::Sender;
use osprey_pipeline::{derive, outgoing};
use osprey_policy::Policy;
use osprey_policy::admission::{self, AdmissionInput};
use osprey_policy::identity::{self, Bounded, Claims, Identity};

use crate::definitions::Definitions;
use crate::render::decision::Answer;

/// GPUs of a node where nobody says how many there are.
const GPUS_PER_NODE: u32 = 8;

/// What a decision without state is made of.
pub struct Offline {
    /// The policy.
    pub policy: Policy,
    /// Job definitions.
    pub definitions: Definitions,
    /// What happened to the job before.
    pub lineage: LineageFacts,
    /// The time of the decision.
    pub now: Timestamp,
    /// Who sends it, where its claims are to be bounded by an identity.
    pub sender: Option<Sender>,
}

impl Offline {
    /// Decides about one request.
    #[must_use]
    pub fn evaluate(&self, request: &SubmitJobRequest) -> Answer {
        let (request, mut warnings) = without_queue(request, &self.pools());
        let definition = self.definitions.find(&request.job_definition);
        warnings.extend(self.definitions.warning(&request.job_definition));
        let mut refusals = Vec::new();
        let metadata = match Metadata::read(&request, definition) {
            Ok((metadata, said)) => {
                warnings.extend(said);
                metadata
            }
            Err(faults) => {
                refusals.extend(faults);
                Metadata::default()
            }
        };
        let identity = self.sender.as_ref().map(|sender| self.policy.identity_of(sender));
        let anybody = Identity::anybody();
        let claims = Claims { request: &request, definition, metadata: &metadata };
        let Bounded { metadata, tags, refusals: beyond, warnings: lowered } =
            identity::bound(identity.unwrap_or(&anybody), &claims);
        refusals.extend(beyond);
        warnings.extend(lowered);
        let demand = Demand::of(&request, definition).unwrap_or_else(|fault| {
            refusals.push(fault);
            Demand::default()
        });
        let facts = Facts {
            job: JobFacts { tags, ..derive::job_facts(&request, &metadata, &demand) },
            lineage: self.lineage.clone(),
            team: TeamFacts::default(),
            now: self.now,
        };
        let derivation = self.policy.derive_for(&facts, identity);
        let admission = admission::admit(&AdmissionInput {
            request: &request,
            definition,
            definition_required: false,
            metadata: &metadata,
            demand: &demand,
            derivation: &derivation,
            pools: &identity.unwrap_or(&anybody).open_pools(&self.pools()),
            policy: &self.policy,
            our_tags: outgoing::TAGS.len(),
        });
        // A definition that nobody gave is taken as good, so it has the command.
        let given = definition.is_none().then_some(ReasonCode::MissingCommand);
        add_new(&mut refusals, admission.refusals.into_iter().filter(|refusal| Some(refusal.code) != given));
        warnings.extend(admission.warnings);
        warnings.extend(derivation.fallback.iter().map(|why| format!("the fallback priority stands: {why}")));
        Answer {
            job_name: Some(request.job_name.clone()),
            admitted: refusals.is_empty(),
            priority: Some(derivation.priority),
            tier: Some(derivation.tier),
            pool: admission.pool.filter(|_| refusals.is_empty()),
            steps: derivation.steps,
            refusals,
            warnings,
            ..Answer::default()
        }
    }

    /// An On-Demand and a Spot pool with a queue for each tier, both without end.
    fn pools(&self) -> [Pool; 2] {
        [("on-demand", CapacityType::OnDemand), ("spot", CapacityType::Spot)].map(|(name, capacity)| {
            let queues = self.policy.tiers().iter().map(|tier| {
                let queue = QueueName::new(format!("osprey-{name}-{}", tier.name));
                (tier.name.clone(), queue)
            });
            Pool {
                name: PoolName::new(name),
                mode: PoolMode::Direct,
                capacity,
                gpus_per_node: GPUS_PER_NODE,
                nodes_max: None,
                vcpus_per_node: None,
                memory_mib_per_node: None,
                queues: queues.collect::<BTreeMap<_, _>>(),
                fair_share: true,
                preemption: true,
            }
        })
    }
}

/// Adds the refusals that aren't there yet.
fn add_new(refusals: &mut Vec<Refusal>, more: impl IntoIterator<Item = Refusal>) {
    for refusal in more {
        if !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }
}

/// Which queues there are isn't known offline, so a queue that isn't one of ours is no reason to refuse.
fn without_queue(request: &SubmitJobRequest, pools: &[Pool]) -> (SubmitJobRequest, Vec<String>) {
    let mut request = request.clone();
    let is_ours = |queue: &String| {
        pools.iter().any(|p| p.name.as_str() == queue || p.queues.values().any(|known| known.as_str() == queue))
    };
    let warning = request
        .job_queue
        .take_if(|queue| !is_ours(queue))
        .map(|queue| format!("whether there is a queue {} isn't checked without live state", quote(&queue)));
    (request, warning.into_iter().collect())
}

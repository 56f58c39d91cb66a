//! Admission as a policy's own tests see it: the real decision, less what pools, definitions and Batch add to it.

use osprey_model::decision::Derivation;
use osprey_model::facts::{Facts, JobFacts};
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::SubmitJobRequest;
use osprey_model::resources::Demand;

use crate::admission::{AdmissionInput, admit};
use crate::policy::Policy;

/// The codes that a policy alone decides, and so the ones that its tests can ask for.
pub(crate) const CODES: [ReasonCode; 6] = [
    ReasonCode::MissingMetadata,
    ReasonCode::InvalidMetadata,
    ReasonCode::ArrayTooWide,
    ReasonCode::DurationOverCap,
    ReasonCode::CheckpointTooRare,
    ReasonCode::CheckpointMissing,
];

/// Everything the policy refuses the job for. A test has facts and no request, so what the rest of admission says of
/// the missing definition and pools is left out.
pub(crate) fn refusals(policy: &Policy, facts: &Facts, derivation: &Derivation) -> Vec<Refusal> {
    let job = &facts.job;
    let request = SubmitJobRequest { tags: Some(job.tags.clone()), ..SubmitJobRequest::default() };
    let input = AdmissionInput {
        request: &request,
        definition: None,
        definition_required: false,
        metadata: &job.metadata,
        demand: &demand(job),
        derivation,
        pools: &[],
        policy,
        our_tags: 0,
    };
    admit(&input).refusals.into_iter().filter(|refusal| CODES.contains(&refusal.code)).collect()
}

fn demand(job: &JobFacts) -> Demand {
    let JobFacts { gpus, vcpus, memory_mib, nodes, array_size, .. } = *job;
    Demand { gpus_per_node: gpus.div_ceil(nodes.max(1)), nodes, gpus, vcpus, memory_mib, array_size }
}

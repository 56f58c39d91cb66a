//! The sample backlog at the door: what is admitted to which tier, and what is refused with which code.

use std::collections::BTreeMap;

use osprey_model::facts::{Facts, LineageFacts, TeamFacts};
use osprey_model::id::QueueName;
use osprey_model::message::{Message, parse};
use osprey_model::metadata::Metadata;
use osprey_model::pool::{CapacityType, Pool, PoolMode};
use osprey_model::request::SubmitJobRequest;
use osprey_model::resources::Demand;
use osprey_pipeline::{derive, outgoing};
use osprey_policy::Policy;
use osprey_policy::admission::{AdmissionInput, admit};

type Checked = Result<(), Box<dyn std::error::Error>>;

/// The pools of the sample: two On-Demand nodes and a Spot node.
fn pools(policy: &Policy) -> [Pool; 2] {
    [("on-demand", CapacityType::OnDemand, 2), ("spot", CapacityType::Spot, 1)].map(|(name, capacity, nodes)| {
        let queue = |tier: &osprey_policy::rules::Tier| QueueName::new(format!("osprey-{name}-{}", tier.name));
        Pool {
            name: name.into(),
            mode: PoolMode::Direct,
            capacity,
            gpus_per_node: 8,
            nodes_max: Some(nodes),
            vcpus_per_node: None,
            memory_mib_per_node: None,
            queues: policy.tiers().iter().map(|tier| (tier.name.clone(), queue(tier))).collect(),
            fair_share: true,
            preemption: true,
        }
    })
}

fn default_policy() -> Result<Policy, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(osprey_tests::root().join("shared/policy/policies/default.toml"))?;
    let loaded = Policy::load(&text).map_err(|errors| format!("{} mistakes in the default policy", errors.len()))?;
    Ok(loaded.policy)
}

/// Tier and pool of an admitted job, or the codes of its refusals.
fn outcome(request: &SubmitJobRequest, policy: &Policy) -> Result<String, String> {
    let (metadata, _) = Metadata::read(request, None).map_err(|faults| format!("{faults:?}"))?;
    let demand = Demand::of(request, None).map_err(|fault| fault.to_string())?;
    let facts = Facts {
        job: derive::job_facts(request, &metadata, &demand),
        lineage: LineageFacts::default(),
        team: TeamFacts::default(),
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    let derivation = policy.derive(&facts);
    let admission = admit(&AdmissionInput {
        request,
        definition: None,
        definition_required: false,
        metadata: &metadata,
        demand: &demand,
        derivation: &derivation,
        pools: &pools(policy),
        policy,
        our_tags: outgoing::TAGS.len(),
    });
    if admission.refusals.is_empty() {
        return Ok(format!("{} in {}", derivation.tier, admission.pool.unwrap_or_default()));
    }
    let codes: Vec<String> = admission.refusals.iter().map(|refusal| refusal.code.to_string()).collect();
    Ok(codes.join(" "))
}

#[test]
fn every_tier_is_used_and_what_must_be_refused_is() -> Checked {
    let policy = default_policy()?;
    let backlog = std::fs::read_to_string(osprey_tests::root().join("events/backlog.jsonl"))?;
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for line in backlog.lines() {
        let outcome = match parse(line) {
            Ok(Message::Submit(request)) => outcome(&request, &policy)?,
            Ok(Message::Action(_)) => "action".to_owned(),
            Err(rejection) => rejection.code.to_string(),
        };
        *outcomes.entry(outcome).or_default() += 1;
    }
    let found: Vec<String> = outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    assert_eq!(
        found,
        [
            "1 CheckpointTooRare",
            "1 GpuShape",
            "1 InvalidJobName",
            "1 NotJson",
            "1 UnknownMember",
            "5 critical in on-demand",
            "33 experimental in on-demand",
            "4 preemptible in spot",
            "13 production in on-demand",
        ]
    );
    Ok(())
}

//! The pools that the template makes are what the functions are told of.

use std::collections::BTreeSet;

use osprey_model::pool::{CapacityType, Pool};
use osprey_policy::Policy;
use serde_json::Value;

use super::{at, deep, resolved, resources, target, template};
use crate::{Checked, assert_none, text};

fn pools(template: &Value) -> serde_json::Result<Vec<Pool>> {
    let made = &deep(template, &["Globals", "Function", "Environment", "Variables", "OSPREY_POOLS", "Fn::If"]);
    serde_json::from_str(&resolved(template, made.get(1).unwrap_or(&Value::Null)))
}

fn offences(template: &Value, pools: &[Pool]) -> Vec<String> {
    let made = resources(template, "AWS::Batch::JobQueue");
    let policies = resources(template, "AWS::Batch::SchedulingPolicy");
    let mut found = Vec::new();
    let mut told = BTreeSet::new();
    for (tier, queue) in pools.iter().flat_map(|pool| &pool.queues) {
        let Some((name, properties)) =
            made.iter().find(|(_, made)| resolved(template, at(made, "/JobQueueName")) == queue.as_str())
        else {
            found.push(format!("the queue {queue} is told of and not made"));
            continue;
        };
        told.insert(*name);
        let policy = policies.get(target(at(properties, "/SchedulingPolicyArn")));
        let shares = policy.map(|policy| deep(policy, &["FairsharePolicy", "ShareDistribution"])).unwrap_or_default();
        if !shares.iter().any(|share| text(share, "ShareIdentifier") == osprey_pipeline::outgoing::share(tier.as_str()))
        {
            found.push(format!("{queue} declares no share for its tier {tier}"));
        }
    }
    found
        .extend(made.keys().filter(|name| !told.contains(*name)).map(|name| format!("{name} is made and not told of")));
    found
}

#[test]
fn every_queue_that_is_made_is_told_of() -> Checked {
    let template = template()?;
    assert_none("template.yaml", &offences(&template, &pools(&template)?));
    let told: usize = pools(&template)?.iter().map(|pool| pool.queues.len()).sum();
    assert_eq!(offences(&template, &[]).len(), told);
    Ok(())
}

#[test]
fn every_tier_of_the_default_policy_has_a_queue_where_it_may_run() -> Checked {
    let pools = pools(&template()?)?;
    let policy = Policy::load(osprey_policy::DEFAULT).map_err(|errors| format!("{errors:?}"))?.policy;
    for tier in policy.tiers() {
        for capacity in &tier.capacity {
            let open = pools.iter().any(|pool| pool.capacity == *capacity && pool.queues.contains_key(&tier.name));
            assert!(open, "no queue for {} on {capacity:?}", tier.name);
        }
    }
    assert!(pools.iter().any(|pool| pool.capacity == CapacityType::Spot));
    Ok(())
}

#[test]
fn the_defaults_of_nodes_and_cpus_agree() -> Checked {
    let template = template()?;
    let default = |name: &str| template["Parameters"][name]["Default"].as_i64().unwrap_or_default();
    for capacity in ["OnDemand", "Spot"] {
        let nodes = default(&format!("{capacity}NodesMax"));
        assert_eq!(default(&format!("{capacity}VcpusMax")), nodes * default("VcpusPerNode"), "{capacity}");
    }
    Ok(())
}

#[test]
fn priorities_of_queues_follow_the_tiers() -> Checked {
    let template = template()?;
    let policy = Policy::load(osprey_policy::DEFAULT).map_err(|errors| format!("{errors:?}"))?.policy;
    let made = resources(&template, "AWS::Batch::JobQueue");
    for pool in pools(&template)? {
        let of = |queue: &str| {
            let queue = made.values().find(|made| resolved(&template, &made["JobQueueName"]) == queue);
            queue.and_then(|queue| queue["Priority"].as_i64())
        };
        let tiers = policy.tiers().iter().filter_map(|tier| pool.queues.get(&tier.name));
        let priorities: Vec<_> = tiers.map(|queue| of(queue.as_str())).collect();
        assert!(priorities.is_sorted_by(|a, b| a > b), "{}: {priorities:?}", pool.name);
    }
    Ok(())
}

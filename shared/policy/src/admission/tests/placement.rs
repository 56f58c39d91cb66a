//! C18, C20, D15, E9: which pools can run a job, and what is told when none can.

use osprey_model::pool::{CapacityType, Pool};
use osprey_model::reason::Refusal;
use serde_json::{Value, json};

use super::{Demand, Scene, pool};
use crate::admission::route;

const ON_DEMAND: CapacityType = CapacityType::OnDemand;
const SPOT: CapacityType = CapacityType::Spot;

/// A definition of this many nodes with this many GPUs on each.
fn nodes(count: u32, gpus: u32) -> Value {
    let requirements = json!([{"type": "GPU", "value": gpus.to_string()}]);
    let ranges = json!([{"targetNodes": "0:", "container": {"resourceRequirements": requirements}}]);
    json!({"jobDefinitionName": "train", "revision": 1, "nodeProperties": {"numNodes": count, "nodeRangeProperties": ranges}})
}

fn routed(scene: &Scene, avoid_spot: bool) -> Result<String, Vec<Refusal>> {
    let (request, definition) = (scene.request(), scene.definition());
    let demand = Demand::of(&request, definition.as_ref()).unwrap();
    route(&request, &demand, &scene.derivation(), &scene.pools, &scene.policy, avoid_spot).map(|pool| pool.to_string())
}

#[test]
fn counts_that_divide_a_node_are_legal_and_one_is_among_them_e9() {
    for count in [1, 2, 4, 8] {
        assert_eq!(Scene::gpus(count).admitted(), "a", "{count}");
    }
}

#[test]
fn odd_counts_are_refused_with_the_nearest_legal_ones_c18_e9() {
    for (count, want) in [
        (3, "`GPU` 3 fits no whole part of an 8-GPU node; ask for 2 or 4"),
        (5, "`GPU` 5 fits no whole part of an 8-GPU node; ask for 4 or 8"),
        (6, "`GPU` 6 fits no whole part of an 8-GPU node; ask for 4 or 8"),
        (7, "`GPU` 7 fits no whole part of an 8-GPU node; ask for 4 or 8"),
        (
            16,
            "`GPU` 16 fills 2 nodes of 8, and one container can't span nodes; submit a multi-node job of 2 nodes with `GPU` 8 each",
        ),
        (12, "`GPU` 12 is no multiple of an 8-GPU node; ask for 8, or for 16 as a multi-node job of 2 nodes"),
        (
            20,
            "`GPU` 20 is no multiple of an 8-GPU node; ask for 16 as a multi-node job of 2 nodes, or for 24 as a multi-node job of 3 nodes",
        ),
    ] {
        assert_eq!(Scene::gpus(count).refused(), format!("{want} (GpuShape)"), "{count}");
    }
}

#[test]
fn the_article_goes_by_the_number() {
    for (node, want) in [(4, "a 4-GPU node"), (11, "an 11-GPU node"), (18, "an 18-GPU node"), (16, "a 16-GPU node")] {
        let narrow = Pool { gpus_per_node: node, ..pool("a", ON_DEMAND, 9) };
        let asked = node - 1;
        let refused = Scene::gpus(asked).pools(vec![narrow]).refused();
        assert!(refused.starts_with(&format!("`GPU` {asked} fits no whole part of {want}; ask for ")), "{refused}");
    }
}

#[test]
fn a_multi_node_job_fills_its_nodes_by_the_same_rule() {
    assert_eq!(Scene::new().defined(nodes(4, 8)).admitted(), "a");
    assert_eq!(Scene::new().defined(nodes(2, 1)).admitted(), "a");
    assert_eq!(
        Scene::new().defined(nodes(2, 7)).refused(),
        "`GPU` 7 fits no whole part of an 8-GPU node; ask for 4 or 8 (GpuShape)"
    );
    assert_eq!(
        Scene::new().defined(nodes(2, 16)).refused(),
        "`GPU` 16 on one node of the job is more than an 8-GPU node has; ask for at most 8 on each node (GpuShape)"
    );
}

#[test]
fn a_count_that_fits_another_pools_nodes_goes_there() {
    let wide = Pool { gpus_per_node: 16, ..pool("wide", ON_DEMAND, 2) };
    assert_eq!(Scene::gpus(16).pools(vec![pool("a", ON_DEMAND, 12), wide]).admitted(), "wide");
}

#[test]
fn more_than_the_pool_has_is_refused_c20_d15() {
    let needs = |kind: &str, value: &str| {
        Scene::with(json!({"containerOverrides": {"resourceRequirements": [{"type": kind, "value": value}]}}))
    };
    for (sentence, scene, want) in [
        (
            "more nodes and GPUs than there are",
            Scene::new().defined(nodes(13, 8)),
            vec![
                "pool `a` has 96 GPUs; the job asks for 104; ask for at most 96, or name a larger pool (LargerThanPool)",
                "pool `a` has 12 nodes; the job asks for 13; ask for at most 12, or name a larger pool (LargerThanPool)",
            ],
        ),
        (
            "more vCPUs than a node has",
            needs("VCPU", "97"),
            vec![
                "a node of pool `a` has 96 vCPUs; the job asks for 97; ask for at most 96, or name a larger pool (LargerThanPool)",
            ],
        ),
        (
            "more memory than a node has",
            needs("MEMORY", "1048577"),
            vec![
                "a node of pool `a` has 1048576 MiB of memory; the job asks for 1048577; ask for at most 1048576, or name a larger pool (LargerThanPool)",
            ],
        ),
        (
            "GPUs where there are none",
            Scene::gpus(1).pools(vec![Pool { gpus_per_node: 0, ..pool("cpu", ON_DEMAND, 4) }]),
            vec!["pool `cpu` has no GPUs; the job asks for 1; name a pool with GPUs (LargerThanPool)"],
        ),
    ] {
        assert_eq!(scene.refusals(), want, "{sentence}");
    }
    assert_eq!(needs("VCPU", "96").admitted(), "a");
    assert_eq!(needs("MEMORY", "1048576").admitted(), "a");
    assert_eq!(Scene::new().defined(nodes(12, 8)).admitted(), "a");
}

#[test]
fn a_pool_of_unknown_size_refuses_nothing_by_size() {
    let unknown = Pool { nodes_max: None, vcpus_per_node: None, memory_mib_per_node: None, ..pool("a", ON_DEMAND, 0) };
    assert_eq!(Scene::new().defined(nodes(500, 8)).pools(vec![unknown]).admitted(), "a");
}

#[test]
fn a_job_queue_may_name_a_pool_or_one_of_its_tier_queues() {
    let pools = || vec![pool("a", ON_DEMAND, 12), pool("b", ON_DEMAND, 12)];
    for queue in ["b", "osprey-b-experimental", "arn:aws:batch:eu-west-1:123456789012:job-queue/osprey-b-experimental"]
    {
        let scene = Scene::with(json!({"jobQueue": queue})).pools(pools());
        assert_eq!((scene.admitted().as_str(), scene.warnings()), ("b", vec![]), "{queue}");
    }
    assert_eq!(Scene::with(json!({"jobQueue": ""})).pools(pools()).admitted(), "a");
}

#[test]
fn the_tier_is_derived_even_when_a_tier_queue_is_named() {
    let scene = Scene::with(json!({"jobQueue": "osprey-a-critical"}));
    assert_eq!(scene.admitted(), "a");
    assert_eq!(
        scene.warnings(),
        [
            "`jobQueue` `osprey-a-critical` is of tier `critical`: the job stays in pool `a`, but its tier is derived and is `experimental`"
        ]
    );
}

#[test]
fn any_other_queue_is_refused_with_the_list_of_pools() {
    let pools = vec![pool("gpu-a", ON_DEMAND, 12), pool("gpu-b", ON_DEMAND, 12)];
    let scene = |queue: &str, pools: Vec<Pool>| Scene::with(json!({"jobQueue": queue})).pools(pools).refused();
    assert_eq!(
        scene("high-priority", pools.clone()),
        "`jobQueue` `high-priority` is neither a pool nor a queue of one; the pools are `gpu-a` and `gpu-b` (UnknownQueue)"
    );
    assert_eq!(
        scene("gpu_b", pools),
        "`jobQueue` `gpu_b` is neither a pool nor a queue of one; the pools are `gpu-a` and `gpu-b`; did you mean `gpu-b`? (UnknownQueue)"
    );
    assert_eq!(
        scene("x", vec![pool("a", ON_DEMAND, 1)]),
        "`jobQueue` `x` is neither a pool nor a queue of one; the only pool is `a` (UnknownQueue)"
    );
    assert_eq!(
        scene("x", vec![]),
        "`jobQueue` `x` is neither a pool nor a queue of one; there are no pools (UnknownQueue)"
    );
}

#[test]
fn a_tiers_preferred_capacity_comes_first_d4() {
    let pools = || vec![pool("steady", ON_DEMAND, 4), pool("cheap", SPOT, 4)];
    assert_eq!(Scene::new().tier("reserved").pools(pools()).admitted(), "cheap");
    assert_eq!(Scene::new().tier("critical").pools(pools()).admitted(), "steady");
    assert_eq!(
        Scene::new()
            .tier("reserved")
            .defined(nodes(5, 8))
            .pools(vec![pool("cheap", SPOT, 9), pool("steady", ON_DEMAND, 9)])
            .admitted(),
        "steady"
    );
}

#[test]
fn an_attempt_that_avoids_spot_takes_it_only_when_there_is_nothing_else() {
    let scene = |pools: Vec<Pool>| Scene::new().tier("reserved").pools(pools);
    let both = scene(vec![pool("cheap", SPOT, 4), pool("steady", ON_DEMAND, 4)]);
    assert_eq!(routed(&both, false), Ok("cheap".to_owned()));
    assert_eq!(routed(&both, true), Ok("steady".to_owned()));
    assert_eq!(routed(&scene(vec![pool("cheap", SPOT, 4)]), true), Ok("cheap".to_owned()));
}

#[test]
fn a_multi_node_job_never_goes_to_spot_d8() {
    let spot_only = Scene::new().tier("reserved").defined(nodes(2, 8)).pools(vec![pool("cheap", SPOT, 4)]);
    assert_eq!(
        spot_only.refused(),
        "AWS Batch runs no multi-node job on Spot, and no On-Demand pool is open to this one; name one, or open tier `reserved` to On-Demand (MultiNodeOnSpot)"
    );
    let pools = vec![pool("cheap", SPOT, 4), pool("steady", ON_DEMAND, 1)];
    let too_small = Scene::new().tier("reserved").defined(nodes(2, 8)).pools(pools);
    assert_eq!(
        too_small.refusals(),
        [
            "pool `steady` has 8 GPUs; the job asks for 16; ask for at most 8, or name a larger pool (LargerThanPool)",
            "pool `steady` has 1 node; the job asks for 2; ask for at most 1, or name a larger pool (LargerThanPool)",
        ]
    );
}

#[test]
fn a_pool_that_is_not_open_to_the_tier_says_why() {
    let only = |name: &str, tier: &'static str, pools: Vec<Pool>| {
        Scene::with(json!({"jobQueue": name})).tier(tier).pools(pools).refused()
    };
    assert_eq!(
        only("cheap", "critical", vec![pool("cheap", SPOT, 4)]),
        "pool `cheap` is Spot, and tier `critical` takes On-Demand; name another pool, or none (NoEligiblePool)"
    );
    let mut without = pool("a", ON_DEMAND, 4);
    without.queues.remove(&"critical".into());
    assert_eq!(
        only("a", "critical", vec![without.clone()]),
        "pool `a` has no queue of tier `critical`; name another pool, or none (NoEligiblePool)"
    );
    let two = vec![pool("cheap", SPOT, 4), without];
    assert_eq!(
        only("", "critical", two),
        "no pool with a queue of tier `critical` is On-Demand; create one, or open the tier to other capacity (NoEligiblePool)"
    );
    assert_eq!(only("", "critical", vec![]), "there is no pool to run it; create one (NoEligiblePool)");
}

#[test]
fn the_pool_that_came_nearest_speaks() {
    let pools = vec![Pool { gpus_per_node: 0, ..pool("cpu", ON_DEMAND, 4) }, pool("gpu", ON_DEMAND, 4)];
    assert_eq!(
        Scene::gpus(7).pools(pools).refused(),
        "`GPU` 7 fits no whole part of an 8-GPU node; ask for 4 or 8 (GpuShape)"
    );
}

//! Every refusal with its exact sentence. A scene is a job that may enter; each test changes what it is about.

mod batch_limits;
mod metadata_rules;
mod placement;

use osprey_model::decision::Derivation;
use osprey_model::definition::JobDefinition;
use osprey_model::metadata::Metadata;
use osprey_model::pool::{CapacityType, Pool, PoolMode};
use osprey_model::request::SubmitJobRequest;
use osprey_model::resources::Demand;
use serde_json::{Value, json};

use super::{Admission, AdmissionInput, admit};
use crate::policy::Policy;

/// Tags that Osprey adds in these tests.
const OUR_TAGS: usize = 4;

/// The tiers of the default policy, and `reserved`, which prefers Spot without being preemptible.
const TIERS: &str = r#"
name = "scene"
[[tier]]
name = "critical"
at_least = 1100
[[tier]]
name = "reserved"
at_least = 500
capacity = ["spot", "on-demand"]
[[tier]]
name = "experimental"
at_least = 0
[[tier]]
name = "preemptible"
takes = "preemptible"
checkpoint_window = "15m"
"#;

fn policy(text: &str) -> Policy {
    Policy::load(text).unwrap().policy
}

/// A pool of this many nodes of 8 GPUs, with a queue for each tier.
fn pool(name: &str, capacity: CapacityType, nodes: u32) -> Pool {
    let queue = |tier: &str| (tier.into(), format!("osprey-{name}-{tier}").as_str().into());
    Pool {
        name: name.into(),
        mode: PoolMode::Direct,
        capacity,
        gpus_per_node: 8,
        nodes_max: Some(nodes),
        vcpus_per_node: Some(96),
        memory_mib_per_node: Some(1_048_576),
        queues: ["critical", "reserved", "experimental", "preemptible"].into_iter().map(queue).collect(),
        fair_share: true,
        preemption: true,
    }
}

struct Scene {
    request: Value,
    definition: Option<Value>,
    definition_required: bool,
    tier: &'static str,
    /// Whether its team's quota has brought it to the tier of preemptible jobs.
    is_demoted: bool,
    pools: Vec<Pool>,
    policy: Policy,
}

impl Scene {
    fn new() -> Self {
        Self {
            request: json!({"jobName": "train-1", "jobDefinition": "train:1"}),
            definition: Some(json!({"jobDefinitionName": "train", "revision": 1})),
            definition_required: true,
            tier: "experimental",
            is_demoted: false,
            pools: vec![pool("a", CapacityType::OnDemand, 12)],
            policy: policy(TIERS),
        }
    }

    /// The scene with more members in the request.
    fn with(members: Value) -> Self {
        let mut scene = Self::new();
        match (&mut scene.request, members) {
            (Value::Object(request), Value::Object(members)) => request.extend(members),
            other => panic!("{other:?}"),
        }
        scene
    }

    /// The scene with this many GPUs on one node.
    fn gpus(count: u32) -> Self {
        let requirements = json!([{"type": "GPU", "value": count.to_string()}]);
        Self::with(json!({"containerOverrides": {"resourceRequirements": requirements}}))
    }

    /// The scene with these tags.
    fn tags(tags: Value) -> Self {
        Self::with(Value::Object([("tags".to_owned(), tags)].into_iter().collect()))
    }

    fn defined(mut self, definition: Value) -> Self {
        self.definition = Some(definition);
        self
    }

    fn tier(mut self, tier: &'static str) -> Self {
        self.tier = tier;
        self
    }

    fn pools(mut self, pools: Vec<Pool>) -> Self {
        self.pools = pools;
        self
    }

    fn policy(mut self, text: &str) -> Self {
        self.policy = policy(text);
        self
    }

    fn request(&self) -> SubmitJobRequest {
        serde_json::from_value(self.request.clone()).unwrap()
    }

    fn definition(&self) -> Option<JobDefinition> {
        self.definition.clone().map(|definition| serde_json::from_value(definition).unwrap())
    }

    fn derivation(&self) -> Derivation {
        let derived = Derivation { priority: 500, tier: self.tier.into(), steps: Vec::new(), fallback: None };
        if self.is_demoted { self.policy.demoted(derived, std::collections::BTreeMap::new()) } else { derived }
    }

    fn admission(&self) -> Admission {
        let (request, definition) = (self.request(), self.definition());
        admit(&AdmissionInput {
            request: &request,
            definition: definition.as_ref(),
            definition_required: self.definition_required,
            metadata: &Metadata::read(&request, definition.as_ref()).unwrap().0,
            demand: &Demand::of(&request, definition.as_ref()).unwrap(),
            derivation: &self.derivation(),
            pools: &self.pools,
            policy: &self.policy,
            our_tags: OUR_TAGS,
        })
    }

    fn refusals(&self) -> Vec<String> {
        self.admission().refusals.iter().map(ToString::to_string).collect()
    }

    fn warnings(&self) -> Vec<String> {
        self.admission().warnings
    }

    /// The one refusal.
    fn refused(&self) -> String {
        let refusals = self.refusals();
        assert_eq!(refusals.len(), 1, "{refusals:#?}");
        refusals.concat()
    }

    /// The pool of a job that may enter.
    fn admitted(&self) -> String {
        let admission = self.admission();
        assert_eq!(admission.refusals, []);
        admission.pool.unwrap().to_string()
    }
}

#[test]
fn a_plain_job_enters_the_first_pool_without_a_word() {
    assert_eq!(Scene::new().admitted(), "a");
    assert_eq!(Scene::new().warnings(), Vec::<String>::new());
}

#[test]
fn an_unregistered_definition_is_refused_where_one_is_required() {
    let scene = Scene { definition: None, ..Scene::new() };
    assert_eq!(
        scene.refused(),
        "the job definition `train:1` is not registered; register it or correct the name (UnknownDefinition)"
    );
}

#[test]
fn an_empty_definition_is_refused_everywhere() {
    let command = json!({"jobDefinition": " ", "containerOverrides": {"command": ["sleep", "1"]}});
    let scene = Scene { definition: None, definition_required: false, ..Scene::with(command) };
    assert_eq!(
        scene.refused(),
        "`jobDefinition` is empty; name a job definition, such as `train:3` (UnknownDefinition)"
    );
}

#[test]
fn without_a_required_definition_the_requests_own_command_runs() {
    let command = json!({"containerOverrides": {"command": ["sleep", "1"]}});
    let scene = Scene { definition: None, definition_required: false, ..Scene::with(command) };
    assert_eq!(scene.admitted(), "a");
}

#[test]
fn nothing_to_run_is_refused_c20() {
    let scene = Scene { definition: None, definition_required: false, ..Scene::new() };
    assert_eq!(
        scene.refused(),
        "there is nothing to run: the job definition `train:1` is not registered, and the request has no command; give `containerOverrides.command` or register the definition (MissingCommand)"
    );
    let without = json!({"jobDefinitionName": "train", "revision": 1, "containerProperties": {"image": "x"}});
    let scene = Scene { definition_required: false, ..Scene::new() }.defined(without.clone());
    assert_eq!(
        scene.refused(),
        "there is nothing to run: neither the job definition `train:1` nor the request has a command; give `containerOverrides.command` (MissingCommand)"
    );
    // On AWS the image has a command of its own.
    assert_eq!(Scene::new().defined(without).admitted(), "a");
}

#[test]
fn all_refusals_come_at_once_in_a_fixed_order() {
    let scene = Scene {
        definition: None,
        ..Scene::with(json!({
            "jobName": "my job",
            "jobQueue": "b",
            "timeout": {"attemptDurationSeconds": 30},
            "arrayProperties": {"size": 500},
            "tags": {"preemptible": "true", "osprey:priority": "1"},
        }))
    }
    .tier("preemptible");
    let codes: Vec<String> = scene.admission().refusals.iter().map(|refusal| refusal.code.to_string()).collect();
    assert_eq!(
        codes,
        ["UnknownDefinition", "InvalidJobName", "InvalidTimeout", "InvalidTag", "UnknownQueue", "ArrayTooWide",]
    );
    assert_eq!(scene.admission(), scene.admission());
}

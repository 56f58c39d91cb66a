//! A submission of one kilobyte.

use osprey_model::id::MessageId;
use osprey_model::pool::Pool;
use osprey_model::sender::Sender;
use osprey_pipeline::context::{Context, Settings};
use osprey_policy::Policy;
use osprey_ports::{QueueKind, ReceivedMessage};

use crate::counting::{Counted, Counting};

const POOLS: &str = r#"[{"name":"main","mode":"direct","capacity":"on-demand","gpus_per_node":8,"nodes_max":4,
    "vcpus_per_node":null,"memory_mib_per_node":null,"fair_share":true,
    "queues":{"critical":"osprey-main-critical","production":"osprey-main-production",
              "experimental":"osprey-main-experimental","preemptible":"osprey-main-preemptible"}}]"#;

/// A request of 1 KB as a team sends it.
fn body() -> String {
    let body = r#"{"jobName":"resnet-50-fold-3","jobDefinition":"train:7","containerOverrides":{"command":["python","train.py","--config","PAD"],"resourceRequirements":[{"type":"GPU","value":"8"},{"type":"VCPU","value":"64"},{"type":"MEMORY","value":"245760"}],"environment":[{"name":"DATASET","value":"s3://datasets/imagenet/2026-11"},{"name":"NCCL_DEBUG","value":"WARN"}]},"timeout":{"attemptDurationSeconds":86400},"tags":{"team":"vision","environment":"production","workload":"training","max-duration":"24h","checkpoint-interval":"10m","dataset-size":"1.2TB"}}"#;
    body.replace("PAD", &"c".repeat(1024 - body.len() + 3))
}

async fn submit() -> Counted {
    let policy = Policy::load(osprey_policy::DEFAULT).unwrap().policy;
    let pools: Vec<Pool> = serde_json::from_str(POOLS).unwrap();
    let settings = Settings::default();
    let ctx = Context { policy: &policy, pools: &pools, settings: &settings };
    let ports = Counting::new();
    let message = ReceivedMessage {
        id: MessageId::new("6f1c4b54-70c5-4c8e-9a34-9f3c77c4f0d1"),
        body: body(),
        sender: Sender::new("osprey-submissions", "AROAEXAMPLEEXAMPLE:vision-trainer"),
        sent_at: jiff::Timestamp::now(),
        receive_count: 1,
    };
    assert_eq!(message.body.len(), 1024);
    assert_eq!(osprey_submit::handle(&ctx, &ports, QueueKind::Submissions, &[message]).await, []);
    ports.counted()
}

/// 1 SubmitJob, at most 3 write requests, 12 write units and 2 reads, for a team whose usage is read.
#[test]
fn a_submission_of_one_kilobyte_costs_no_more_than_was_promised() {
    let counted = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(submit());
    eprintln!("{counted:#?}");
    assert_eq!(counted.submissions, 1);
    assert!(counted.write_requests <= 3, "{counted:?}");
    assert!(counted.write_units <= 12, "{counted:?}");
    assert!(counted.reads <= 2, "{counted:?}");
    assert!(counted.largest_state <= 1024, "a state item stays under 1 KB: {counted:?}");
}

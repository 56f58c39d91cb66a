//! The whole way of a job through the SDK, on the project's own Batch and queues.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::{SignedDuration, Timestamp};
use osprey_aws::batch::AwsBatch;
use osprey_aws::queues::SqsQueues;
use osprey_aws::{Clients, SubmitTokens};
use osprey_local::{LocalWorld, StateDir, Time};
use osprey_local_server::server::Running;
use osprey_local_server::{Credentials, Options, Server, Service};
use osprey_model::event::BatchStatus;
use osprey_model::id::{BatchJobId, QueueName};
use osprey_model::request::SubmitJobRequest;
use osprey_ports::{
    CallError, CancelJob, DescribeJobDefinition, DescribeJobs, ListChildren, ListJobs, QueueKind, SendMessage,
    SubmitCall, SubmitError, SubmitJob, TerminateJob,
};

use crate::support::{clients, run};

static NUMBER: AtomicU32 = AtomicU32::new(0);
const QUEUE: &str = "osprey-local-critical";

struct Bench {
    dir: PathBuf,
    world: LocalWorld,
    key: Credentials,
    endpoint: String,
    running: Option<Running>,
}

impl Bench {
    fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("osprey-aws-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let state = StateDir::open(&dir).unwrap();
        let world = LocalWorld::open(&state, Time::Set { speed: 1.0 }, osprey_local_batch::Options::default()).unwrap();
        let key = Credentials::of(&dir).unwrap();
        let server = Server::bind(Options::default()).unwrap();
        let endpoint = server.endpoint();
        let running = server.serve(Service::new(world.clone(), key.clone(), endpoint.clone())).unwrap();
        Self { dir, world, key, endpoint, running: Some(running) }
    }

    async fn clients(&self) -> Clients {
        clients(&self.endpoint, &self.key.key_id, &self.key.secret).await
    }

    /// Batch with a fair-share queue and a definition of two revisions, made by calls.
    async fn batch(&self) -> AwsBatch {
        let clients = self.clients().await;
        let batch = &clients.batch;
        let resources = aws_sdk_batch::types::ComputeResource::builder()
            .r#type(aws_sdk_batch::types::CrType::Ec2)
            .minv_cpus(0)
            .maxv_cpus(192)
            .instance_types("p4d.24xlarge")
            .subnets("subnet-1")
            .instance_role("ecsInstanceRole")
            .build();
        let environment = batch
            .create_compute_environment()
            .compute_environment_name("gpus")
            .r#type(aws_sdk_batch::types::CeType::Managed)
            .compute_resources(resources);
        environment.send().await.unwrap();
        let share = aws_sdk_batch::types::FairsharePolicy::builder().share_decay_seconds(600).build();
        let policy = batch.create_scheduling_policy().name("shares").fairshare_policy(share).send().await.unwrap();
        let order =
            aws_sdk_batch::types::ComputeEnvironmentOrder::builder().order(1).compute_environment("gpus").build();
        let queue = batch.create_job_queue().job_queue_name(QUEUE).priority(3).compute_environment_order(order);
        queue.set_scheduling_policy_arn(policy.arn).send().await.unwrap();
        for _ in 0..2 {
            let need = |kind, value: &str| {
                aws_sdk_batch::types::ResourceRequirement::builder().r#type(kind).value(value).build()
            };
            let container = aws_sdk_batch::types::ContainerProperties::builder()
                .image("busybox")
                .command("true")
                .readonly_root_filesystem(true)
                .resource_requirements(need(aws_sdk_batch::types::ResourceType::Vcpu, "1"))
                .resource_requirements(need(aws_sdk_batch::types::ResourceType::Memory, "512"))
                .build();
            let definition = batch
                .register_job_definition()
                .job_definition_name("train")
                .r#type(aws_sdk_batch::types::JobDefinitionType::Container)
                .container_properties(container);
            definition.send().await.unwrap();
        }
        AwsBatch::new(&clients, SubmitTokens::unlimited())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.running = None;
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn call(change: &str) -> SubmitCall {
    let text = format!(
        r#"{{"jobName":"first","jobQueue":"{QUEUE}","jobDefinition":"train:1","shareIdentifier":"critical","schedulingPriorityOverride":1200,"tags":{{"osprey:job-id":"j"}}{change}}}"#
    );
    let request: SubmitJobRequest = serde_json::from_str(&text).unwrap();
    SubmitCall { request, not_after: Timestamp::now() + SignedDuration::from_secs(60) }
}

#[test]
fn a_job_is_submitted_described_listed_cancelled_and_terminated() {
    let bench = Bench::new();
    run(async {
        let batch = bench.batch().await;
        let before = Timestamp::now() - SignedDuration::from_secs(1);
        let id = batch.submit_job(&call("")).await.unwrap();
        let seen = batch.describe_jobs(&[id.clone(), BatchJobId::new("unknown")]).await.unwrap();
        assert_eq!(seen.len(), 1, "a job that Batch doesn't know is left out");
        assert_eq!((seen[0].scheduling_priority, seen[0].share_identifier.as_deref()), (Some(1200), Some("critical")));
        assert_eq!(seen[0].tags["osprey:job-id"], "j");
        let queue = QueueName::new(QUEUE);
        let listed = batch.list_jobs(&queue, "FIRST", before).await.unwrap();
        assert_eq!((listed.len(), &listed[0].id, listed[0].name.as_str()), (1, &id, "first"));
        let later = Timestamp::now() + SignedDuration::from_secs(60);
        assert_eq!(batch.list_jobs(&queue, "first", later).await, Ok(vec![]), "none so young");
        batch.cancel_job(&id, "no need").await.unwrap();
        let seen = batch.describe_jobs(std::slice::from_ref(&id)).await.unwrap();
        assert_eq!((seen[0].status, seen[0].status_reason.as_deref()), (BatchStatus::Failed, Some("no need")));
        let id = batch.submit_job(&call("")).await.unwrap();
        batch.terminate_job(&id, "OSPREY enough").await.unwrap();
        let seen = batch.describe_jobs(&[id]).await.unwrap();
        assert_eq!(seen[0].status_reason.as_deref(), Some("OSPREY enough"));
    });
}

#[test]
fn lists_of_many_pages_are_read_to_the_end() {
    let bench = Bench::new();
    run(async {
        let batch = bench.batch().await;
        let from = Timestamp::now() - SignedDuration::from_secs(1);
        for _ in 0..130 {
            batch.submit_job(&call("")).await.unwrap();
        }
        let listed = batch.list_jobs(&QueueName::new(QUEUE), "first", from).await.unwrap();
        assert_eq!(listed.len(), 130);
        assert!(listed.is_sorted_by(|a, b| a.created_at >= b.created_at), "newest first");
        let parent = batch.submit_job(&call(r#","arrayProperties":{"size":3}"#)).await.unwrap();
        assert_eq!(batch.list_failed_children(&parent, 10).await, Ok(vec![]));
    });
}

#[test]
fn a_submission_is_refused_in_batchs_words() {
    let bench = Bench::new();
    run(async {
        let batch = bench.batch().await;
        let mut wrong = call("");
        wrong.request.job_definition = "none".to_owned();
        let refused = batch.submit_job(&wrong).await;
        assert_eq!(refused, Err(SubmitError::Refused("JobDefinition none not found.".to_owned())));
        let refused = batch.cancel_job(&BatchJobId::new(""), "r").await;
        assert_eq!(refused, Err(CallError::Refused("jobId must be specified.".to_owned())));
    });
}

#[test]
fn a_definition_is_read_by_name_revision_and_arn() {
    let bench = Bench::new();
    run(async {
        let batch = bench.batch().await;
        let newest = batch.describe_job_definition("train").await.unwrap().unwrap();
        assert_eq!((newest.revision, newest.job_definition_name.as_str()), (2, "train"));
        let container = newest.container_properties.as_ref().unwrap();
        assert_eq!(container.other["readonlyRootFilesystem"], true, "members that Osprey doesn't read are kept");
        let first = batch.describe_job_definition("train:1").await.unwrap().unwrap();
        assert_eq!(first.revision, 1);
        let by_arn = batch.describe_job_definition(&first.job_definition_arn).await.unwrap();
        assert_eq!(by_arn, Some(first));
        assert_eq!(batch.describe_job_definition("none").await, Ok(None));
        assert_eq!(batch.describe_job_definition("none:4").await, Ok(None));
        let queue = QueueName::new(QUEUE);
        batch.learn_queues(&[queue.clone(), QueueName::new("none")]).await.unwrap();
        assert!(batch.known_queue(&queue).unwrap().is_fair_share());
        assert_eq!(batch.known_queue(&QueueName::new("none")), None);
    });
}

#[test]
fn a_message_is_sent_with_its_delay() {
    let bench = Bench::new();
    run(async {
        let clients = bench.clients().await;
        let url = clients.sqs.get_queue_url().queue_name(QueueKind::Internal.name()).send().await.unwrap().queue_url;
        let queues = SqsQueues::new(clients.sqs, BTreeMap::from([(QueueKind::Internal, url.unwrap())]));
        let id = queues.send_message(QueueKind::Internal, "{}", 900).await.unwrap();
        assert!(!id.as_str().is_empty());
        let counts = bench.world.queues().counts(QueueKind::Internal).unwrap();
        assert_eq!(counts.delayed, 1, "{counts:?}");
        let denied = queues.send_message(QueueKind::Events, "{}", 0).await;
        assert_eq!(
            denied,
            Err(CallError::Denied("the URL of queue `osprey-events` is not set for this process".to_owned()))
        );
    });
}

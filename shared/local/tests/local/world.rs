//! The world as handlers see it: every port on one value.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use osprey_local::{Database, LocalWorld, StateDir, Time};
use osprey_local_batch::{ComputeEnvironmentOrder, ComputeEnvironmentRequest, EventOptions, JobQueueRequest, Options};
use osprey_model::definition::{ContainerProperties, JobDefinition};
use osprey_model::event::{BatchEvent, BatchStatus, JOB_STATE_CHANGE};
use osprey_model::id::{BatchJobId, QueueName};
use osprey_model::request::{ArrayProperties, ResourceRequirement, SubmitJobRequest};
use osprey_ports::{
    CallError, CancelJob, Clock, DescribeJobDefinition, DescribeJobs, Expect, GetItem, Item, Key, ListChildren,
    ListJobs, Notice, Notify, QueryIndex, QueryItems, QueueKind, SendMessage, SubmitCall, SubmitError, SubmitJob,
    TerminateJob, Write, WriteItems,
};

use crate::scratch::{Scratch, ready, second};

const QUEUE: &str = "osprey-local-critical";

/// A world with one queue, one node and one definition, on which nothing runs.
fn world(scratch: &Scratch) -> LocalWorld {
    world_with(scratch, Options::default())
}

fn world_with(scratch: &Scratch, options: Options) -> LocalWorld {
    let state = StateDir::open(scratch.path()).unwrap();
    let world = LocalWorld::open(&state, Time::Set { speed: 100.0 }, options).unwrap();
    let environment = ComputeEnvironmentRequest {
        compute_environment_name: "node".into(),
        gpus_per_node: 8,
        ..ComputeEnvironmentRequest::default()
    };
    world.batch().ensure_compute_environment(&environment).unwrap();
    let order = ComputeEnvironmentOrder { order: 1, compute_environment: "node".into() };
    for name in [QUEUE, "other"] {
        let compute_environment_order = vec![order.clone()];
        let queue = JobQueueRequest {
            job_queue_name: name.into(),
            priority: 1,
            compute_environment_order,
            ..JobQueueRequest::default()
        };
        world.batch().ensure_job_queue(&queue).unwrap();
    }
    world.batch().ensure_job_definition(&definition("true")).unwrap();
    world
}

fn definition(command: &str) -> JobDefinition {
    let amount = |kind: &str, value: &str| ResourceRequirement { kind: kind.into(), value: value.into() };
    let container = ContainerProperties {
        image: Some("image".into()),
        command: vec![command.into()],
        resource_requirements: vec![amount("VCPU", "1"), amount("MEMORY", "128")],
        ..ContainerProperties::default()
    };
    JobDefinition {
        job_definition_name: "train".into(),
        kind: "container".into(),
        container_properties: Some(container),
        ..JobDefinition::default()
    }
}

fn request(name: &str) -> SubmitJobRequest {
    SubmitJobRequest {
        job_name: name.into(),
        job_queue: Some(QUEUE.into()),
        job_definition: "train".into(),
        ..SubmitJobRequest::default()
    }
}

fn submit(world: &LocalWorld, request: SubmitJobRequest) -> Result<BatchJobId, SubmitError> {
    let not_after = world.now().saturating_add(SignedDuration::from_hours(1)).unwrap();
    ready(world.submit_job(&SubmitCall { request, not_after }))
}

fn list(world: &LocalWorld, queue: &str, name: &str, from: Timestamp) -> Vec<BatchJobId> {
    let jobs = ready(world.list_jobs(&QueueName::from(queue), name, from)).unwrap();
    jobs.into_iter().map(|job| job.id).collect()
}

/// A handler as generic as one can be: its bounds are all the ports there are.
async fn handler<W>(world: &W) -> usize
where
    W: Clock + GetItem + QueryItems + QueryIndex + WriteItems + SendMessage + SubmitJob + DescribeJobs + ListJobs,
    W: ListChildren + CancelJob + TerminateJob + DescribeJobDefinition + Notify,
{
    let key = Key::new("p", "a");
    let write = Write::Put { item: Item::new(key.clone(), "1"), expect: Expect::Absent };
    world.write_items(&[write]).await.unwrap();
    world.send_message(QueueKind::Internal, "wake", 0).await.unwrap();
    let notice = Notice { key: "k".into(), subject: "s".into(), text: "t".into() };
    world.notify(&notice).await.unwrap();
    world.get_item(&key).await.unwrap().map_or(0, |item| item.body.len())
}

#[test]
fn a_handler_that_is_generic_over_the_ports_runs_on_the_world() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    assert_eq!(ready(handler(&world)), 1);
    assert_eq!(world.queues().counts(QueueKind::Internal).unwrap().visible, 1);
    assert_eq!(world.notify().notices().unwrap().len(), 1);
}

#[test]
fn a_submitted_job_is_described_with_its_tags() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    let tags = BTreeMap::from([("osprey:job-id".to_owned(), "1".to_owned())]);
    let id = submit(&world, SubmitJobRequest { tags: Some(tags.clone()), ..request("a") }).unwrap();
    let details = ready(world.describe_jobs(&[id.clone(), BatchJobId::from("forgotten")])).unwrap();
    assert_eq!(details.len(), 1, "a job that Batch doesn't know is left out");
    let detail = &details[0];
    assert_eq!((detail.job_id.as_str(), detail.job_name.as_str()), (id.as_str(), "a"));
    assert!(detail.job_queue.ends_with(&format!("job-queue/{QUEUE}")));
    assert_eq!(detail.tags.get("osprey:job-id"), tags.get("osprey:job-id"));
    assert!(!detail.status.is_final());
}

#[test]
fn over_a_hundred_jobs_in_one_describe_call_are_refused() {
    let scratch = Scratch::new();
    let ids: Vec<_> = (0..101).map(|n| BatchJobId::new(n.to_string())).collect();
    assert!(matches!(ready(world(&scratch).describe_jobs(&ids)), Err(CallError::Refused(_))));
}

#[test]
fn a_claim_that_has_lapsed_submits_nothing() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    let call = SubmitCall { request: request("late"), not_after: second(0) };
    let said = ready(world.submit_job(&call)).unwrap_err().to_string();
    assert!(said.ends_with("and the claim holds until 1970-01-01T00:00:00Z"), "{said}");
    assert!(said.starts_with("the call was not sent: it is "), "{said}");
    assert_eq!(list(&world, QUEUE, "late", second(0)), []);
}

#[test]
fn a_request_that_batch_refuses_is_refused_with_its_sentence() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    let unknown = SubmitJobRequest { job_queue: Some("nowhere".into()), ..request("a") };
    match submit(&world, unknown) {
        Err(SubmitError::Refused(sentence)) => assert!(sentence.contains("nowhere"), "{sentence}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn jobs_are_listed_by_name_in_any_letter_case_newest_first_from_a_time_on() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    let first = submit(&world, request("Train-A")).unwrap();
    let pause = std::time::Duration::from_millis(3);
    std::thread::sleep(pause);
    let between = world.now();
    std::thread::sleep(pause);
    submit(&world, request("train-b")).unwrap();
    let last = submit(&world, request("train-a")).unwrap();
    assert_eq!(list(&world, QUEUE, "TRAIN-a", second(0)), [last.clone(), first.clone()]);
    assert_eq!(list(&world, QUEUE, "train-a", between), std::slice::from_ref(&last));
    assert_eq!(list(&world, "other", "train-a", second(0)), []);
    let jobs = ready(world.list_jobs(&QueueName::from(QUEUE), "train-a", second(0))).unwrap();
    let from = jobs[1].created_at;
    assert_eq!(list(&world, QUEUE, "train-a", from), [last, first], "the time itself counts");
}

#[test]
fn a_long_list_is_read_to_its_end() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    let mut ids: Vec<_> = (0..230).map(|_| submit(&world, request("many")).unwrap()).collect();
    ids.reverse();
    assert_eq!(list(&world, QUEUE, "many", second(0)), ids);
}

#[test]
fn an_unknown_queue_cannot_be_listed() {
    let scratch = Scratch::new();
    let listed = ready(world(&scratch).list_jobs(&QueueName::from("nowhere"), "a", second(0)));
    assert!(matches!(listed, Err(CallError::Refused(_))), "{listed:?}");
}

#[test]
fn the_failed_children_of_an_array_are_listed_up_to_a_limit() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    let array_properties = Some(ArrayProperties { size: Some(5) });
    let parent = submit(&world, SubmitJobRequest { array_properties, ..request("array") }).unwrap();
    assert_eq!(ready(world.list_failed_children(&parent, 10)), Ok(vec![]));
    ready(world.terminate_job(&parent, "enough")).unwrap();
    let children = ready(world.list_failed_children(&parent, 10)).unwrap();
    assert_eq!(children.len(), 5);
    assert!(children.iter().all(|id| id.as_str().starts_with(&format!("{parent}:"))));
    assert_eq!(ready(world.list_failed_children(&parent, 2)).unwrap().len(), 2);
    assert_eq!(ready(world.list_failed_children(&parent, 0)), Ok(vec![]));
}

#[test]
fn cancel_and_terminate_end_a_job_with_the_reason() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    let [a, b] = ["a", "b"].map(|name| submit(&world, request(name)).unwrap());
    ready(world.cancel_job(&a, "not needed")).unwrap();
    ready(world.terminate_job(&b, "evicted")).unwrap();
    let ends: Vec<_> = ready(world.describe_jobs(&[a, b]))
        .unwrap()
        .into_iter()
        .map(|detail| (detail.status, detail.status_reason.unwrap_or_default()))
        .collect();
    let want = [(BatchStatus::Failed, "not needed".to_owned()), (BatchStatus::Failed, "evicted".to_owned())];
    assert_eq!(ends, want);
    let unknown = BatchJobId::from("nobody");
    assert!(matches!(ready(world.cancel_job(&unknown, "r")), Err(CallError::Refused(_))));
    assert!(matches!(ready(world.terminate_job(&unknown, "r")), Err(CallError::Refused(_))));
}

#[test]
fn a_definition_is_found_by_name_revision_and_arn() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    for command in ["date", "ls"] {
        world.batch().register_job_definition(&definition(command)).unwrap();
    }
    let find = |name: &str| ready(world.describe_job_definition(name)).unwrap();
    let newest = find("train").unwrap();
    assert_eq!((newest.revision, newest.container_properties.unwrap().command), (3, vec!["ls".to_owned()]));
    assert_eq!(find("train:2").unwrap().revision, 2);
    assert_eq!(find(&newest.job_definition_arn).unwrap().revision, 3);
    assert_eq!(find("train:9"), None);
    assert_eq!(find("nothing"), None);
    assert_eq!(find("trai"), None);
}

#[test]
fn events_of_batch_reach_the_event_queue() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    let id = submit(&world, request("a")).unwrap();
    ready(world.terminate_job(&id, "odd \u{1}\u{ffff} text")).unwrap();
    let moved = world.pump_events().unwrap();
    assert!(moved >= 1);
    assert_eq!(world.pump_events().unwrap(), 0, "each event is moved once");
    let mut statuses = Vec::new();
    for delivery in world.queues().receive(QueueKind::Events, 10, 30).unwrap() {
        assert_eq!(delivery.message.sender.principal, "events:local-batch");
        let event: BatchEvent = serde_json::from_str(&delivery.message.body).unwrap();
        assert_eq!((event.detail_type.as_str(), event.detail.job_id.as_str()), (JOB_STATE_CHANGE, id.as_str()));
        statuses.push((event.detail.status, event.detail.status_reason));
    }
    assert_eq!(statuses.len(), moved);
    assert!(statuses.contains(&(BatchStatus::Failed, Some("odd \u{1}\u{ffff} text".to_owned()))), "{statuses:?}");
}

#[test]
fn any_number_of_events_is_moved_at_once() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    for _ in 0..120 {
        let id = submit(&world, request("a")).unwrap();
        ready(world.cancel_job(&id, "r")).unwrap();
    }
    let moved = world.pump_events().unwrap();
    assert!(moved > 100, "{moved}");
    assert_eq!(world.queues().counts(QueueKind::Events).unwrap().visible, moved as u64);
}

#[test]
fn events_that_are_not_due_stay() {
    let scratch = Scratch::new();
    let events = EventOptions { delay_ms: 3_600_000..=3_600_000, ..EventOptions::default() };
    let world = world_with(&scratch, Options { events, ..Options::default() });
    let id = submit(&world, request("a")).unwrap();
    ready(world.cancel_job(&id, "r")).unwrap();
    assert_eq!(world.pump_events(), Ok(0));
}

#[test]
fn another_process_joins_the_world_and_its_time() {
    let scratch = Scratch::new();
    let world = world(&scratch);
    let id = submit(&world, request("a")).unwrap();
    ready(handler(&world));
    let told = world.now();
    world.queues().send(QueueKind::Internal, "1", 0).unwrap();
    let state = StateDir::existing(scratch.path()).unwrap();
    let joined = LocalWorld::open(&state, Time::Join, Options::default()).unwrap();
    assert!(joined.now() >= told);
    assert_eq!(joined.clock().real_duration(100_000), std::time::Duration::from_secs(1));
    assert_eq!(ready(joined.describe_jobs(&[id])).unwrap().len(), 1);
    assert_eq!(ready(joined.get_item(&Key::new("p", "a"))).unwrap().unwrap().version, 1);
}

#[test]
fn a_pipeline_that_starts_drops_what_has_expired() {
    let scratch = Scratch::new();
    let key = Key::new("p", "old");
    let expiring = Item { expires_at: Some(second(1)), ..Item::new(key.clone(), "1") };
    world(&scratch).store().write(&[Write::Put { item: expiring, expect: Expect::Any }]).unwrap();
    let state = StateDir::existing(scratch.path()).unwrap();
    let joined = LocalWorld::open(&state, Time::Join, Options::default()).unwrap();
    assert!(joined.store().get(&key).unwrap().is_some(), "who only joins drops nothing");
    assert_eq!(world(&scratch).store().get(&key), Ok(None));
}

#[test]
fn a_world_that_cannot_be_opened_says_why_in_one_sentence() {
    let scratch = Scratch::new();
    let state = StateDir::open(scratch.path()).unwrap();
    let open = |time| LocalWorld::open(&state, time, Options::default()).map(|_| ()).unwrap_err().to_string();
    let want = "the speed `0` is not above 0 and at most 1000000";
    assert_eq!(open(Time::Set { speed: 0.0 }), want);
    drop(Database::open(&state.database_path()).unwrap());
    std::fs::write(state.database_path(), "nonsense ".repeat(1_000)).unwrap();
    assert_eq!(open(Time::Join), format!("`{}` is no database", state.database_path().display()));
}

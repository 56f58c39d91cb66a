//! Queues: each is there, gives up on what fails too often, and is spoken to by TLS only.

use osprey_ports::QueueKind;
use serde_json::{Value, json};

use super::{at, deep, parse, resolved, resources, target, template};
use crate::{Checked, assert_none, text};

/// What the queues of a machine alone do as well (`shared/local/src/queues.rs`).
const RECEIVES_MAX: i64 = 5;
/// Queues that the pipeline doesn't name.
const FURTHER: [(&str, Option<&str>); 2] = [("osprey-wake", Some("osprey-wake-dead")), ("osprey-wake-dead", None)];

/// Each queue's name and that of its dead-letter queue.
fn wanted() -> Vec<(&'static str, Option<&'static str>)> {
    let pipeline = QueueKind::ALL.into_iter().map(|kind| (kind.name(), kind.dead_letter_queue().map(QueueKind::name)));
    let mut wanted: Vec<_> = pipeline.collect();
    let further: Vec<_> =
        FURTHER.into_iter().filter(|(name, _)| !wanted.iter().any(|(known, _)| known == name)).collect();
    wanted.extend(further);
    wanted
}

fn offences(template: &Value) -> Vec<String> {
    let queues = resources(template, "AWS::SQS::Queue");
    let named = |name: &str| queues.iter().find(|(_, queue)| resolved(template, at(queue, "/QueueName")) == name);
    let mut found = Vec::new();
    for (name, dead) in wanted() {
        let Some((_, queue)) = named(name) else {
            found.push(format!("there is no queue {name}"));
            continue;
        };
        let redrive = at(queue, "/RedrivePolicy");
        let into =
            queues.get(target(at(redrive, "/deadLetterTargetArn"))).map(|to| resolved(template, at(to, "/QueueName")));
        if into.as_deref() != dead {
            found.push(format!("{name} gives up into {into:?} and not into {dead:?}"));
        }
        if dead.is_some() && at(redrive, "/maxReceiveCount").as_i64() != Some(RECEIVES_MAX) {
            found.push(format!(
                "{name} gives up after {} receives and not after {RECEIVES_MAX}",
                at(redrive, "/maxReceiveCount")
            ));
        }
        // A dead letter keeps the time at which it was first sent, and is dropped by it.
        if dead.and_then(named).is_some_and(|(_, dead)| retention(dead) < retention(queue)) {
            found.push(format!("the dead letters of {name} are dropped before it drops a message"));
        }
    }
    found.extend(
        queues.keys().filter(|name| !is_tls_only(template, name)).map(|name| format!("{name} takes more than TLS")),
    );
    let known = |queue: &Value| wanted().iter().any(|(name, _)| resolved(template, at(queue, "/QueueName")) == *name);
    found.extend(queues.iter().filter(|(_, queue)| !known(queue)).map(|(name, _)| format!("nobody knows {name}")));
    found
}

/// Seconds that a queue keeps a message; four days when it doesn't say.
fn retention(queue: &Value) -> i64 {
    at(queue, "/MessageRetentionPeriod").as_i64().unwrap_or(345_600)
}

/// Whether a policy of this queue turns away whatever doesn't come by TLS.
fn is_tls_only(template: &Value, queue: &str) -> bool {
    let policies = resources(template, "AWS::SQS::QueuePolicy");
    let mut of_queue =
        policies.values().filter(|policy| crate::list(policy, "Queues").iter().any(|one| target(one) == queue));
    of_queue.any(|policy| {
        deep(policy, &["PolicyDocument", "Statement"]).iter().any(|statement| {
            text(statement, "Effect") == "Deny"
                && at(statement, "/Action") == &json!("sqs:*")
                && at(statement, "/Condition/Bool/aws:SecureTransport") == &json!("false")
        })
    })
}

#[test]
fn every_queue_is_there_and_gives_up() -> Checked {
    assert_none("template.yaml", &offences(&template()?));
    Ok(())
}

#[test]
fn a_queue_without_its_dead_letter_queue_is_found() -> Checked {
    let whole = crate::read("template.yaml")?;
    for (from, to, want) in [
        ("GetAtt SubmissionsDeadQueue.Arn", "GetAtt EventsDeadQueue.Arn", "osprey-submissions gives up into"),
        ("maxReceiveCount: 5", "maxReceiveCount: 3", "gives up after 3 receives"),
        ("osprey-events-dead\n", "osprey-events-gone\n", "there is no queue osprey-events-dead"),
        ("Queues: [!Ref EventsQueue, ", "Queues: [", "EventsQueue takes more than TLS"),
    ] {
        let found = offences(&parse(&whole.replacen(from, to, 1))?);
        assert!(found.iter().any(|offence| offence.contains(want)), "{want}: {found:?}");
    }
    Ok(())
}

//! Every message ends in exactly one recorded place, and in the right one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::scenario::Truth;
use super::super::senders::STRANGER;
use super::super::world::{Sent, World};
use super::table::{Table, text};
use super::{hours, routes};

/// Where a message ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// It is the origin of a job in this state.
    Job(String, String),
    /// It is a duplicate of a job.
    Duplicate(String),
    /// It is an action with an outcome.
    Action,
    /// It is a dead letter that nobody sent through again.
    Letter,
}

/// Checks every message.
///
/// # Errors
/// The first that is nowhere, twice, or in the wrong place.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    let mut places = places(table);
    for sent in &world.sent {
        let found = places.remove(sent.id.as_str()).unwrap_or_default();
        let [place] = found.as_slice() else {
            return Err(format!("message {} ended in {} places: {found:?}", sent.id, found.len()));
        };
        fits(world, sent, place)?;
    }
    match places.into_iter().find(|(_, found)| found.iter().any(|place| !matches!(place, Place::Letter))) {
        Some((id, found)) => Err(format!("nobody sent message {id}, which ended as {found:?}")),
        None => Ok(()),
    }
}

fn places(table: &Table) -> BTreeMap<String, Vec<Place>> {
    let mut places: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    let mut add = |message: String, place| places.entry(message).or_default().push(place);
    for (id, (job, _)) in &table.jobs {
        add(text(job, "message"), Place::Job(id.clone(), text(job, "state")));
    }
    for (job, message) in &table.duplicates {
        add(message.clone(), Place::Duplicate(job.clone()));
    }
    for message in table.actions.keys() {
        add(message.clone(), Place::Action);
    }
    for (letter, _) in table.letters.values() {
        let message = letter.get("kind").and_then(|kind| kind.get("message"));
        if let Some(message) = message.filter(|_| text(letter, "status") != "redriven") {
            add(text(message, "message"), Place::Letter);
        }
    }
    places
}

fn fits(world: &World, sent: &Sent, place: &Place) -> Result<(), String> {
    let fits = match (&sent.draft.truth, place) {
        (_, Place::Letter) => true,
        (Truth::Malformed, _) => false,
        (Truth::Invalid, Place::Job(_, state)) => state == "refused",
        // A stranger names jobs that aren't there yet: that is refused as a message, since there is no job to keep it with.
        (Truth::Action, Place::Job(_, state)) => sent.draft.sender == STRANGER && state == "refused",
        (Truth::Action, place) => *place == Place::Action,
        (Truth::Job { .. }, Place::Job(id, state)) => {
            job_fits(world, sent, id, state) || routes::excuse(world, id) || hours::excuse(world, sent, id)
        }
        (Truth::Job { .. }, Place::Duplicate(id)) => duplicate_fits(world, sent, id),
        (_, _) => false,
    };
    if fits {
        return Ok(());
    }
    Err(format!("message {} ({:?}) ended in the wrong place: {place:?}", sent.id, sent.draft.truth))
}

/// A job may be refused for what it depends on, or for an id that somebody used before, and must be when it is its own
/// parent or its sender may not send it; else it was let in.
fn job_fits(world: &World, sent: &Sent, id: &str, state: &str) -> bool {
    let Truth::Job { chosen, parents, lineage, forbidden, .. } = &sent.draft.truth else { return false };
    let own = chosen.as_deref() == Some(id);
    if *forbidden || chosen.is_some() && chosen == lineage {
        return state == "refused";
    }
    if state != "refused" {
        return chosen.is_none() || own;
    }
    !parents.is_empty() || (!own && same_id(world, sent).any(|other| !is_same(other, sent)))
}

fn duplicate_fits(world: &World, sent: &Sent, id: &str) -> bool {
    let Truth::Job { chosen, .. } = &sent.draft.truth else { return false };
    chosen.as_deref() == Some(id) && same_id(world, sent).any(|other| is_same(other, sent))
}

/// Other messages with the same chosen id.
fn same_id<'a>(world: &'a World, sent: &'a Sent) -> impl Iterator<Item = &'a Sent> {
    let of = |sent: &Sent| match &sent.draft.truth {
        Truth::Job { chosen, .. } => chosen.clone(),
        _ => None,
    };
    let id = of(sent);
    world.sent.iter().filter(move |other| other.id != sent.id && id.is_some() && of(other) == id)
}

fn is_same(a: &Sent, b: &Sent) -> bool {
    match (&a.draft.truth, &b.draft.truth) {
        (Truth::Job { variant: a, .. }, Truth::Job { variant: b, .. }) => a == b,
        _ => false,
    }
}

/// The message that a job came with.
pub fn sent_of<'a>(world: &'a World, job: &Value) -> Option<&'a Sent> {
    let message = job.get("message").and_then(Value::as_str)?;
    world.sent.iter().find(|sent| sent.id.as_str() == message)
}

/// What is true of it.
pub fn truth_of<'a>(world: &'a World, job: &Value) -> Option<&'a Truth> {
    sent_of(world, job).map(|sent| &sent.draft.truth)
}

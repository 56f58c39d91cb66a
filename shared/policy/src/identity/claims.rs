//! Claims: what a job says of itself, cut down to what its sender may say.

use std::collections::BTreeMap;

use osprey_model::definition::JobDefinition;
use osprey_model::message::words::{either, quote};
use osprey_model::metadata::{Key, Metadata};
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::SubmitJobRequest;

use super::{Beyond, Identity, Pattern};

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct Claims<'a> {
    /// The request as it came.
    pub request: &'a SubmitJobRequest,
    /// The definition that it names, where it is known.
    pub definition: Option<&'a JobDefinition>,
    /// What its tags and variables say.
    pub metadata: &'a Metadata,
}

/// What is left of a job's claims.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounded {
    /// The metadata that everything is decided from: claims that go too far are gone, whether refused or lowered.
    pub metadata: Metadata,
    /// The tags as rules see them: one that names a team or an environment says what the metadata says.
    pub tags: BTreeMap<String, String>,
    /// Why the job may not enter.
    pub refusals: Vec<Refusal>,
    /// What its sender should know.
    pub warnings: Vec<String>,
}

/// Cuts a job's claims down to what its sender may claim.
#[must_use]
pub fn bound(identity: &Identity, claims: &Claims<'_>) -> Bounded {
    let mut bounded = Bounded { metadata: claims.metadata.clone(), ..Bounded::default() };
    team(identity, &mut bounded);
    environment(identity, &mut bounded);
    bounded.tags = tags(claims.request, claims.metadata, &bounded.metadata);
    bounded.refusals.extend(definition(identity, claims.request));
    bounded.refusals.extend(roles(identity, claims.definition));
    bounded
}

fn team(identity: &Identity, bounded: &mut Bounded) {
    let Some(teams) = &identity.teams else { return };
    let own = teams.first().cloned();
    match bounded.metadata.team.take() {
        Some(claimed) if teams.contains(&claimed) => bounded.metadata.team = Some(claimed),
        Some(claimed) => {
            bounded.metadata.team = own;
            let allowed = either(teams.iter().map(String::as_str));
            beyond(identity, bounded, &format!("claim team {}", quote(&claimed)), &allowed);
        }
        None => bounded.metadata.team = own,
    }
}

fn environment(identity: &Identity, bounded: &mut Bounded) {
    let Some(environments) = &identity.environments else { return };
    let within = |claimed: &String| environments.contains(claimed);
    if let Some(claimed) = bounded.metadata.environment.take_if(|claimed| !within(claimed)) {
        let allowed = either(environments.iter().map(String::as_str));
        beyond(identity, bounded, &format!("claim environment {}", quote(&claimed)), &allowed);
    }
}

/// A rule may read a tag by its own name, and must not see there what was taken out of the metadata.
fn tags(request: &SubmitJobRequest, before: &Metadata, after: &Metadata) -> BTreeMap<String, String> {
    let mut tags = request.tags.clone().unwrap_or_default();
    for (key, before, after) in
        [(Key::Team, &before.team, &after.team), (Key::Environment, &before.environment, &after.environment)]
    {
        if before == after {
            continue;
        }
        tags.retain(|name, _| Key::of(name) != Some(key));
        if let Some(value) = after {
            tags.insert(key.name().to_owned(), value.clone());
        }
    }
    tags
}

/// A claim that goes too far: refused, or told.
fn beyond(identity: &Identity, bounded: &mut Bounded, what: &str, allowed: &str) {
    let name = &identity.name;
    let allowed = if allowed.is_empty() { "none" } else { allowed };
    match identity.beyond {
        Beyond::Refuse => {
            let sentence = format!("identity `{name}` may not {what}; it may claim {allowed}");
            bounded.refusals.push(Refusal::new(ReasonCode::NotAllowed, sentence));
        }
        Beyond::Lower => {
            bounded.warnings.push(format!("identity `{name}` may not {what}, so the claim doesn't count"));
        }
    }
}

/// The pipeline's role may run anything, so the sender must be allowed to run this.
fn definition(identity: &Identity, request: &SubmitJobRequest) -> Option<Refusal> {
    let allowed = identity.definitions.as_ref()?;
    let name = definition_name(&request.job_definition);
    let fits = allowed.iter().any(|pattern| pattern.matches(name));
    (!fits).then(|| not_allowed(identity, "run job definition", name, allowed))
}

/// `NAME`, `NAME:REVISION` or `arn:…:job-definition/NAME:REVISION`: the name.
fn definition_name(given: &str) -> &str {
    let name = given.rsplit_once('/').map_or(given, |(_, name)| name);
    name.split_once(':').map_or(name, |(name, _)| name)
}

fn roles(identity: &Identity, definition: Option<&JobDefinition>) -> Vec<Refusal> {
    let (Some(allowed), Some(definition)) = (&identity.job_roles, definition) else { return Vec::new() };
    let roles = definition.roles().into_iter();
    let beyond = roles.filter(|role| !allowed.iter().any(|pattern| pattern.matches(role)));
    beyond.map(|role| not_allowed(identity, "run jobs as", role, allowed)).collect()
}

fn not_allowed(identity: &Identity, what: &str, given: &str, allowed: &[Pattern]) -> Refusal {
    let (name, given) = (&identity.name, quote(given));
    let sentence = if allowed.is_empty() {
        format!("identity `{name}` may not {what} {given}, nor any other")
    } else {
        let allowed = either(allowed.iter().map(Pattern::text));
        format!("identity `{name}` may not {what} {given}; it may {allowed}")
    };
    Refusal::new(ReasonCode::NotAllowed, sentence)
}

//! Where metadata is said: tags and variables of the request, then of the job definition.

use std::collections::BTreeMap;
use std::fmt;

use super::key::Key;
use crate::definition::{EcsProperties, EksProperties, JobDefinition, NodeRangeProperty};
use crate::message::words::{nearest, quote};
use crate::request::{
    EcsPropertiesOverride, EksEnvironmentVariable, EksPropertiesOverride, KeyValuePair, SubmitJobRequest,
};
use crate::resources::part;

/// How a variable that carries metadata begins.
const PREFIX: &str = "OSPREY_";

/// Variables under the prefix that Osprey sets or the job itself reads; they are no metadata.
const OTHER_VARIABLES: [&str; 9] = [
    "JOB_ID",
    "ATTEMPT",
    "TIER",
    "PRIORITY",
    "PREVIOUS_BATCH_JOB_ID",
    "MEMORY_MIB",
    "CHECKPOINT_URI",
    "RESUME_URI",
    "ARRAY_INDEX",
];

/// Shortest tag that a suggestion is made for, in characters. Other people's tags are many, and short words are
/// always near something.
const SUGGESTED_TAG_CHARACTERS_MIN: usize = 5;

/// Who says it. The first in this order wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Tag,
    Variable,
    DefinitionTag,
    DefinitionVariable,
}

/// One thing said of a job.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) key: Key,
    pub(super) source: Source,
    /// Tag or variable, as spelt.
    pub(super) spelling: String,
    /// Trimmed, never empty.
    pub(super) value: String,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spelling = quote(&self.spelling);
        match self.source {
            Source::Tag => write!(f, "tag {spelling}"),
            Source::Variable => write!(f, "variable {spelling}"),
            Source::DefinitionTag => write!(f, "tag {spelling} of the job definition"),
            Source::DefinitionVariable => write!(f, "variable {spelling} of the job definition"),
        }
    }
}

/// Everything said of a job, and what may have been meant to be.
#[derive(Default)]
pub(super) struct Claims {
    pub(super) claims: Vec<Claim>,
    pub(super) warnings: Vec<String>,
}

impl Claims {
    /// Gathers all sources.
    pub(super) fn of(request: &SubmitJobRequest, definition: Option<&JobDefinition>) -> Self {
        let mut claims = Self::default();
        if let Some(tags) = &request.tags {
            claims.tags(tags, Source::Tag);
            claims.suggest_tags(tags);
        }
        claims.request_variables(request);
        if let Some(definition) = definition {
            claims.tags(&definition.tags, Source::DefinitionTag);
            claims.definition_variables(definition);
        }
        claims
    }

    fn say(&mut self, key: Key, source: Source, spelling: &str, value: &str) {
        let value = value.trim();
        if !value.is_empty() {
            self.claims.push(Claim { key, source, spelling: spelling.to_owned(), value: value.to_owned() });
        }
    }

    fn tags(&mut self, tags: &BTreeMap<String, String>, source: Source) {
        for (name, value) in tags {
            if let Some(key) = Key::of(name) {
                self.say(key, source, name, value);
            }
        }
    }

    fn suggest_tags(&mut self, tags: &BTreeMap<String, String>) {
        for name in tags.keys().filter(|name| name.chars().count() >= SUGGESTED_TAG_CHARACTERS_MIN) {
            if Key::of(name).is_none()
                && let Some(near) = Key::one_off(name)
            {
                self.warnings.push(format!("tag {} is not read; did you mean {}?", quote(name), quote(near)));
            }
        }
    }

    fn variable(&mut self, source: Source, name: &str, value: &str) {
        let prefixed = name.get(..PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX));
        let Some(rest) = prefixed.then(|| name.get(PREFIX.len()..)).flatten() else { return };
        match Key::of(rest) {
            Some(key) => self.say(key, source, name, value),
            None if source == Source::Variable => self.suggest_variable(name, rest),
            None => {}
        }
    }

    fn suggest_variable(&mut self, name: &str, rest: &str) {
        let is_other = OTHER_VARIABLES.contains(&rest) || nearest(rest, OTHER_VARIABLES).is_some();
        if let Some(near) = Key::near(&rest.replace('_', "-"))
            && !is_other
        {
            let meant = format!("{PREFIX}{}", near.replace('-', "_").to_uppercase());
            self.warnings.push(format!("variable {} is not read; did you mean {}?", quote(name), quote(&meant)));
        }
    }

    fn request_variables(&mut self, request: &SubmitJobRequest) {
        let overrides = request.container_overrides.as_ref();
        self.pairs(Source::Variable, overrides.and_then(|overrides| overrides.environment.as_deref()));
        self.ecs_override(request.ecs_properties_override.as_ref());
        self.eks_override(request.eks_properties_override.as_ref());
        let nodes = request.node_overrides.as_ref().and_then(|nodes| nodes.node_property_overrides.as_ref());
        for range in nodes.into_iter().flatten() {
            let overrides = range.container_overrides.as_ref();
            self.pairs(Source::Variable, overrides.and_then(|overrides| overrides.environment.as_deref()));
            self.ecs_override(range.ecs_properties_override.as_ref());
            self.eks_override(range.eks_properties_override.as_ref());
        }
    }

    fn definition_variables(&mut self, definition: &JobDefinition) {
        let source = Source::DefinitionVariable;
        if let Some(container) = &definition.container_properties {
            self.pairs(source, Some(&container.environment));
        }
        self.ecs(definition.ecs_properties.as_ref());
        self.eks(definition.eks_properties.as_ref());
        for range in definition.node_properties.iter().flat_map(|nodes| &nodes.node_range_properties) {
            self.range(range);
        }
    }

    fn range(&mut self, range: &NodeRangeProperty) {
        if let Some(container) = &range.container {
            self.pairs(Source::DefinitionVariable, Some(&container.environment));
        }
        self.ecs(part::<EcsProperties>(&range.other, "ecsProperties").as_ref());
        self.eks(part::<EksProperties>(&range.other, "eksProperties").as_ref());
    }

    fn pairs(&mut self, source: Source, pairs: Option<&[KeyValuePair]>) {
        for pair in pairs.unwrap_or_default() {
            if let (Some(name), Some(value)) = (&pair.name, &pair.value) {
                self.variable(source, name, value);
            }
        }
    }

    fn ecs_override(&mut self, ecs: Option<&EcsPropertiesOverride>) {
        let tasks = ecs.and_then(|ecs| ecs.task_properties.as_ref()).into_iter().flatten();
        for container in tasks.filter_map(|task| task.containers.as_ref()).flatten() {
            self.pairs(Source::Variable, container.environment.as_deref());
        }
    }

    fn eks_override(&mut self, eks: Option<&EksPropertiesOverride>) {
        let Some(pod) = eks.and_then(|eks| eks.pod_properties.as_ref()) else { return };
        for containers in [&pod.containers, &pod.init_containers].into_iter().flatten() {
            let variables = containers.iter().filter_map(|container| container.env.as_ref()).flatten();
            self.eks_variables(Source::Variable, variables);
        }
    }

    fn ecs(&mut self, ecs: Option<&EcsProperties>) {
        for container in ecs.into_iter().flat_map(|ecs| &ecs.task_properties).flat_map(|task| &task.containers) {
            self.pairs(Source::DefinitionVariable, Some(&container.environment));
        }
    }

    fn eks(&mut self, eks: Option<&EksProperties>) {
        if let Some(pod) = eks.and_then(|eks| eks.pod_properties.as_ref()) {
            let variables = pod.containers.iter().flat_map(|container| &container.env);
            self.eks_variables(Source::DefinitionVariable, variables);
        }
    }

    fn eks_variables<'a>(&mut self, source: Source, variables: impl Iterator<Item = &'a EksEnvironmentVariable>) {
        for variable in variables {
            if let Some(value) = &variable.value {
                self.variable(source, &variable.name, value);
            }
        }
    }
}

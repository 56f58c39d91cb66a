//! Metadata keys as a policy names them: in `[admission] require` and in a test's `given`.

use std::fmt;

use osprey_model::metadata::Metadata;

/// A key of a job's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetadataKey {
    /// `team`.
    Team,
    /// `project`.
    Project,
    /// `user`.
    User,
    /// `environment`.
    Environment,
    /// `workload`.
    Workload,
    /// `preemptible`.
    Preemptible,
    /// `max-duration`.
    MaxDuration,
    /// `expected-duration`.
    ExpectedDuration,
    /// `checkpoint-interval`.
    CheckpointInterval,
    /// `dataset-size`.
    DatasetSize,
    /// `sla`.
    Sla,
    /// `parent-job-id`.
    ParentJobId,
    /// `priority-class`.
    PriorityClass,
}

/// What a value of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Text as given.
    Text,
    /// A word that rules compare: trimmed and lower-cased.
    Word,
    /// True or false.
    Bool,
    /// A duration.
    Duration,
    /// A size in bytes.
    Size,
}

/// Every key: itself, its usual spelling, its other names and what its values are.
const KEYS: [(MetadataKey, &str, &[&str], KeyKind); 13] = [
    (MetadataKey::Team, "team", &[], KeyKind::Word),
    (MetadataKey::Project, "project", &[], KeyKind::Text),
    (MetadataKey::User, "user", &["owner"], KeyKind::Text),
    (MetadataKey::Environment, "environment", &["env"], KeyKind::Word),
    (MetadataKey::Workload, "workload", &["workload-type"], KeyKind::Word),
    (MetadataKey::Preemptible, "preemptible", &["preemptible-flag"], KeyKind::Bool),
    (MetadataKey::MaxDuration, "max-duration", &[], KeyKind::Duration),
    (MetadataKey::ExpectedDuration, "expected-duration", &[], KeyKind::Duration),
    (MetadataKey::CheckpointInterval, "checkpoint-interval", &[], KeyKind::Duration),
    (MetadataKey::DatasetSize, "dataset-size", &[], KeyKind::Size),
    (MetadataKey::Sla, "sla", &["deadline"], KeyKind::Duration),
    (MetadataKey::ParentJobId, "parent-job-id", &[], KeyKind::Text),
    (MetadataKey::PriorityClass, "priority-class", &[], KeyKind::Word),
];

impl MetadataKey {
    /// Every key, in the order of the documentation.
    pub fn all() -> impl Iterator<Item = Self> {
        KEYS.iter().map(|(key, ..)| *key)
    }

    /// Reads a key; letter case, `-` and `_` don't matter, and the other names count too.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let wanted = folded(text);
        KEYS.iter()
            .find(|(_, name, aliases, _)| folded(name) == wanted || aliases.iter().any(|alias| folded(alias) == wanted))
            .map(|(key, ..)| *key)
    }

    /// The usual spelling, for messages: lower case with hyphens.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// What its values are.
    #[must_use]
    pub fn kind(self) -> KeyKind {
        self.row().1
    }

    fn row(self) -> (&'static str, KeyKind) {
        // INVARIANT: every key has a row; `every_key_has_one_row` holds that.
        KEYS.iter().find(|(key, ..)| *key == self).map_or(("", KeyKind::Text), |(_, name, _, kind)| (name, *kind))
    }

    /// Whether the job gives a value for it.
    #[must_use]
    pub fn is_given(self, metadata: &Metadata) -> bool {
        match self {
            Self::Team => metadata.team.is_some(),
            Self::Project => metadata.project.is_some(),
            Self::User => metadata.user.is_some(),
            Self::Environment => metadata.environment.is_some(),
            Self::Workload => metadata.workload.is_some(),
            Self::Preemptible => metadata.preemptible.is_some(),
            Self::MaxDuration => metadata.max_duration.is_some(),
            Self::ExpectedDuration => metadata.expected_duration.is_some(),
            Self::CheckpointInterval => metadata.checkpoint_interval.is_some(),
            Self::DatasetSize => metadata.dataset_size.is_some(),
            Self::Sla => metadata.sla.is_some(),
            Self::ParentJobId => metadata.parent_job_id.is_some(),
            Self::PriorityClass => metadata.priority_class.is_some(),
        }
    }
}

impl fmt::Display for MetadataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn folded(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_row() {
        let names: std::collections::BTreeSet<_> = MetadataKey::all().map(MetadataKey::as_str).collect();
        assert_eq!(names.len(), KEYS.len());
        assert!(MetadataKey::all().all(|key| MetadataKey::parse(key.as_str()) == Some(key)));
    }

    #[test]
    fn spelling_and_other_names_do_not_matter() {
        for (text, want) in [
            ("max_duration", Some(MetadataKey::MaxDuration)),
            ("MaxDuration", Some(MetadataKey::MaxDuration)),
            ("ENV", Some(MetadataKey::Environment)),
            ("owner", Some(MetadataKey::User)),
            ("deadline", Some(MetadataKey::Sla)),
            ("enviroment", None),
            ("", None),
        ] {
            assert_eq!(MetadataKey::parse(text), want, "{text}");
        }
    }

    #[test]
    fn nothing_is_given_by_empty_metadata() {
        assert!(!MetadataKey::all().any(|key| key.is_given(&Metadata::default())));
    }
}

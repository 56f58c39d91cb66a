//! Metadata keys as a policy names them: in `[admission] require` and in a test's `given`.

use osprey_model::metadata::Metadata;

pub use osprey_model::metadata::Key as MetadataKey;

/// Whether the job gives a value for a key.
#[must_use]
pub fn is_given(key: MetadataKey, metadata: &Metadata) -> bool {
    match key {
        MetadataKey::Team => metadata.team.is_some(),
        MetadataKey::Project => metadata.project.is_some(),
        MetadataKey::User => metadata.user.is_some(),
        MetadataKey::Environment => metadata.environment.is_some(),
        MetadataKey::Workload => metadata.workload.is_some(),
        MetadataKey::Preemptible => metadata.preemptible.is_some(),
        MetadataKey::MaxDuration => metadata.max_duration.is_some(),
        MetadataKey::ExpectedDuration => metadata.expected_duration.is_some(),
        MetadataKey::CheckpointInterval => metadata.checkpoint_interval.is_some(),
        MetadataKey::DatasetSize => metadata.dataset_size.is_some(),
        MetadataKey::Sla => metadata.sla.is_some(),
        MetadataKey::ParentJobId => metadata.parent_job_id.is_some(),
        MetadataKey::PriorityClass => metadata.priority_class.is_some(),
        // A key that this crate doesn't know yet can't have been given to it.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_absent_at_first_and_given_once_set() {
        let full: Metadata = serde_json::from_str(
            r#"{"team":"a","project":"b","user":"c","environment":"d","workload":"e","preemptible":true,"max_duration":1,
            "expected_duration":1,"checkpoint_interval":1,"dataset_size":1,"sla":{"within":1},"parent_job_id":"p","priority_class":"x"}"#,
        )
        .expect("metadata");
        for key in MetadataKey::all() {
            assert!(!is_given(key, &Metadata::default()), "{}", key.name());
            assert!(is_given(key, &full), "{}", key.name());
        }
    }
}

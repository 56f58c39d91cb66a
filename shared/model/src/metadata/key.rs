//! Keys of metadata and their spellings.

use crate::message::words::nearest;

/// What a tag or variable may say of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Key {
    /// Who pays.
    Team,
    /// For which project.
    Project,
    /// Who sent it.
    User,
    /// Production or not.
    Environment,
    /// What kind of work.
    Workload,
    /// Whether it may be evicted.
    Preemptible,
    /// Longest run.
    MaxDuration,
    /// Expected run.
    ExpectedDuration,
    /// Time between two checkpoints.
    CheckpointInterval,
    /// Size of the data.
    DatasetSize,
    /// When it should be done.
    Sla,
    /// The job it comes from.
    ParentJobId,
    /// The tier it asks for at most.
    PriorityClass,
}

/// Every key with its name and its aliases, in the order in which faults are told.
const SPELLINGS: [(Key, &str, &[&str]); 13] = [
    (Key::Team, "team", &[]),
    (Key::Project, "project", &[]),
    (Key::User, "user", &["owner"]),
    (Key::Environment, "environment", &["env"]),
    (Key::Workload, "workload", &["workload-type"]),
    (Key::Preemptible, "preemptible", &["preemptible-flag"]),
    (Key::MaxDuration, "max-duration", &[]),
    (Key::ExpectedDuration, "expected-duration", &[]),
    (Key::CheckpointInterval, "checkpoint-interval", &[]),
    (Key::DatasetSize, "dataset-size", &[]),
    (Key::Sla, "sla", &["deadline"]),
    (Key::ParentJobId, "parent-job-id", &[]),
    (Key::PriorityClass, "priority-class", &[]),
];

impl Key {
    /// Every key, in the order in which faults are told.
    pub fn all() -> impl Iterator<Item = Self> {
        SPELLINGS.iter().map(|(key, _, _)| *key)
    }

    /// Its name, as documented.
    #[must_use]
    pub fn name(self) -> &'static str {
        SPELLINGS.iter().find(|(key, _, _)| *key == self).map_or("", |(_, name, _)| *name)
    }

    /// The key that is spelt so, by name or alias; case of ASCII letters, `-` and `_` don't matter.
    #[must_use]
    pub fn of(spelling: &str) -> Option<Self> {
        let mut room = [0; SPELLING_BYTES_MAX];
        let mut length = 0;
        for byte in bare(spelling) {
            *room.get_mut(length)? = byte;
            length += 1;
        }
        let given = room.get(..length)?;
        let (key, _, _) = SPELLINGS
            .iter()
            .find(|(_, name, aliases)| is_spelt(name, given) || aliases.iter().any(|alias| is_spelt(alias, given)))?;
        Some(*key)
    }

    /// The spelling that `word` may have been meant as.
    pub(super) fn near(word: &str) -> Option<&'static str> {
        nearest(word, spellings().map(|(_, known)| known))
    }

    /// The spelling that `word` differs from by one letter, or by two that changed places.
    pub(super) fn one_off(word: &str) -> Option<&'static str> {
        let length = word.chars().count();
        let lower = word.to_lowercase();
        let alike = spellings().map(|(_, known)| known).filter(|known| known.len().abs_diff(length) <= 1);
        alike.filter(|known| differ_by_one(&lower, known)).min()
    }
}

fn spellings() -> impl Iterator<Item = (Key, &'static str)> {
    SPELLINGS
        .iter()
        .flat_map(|(key, name, aliases)| std::iter::once(name).chain(aliases.iter()).map(|known| (*key, *known)))
}

/// Longest spelling, hyphens not counted.
const SPELLING_BYTES_MAX: usize = 18;

/// Whether a spelling of ours is spelt like this, hyphens left out.
fn is_spelt(known: &str, given: &[u8]) -> bool {
    known.as_bytes().first() == given.first() && known.bytes().filter(|byte| *byte != b'-').eq(given.iter().copied())
}

/// What counts of a spelling. Every tag of every job is compared with every spelling, so nothing is copied here.
fn bare(spelling: &str) -> impl Iterator<Item = u8> {
    spelling.bytes().filter(|byte| !matches!(byte, b'-' | b'_')).map(|byte| byte.to_ascii_lowercase())
}

/// Whether one letter more, less or other makes one text of the other, or two that changed places. Every tag that isn't
/// metadata comes here for every spelling, so this doesn't measure a distance: it looks behind what both begin with.
fn differ_by_one(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.chars(), b.chars());
    loop {
        let (a_before, b_before) = (a.clone(), b.clone());
        match (a.next(), b.next()) {
            (Some(first), Some(second)) if first == second => {}
            (Some(first), Some(second)) => {
                let other = a.clone().eq(b.clone());
                let more_or_less = a.clone().eq(b_before) || a_before.eq(b.clone());
                return other || more_or_less || (a.next(), b.next()) == (Some(second), Some(first)) && a.eq(b);
            }
            _ => return a_before.count() + b_before.count() == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ignore_case_and_hyphens() {
        for (spelling, key) in [
            ("team", Some(Key::Team)),
            ("TEAM", Some(Key::Team)),
            ("owner", Some(Key::User)),
            ("Env", Some(Key::Environment)),
            ("workloadType", Some(Key::Workload)),
            ("workload_type", Some(Key::Workload)),
            ("PREEMPTIBLE-FLAG", Some(Key::Preemptible)),
            ("maxDuration", Some(Key::MaxDuration)),
            ("max_duration", Some(Key::MaxDuration)),
            ("deadline", Some(Key::Sla)),
            ("parent_job_id", Some(Key::ParentJobId)),
            ("teams", None),
            ("", None),
        ] {
            assert_eq!(Key::of(spelling), key, "{spelling}");
        }
    }

    #[test]
    fn one_letter_apart_is_what_the_distance_says() {
        let words =
            ["", "a", "b", "ab", "ba", "abc", "acb", "bac", "abcd", "abdc", "axcd", "äbc", "teams", "team", "tema"];
        for a in words {
            for b in words {
                assert_eq!(differ_by_one(a, b), strsim::osa_distance(a, b) == 1, "{a} {b}");
            }
        }
    }

    #[test]
    fn every_key_is_found_by_its_name_and_its_aliases() {
        for (key, spelling) in spellings() {
            assert_eq!(Key::of(spelling), Some(key), "{spelling}");
            assert!(bare(spelling).count() <= SPELLING_BYTES_MAX, "{spelling}");
            assert_eq!(Key::of(&format!("{spelling}s")), None, "{spelling}");
        }
    }
}

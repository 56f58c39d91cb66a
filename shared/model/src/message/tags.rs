//! Tags that mean something to Osprey or to AWS and not only to their author.

use crate::id::JobId;
use crate::message::words::{all_of, nearest, quote};
use crate::reason::{ReasonCode, Refusal};
use crate::request::SubmitJobRequest;

/// The id that a client chose for its job, a UUID.
pub const JOB_ID_TAG: &str = "osprey:job-id";
/// On the local Batch: after how long the job's Spot host is taken away, for trying it out.
pub const LOCAL_RECLAIM_AFTER_TAG: &str = "osprey:local-reclaim-after";
/// The variable that tells a child of an array its index, when its children may run singly.
pub const ARRAY_INDEX_TAG: &str = "osprey:array-index";

/// Every tag under `osprey:` that a user may set.
pub const USER_TAGS: [&str; 3] = [JOB_ID_TAG, LOCAL_RECLAIM_AFTER_TAG, ARRAY_INDEX_TAG];

/// The id that the client chose by the tag `osprey:job-id`; `None` when it chose none.
///
/// # Errors
/// [`ReasonCode::InvalidJobId`] when the tag holds no UUID.
pub fn chosen_job_id(request: &SubmitJobRequest) -> Result<Option<JobId>, Refusal> {
    let Some(text) = request.tags.as_ref().and_then(|tags| tags.get(JOB_ID_TAG)) else {
        return Ok(None);
    };
    JobId::parse(text.trim()).map(Some).ok_or_else(|| {
        let example = super::JOB_ID_EXAMPLE;
        let message = format!("tag `{JOB_ID_TAG}` must be a UUID such as `{example}`; {} was given", quote(text));
        Refusal::new(ReasonCode::InvalidJobId, message)
    })
}

/// Refuses tags that only Osprey or AWS may set: those under `osprey:` but for [`USER_TAGS`], and those under `aws:`.
///
/// A user's `osprey:` tag could otherwise pass for one of ours on the job that Batch runs.
#[must_use]
pub fn reserved_tags(request: &SubmitJobRequest) -> Vec<Refusal> {
    request.tags.iter().flatten().filter_map(|(name, _)| reserved(name)).collect()
}

fn reserved(name: &str) -> Option<Refusal> {
    let lower = name.to_ascii_lowercase();
    let message = if lower.starts_with("aws:") {
        format!("tag {} is refused: names that begin with `aws:` belong to AWS; rename it", quote(name))
    } else if lower.starts_with("osprey:") && !USER_TAGS.contains(&name) {
        let help = match nearest(name, USER_TAGS) {
            Some(near) => format!("did you mean {}?", quote(near)),
            None => format!("a job may set {}", all_of(USER_TAGS)),
        };
        format!("tag {} is refused: names that begin with `osprey:` belong to Osprey; {help}", quote(name))
    } else {
        return None;
    };
    Some(Refusal::new(ReasonCode::InvalidTag, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(tags: &[(&str, &str)]) -> SubmitJobRequest {
        let tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        SubmitJobRequest { tags: Some(tags), ..SubmitJobRequest::default() }
    }

    #[test]
    fn a_client_may_choose_its_job_id() {
        let id = "6BA7B810-9dad-41d1-80b4-00c04fd430c8";
        let chosen = chosen_job_id(&tagged(&[("osprey:job-id", id)])).unwrap().unwrap();
        assert_eq!(chosen.to_string(), id.to_lowercase());
        assert_eq!(chosen_job_id(&SubmitJobRequest::default()), Ok(None));
    }

    #[test]
    fn a_chosen_id_that_is_no_uuid_is_refused() {
        let refusal = chosen_job_id(&tagged(&[("osprey:job-id", "job-1")])).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "tag `osprey:job-id` must be a UUID such as `6ba7b810-9dad-41d1-80b4-00c04fd430c8`; `job-1` was given (InvalidJobId)"
        );
    }

    #[test]
    fn reserved_tags_are_refused_by_name() {
        let request = tagged(&[
            ("AWS:team", ""),
            ("osprey:array-index", "INDEX"),
            ("osprey:jobid", ""),
            ("osprey:priority", "9999"),
            ("ospreys", ""),
        ]);
        let messages: Vec<String> = reserved_tags(&request).into_iter().map(|refusal| refusal.message).collect();
        assert_eq!(
            messages,
            [
                "tag `AWS:team` is refused: names that begin with `aws:` belong to AWS; rename it",
                "tag `osprey:jobid` is refused: names that begin with `osprey:` belong to Osprey; did you mean `osprey:job-id`?",
                "tag `osprey:priority` is refused: names that begin with `osprey:` belong to Osprey; a job may set `osprey:job-id`, `osprey:local-reclaim-after` and `osprey:array-index`",
            ]
        );
    }
}

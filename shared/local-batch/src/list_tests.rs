//! Which jobs each filter lists, and in which order.

use serde_json::json;

use super::{JobList, ListFilter, ListJobsRequest};
use crate::event::tests::Stage;

fn names(list: &JobList) -> String {
    list.job_summary_list.iter().filter_map(|job| job["jobName"].as_str()).collect::<Vec<_>>().join(" ")
}

fn asked(status: Option<&str>, filter: Option<(&str, &str)>) -> ListJobsRequest {
    ListJobsRequest {
        job_queue: Some("tier-low-spot".to_owned()),
        job_status: status.map(str::to_owned),
        filters: filter
            .map(|(name, value)| ListFilter { name: name.to_owned(), values: vec![value.to_owned()] })
            .into_iter()
            .collect(),
        ..ListJobsRequest::default()
    }
}

#[test]
fn filters_see_what_batchs_filters_see() {
    let stage = Stage::new("list");
    for (name, share) in [("alpha", "TeamA"), ("Beta-1", "TeamB"), ("beta-2", "TeamA"), ("b_ta", "Other")] {
        stage.submit(&json!({"jobName": name, "shareIdentifier": share}));
    }
    stage.submit(&json!({"jobName": "array", "arrayProperties": {"size": 2}}));
    let list = |status, filter| names(&stage.batch.list_jobs(&asked(status, filter)).unwrap());
    assert_eq!(list(None, None), "", "running jobs are the default");
    assert_eq!(list(Some("SUBMITTED"), None), "array b_ta beta-2 Beta-1 alpha", "newest first, no children");
    let cases = [
        (("JOB_NAME", "beta-1"), "Beta-1"),
        (("JOB_NAME", "BETA*"), "beta-2 Beta-1"),
        (("JOB_NAME", "b_ta"), "b_ta"),
        (("JOB_NAME", "[ab]*"), ""),
        (("JOB_NAME", "?lpha"), ""),
        (("JOB_NAME", "arr*"), "array"),
        (("JOB_NAME", "nothing"), ""),
        (("JOB_DEFINITION", "train"), "array b_ta beta-2 Beta-1 alpha"),
        (("JOB_DEFINITION", "train:1"), "array b_ta beta-2 Beta-1 alpha"),
        (("JOB_DEFINITION", "train:2"), ""),
        (("JOB_DEFINITION", "tr*"), "array b_ta beta-2 Beta-1 alpha"),
        (("JOB_DEFINITION", "tra"), ""),
        (
            ("JOB_DEFINITION", "arn:aws:batch:us-east-1:123456789012:job-definition/train:1"),
            "array b_ta beta-2 Beta-1 alpha",
        ),
        (("AFTER_CREATED_AT", "1765040399999"), "array b_ta beta-2 Beta-1 alpha"),
        (("AFTER_CREATED_AT", "1765040400000"), ""),
        (("BEFORE_CREATED_AT", "1765040400000"), ""),
        (("BEFORE_CREATED_AT", "1765040400001"), "array b_ta beta-2 Beta-1 alpha"),
    ];
    for (filter, want) in cases {
        assert_eq!(list(None, Some(filter)), want, "{filter:?}");
        assert_eq!(list(Some("FAILED"), Some(filter)), want, "{filter:?} ignores the status");
    }
    let share = Some(("SHARE_IDENTIFIER", "TeamA"));
    assert_eq!((list(None, share), list(Some("SUBMITTED"), share)), (String::new(), "array beta-2 alpha".to_owned()));
    assert_eq!(list(Some("SUBMITTED"), Some(("SHARE_IDENTIFIER", "Team*"))), "array beta-2 Beta-1 alpha");
}

#[test]
fn pages_follow_each_other_without_gap_or_repeat() {
    let stage = Stage::new("pages");
    (0..7).for_each(|n| drop(stage.submit(&json!({"jobName": n.to_string()}))));
    let mut request = ListJobsRequest { max_results: Some(3), ..asked(Some("SUBMITTED"), None) };
    let mut pages = Vec::new();
    loop {
        let page = stage.batch.list_jobs(&request).unwrap();
        pages.push(names(&page));
        request.next_token = page.next_token;
        if request.next_token.is_none() {
            break;
        }
    }
    assert_eq!(pages, ["6 5 4", "3 2 1", "0"]);
}

#[test]
fn wrong_lists_are_refused_with_a_sentence() {
    let stage = Stage::new("wrong-list");
    let refusal = |request: ListJobsRequest| stage.batch.list_jobs(&request).unwrap_err().message;
    assert_eq!(refusal(ListJobsRequest::default()), "Exactly one of jobQueue and arrayJobId must be specified");
    let unknown = ListJobsRequest { job_queue: Some("nowhere".to_owned()), ..Default::default() };
    assert_eq!(refusal(unknown), "JobQueue nowhere not found.");
    assert_eq!(refusal(asked(Some("DONE"), None)), "jobStatus must be one of the job states, got DONE");
    assert_eq!(refusal(asked(None, Some(("NAME", "x")))), "filter name NAME is not valid");
    assert_eq!(refusal(asked(None, Some(("AFTER_CREATED_AT", "today")))), "AFTER_CREATED_AT must be milliseconds");
    let token = ListJobsRequest { next_token: Some("x".to_owned()), ..asked(None, None) };
    assert_eq!(refusal(token), "nextToken is invalid");
}

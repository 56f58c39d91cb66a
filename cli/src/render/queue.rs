//! The live queue: a row a job, with the terms of its number.

use osprey_model::job::EstimateSource;
use osprey_pipeline::experience::Judged;
use serde::Serialize;
use serde_json::{Value, json};

use super::decision::Answer;
use super::table::Columns;
use super::time;

/// What a waiting job's number is made of. The members are an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Terms {
    /// The number before the first rule.
    pub base: i64,
    /// What rules gave that look at the job itself, with the number's limits.
    pub tags: i64,
    /// What rules gave that look at what happened to the job before, and to those that it comes from.
    pub lineage: i64,
    /// What rules gave that look at what its team uses.
    pub usage: i64,
    /// What waiting has added, to a tenth of a point.
    pub aging: f64,
    /// By how much the number of a job that waits for it is higher than its own.
    pub lent: u32,
    /// The sum of all of them: what it is ordered by in a tier `strict`.
    pub total: f64,
    /// How long it is expected to run.
    pub expected: Option<Expected>,
}

/// How long a job is expected to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Expected {
    /// In seconds.
    pub seconds: u64,
    /// How that is known.
    pub by: Option<EstimateSource>,
}

/// The queue for people.
#[must_use]
pub fn table(answers: &[Answer]) -> String {
    let mut columns = Columns::new(&[
        "JOB",
        "STATE",
        "POOL",
        "TIER",
        ">BASE",
        ">TAGS",
        ">LINEAGE",
        ">USAGE",
        ">PRIORITY",
        ">AGING",
        ">LENT",
        ">TOTAL",
        ">EXPECTED",
        "BY",
    ]);
    for answer in answers {
        let terms = answer.terms.clone().unwrap_or_default();
        let signed = |number: i64| if number == 0 { String::new() } else { format!("{number:+}") };
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        columns.row([
            text(answer.job_name.as_deref()),
            text(answer.state.as_deref()),
            text(answer.pool.as_ref().map(|pool| pool.as_str())),
            text(answer.tier.as_ref().map(|tier| tier.as_str())),
            terms.base.to_string(),
            signed(terms.tags),
            signed(terms.lineage),
            signed(terms.usage),
            answer.priority.unwrap_or_default().to_string(),
            if terms.aging > 0.0 { format!("+{}", terms.aging) } else { String::new() },
            signed(terms.lent.into()),
            terms.total.to_string(),
            terms.expected.map(expected).unwrap_or_default(),
            text(terms.expected.and_then(|expected| expected.by).map(EstimateSource::as_str)),
        ]);
    }
    columns.render()
}

fn expected(expected: Expected) -> String {
    time::short(i64::try_from(expected.seconds).unwrap_or(i64::MAX).saturating_mul(1_000))
}

/// How estimates came out, for people.
#[must_use]
pub fn judged(judged: &[Judged]) -> String {
    let mut columns = Columns::new(&["KNOWN BY", ">RUNS", ">WITHIN FACTOR 2", ">RAN LONGER"]);
    for Judged { source, runs, within_factor_2, ran_longer } in judged {
        let percent = |part: u64| format!("{}%", (part * 100).checked_div(*runs).unwrap_or(0));
        columns.row([source.as_str().to_owned(), runs.to_string(), percent(*within_factor_2), percent(*ran_longer)]);
    }
    columns.render()
}

/// The same as JSON: one object a kind.
#[must_use]
pub fn judged_json(judged: &Judged) -> Value {
    let Judged { source, runs, within_factor_2, ran_longer } = judged;
    json!({ "source": source, "runs": runs, "within_factor_2": within_factor_2, "ran_longer": ran_longer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_one_row_a_job_with_the_terms_of_its_number() {
        let answer = |name: &str, priority, terms| Answer {
            job_name: Some(name.to_owned()),
            state: Some("queued".to_owned()),
            priority: Some(priority),
            tier: Some("experimental".into()),
            pool: Some("local".into()),
            terms: Some(terms),
            ..Answer::default()
        };
        let by = Some(EstimateSource::DefinitionOfTeam);
        let expected = Some(Expected { seconds: 1_200, by });
        let lent = Terms { base: 500, tags: -50, lent: 700, total: 1_150.0, expected, ..Terms::default() };
        let old = Terms { base: 500, tags: -50, lineage: -30, aging: 12.5, total: 432.5, ..Terms::default() };
        let shown = table(&[answer("prepare", 450, lent), answer("train", 420, old)]);
        let want = "\
JOB      STATE   POOL   TIER          BASE  TAGS  LINEAGE  USAGE  PRIORITY  AGING  LENT  TOTAL  EXPECTED  BY
prepare  queued  local  experimental   500   -50                       450         +700   1150    20m00s  definition-of-team
train    queued  local  experimental   500   -50      -30              420  +12.5        432.5";
        assert_eq!(shown, want);
    }

    #[test]
    fn estimates_are_told_by_how_they_were_known() {
        let seen = Judged { source: EstimateSource::Declared, runs: 8, within_factor_2: 6, ran_longer: 2 };
        let want = "KNOWN BY  RUNS  WITHIN FACTOR 2  RAN LONGER\ndeclared     8              75%         25%";
        assert_eq!(judged(&[seen]), want);
    }
}

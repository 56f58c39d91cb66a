//! A decision and its account, one line a rule.

use osprey_model::decision::{FactValue, Step};
use osprey_model::id::{PoolName, TierName};
use osprey_model::message::words::shown;
use osprey_model::reason::Refusal;
use serde::Serialize;

use super::pending::Pending;
use super::queue::Terms;
use super::table::Columns;
use crate::error::CliError;
use crate::ui::Ui;

/// What is answered about one request. The members are an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// The job, when it is on record.
    #[serde(rename = "jobId", skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// `jobName`; absent when the body can't be read.
    #[serde(rename = "jobName")]
    pub job_name: Option<String>,
    /// Where the job is, when it is on record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Whether it would be let in.
    pub admitted: bool,
    /// 0 to 9999; absent when the body can't be read.
    pub priority: Option<u32>,
    /// The tier; absent when the body can't be read.
    pub tier: Option<TierName>,
    /// The pool; absent for a refused job.
    pub pool: Option<PoolName>,
    /// Every rule tried.
    pub steps: Vec<Step>,
    /// Why it is refused.
    pub refusals: Vec<Refusal>,
    /// What its sender should know.
    pub warnings: Vec<String>,
    /// What would become of it if it were sent now, where a pipeline was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// What the number of a job is made of that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
}

/// Shows answers, one after the other.
///
/// # Errors
/// When standard output can't be written.
pub fn show(answers: &[Answer], ui: &mut Ui) -> Result<(), CliError> {
    if ui.is_json() {
        return answers.iter().try_for_each(|answer| ui.json(answer));
    }
    answers.iter().enumerate().try_for_each(|(index, one)| {
        let gap = if index == 0 { "" } else { "\n" };
        ui.text(&format!("{gap}{}", answer(one)))
    })
}

/// The answer for people.
#[must_use]
pub fn answer(answer: &Answer) -> String {
    let mut lines = vec![answer.job_name.as_deref().map_or_else(|| "(no job name)".to_owned(), shown)];
    if !answer.steps.is_empty() {
        lines.push(indent(&steps(&answer.steps)));
    }
    lines.push(format!("  {}", verdict(answer)));
    lines.extend(answer.pending.iter().map(|pending| format!("  now: {}", pending.sentence)));
    lines.extend(answer.refusals.iter().map(|refusal| format!("  refused: {refusal}")));
    lines.extend(answer.warnings.iter().map(|warning| format!("  warning: {warning}")));
    lines.join("\n")
}

fn verdict(answer: &Answer) -> String {
    let number = answer.priority.map_or_else(|| "no priority".to_owned(), |number| format!("priority {number}"));
    let tier = answer.tier.as_ref().map_or_else(String::new, |tier| format!(", tier {tier}"));
    match (&answer.pool, answer.admitted) {
        (Some(pool), true) => format!("{number}{tier}, pool {pool}"),
        (None, true) => format!("{number}{tier}"),
        (_, false) => format!("{number}{tier}, refused"),
    }
}

/// One line a rule: what it gave, the number after it, what it read.
#[must_use]
pub fn steps(steps: &[Step]) -> String {
    let mut columns = Columns::new(&["RULE", "MATCHED", ">GIVES", ">PRIORITY", "BECAUSE"]);
    for step in steps {
        let gives = if step.matched { format!("{:+}", step.contribution) } else { String::new() };
        let matched = if step.matched { "yes" } else { "no" };
        columns.row([step.rule.clone(), matched.to_owned(), gives, step.priority_after.to_string(), because(step)]);
    }
    columns.render()
}

fn because(step: &Step) -> String {
    let facts = step.because.iter().map(|(name, value)| format!("{name} = {}", fact(value)));
    facts.chain(step.error.iter().map(|error| format!("error: {error}"))).collect::<Vec<_>>().join(", ")
}

fn fact(value: &FactValue) -> String {
    match value {
        FactValue::Absent => "absent".to_owned(),
        FactValue::Bool(is_so) => is_so.to_string(),
        FactValue::Int(number) => number.to_string(),
        FactValue::Number(number) => number.to_string(),
        FactValue::Text(text) => format!("`{text}`"),
        FactValue::List(texts) => format!("[{}]", texts.join(", ")),
    }
}

/// Moves lines two blanks to the right.
#[must_use]
pub fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn step(rule: &str, matched: bool, contribution: i64, after: i64, fact: (&str, FactValue)) -> Step {
        let because = BTreeMap::from([(fact.0.to_owned(), fact.1)]);
        Step { rule: rule.to_owned(), matched, contribution, priority_after: after, because, error: None }
    }

    #[test]
    fn an_answer_shows_each_rule_then_number_tier_and_pool() {
        let shown = answer(&Answer {
            job_name: Some("train-7".to_owned()),
            admitted: true,
            priority: Some(950),
            tier: Some("production".into()),
            pool: Some("local".into()),
            steps: vec![
                step("production", true, 500, 1000, ("job.environment", FactValue::Text("production".to_owned()))),
                step("large", true, -50, 950, ("job.gpus", FactValue::Int(8))),
                step("inference", false, 0, 950, ("job.workload", FactValue::Absent)),
            ],
            ..Answer::default()
        });
        let want = "\
train-7
  RULE        MATCHED  GIVES  PRIORITY  BECAUSE
  production  yes       +500      1000  job.environment = `production`
  large       yes        -50       950  job.gpus = 8
  inference   no                   950  job.workload = absent
  priority 950, tier production, pool local";
        assert_eq!(shown, want);
    }
}

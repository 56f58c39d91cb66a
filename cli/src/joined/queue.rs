//! The live queue: the jobs that wait, with what their numbers are made of.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use osprey_model::decision::Step;
use osprey_model::id::JobId;
use osprey_model::job::{Job, JobState};
use osprey_model::pool::PoolMode;
use osprey_pipeline::context::Context;
use osprey_pipeline::experience::{self, Judged};
use osprey_pipeline::view;
use osprey_schedule::why::{self, Look};
use osprey_scheduler::priority::{POINT, Standing};

use super::Joined;
use crate::error::CliError;
use crate::render::decision::Answer;
use crate::render::queue::{Expected, Terms};

impl Joined {
    /// The jobs that wait, pool by pool in the order in which their cycles see them, and behind them those that no cycle
    /// orders, the most urgent first. Each with its newest decision.
    ///
    /// # Errors
    /// When the store fails.
    pub fn queue(&self) -> Result<Vec<Answer>, CliError> {
        let waits = |job: &Job| !job.state.is_final() && job.state != JobState::Running;
        let mut jobs: Vec<Job> = self.jobs()?.into_iter().filter(waits).collect();
        let standings = self.standings()?;
        let place = |job: &Job| standings.get(&job.id).map_or(usize::MAX, |known| known.place);
        // Who isn't in a line: the most urgent first, then the one that came first, then by id.
        jobs.sort_by_key(|job| (place(job), Reverse(job.priority), job.created_at, job.id));
        jobs.iter().map(|job| self.answer_of(job, standings.get(&job.id))).collect()
    }

    /// How estimates of run times came out.
    ///
    /// # Errors
    /// When the store fails.
    pub fn judged(&self) -> Result<Vec<Judged>, CliError> {
        Ok(self.run(experience::judged(&self.home))?)
    }

    /// Where the jobs stand that are in a line.
    fn standings(&self) -> Result<BTreeMap<JobId, InLine>, CliError> {
        let (policy, pools, settings) = self.deciding(None)?;
        let context = Context { policy: &policy, pools: &pools, settings: &settings };
        let mut standings = BTreeMap::new();
        for pool in pools.iter().filter(|pool| pool.mode == PoolMode::Held) {
            let look = self.run(why::look(&context, &self.home, pool))?;
            for (job, standing) in ordered(&look) {
                let place = standings.len();
                standings.entry(job).or_insert(InLine { place, standing });
            }
        }
        Ok(standings)
    }

    fn answer_of(&self, job: &Job, in_line: Option<&InLine>) -> Result<Answer, CliError> {
        let decision = self.run(view::decision(&self.home, job.id))?;
        let steps = decision.as_ref().map(|decision| decision.derivation.steps.clone()).unwrap_or_default();
        let terms = terms(job, &steps, in_line.map(|in_line| in_line.standing));
        Ok(Answer {
            job_id: Some(job.id.to_string()),
            job_name: Some(job.name.clone()),
            state: Some(job.state.as_str().to_owned()),
            admitted: true,
            priority: Some(job.priority),
            tier: Some(job.tier.clone()),
            pool: Some(job.pool.clone()),
            steps,
            warnings: decision.map(|decision| decision.warnings).unwrap_or_default(),
            terms: Some(terms),
            ..Answer::default()
        })
    }
}

/// Where a job stands in its line.
struct InLine {
    place: usize,
    standing: Standing,
}

fn ordered(look: &Look) -> impl Iterator<Item = (JobId, Standing)> {
    let queue = osprey_scheduler::order::of_snapshot(&look.snapshot, &look.rules, look.now_ms);
    queue.into_iter().map(|queued| (queued.job, Standing::of(queued, &look.rules, look.now_ms)))
}

/// What a rule goes by, which is whom its contribution is told for.
fn reads(step: &Step, facts: &str) -> bool {
    step.because.keys().any(|fact| fact.starts_with(facts))
}

/// The terms of a job's number. Those of the rules add up to its priority.
fn terms(job: &Job, steps: &[Step], standing: Option<Standing>) -> Terms {
    let priority = i64::from(job.priority);
    let base = steps.first().map_or(priority, |step| step.priority_after - step.contribution);
    let sum =
        |wanted: &dyn Fn(&Step) -> bool| steps.iter().filter(|step| wanted(step)).map(|step| step.contribution).sum();
    let lineage: i64 = sum(&|step| reads(step, "lineage."));
    let usage: i64 = sum(&|step| !reads(step, "lineage.") && reads(step, "team."));
    let number = standing.map_or(job.priority, |standing| standing.number);
    let aging = standing.map_or(0.0, |standing| tenths(standing.aging));
    let needs = &job.needs;
    Terms {
        base,
        tags: priority - base - lineage - usage,
        lineage,
        usage,
        aging,
        lent: number.saturating_sub(job.priority),
        total: f64::from(number) + aging,
        expected: (needs.expected_seconds > 0)
            .then_some(Expected { seconds: needs.expected_seconds, by: needs.expected_by }),
    }
}

/// Units of aging as points, to a tenth.
#[expect(clippy::cast_precision_loss, reason = "tenths of points stay below 2^53")]
fn tenths(aging: i64) -> f64 {
    (aging / (POINT / 10)) as f64 / 10.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use osprey_model::decision::FactValue;
    use osprey_model::id::MessageId;

    use super::*;

    fn step(contribution: i64, after: i64, fact: &str) -> Step {
        let because = BTreeMap::from([(fact.to_owned(), FactValue::Int(1))]);
        Step { rule: "r".to_owned(), matched: true, contribution, priority_after: after, because, error: None }
    }

    #[test]
    fn the_terms_of_the_rules_add_up_to_the_number() {
        let message = MessageId::new("m");
        let job = Job { priority: 660, ..Job::new(JobId::of_message(&message), message, 0) };
        let steps =
            [step(200, 700, "job.workload"), step(-30, 670, "lineage.failures"), step(-10, 660, "team.waste_ratio")];
        let terms = terms(&job, &steps, None);
        assert_eq!((terms.base, terms.tags, terms.lineage, terms.usage), (500, 200, -30, -10));
        assert_eq!((terms.lent, terms.total), (0, 660.0));
    }

    #[test]
    fn without_an_account_the_number_is_its_own_base() {
        let message = MessageId::new("m");
        let job = Job { priority: 660, ..Job::new(JobId::of_message(&message), message, 0) };
        assert_eq!(terms(&job, &[], None).base, 660);
    }
}

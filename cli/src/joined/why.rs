//! Why a job is where it is: what its record says, and for one that stands in its pool's line the decision that a cycle
//! would make now.

use osprey_model::id::JobId;
use osprey_model::job::{Job, JobState};
use osprey_model::reason::ReasonCode;
use osprey_pipeline::context::Context;
use osprey_pipeline::dependents::{self, On};
use osprey_pipeline::evict::Receipt;
use osprey_pipeline::start;
use osprey_schedule::outlook;
use osprey_schedule::why::{self, Fate, Look};
use osprey_scheduler::change::{Change as Kind, Verified};
use serde_json::{Map, Value, json};

use super::{Joined, aftermath};
use crate::error::{CliError, ErrorCode};
use crate::render::change::Change;
use crate::render::policy::counted;
use crate::render::time;
use crate::render::way_out::way_out;
use crate::render::why::{Answer, Eta, Reason};

/// How much is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The reason.
    Reason,
    /// What would start it as well, and when it starts by itself.
    Changes,
}

impl Joined {
    /// Why a job is where it is now.
    ///
    /// # Errors
    /// When the state can't be read, or the job has gone.
    pub fn why(&self, id: JobId, depth: Depth) -> Result<Answer, CliError> {
        let gone = || CliError::new(ErrorCode::UnknownJob, format!("there is no job `{id}`"));
        let job = self.job(id)?.ok_or_else(gone)?;
        let (policy, pools, settings) = self.deciding(None)?;
        let context = Context { policy: &policy, pools: &pools, settings: &settings };
        let answer = match job.state {
            JobState::Queued if start::is_for_a_cycle(&context, &job) => self.in_line(&context, &job, depth)?,
            JobState::Waiting => self.waiting(&job)?,
            JobState::Refused => self.refused(&job)?,
            _ => of_record(&job, self.now_ms()),
        };
        let answer = Answer { evicted: self.evicted(&job)?, ..answer };
        if depth == Depth::Reason { Ok(answer) } else { self.told_further(&job, answer) }
    }

    /// The same answer with what else is known of a job that is not in line, and what to do about it.
    fn told_further(&self, job: &Job, answer: Answer) -> Result<Answer, CliError> {
        let is_over = matches!(job.state, JobState::Failed | JobState::Dead | JobState::Refused);
        let to_do = if is_over || answer.changes.is_empty() { way_out(&answer.reason.code) } else { None };
        let to_do = to_do.filter(|to_do| !to_do.starts_with("nothing"));
        let to_do = to_do.map(|to_do| to_do.replace("JOB", &job.id.to_string()));
        let is_in_line = matches!(job.state, JobState::Queued | JobState::Waiting | JobState::Claimed);
        let facts = if is_in_line {
            Vec::new()
        } else {
            let story = self.story(job.id)?;
            aftermath::facts(&story.view, story.logs.last().map(|(_, log)| log.as_str()), self.now_ms())
        };
        Ok(Answer { facts, to_do, ..answer })
    }

    /// A job that was turned away, with every fault in whole: its record holds the first few words.
    fn refused(&self, job: &Job) -> Result<Answer, CliError> {
        let told = of_record(job, self.now_ms());
        let refusals = self.view(job.id)?.record.map(|record| record.refusals).unwrap_or_default();
        let sentences: Vec<&str> = refusals.iter().map(|refusal| refusal.message.as_str()).collect();
        if sentences.is_empty() {
            return Ok(told);
        }
        let sentence = format!("it is refused: {}", sentences.join("; "));
        Ok(Answer { reason: Reason { sentence, ..told.reason }, ..told })
    }

    /// The newest eviction of a job that goes for it, or came back after it.
    fn evicted(&self, job: &Job) -> Result<Option<Receipt>, CliError> {
        if job.evict.is_none() && job.counts.preemptions == 0 || job.state.is_final() {
            return Ok(None);
        }
        Ok(self.view(job.id)?.evictions.pop())
    }

    /// A job that stands in line.
    fn in_line(&self, context: &Context<'_>, job: &Job, depth: Depth) -> Result<Answer, CliError> {
        let Some(pool) = context.pool(&job.pool) else { return Ok(of_record(job, self.now_ms())) };
        let look = self.run(why::look(context, &self.home, pool))?;
        let answer = decided(job, &look);
        if depth == Depth::Reason {
            return Ok(answer);
        }
        let mut answer = ahead(answer, job.id, &look, Some(pool.gpus_per_node), |id| self.named(id));
        if let Fate::Waits(_) = look.fate(job.id) {
            let elsewhere = self.run(outlook::elsewhere(context, &self.home, job, &look))?;
            answer.changes.extend(elsewhere.iter().map(|other| Change::of(other, &look.rules, |id| id.to_string())));
        }
        Ok(answer)
    }

    /// How a job is called in a sentence.
    fn named(&self, id: JobId) -> String {
        let name = self.job(id).ok().flatten().map(|job| job.name);
        name.map_or_else(|| id.to_string(), |name| format!("`{name}` ({id})"))
    }

    /// A job that waits for others.
    fn waiting(&self, job: &Job) -> Result<Answer, CliError> {
        let dependencies = self.run(dependents::dependencies(&self.home, job.id))?;
        let mut on = Vec::new();
        for dependency in &dependencies {
            let known = match &dependency.on {
                On::Job(id) => self.job(*id)?,
                On::Unknown => JobId::parse(&dependency.given).map(|id| self.job(id)).transpose()?.flatten(),
                On::Batch(_) => None,
            };
            let state = known.as_ref().map_or("unknown", |job| job.state.as_str());
            if state != JobState::Succeeded.as_str() {
                let name = known.map(|job| job.name);
                on.push(json!({ "job": dependency.given, "name": name, "state": state }));
            }
        }
        let sentence = match on.as_slice() {
            [one] => format!("it waits for job {}, which is {}", called(one), text(one, "state")),
            several => format!("it waits for {} jobs that have not succeeded", several.len()),
        };
        Ok(answer(job, "WaitsForJobs", sentence, json!({ "depends_on": on })))
    }
}

/// A job by its name, where that is known, and its id.
fn called(job: &Value) -> String {
    match text(job, "name") {
        "" => text(job, "job").to_owned(),
        name => format!("`{name}` ({})", text(job, "job")),
    }
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn answer(job: &Job, code: &str, sentence: String, evidence: Value) -> Answer {
    let evidence = if let Value::Object(members) = evidence { members } else { Map::new() };
    Answer {
        job: job.id.to_string(),
        name: job.name.clone(),
        state: job.state.as_str().to_owned(),
        priority: job.priority,
        tier: job.tier.clone(),
        pool: job.pool.clone(),
        reason: Reason { code: code.to_owned(), sentence },
        evidence,
        facts: Vec::new(),
        to_do: None,
        changes: Vec::new(),
        eta_seconds: None,
        ahead: None,
        as_of: None,
        evicted: None,
    }
}

/// Where a job of a simulation is that no decision is made about.
#[must_use]
pub fn simulated(job: &Job, moment: Simulated, at: &str, evidence: Value) -> Answer {
    match moment {
        Simulated::NotSubmitted => answer(job, "NotSubmitted", format!("it is submitted at {at}"), evidence),
        Simulated::Running => answer(job, "Running", format!("it runs since {at}"), evidence),
        Simulated::Succeeded => answer(job, "Succeeded", format!("it has succeeded, at {at}"), evidence),
    }
}

/// Where a job of a simulation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simulated {
    /// It is still to come.
    NotSubmitted,
    /// It runs.
    Running,
    /// It is done.
    Succeeded,
}

/// What the decision says.
#[must_use]
pub fn decided(job: &Job, look: &Look) -> Answer {
    let told = match look.fate(job.id) {
        Fate::Starts => answer(job, "Starts", "the next cycle of its pool starts it".to_owned(), json!({})),
        Fate::Preempts { victims } => {
            let others = counted(victims, "job");
            let sentence = format!("the next cycle of its pool starts it in the place of {others}");
            answer(job, "Preempts", sentence, json!({ "victims": victims }))
        }
        Fate::FarBehind { window } => {
            let sentence = format!("at least {window} jobs of its tier are before it, and a cycle looks no further");
            answer(job, "FarBehind", sentence, json!({ "window": window }))
        }
        Fate::Waits(reason) => {
            let mut evidence = serde_json::to_value(reason).unwrap_or_default();
            if let Value::Object(members) = &mut evidence {
                members.remove("code");
            }
            answer(job, reason.code(), reason.to_string(), evidence)
        }
    };
    let reserved = look.plan.reservations.iter().find(|reservation| reservation.job == job.id);
    let mut told = Answer { ahead: look.ahead(job.id), ..told };
    if let Some(reservation) = reserved {
        told.evidence.insert("reserved_at_ms".to_owned(), json!(reservation.at_ms));
    }
    told.evidence.insert("line".to_owned(), json!(look.snapshot.queued.len()));
    told
}

/// The same answer with what would start the job, and when it starts by itself.
#[must_use]
pub fn ahead(
    answer: Answer,
    job: JobId,
    look: &Look,
    gpus_per_node: Option<u32>,
    name: impl Fn(JobId) -> String,
) -> Answer {
    if let Fate::FarBehind { .. } = look.fate(job) {
        return answer;
    }
    let found = look.changes(job, gpus_per_node);
    let eta = eta(look, job);
    let starts_ms = eta.p50.and_then(|seconds| look.now_ms.checked_add_unsigned(seconds.saturating_mul(1_000)));
    // What comes after its own start brings nothing forward.
    let is_sooner = |verified: &&Verified| match verified.change {
        Kind::Ends { at_ms: Some(at_ms), .. } => starts_ms.is_none_or(|starts_ms| at_ms <= starts_ms),
        _ => true,
    };
    let changes = found.changes.iter().filter(is_sooner);
    let changes = changes.map(|verified| Change::of(verified, &look.rules, &name)).collect();
    Answer { changes, eta_seconds: Some(eta), ..answer }
}

/// When a job starts by itself.
#[must_use]
pub fn eta(look: &Look, job: JobId) -> Eta {
    let seconds = |ms: Option<u64>| ms.map(|ms| ms.div_ceil(1_000));
    let eta = look.eta(job);
    Eta { p50: seconds(eta.p50_ms), p80: seconds(eta.p80_ms) }
}

/// What the record alone says.
fn of_record(job: &Job, now_ms: i64) -> Answer {
    match job.state {
        JobState::Held => {
            let sentence = format!("a person holds it; `osprey release {}` lets it go", job.id);
            answer(job, "Held", sentence, json!({}))
        }
        JobState::Queued if job.not_before > now_ms => {
            let sentence = format!("it backs off until {}", time::rfc3339(job.not_before));
            answer(job, "NotYet", sentence, json!({ "until_ms": job.not_before }))
        }
        JobState::Queued => {
            answer(job, "AboutToStart", "its pool hands it to Batch as soon as it is looked at".to_owned(), json!({}))
        }
        JobState::Claimed => {
            let at = job.claim_at().unwrap_or(job.updated_at);
            let sentence = format!("it was claimed at {}, and is being submitted", time::rfc3339(at));
            answer(job, "Claimed", sentence, json!({ "claimed_at_ms": at }))
        }
        JobState::Submitted | JobState::Running if job.evict.is_some() => {
            let sentence = "it makes room: Batch has been asked to stop it, and it comes back".to_owned();
            answer(job, "MakesRoom", sentence, json!({ "since_ms": job.evict.map(|evict| evict.at) }))
        }
        JobState::Submitted => in_batch(job),
        JobState::Running => {
            let since = job.run.as_ref().and_then(|run| run.started_at).unwrap_or(job.updated_at);
            answer(job, "Running", format!("it runs since {}", time::rfc3339(since)), json!({ "started_at_ms": since }))
        }
        JobState::Waiting => answer(job, "WaitsForJobs", "it waits for other jobs".to_owned(), json!({})),
        JobState::Succeeded => answer(job, "Succeeded", "it has succeeded".to_owned(), json!({})),
        JobState::Failed | JobState::Refused | JobState::Dead => ended(job),
    }
}

fn in_batch(job: &Job) -> Answer {
    let run = job.run.as_ref();
    let (queue, id) = run.map(|run| (run.queue.as_str(), run.id.as_str())).unwrap_or_default();
    let sentence = format!("Batch has it as {id} in queue `{queue}`, and has not started it yet");
    answer(job, "InBatch", sentence, json!({ "batch_job_id": id, "queue": queue }))
}

fn ended(job: &Job) -> Answer {
    let Some(end) = &job.end else {
        return answer(job, "Unexplained", format!("it is {}, and nobody recorded why", job.state.as_str()), json!({}));
    };
    let sentence = match end.code {
        ReasonCode::Cancelled => format!("it was cancelled: {}", end.message),
        _ => format!("it is {}: {}", job.state.as_str(), end.message),
    };
    answer(job, &end.code.to_string(), sentence, json!({}))
}

#[cfg(test)]
mod tests {
    /// Codes of jobs that no decision is made about, or that nothing is said against. `docs/REASONS.md` explains each.
    pub const CODES: [&str; 13] = [
        "Starts",
        "Preempts",
        "MakesRoom",
        "FarBehind",
        "WaitsForJobs",
        "Held",
        "AboutToStart",
        "Claimed",
        "InBatch",
        "Running",
        "Succeeded",
        "Unexplained",
        "NotSubmitted",
    ];

    #[test]
    fn the_codes_are_those_that_are_given() {
        let source = include_str!("why.rs").split_once("#[cfg(test)]").map_or("", |(code, _)| code);
        let mut given: Vec<&str> =
            source.split("answer(job, \"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0)).collect();
        // A decision about a job in line says the same of one that backs off.
        given.retain(|code| *code != "NotYet");
        given.sort_unstable();
        given.dedup();
        let mut codes = CODES;
        codes.sort_unstable();
        assert_eq!(given, codes);
    }
}

//! What follows the end of an attempt: a pure function of the record, the class of the end and the rules.
//!
//! Two budgets are kept apart, failures and interruptions, and the verdict says which ran out. A person's wish to
//! stop the job goes before everything but success.

mod backoff;
mod strategy;

pub use backoff::delay_ms;
pub use strategy::{StrategyVerdict, evaluate};

use osprey_model::end::EndClass;
use osprey_model::job::{AfterStop, Budget, Counts, End, Job};
use osprey_model::message::words::times;
use osprey_model::reason::ReasonCode;
use osprey_model::request::RetryStrategy;

use crate::rules::RequeueRules;

/// An attempt that ended, as the decision sees it.
#[derive(Clone, Debug)]
pub struct Ended<'a> {
    /// The record before the end.
    pub job: &'a Job,
    /// How it ended.
    pub class: EndClass,
    /// Batch's words: status reason and container reasons.
    pub reasons: Vec<&'a str>,
    /// Exit code, where there was one.
    pub exit_code: Option<i64>,
    /// Whether the job declares checkpoints.
    pub checkpoints: bool,
    /// The user's retry strategy, from the request or else the definition.
    pub retry: Option<&'a RetryStrategy>,
    /// Memory of the attempt in MiB.
    pub memory_mib: u64,
    /// GPU-milliseconds that the attempt held.
    pub gpu_ms: u64,
    /// Milliseconds since 1970.
    pub now: i64,
}

/// What comes next, with the counters as they are then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What comes next.
    pub next: Next,
    /// Lineage counters with this attempt in them.
    pub counts: Counts,
    /// Budgets with this attempt in them.
    pub budget: Budget,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The job succeeded.
    Succeed,
    /// Another attempt.
    Requeue(Requeue),
    /// The job is held, as a person wished.
    Hold,
    /// The job has failed, and nobody needs to look at it.
    Fail(End),
    /// The job is dead until a person looks at it.
    Die(End),
}

/// Another attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requeue {
    /// Not before, milliseconds since 1970.
    pub not_before: i64,
    /// Memory of the next attempt in MiB, when it isn't the request's.
    pub memory_mib: Option<u64>,
    /// Whether the next attempt stays off Spot.
    pub avoid_spot: bool,
}

/// Decides what follows.
#[must_use]
pub fn after_end(ended: &Ended<'_>, rules: &RequeueRules) -> Verdict {
    let counts = count(ended);
    let budget = spend(ended);
    let next = next(ended, rules, counts, budget);
    Verdict { next, counts, budget }
}

fn count(ended: &Ended<'_>) -> Counts {
    let mut counts = ended.job.counts;
    match ended.class {
        EndClass::HostLost => counts.host_losses += 1,
        EndClass::Preempted => counts.preemptions += 1,
        class if class.is_failure() => {
            counts.failures += 1;
            counts.wasted_gpu_ms = counts.wasted_gpu_ms.saturating_add(ended.gpu_ms);
        }
        _ => {}
    }
    counts
}

fn spend(ended: &Ended<'_>) -> Budget {
    let mut budget = ended.job.budget;
    if ended.class.is_failure() {
        budget.failures += 1;
    }
    if ended.class.is_interruption() {
        budget.interruptions += 1;
    }
    budget
}

fn next(ended: &Ended<'_>, rules: &RequeueRules, counts: Counts, budget: Budget) -> Next {
    if ended.class == EndClass::Succeeded {
        return Next::Succeed;
    }
    if let Some(stop) = &ended.job.stop {
        return after_stop(ended, stop.then, &stop.reason);
    }
    match ended.class {
        EndClass::Cancelled => Next::Fail(End::new(ReasonCode::Cancelled, &ended.words())),
        EndClass::DependencyFailed => Next::Fail(End::new(ReasonCode::FailedDependency, &ended.words())),
        EndClass::Preempted => Next::Requeue(at_once(ended)),
        EndClass::Misconfigured | EndClass::StartFailurePermanent => Next::Die(not_retryable(ended)),
        EndClass::Timeout if !ended.checkpoints => Next::Die(timed_out(ended)),
        _ => by_budget(ended, rules, counts, budget),
    }
}

fn after_stop(ended: &Ended<'_>, then: AfterStop, reason: &str) -> Next {
    match then {
        AfterStop::Fail => Next::Fail(End::new(ReasonCode::Cancelled, reason)),
        AfterStop::Hold => Next::Hold,
        AfterStop::Requeue => Next::Requeue(at_once(ended)),
    }
}

/// Another attempt as soon as there is room: neither a person's wish nor an eviction says anything against the job.
fn at_once(ended: &Ended<'_>) -> Requeue {
    Requeue { not_before: ended.now, memory_mib: ended.job.memory_mib, avoid_spot: ended.job.avoid_spot }
}

fn by_budget(ended: &Ended<'_>, rules: &RequeueRules, counts: Counts, budget: Budget) -> Next {
    if let StrategyVerdict::Exit(rule) = evaluate(ended.retry, &ended.reasons, ended.exit_code) {
        let message = format!("rule {rule} of the job's retry strategy says EXIT: {}", ended.words());
        return Next::Die(End::new(ReasonCode::NotRetryable, &message));
    }
    let failures_max = strategy::failures_max(ended.retry).unwrap_or(rules.failures_max);
    if ended.class.is_failure() && budget.failures > failures_max {
        let allowed = match failures_max {
            0 => "no retry is".to_owned(),
            1 => "1 retry is".to_owned(),
            _ => format!("{failures_max} retries are"),
        };
        let failed = times(u64::from(budget.failures));
        let message = format!("failed {failed} where {allowed} allowed: {}", ended.words());
        return Next::Die(End::new(ReasonCode::FailuresExhausted, &message));
    }
    again(ended, rules, counts, budget)
}

fn again(ended: &Ended<'_>, rules: &RequeueRules, counts: Counts, budget: Budget) -> Next {
    if budget.interruptions > rules.interruptions_max {
        let message = format!(
            "interrupted {} where {} are allowed: {}",
            times(u64::from(budget.interruptions)),
            rules.interruptions_max,
            ended.words()
        );
        return Next::Die(End::new(ReasonCode::InterruptionsExhausted, &message));
    }
    let memory_mib = match grown_memory(ended, rules) {
        Ok(memory) => memory,
        Err(end) => return Next::Die(end),
    };
    let tries = if ended.class.is_failure() { budget.failures } else { budget.interruptions };
    let delay = delay_ms(rules, tries.saturating_sub(1), &ended.job.id.to_string(), ended.job.attempt);
    Next::Requeue(Requeue {
        not_before: ended.now.saturating_add(delay),
        memory_mib,
        avoid_spot: ended.job.avoid_spot || counts.host_losses >= rules.on_demand_after,
    })
}

fn grown_memory(ended: &Ended<'_>, rules: &RequeueRules) -> Result<Option<u64>, End> {
    if ended.class != EndClass::OutOfMemory {
        return Ok(ended.job.memory_mib);
    }
    let grown = ended.memory_mib.saturating_mul(u64::from(rules.memory_growth_percent)).div_ceil(100);
    let capped = rules.memory_cap_mib.map_or(grown, |cap| grown.min(cap));
    if ended.memory_mib > 0 && capped <= ended.memory_mib {
        let message = format!("out of memory with {} MiB, and the policy's cap allows no more", ended.memory_mib);
        return Err(End::new(ReasonCode::NotRetryable, &message));
    }
    Ok((capped > 0).then_some(capped))
}

fn not_retryable(ended: &Ended<'_>) -> End {
    End::new(ReasonCode::NotRetryable, &format!("another try can't mend it: {}", ended.words()))
}

fn timed_out(ended: &Ended<'_>) -> End {
    let message = format!("{}; a job that declares `checkpoint-interval` would be resumed", ended.words());
    End::new(ReasonCode::NotRetryable, &message)
}

impl Ended<'_> {
    /// Batch's words on one line, or the exit code where there are none.
    #[must_use]
    pub fn words(&self) -> String {
        match (self.reasons.is_empty(), self.exit_code) {
            (true, Some(code)) => format!("exit code {code}"),
            (true, None) => "no reason given".to_owned(),
            (false, Some(code)) if self.class == EndClass::ExitCode => {
                format!("{} (exit code {code})", self.reasons.join("; "))
            }
            (false, _) => self.reasons.join("; "),
        }
    }
}

#[cfg(test)]
mod tests;

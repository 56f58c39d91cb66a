//! The user's retry strategy, read as Batch reads it, but kept by Osprey: Batch itself gets one attempt.

use osprey_model::request::{EvaluateOnExit, RetryStrategy};

/// What a retry strategy says of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyVerdict {
    /// It has nothing against another try. Batch, too, retries when no rule matches.
    Retry,
    /// The rule of this number, from 1, says EXIT.
    Exit(usize),
}

/// Retries after failures that the strategy allows; `None` where it doesn't say.
#[must_use]
pub fn failures_max(retry: Option<&RetryStrategy>) -> Option<u32> {
    let attempts = retry?.attempts?;
    u32::try_from(attempts.saturating_sub(1)).ok()
}

/// The first rule whose conditions all match decides.
#[must_use]
pub fn evaluate(retry: Option<&RetryStrategy>, reasons: &[&str], exit_code: Option<i64>) -> StrategyVerdict {
    let rules = retry.and_then(|r| r.evaluate_on_exit.as_deref()).unwrap_or_default();
    match rules.iter().position(|rule| matches(rule, reasons, exit_code)) {
        Some(index) if rules.get(index).is_some_and(|r| r.action.eq_ignore_ascii_case("exit")) => {
            StrategyVerdict::Exit(index + 1)
        }
        _ => StrategyVerdict::Retry,
    }
}

fn matches(rule: &EvaluateOnExit, reasons: &[&str], exit_code: Option<i64>) -> bool {
    let status = reasons.first().copied().unwrap_or_default();
    let container = reasons.iter().rev().find(|r| **r != status).copied().unwrap_or_default();
    let code = exit_code.map(|c| c.to_string()).unwrap_or_default();
    let holds = |pattern: &Option<String>, text: &str| pattern.as_deref().is_none_or(|p| glob(p, text));
    holds(&rule.on_status_reason, status) && holds(&rule.on_reason, container) && holds(&rule.on_exit_code, &code)
}

/// A pattern of Batch: the text itself, or with a trailing `*` everything that starts so. Letter case is ignored,
/// since the texts' case varies.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => text == pattern,
    }
}

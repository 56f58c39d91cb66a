//! `retryStrategy`: attempts, rules, and the few characters that a pattern may hold.

use osprey_model::limits::{EXIT_PATTERN_CHARACTERS_MAX, EXIT_RULES_MAX, RETRY_ATTEMPTS_MAX};
use osprey_model::message::words::quote;
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::{EvaluateOnExit, RetryStrategy};

use crate::admission::Findings;

pub(super) fn check(strategy: Option<&RetryStrategy>, findings: &mut Findings) {
    let Some(strategy) = strategy else { return };
    let rules = strategy.evaluate_on_exit.as_deref().unwrap_or_default();
    let mut faults: Vec<String> = attempts(strategy.attempts, !rules.is_empty()).into_iter().collect();
    if rules.len() > EXIT_RULES_MAX {
        let given = rules.len();
        faults.push(format!(
            "`retryStrategy.evaluateOnExit` takes at most {EXIT_RULES_MAX} rules; {given} were given; join those with the same action by `*`"
        ));
    }
    for (index, rule) in rules.iter().enumerate() {
        faults.extend(rule_faults(rule, &format!("retryStrategy.evaluateOnExit[{index}]")));
    }
    for message in faults {
        findings.refuse(Some(Refusal::new(ReasonCode::InvalidRetryStrategy, message)));
    }
}

fn attempts(attempts: Option<i64>, has_rules: bool) -> Option<String> {
    match attempts {
        Some(given) if !(1..=RETRY_ATTEMPTS_MAX).contains(&given) => {
            Some(format!("`retryStrategy.attempts` must be from 1 to {RETRY_ATTEMPTS_MAX}; {given} was given"))
        }
        None if has_rules => {
            Some("`retryStrategy.attempts` is missing, which `evaluateOnExit` needs; give from 1 to 10".to_owned())
        }
        _ => None,
    }
}

fn rule_faults(rule: &EvaluateOnExit, path: &str) -> Vec<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || c.is_ascii_whitespace() || matches!(c, '.' | ':');
    let digit = |c: char| c.is_ascii_digit();
    let words = "letters, digits, `.`, `:` and spaces";
    [
        pattern(rule.on_status_reason.as_deref(), &format!("{path}.onStatusReason"), words, word),
        pattern(rule.on_reason.as_deref(), &format!("{path}.onReason"), words, word),
        pattern(rule.on_exit_code.as_deref(), &format!("{path}.onExitCode"), "digits", digit),
        action(&rule.action, path),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A pattern matches from the start, so what comes before the first character that Batch refuses will do with a `*`.
fn pattern(text: Option<&str>, path: &str, allowed: &str, fits: impl Fn(char) -> bool) -> Option<String> {
    let text = text?;
    let body = text.strip_suffix('*').unwrap_or(text);
    if body.chars().all(&fits) && text.chars().count() <= EXIT_PATTERN_CHARACTERS_MAX {
        return None;
    }
    let begin: String = body.chars().take_while(|c| fits(*c)).take(EXIT_PATTERN_CHARACTERS_MAX - 1).collect();
    let help = if begin.is_empty() { String::new() } else { format!("; write {}", quote(&format!("{begin}*"))) };
    Some(format!(
        "`{path}` may hold up to {EXIT_PATTERN_CHARACTERS_MAX} {allowed}, and end with `*`; {} was given{help}",
        quote(text)
    ))
}

fn action(action: &str, path: &str) -> Option<String> {
    let known = action.eq_ignore_ascii_case("RETRY") || action.eq_ignore_ascii_case("EXIT");
    (!known).then(|| format!("`{path}.action` must be `RETRY` or `EXIT`; {} was given", quote(action)))
}

//! `retryStrategy`: whether Batch itself runs a job again. Source: the API reference, `EvaluateOnExit`.

use osprey_model::request::EvaluateOnExit;

/// How an attempt ended, as the rules see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending<'a> {
    /// Status reason of the attempt.
    pub status_reason: &'a str,
    /// Reason of the container; empty when there is none.
    pub reason: &'a str,
    /// Exit code, where there was one.
    pub exit_code: Option<i64>,
}

/// Whether the rules let the job run again: the first rule whose conditions all match decides, and where none does,
/// it runs again. AWS doesn't say whether case matters in patterns; here it does.
#[must_use]
pub fn runs_again(rules: &[EvaluateOnExit], ending: Ending<'_>) -> bool {
    let first = rules.iter().find(|rule| matches_all(rule, ending));
    first.is_none_or(|rule| rule.action.eq_ignore_ascii_case("RETRY"))
}

fn matches_all(rule: &EvaluateOnExit, ending: Ending<'_>) -> bool {
    let code = ending.exit_code.map(|code| code.to_string()).unwrap_or_default();
    fits(rule.on_status_reason.as_deref(), ending.status_reason)
        && fits(rule.on_reason.as_deref(), ending.reason)
        && fits(rule.on_exit_code.as_deref(), &code)
}

/// An absent pattern fits everything; `*` fits an absent text too, as AWS's own examples need it.
fn fits(pattern: Option<&str>, text: &str) -> bool {
    match pattern.map(|pattern| (pattern, pattern.strip_suffix('*'))) {
        None => true,
        Some((_, Some(prefix))) => text.starts_with(prefix),
        Some((whole, None)) => text == whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(key: &str, pattern: &str, action: &str) -> EvaluateOnExit {
        let mut rule = EvaluateOnExit { action: action.to_owned(), ..Default::default() };
        let slot = match key {
            "status" => &mut rule.on_status_reason,
            "reason" => &mut rule.on_reason,
            _ => &mut rule.on_exit_code,
        };
        *slot = Some(pattern.to_owned());
        rule
    }

    #[test]
    fn the_first_matching_rule_decides_and_no_match_means_again() {
        let spot = [rule("status", "Host EC2*", "retry"), rule("reason", "*", "exit")];
        let lost =
            Ending { status_reason: "Host EC2 (instance i-0737c70432d64f82a) terminated.", ..Default::default() };
        let crashed = Ending { status_reason: "Essential container in task exited", reason: "", exit_code: Some(1) };
        assert!(runs_again(&spot, lost));
        assert!(!runs_again(&spot, crashed));
        assert!(runs_again(&[], crashed));
        assert!(runs_again(&[rule("code", "2", "EXIT")], crashed));
        assert!(!runs_again(&[rule("code", "1*", "EXIT")], crashed));
        assert!(runs_again(&[rule("code", "1", "EXIT")], lost));
    }
}

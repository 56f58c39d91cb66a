//! What to do about a reason, in the words of docs/REASONS.md.

/// The page as it is when the program is built.
const REASONS: &str = include_str!("../../../docs/REASONS.md");
/// How a section's way out begins.
const WAY_OUT: &str = "**What to do:** ";

/// What a person does about a reason, in one line; `None` for a code that the page doesn't know.
#[must_use]
pub fn way_out(code: &str) -> Option<String> {
    let heading = format!("\n### {code}\n");
    let section = REASONS.split_once(&heading)?.1.split("\n#").next()?;
    let text = section.split_once(WAY_OUT)?.1.split("\n\n").next()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_way_out() {
        let mut checked = 0;
        let codes = REASONS.lines().filter_map(|line| line.strip_prefix("### "));
        for code in codes.inspect(|_| checked += 1) {
            let told = way_out(code);
            assert!(told.as_ref().is_some_and(|told| !told.is_empty() && !told.contains("**")), "{code}: {told:?}");
        }
        assert!(checked > 90, "{checked} codes");
        assert_eq!(way_out("NoSuchCode"), None);
    }

    #[test]
    fn a_way_out_is_one_line() {
        assert_eq!(
            way_out("FailuresExhausted").as_deref(),
            Some("read its logs, mend the cause, then `osprey requeue JOB`, or discard the dead letter.")
        );
    }
}

//! Every reason code is explained: `docs/REASONS.md` has a section for each, those of waiting jobs included, and none for
//! others.

use crate::{Checked, assert_none, read};

/// Variants of `ReasonCode`.
fn codes(source: &str) -> Vec<&str> {
    let body = source.lines().skip_while(|line| !line.starts_with("pub enum ReasonCode")).skip(1);
    let variants = body.take_while(|line| *line != "}").filter_map(|line| line.trim().strip_suffix(','));
    variants.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase())).collect()
}

/// The list of the codes of waiting jobs.
fn wait_codes(source: &str) -> Vec<&str> {
    let list = source.lines().skip_while(|line| !line.contains("pub const CODES")).skip(1);
    let codes = list.take_while(|line| line.trim() != "];").map(|line| line.trim().trim_end_matches(','));
    codes.map(|code| code.trim_matches('"')).collect()
}

/// Sections, each with the number of lines that say something.
fn sections(document: &str) -> Vec<(&str, usize)> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for line in document.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            found.push((name, 0));
        } else if let Some((_, lines)) = found.last_mut() {
            *lines += usize::from(!line.trim().is_empty() && !line.starts_with('#'));
        }
    }
    found
}

fn offences(codes: &[&str], document: &str) -> Vec<String> {
    let sections = sections(document);
    let has = |code: &str| sections.iter().any(|(name, lines)| *name == code && *lines > 0);
    let missing = codes.iter().filter(|code| !has(code)).map(|code| format!("`{code}` isn't explained"));
    let unknown = sections.iter().filter(|(name, _)| !codes.contains(name));
    missing.chain(unknown.map(|(name, _)| format!("`{name}` is no code"))).collect()
}

#[test]
fn every_code_is_explained() -> Checked {
    let (ends, waits) = (read("shared/model/src/reason.rs")?, read("shared/scheduler/src/reason.rs")?);
    let places = read("cli/src/joined/why.rs")?;
    let (ends, waits, places) = (codes(&ends), wait_codes(&waits), wait_codes(&places));
    assert!(ends.len() > 40 && waits.len() > 10 && places.len() > 5, "the codes can't be read any more");
    assert_none("docs/REASONS.md", &offences(&[ends, waits, places].concat(), &read("docs/REASONS.md")?));
    Ok(())
}

/// Codes that no answer of a session names as its reason.
fn without_session<'c>(codes: &[&'c str], session: &str) -> Vec<&'c str> {
    let has =
        |code: &str| session.lines().any(|line| line.starts_with("  reason ") && line.ends_with(&format!("({code})")));
    codes.iter().copied().filter(|code| !has(code)).collect()
}

#[test]
fn every_reason_of_a_waiting_job_is_the_one_of_a_golden_session() -> Checked {
    let waits = read("shared/scheduler/src/reason.rs")?;
    let files = ["waiting", "paused", "quotas"].map(|name| read(&format!("tests/golden/{name}.session")));
    let sessions = files.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    assert_eq!(without_session(&wait_codes(&waits), &sessions), Vec::<&str>::new());
    assert_eq!(without_session(&["NoRoom", "Else"], "  reason    it needs 8 GPUs (NoRoom)\n"), ["Else"]);
    Ok(())
}

#[test]
fn unexplained_and_unknown_codes_are_found() {
    let source = "pub enum ReasonCode {\n    // Kind.\n    /// A.\n    NotJson,\n    /// B.\n    NotText,\n}\n";
    let waits = "    pub const CODES: [&str; 1] = [\n        \"NoRoom\",\n    ];\n";
    let document = "# R\n\n### NotJson\n\nIt means.\n\n### NotText\n\n### Other\n\nIt means.\n";
    let codes = [codes(source), wait_codes(waits)].concat();
    let want = ["`NotText` isn't explained", "`NoRoom` isn't explained", "`Other` is no code"];
    assert_eq!(offences(&codes, document), want);
}

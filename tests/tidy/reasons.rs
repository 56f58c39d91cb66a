//! Every reason code is explained: `docs/REASONS.md` has a section for each, and none for others.

use crate::{Checked, assert_none, read};

/// Variants of `ReasonCode`.
fn codes(source: &str) -> Vec<&str> {
    let body = source.lines().skip_while(|line| !line.starts_with("pub enum ReasonCode")).skip(1);
    let variants = body.take_while(|line| *line != "}").filter_map(|line| line.trim().strip_suffix(','));
    variants.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase())).collect()
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

fn offences(source: &str, document: &str) -> Vec<String> {
    let (codes, sections) = (codes(source), sections(document));
    let has = |code: &str| sections.iter().any(|(name, lines)| *name == code && *lines > 0);
    let missing = codes.iter().filter(|code| !has(code)).map(|code| format!("`{code}` isn't explained"));
    let unknown = sections.iter().filter(|(name, _)| !codes.contains(name));
    missing.chain(unknown.map(|(name, _)| format!("`{name}` is no code"))).collect()
}

#[test]
fn every_code_is_explained() -> Checked {
    let source = read("shared/model/src/reason.rs")?;
    assert!(codes(&source).len() > 40, "the codes can't be read any more");
    assert_none("docs/REASONS.md", &offences(&source, &read("docs/REASONS.md")?));
    Ok(())
}

#[test]
fn unexplained_and_unknown_codes_are_found() {
    let source = "pub enum ReasonCode {\n    // Kind.\n    /// A.\n    NotJson,\n    /// B.\n    NotText,\n}\n";
    let document = "# R\n\n### NotJson\n\nIt means.\n\n### NotText\n\n### Other\n\nIt means.\n";
    assert_eq!(offences(source, document), ["`NotText` isn't explained", "`Other` is no code"]);
}

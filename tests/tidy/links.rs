//! Relative links in the documents lead somewhere.

use osprey_tests::{root, text_files};

use crate::{Checked, assert_none};

/// Targets of inline links, outside code blocks, each with its line.
fn targets(markdown: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in markdown.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let starts = line.match_indices("](").filter_map(|(at, open)| line.get(at + open.len()..));
        found.extend(starts.filter_map(|rest| rest.split_once(')')).map(|(target, _)| (index + 1, target)));
    }
    found
}

fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:")
}

/// The heading's anchor, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// What is wrong with a link of the document at `path`; `read` gives the text of a file or folder, if it is there.
fn offence(path: &str, markdown: &str, target: &str, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (file, fragment) = target.split_once('#').map_or((target, None), |(file, name)| (file, Some(name)));
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let text = if file.is_empty() { Some(markdown.to_owned()) } else { read(&format!("{folder}/{file}")) };
    let Some(text) = text else { return Some(format!("`{target}` isn't there")) };
    let fragment = fragment?;
    let known = text.lines().any(|line| line.starts_with('#') && anchor(line) == fragment);
    (!known).then(|| format!("`{target}` names no heading"))
}

#[test]
fn every_relative_link_leads_somewhere() -> Checked {
    let read = |path: &str| {
        let path = root().join(path.trim_start_matches('/'));
        if path.is_dir() { Some(String::new()) } else { std::fs::read_to_string(path).ok() }
    };
    let mut found = Vec::new();
    for file in text_files(&[".md"])? {
        let links = targets(&file.text).into_iter().filter(|(_, target)| is_relative(target));
        let wrong = links.filter_map(|(line, target)| Some((line, offence(&file.path, &file.text, target, read)?)));
        found.extend(wrong.map(|(line, offence)| format!("{}:{line}: {offence}", file.path)));
    }
    assert_none("links", &found);
    Ok(())
}

#[test]
fn dead_links_are_found() {
    let read = |path: &str| (path == "docs/b.md").then(|| "# A Title, of sorts\n".to_owned());
    for (target, want) in [
        ("b.md", None),
        ("b.md#a-title-of-sorts", None),
        ("#here", None),
        ("c.md", Some("`c.md` isn't there")),
        ("b.md#x", Some("`b.md#x` names no heading")),
        ("#there", Some("`#there` names no heading")),
    ] {
        assert_eq!(offence("docs/a.md", "## Here\n", target, read).as_deref(), want, "{target}");
    }
}

#[test]
fn links_in_code_are_none() {
    assert_eq!(targets("[a](b) [c](d)\n```\n[e](f)\n```\n"), [(1, "b"), (1, "d")]);
    assert!(!is_relative("https://example.com") && is_relative("a.md"));
}

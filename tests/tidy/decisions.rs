//! Every dependency was decided on: a line in `docs/decisions/0002-dependencies.md` says why and how to leave it.

use crate::{Checked, assert_none, read};

/// Dependencies of the workspace that aren't ours.
fn dependencies(manifest: &str) -> Vec<&str> {
    let section = manifest.lines().skip_while(|line| *line != "[workspace.dependencies]").skip(1);
    let entries = section.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once(" = "));
    entries.map(|(name, _)| name).filter(|name| !name.starts_with("osprey")).collect()
}

/// Names in the first column of the table.
fn decided(record: &str) -> Vec<&str> {
    record.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name).collect()
}

fn offences(manifest: &str, record: &str) -> Vec<String> {
    let (used, decided) = (dependencies(manifest), decided(record));
    let undecided = used.iter().filter(|name| !decided.contains(name)).map(|name| format!("`{name}` has no line"));
    let unused = decided.iter().filter(|name| !used.contains(name)).map(|name| format!("`{name}` isn't used"));
    undecided.chain(unused).collect()
}

#[test]
fn every_dependency_was_decided_on() -> Checked {
    let found = offences(&read("Cargo.toml")?, &read("docs/decisions/0002-dependencies.md")?);
    assert_none("docs/decisions/0002-dependencies.md", &found);
    Ok(())
}

#[test]
fn both_directions_are_found() {
    let manifest =
        "[workspace.dependencies]\nosprey-model = { path = \"x\" }\na = \"1\"\nb = \"1\"\n\n[profile.dev]\nc = 1\n";
    let record = "| Crate | What |\n|---|---|\n| `a` | x |\n| `z` | x |\n";
    assert_eq!(offences(manifest, record), ["`b` has no line", "`z` isn't used"]);
}

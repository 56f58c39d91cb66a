//! A change is told in the same commit, under Unreleased.

use crate::{Checked, assert_none, read};

fn offences(changelog: &str) -> Vec<String> {
    let section = changelog.lines().skip_while(|line| *line != "## [Unreleased]").skip(1);
    let entries = section.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("- ")).count();
    if entries == 0 { vec!["CHANGELOG.md has no entry under `## [Unreleased]`".to_owned()] } else { Vec::new() }
}

#[test]
fn the_changelog_has_an_unreleased_entry() -> Checked {
    assert_none("changelog", &offences(&read("CHANGELOG.md")?));
    Ok(())
}

#[test]
fn a_missing_entry_is_found() {
    assert_eq!(offences("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- x\n"), [""; 0]);
    assert_eq!(offences("# Changelog\n\n## [Unreleased]\n\n## [0.1.0]\n\n- x\n").len(), 1);
    assert_eq!(offences("# Changelog\n").len(), 1);
}

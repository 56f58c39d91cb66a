//! Every attack in `docs/security.md` names a test, and that test is there.

use std::fs;

use osprey_tests::root;

/// Rows that the page must have at least.
const ATTACKS_MIN: usize = 25;

#[test]
fn every_attack_names_a_test_that_is_there() {
    let page = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let section = page.split("## Attacks").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ") && line.contains("](../")).collect();
    assert!(rows.len() >= ATTACKS_MIN, "{} attacks", rows.len());
    for row in rows {
        let (name, rest) = row.rsplit_once('[').and_then(|(_, link)| link.split_once("](../")).unwrap();
        let file = rest.split(')').next().unwrap();
        let source = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(source.contains(&format!("fn {name}(")), "{file} has no test {name}");
    }
}

//! The programs of this package share what the command line is built from: one more feature in a dependency, and
//! Cargo compiles everything above it a second time, which is minutes of a release build.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Checked, assert_none};

/// The features that each package of another package's build has: `serde v1.0.0` → `derive std`. Several builds of one
/// package, as for build scripts, are several entries.
type Built = BTreeMap<String, BTreeSet<String>>;

fn built(package: &str) -> Result<Built, Box<dyn std::error::Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"])
        .args(["--format", "{p}|{f}", "--package", package])
        .current_dir(osprey_tests::root())
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(read(&String::from_utf8(output.stdout)?))
}

fn read(tree: &str) -> Built {
    let mut built = Built::new();
    for (name, features) in tree.lines().filter_map(|line| line.split_once('|')) {
        built.entry(name.to_owned()).or_default().insert(features.trim_end_matches(" (*)").to_owned());
    }
    built
}

fn offences(ours: &Built, theirs: &Built) -> Vec<String> {
    let differing = theirs.iter().filter_map(|(name, features)| Some((name, features, ours.get(name)?)));
    let differing = differing.filter(|(_, features, others)| features != others);
    differing.map(|(name, features, others)| format!("{name} is built with {features:?} and with {others:?}")).collect()
}

#[test]
fn a_feature_that_only_one_build_has_is_an_offence() {
    let ours = read("serde v1|std\nrand v1|std\nserde v1|std (*)");
    assert_eq!(offences(&ours, &read("serde v1|std\nonly-theirs v1|std")), Vec::<String>::new());
    assert_eq!(offences(&ours, &read("rand v1|alloc,std")).len(), 1);
}

#[test]
fn the_programs_here_are_built_with_what_the_command_line_is_built_with() -> Checked {
    let command_line = built("osprey")?;
    assert!(command_line.len() > 100, "{} packages", command_line.len());
    assert_none(
        "one set of features for every program (put what only tests need into dev-dependencies)",
        &offences(&command_line, &built("osprey-tests")?),
    );
    Ok(())
}

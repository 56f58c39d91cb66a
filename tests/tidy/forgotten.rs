//! No test and no sample is forgotten: a file that nothing names is never run.

use osprey_tests::{TextFile, text_files};

use crate::{Checked, assert_none};

/// Suites and what they are in, as `tests/SUITE/`.
fn forgotten_modules(files: &[TextFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let ["tests", suite, name] = *file.path.split('/').collect::<Vec<_>>() else { continue };
        let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "main" && suite != "support") else {
            continue;
        };
        let main = format!("tests/{suite}/main.rs");
        let declares = |text: &str| text.lines().any(|line| line.trim() == format!("mod {module};"));
        if !files.iter().any(|file| file.path == main && declares(&file.text)) {
            found.push(format!("{} is no module of {main}", file.path));
        }
    }
    found
}

/// Suites that Cargo doesn't know.
fn forgotten_suites(manifest: &str, files: &[TextFile]) -> Vec<String> {
    let mains = files.iter().filter_map(|file| file.path.strip_prefix("tests/").filter(|p| p.ends_with("/main.rs")));
    let forgotten = mains.filter(|main| !manifest.contains(&format!("path = \"{main}\"")));
    forgotten.map(|main| format!("tests/{main} is no [[test]] of tests/Cargo.toml")).collect()
}

fn unused_samples(samples: &[TextFile], sources: &[TextFile]) -> Vec<String> {
    let names = samples.iter().filter_map(|file| file.path.strip_prefix("events/"));
    let unused = names.filter(|name| !sources.iter().any(|source| source.text.contains(&format!("{name}\""))));
    unused.map(|name| format!("events/{name} is named by no test")).collect()
}

#[test]
fn every_file_of_a_suite_is_run() -> Checked {
    let files = text_files(&[".rs"])?;
    assert_none("forgotten", &forgotten_modules(&files));
    assert_none("forgotten", &forgotten_suites(&crate::read("tests/Cargo.toml")?, &files));
    Ok(())
}

#[test]
fn every_sample_is_used() -> Checked {
    let samples: Vec<_> = text_files(&[".json"])?.into_iter().filter(|file| file.path.starts_with("events/")).collect();
    assert!(samples.len() > 30, "only {} samples found", samples.len());
    assert_none("unused", &unused_samples(&samples, &text_files(&[".rs"])?));
    Ok(())
}

fn file(path: &str, text: &str) -> TextFile {
    TextFile { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn a_forgotten_module_or_suite_is_found() {
    let files = [file("tests/a/main.rs", "mod x;\n"), file("tests/a/x.rs", ""), file("tests/a/y.rs", "")];
    assert_eq!(forgotten_modules(&files), ["tests/a/y.rs is no module of tests/a/main.rs"]);
    assert_eq!(forgotten_suites("", &files), ["tests/a/main.rs is no [[test]] of tests/Cargo.toml"]);
    assert_eq!(forgotten_suites("path = \"a/main.rs\"", &files), [""; 0]);
}

#[test]
fn an_unused_sample_is_found() {
    let samples = [file("events/a.json", ""), file("events/b.json", "")];
    let sources = [file("tests/x.rs", "read(\"events/a.json\")")];
    assert_eq!(unused_samples(&samples, &sources), ["events/b.json is named by no test"]);
}

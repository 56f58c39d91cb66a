//! One word for each thing (`docs/GLOSSARY.md`), and nothing that only one machine knows.

use osprey_tests::source::{Source, words};
use osprey_tests::text_files;

use crate::{Checked, assert_none};

/// Words that the glossary replaces, each with ours. Only the unambiguous ones.
const REPLACED: [(&str, &str); 10] = [
    ("bucket", "tier"),
    ("lane", "tier"),
    ("prio", "priority"),
    ("tenant", "team"),
    ("steal", "reclaim"),
    ("kill", "preempt, stop or terminate"),
    ("loser", "victim"),
    ("park", "hold"),
    ("resubmit", "requeue"),
    ("rebalance", "deschedule"),
];

/// Names of others, and commands, that hold a replaced word.
const FOREIGN: [&str; 10] = [
    "kill_process_group",
    "kill_process",
    "Signal::KILL",
    ".kill()",
    "kill -9",
    "kill -KILL",
    "kill -INT",
    // A column of the traces, and files of expected schedules.
    "`tenant`",
    "itp_c06_prio",
    "itp_mix256_prio",
];

/// Where a word has its other meaning: folder and word. The crates that deal with processes mean the signal.
const ELSEWHERE: [(&str, &str); 2] = [("shared/local-batch/", "kill"), ("shared/local/", "kill")];

/// Paths of one machine. Written in two parts so that this file doesn't hold them.
const PATHS: [&str; 5] =
    [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("C:", "\\")];

/// Text without the names of others.
fn ours(text: &str) -> String {
    FOREIGN.iter().fold(text.to_owned(), |text, name| text.replace(name, "…"))
}

fn replaced_words(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (line, word) in words(&ours(text)) {
        let singular = word.strip_suffix('s').unwrap_or(&word);
        let known = REPLACED.iter().find(|(replaced, _)| *replaced == word || *replaced == singular);
        let Some((replaced, ours)) = known else { continue };
        if !ELSEWHERE.iter().any(|(folder, word)| path.starts_with(folder) && word == replaced) {
            found.push(format!("{path}:{line}: `{word}` is called {ours} here"));
        }
    }
    found
}

fn machine_paths(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let named = lines.filter(|(_, line)| PATHS.iter().any(|known| starts_a_path(line, known)));
    named.map(|(index, _)| format!("{path}:{}: a path of one machine", index + 1)).collect()
}

/// Whether `known` stands in the line as the start of a path, and not inside a longer one such as `/net/home/` or in a
/// record such as a line of a password file.
fn starts_a_path(line: &str, known: &str) -> bool {
    let inside =
        |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | ':'));
    line.match_indices(known).any(|(at, _)| line.get(..at).is_some_and(|before| !inside(before)))
}

fn foreign_registries(path: &str, text: &str) -> Vec<String> {
    let sources = text.lines().filter_map(|line| line.trim().strip_prefix("source = "));
    let foreign = sources.filter(|source| *source != "\"registry+https://github.com/rust-lang/crates.io-index\"");
    foreign.map(|source| format!("{path}: {source} is not crates.io")).collect()
}

#[test]
fn everything_is_called_by_its_word() -> Checked {
    let mut found = Vec::new();
    for file in text_files(&[".rs", ".md"])? {
        match file.path.as_str() {
            // The table of replaced words itself, in the glossary and here.
            "docs/GLOSSARY.md" | "tests/tidy/words.rs" => {}
            path if path.ends_with(".rs") => {
                let source = Source::new(&file.text);
                found.extend(replaced_words(path, &source.code));
                found.extend(replaced_words(path, &source.comments));
            }
            path => found.extend(replaced_words(path, &file.text)),
        }
    }
    assert_none("words that the glossary replaces", &found);
    Ok(())
}

#[test]
fn nothing_names_a_path_of_one_machine_or_another_registry() -> Checked {
    let endings = [".rs", ".md", ".toml", ".json", ".jsonl", ".csv", ".sh", ".ci/run", "Cargo.lock", ".yaml", ".yml"];
    let files = text_files(&endings)?;
    let mut found: Vec<String> = files.iter().flat_map(|file| machine_paths(&file.path, &file.text)).collect();
    let locks = files.iter().filter(|file| file.path == "Cargo.lock");
    found.extend(locks.flat_map(|file| foreign_registries(&file.path, &file.text)));
    assert_none("only this machine knows", &found);
    Ok(())
}

#[test]
fn replaced_words_are_found_in_every_spelling() {
    let text = "fn pickLane() {}\nlet prio = 1;\nmax_TENANTS\nSIGKILL and parking stay\nkill_process(pid)\n";
    let want = ["a:1: `lane` is called tier here", "a:2: `prio` is called priority here"];
    let found = replaced_words("a", text);
    assert_eq!(found.get(..2), Some(&want.map(str::to_owned)[..]));
    assert_eq!(found.get(2..), Some(&["a:3: `tenants` is called team here".to_owned()][..]));
    assert_eq!(
        replaced_words("shared/local/a.rs", "kill(pid)\nlane"),
        ["shared/local/a.rs:2: `lane` is called tier here"]
    );
}

#[test]
fn paths_of_one_machine_are_found() {
    let [first, home, ..] = PATHS;
    assert_eq!(machine_paths("a", &format!("x\nsee {first}y\n`{home}z`\n")).len(), 2);
    assert_eq!(machine_paths("a", &format!("/net{home}x\n${{HOME}}{first}\nwork/home\nada:x:{home}ada\n")), [""; 0]);
}

#[test]
fn other_registries_are_found() {
    let lock = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"git+https://x\"\n";
    assert_eq!(foreign_registries("Cargo.lock", lock), ["Cargo.lock: \"git+https://x\" is not crates.io"]);
}

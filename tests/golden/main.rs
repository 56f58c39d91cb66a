//! Golden sessions: `*.session` files hold commands of `osprey` and exactly what they print.
//!
//! A line that begins with `$ ` is a command, run in the root of the repository; the lines after it are its output
//! (standard output, then standard error), and `? N` at the end is an exit code other than 0. Text between the first
//! command and the top is a comment. `OSPREY_BLESS=1 cargo test -p osprey-tests --test golden` writes what comes out
//! into the files; the difference is then read like any other change.

mod acceptance;
mod completions;
mod documented;
mod live;
mod local;
mod nodes;
mod pages;
mod parsed;
mod reference;
mod schema;
mod session;
mod shell;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use session::{Session, Step};

type Checked = Result<(), Box<dyn std::error::Error>>;

/// Longest session, in lines: more is read by nobody.
const SESSION_LINES_MAX: usize = 150;

/// The sessions in a folder of the repository.
fn session_files(folder: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(osprey_tests::root().join(folder))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "session") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The command line under test.
struct Program;

impl Program {
    fn command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_osprey-under-test"));
        command.args(arguments).current_dir(osprey_tests::root()).env("NO_COLOR", "1").env("COLUMNS", "120");
        command
    }
}

/// Runs a command and gives its output in the form of a session.
fn run(words: &[String]) -> Result<String, Box<dyn std::error::Error>> {
    let Some(("osprey", arguments)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) else {
        return Err(format!("only `osprey` can be run, not {words:?}").into());
    };
    let output = Program::command(arguments).output()?;
    // How old a file's snapshot is differs from day to day.
    let told = String::from_utf8(output.stderr)?;
    let told = told.lines().filter(|line| !line.starts_with("the snapshot is ")).map(|line| format!("{line}\n"));
    let mut said = String::from_utf8(output.stdout)? + &told.collect::<String>();
    match output.status.code() {
        Some(0) => {}
        Some(code) => said.push_str(&format!("? {code}\n")),
        None => said.push_str("? ended by a signal\n"),
    }
    Ok(said)
}

#[test]
fn every_session_says_what_it_said() -> Checked {
    let bless = env::var_os("OSPREY_BLESS").is_some();
    let files = session_files("tests/golden")?;
    assert!(!files.is_empty(), "no sessions");
    let mut different = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        let session = Session::read(&text);
        let mut now = session.clone();
        for step in &mut now.steps {
            step.answer(&run(&step.words())?);
        }
        if bless {
            fs::write(&file, now.to_string())?;
        } else if now != session {
            different.push(format!("{}:\n{}", file.display(), session.difference(&now)));
        }
    }
    assert!(different.is_empty(), "{}\nOSPREY_BLESS=1 accepts what is said now", different.join("\n"));
    Ok(())
}

#[test]
fn sessions_are_short_enough_to_be_read() -> Checked {
    for file in session_files("tests/golden")? {
        let lines = fs::read_to_string(&file)?.lines().count();
        assert!(lines <= SESSION_LINES_MAX, "{} has {lines} lines", file.display());
    }
    Ok(())
}

#[test]
fn a_session_is_written_as_it_was_read() {
    let text = "A comment.\n\n$ osprey a 'b c' \"d 'e\"\nout\n? 3\n\n$ osprey f\n";
    let session = Session::read(text);
    assert_eq!(session.to_string(), text);
    let words: Vec<Vec<String>> = session.steps.iter().map(Step::words).collect();
    assert_eq!(words, [vec!["osprey", "a", "b c", "d 'e"], vec!["osprey", "f"]]);
    assert_eq!(session.steps.first().map(|step| step.output.as_str()), Some("out\n? 3\n"));
}

#[test]
fn a_difference_is_shown_line_by_line() {
    let was = Session::read("$ osprey a\none\ntwo\n");
    let now = Session::read("$ osprey a\none\nthree\n");
    assert_ne!(was, now);
    assert_eq!(was.difference(&now), "  $ osprey a\n    one\n  - two\n  + three\n");
}

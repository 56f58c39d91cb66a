//! Functions and files stay short enough to be read.

use osprey_tests::source::{Source, functions};
use osprey_tests::text_files;

use crate::{Checked, assert_none};

/// The longest function, in lines.
const FUNCTION_LINES_MAX: usize = 70;
/// A ratchet: only functions just over the limit fail, since those are easily shortened. Nobody plans a function of 72
/// lines, it grows there; one that was meant to be long is a matter for review.
const RATCHET_LINES: usize = 5;
/// The longest file, in lines that aren't tests.
const FILE_LINES_MAX: usize = 700;

fn offences(path: &str, text: &str) -> Vec<String> {
    let code = Source::new(text).code_without_tests();
    let mut found: Vec<String> = functions(&code)
        .into_iter()
        .filter(|f| f.lines > FUNCTION_LINES_MAX && f.lines <= FUNCTION_LINES_MAX + RATCHET_LINES)
        .map(|f| format!("{path}:{}: `{}` has {} lines of at most {FUNCTION_LINES_MAX}", f.line, f.name, f.lines))
        .collect();
    let lines = lines_without_tests(text);
    if lines > FILE_LINES_MAX {
        found
            .push(format!("{path} has {lines} lines of at most {FILE_LINES_MAX}, tests not counted: split it by noun"));
    }
    found
}

/// Lines of the file up to its tests, which come last.
fn lines_without_tests(text: &str) -> usize {
    text.lines().take_while(|line| *line != "#[cfg(test)]").count()
}

#[test]
fn functions_and_files_stay_short() -> Checked {
    let found: Vec<String> = text_files(&[".rs"])?.iter().flat_map(|file| offences(&file.path, &file.text)).collect();
    assert_none("too long", &found);
    Ok(())
}

#[test]
fn a_function_just_over_the_limit_is_found() {
    let function = |lines: usize| format!("fn f() {{\n{}}}\n", "x();\n".repeat(lines - 2));
    assert_eq!(offences("a.rs", &function(70)), [""; 0]);
    assert_eq!(offences("a.rs", &function(71)), ["a.rs:1: `f` has 71 lines of at most 70"]);
    assert_eq!(offences("a.rs", &function(75)).len(), 1);
    assert_eq!(offences("a.rs", &function(76)), [""; 0]);
}

#[test]
fn a_long_file_is_found_and_its_tests_are_not_counted() {
    let file =
        |lines: usize| format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", "// x\n".repeat(lines), "// y\n".repeat(99));
    assert_eq!(offences("a.rs", &file(700)), [""; 0]);
    assert_eq!(offences("a.rs", &file(701)).len(), 1);
}

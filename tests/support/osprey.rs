//! The command under test, built as a binary of this package so that the suites can find it.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Under its own name: usage errors say it.
    osprey::run(std::iter::once("osprey".into()).chain(std::env::args_os().skip(1)))
}

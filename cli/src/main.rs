//! The program.

use std::process::ExitCode;

fn main() -> ExitCode {
    osprey::run(std::env::args_os())
}

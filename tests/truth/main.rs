//! `truth`: whether what `osprey why` says of jobs that wait is true.
//!
//! ```text
//! truth --jobs N [--seed S]           checks N jobs of simulated clusters; the last line is `truth: N passed, M failed`
//! truth --only W.K [--seed S]         one of them, told in full
//! ```
//!
//! `world` simulates clusters and keeps moments of them, `richer` puts in what the simulator has no word for, `case` takes jobs
//! that wait there. Of each job it is checked that the named reason is the binding one (`binding`, with `turn` and `facts`) and
//! that every change which is told starts it (`changes`, with `applied`), and it is counted how often less would have done
//! (`smaller`). Nothing here asks the code that made the reason or the change; only the decision itself is asked again.

mod applied;
mod binding;
mod case;
mod changes;
mod draw;
mod facts;
mod lift;
mod options;
mod richer;
mod run;
mod smaller;
mod tally;
mod turn;
mod world;

use std::io::Write as _;
use std::process::ExitCode;

use options::Options;

/// Every decision makes a hundred short lists.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What a usage error exits with.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = match Options::read(&arguments) {
        Ok(options) => options,
        Err(fault) => {
            say(&format!("{fault}\nusage: truth [--jobs N] [--seed S] [--only W.K] [--threads T]"));
            return ExitCode::from(USAGE);
        }
    };
    let done = match options.only {
        Some(number) => run::one(&options, number),
        None => run::all(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            say(&fault);
            ExitCode::FAILURE
        }
    }
}

/// Prints a line; nobody reads on when the pipe is closed.
fn say(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

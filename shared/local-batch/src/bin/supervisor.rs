//! A supervisor on its own, for tests and for programs that embed the local Batch without a command line.

fn main() {
    let code = osprey_local_batch::supervise::supervise(std::env::args_os().skip(1));
    std::process::exit(code);
}

//! The command under test, built as a binary of this package so that the suites can find it.

fn main() {}

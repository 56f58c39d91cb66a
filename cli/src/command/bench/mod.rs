//! `osprey bench`: how long what Osprey does takes, measured and not tested.

mod cycle;
mod pipeline;
mod watch;

use clap::Subcommand;

pub(super) use cycle::strategy;

use super::Exit;
use crate::error::CliError;
use crate::ui::Ui;

/// Time what Osprey does.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    Cycle(cycle::CycleArgs),
    Pipeline(pipeline::PipelineArgs),
    Watch(watch::WatchArgs),
}

/// Does it.
pub fn bench(command: &BenchCommand, ui: &mut Ui) -> Result<Exit, CliError> {
    match command {
        BenchCommand::Cycle(args) => cycle::cycle(args, ui),
        BenchCommand::Pipeline(args) => pipeline::pipeline(args, ui),
        BenchCommand::Watch(args) => watch::watch(args, ui),
    }
}

/// Milliseconds to a thousandth.
fn digits(ms: f64) -> f64 {
    (ms * 1_000.0).round() / 1_000.0
}

/// Median and longest of some times, milliseconds.
fn median_and_longest(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times.get(times.len() / 2).copied().unwrap_or_default(), times.last().copied().unwrap_or_default())
}

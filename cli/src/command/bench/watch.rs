//! `osprey bench watch`: how long the live view takes to read a pipeline, and to draw a frame.

use std::time::Instant;

use clap::Args;
use osprey_model::id::JobId;
use ratatui::layout::Rect;
use serde_json::json;

use super::pipeline::Scene;
use super::{digits, median_and_longest};
use crate::command::Exit;
use crate::error::CliError;
use crate::joined::Joined;
use crate::render::table::Columns;
use crate::ui::Ui;
use crate::watch::keys::Wanted;
use crate::watch::look::Look;
use crate::watch::reader::Eye;
use crate::watch::state::{Event, State};
use crate::watch::view::view;

/// Time what `osprey watch` does on a made-up backlog of this machine: a reading, the reason of the selected job, taking a
/// reading in, and drawing a frame. Reading goes on beside drawing, so a frame waits for none of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey bench watch
  osprey bench watch --jobs 1000 --columns 80 --rows 24 --output json")]
pub struct WatchArgs {
    /// Jobs that wait
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    jobs: u32,
    /// Columns of the terminal
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(60..=500))]
    columns: u16,
    /// Rows of the terminal
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u16).range(16..=200))]
    rows: u16,
    /// Times that each is measured
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,
}

/// What is measured, in milliseconds each.
#[derive(Default)]
struct Times {
    read: Vec<f64>,
    why: Vec<f64>,
    take: Vec<f64>,
    draw: Vec<f64>,
}

/// Measures it.
pub(super) fn watch(args: &WatchArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let scene = Scene::new(args.jobs)?;
    let mut eye = Eye::new(Joined::open(&scene.dir)?);
    let mut state = State::new("bench");
    let area = Rect::new(0, 0, args.columns, args.rows);
    let mut times = Times::default();
    for _ in 0..args.runs {
        let names: Vec<JobId> = state.wish().names;
        let reading = timed(&mut times.read, || eye.read(&names))?;
        timed(&mut times.take, || state.take(Event::Read(Box::new(reading))));
        if let Some(job) = state.selected {
            let why = timed(&mut times.why, || eye.why(job));
            state.take(Event::Why(why));
        }
        timed(&mut times.draw, || view(&state, Look { has_colours: true }, area));
        state.take(Event::Wanted(Wanted::Move(7)));
    }
    show(args, times, ui)?;
    Ok(Exit::Ok)
}

fn timed<T>(times: &mut Vec<f64>, what: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let made = what();
    times.push(began.elapsed().as_secs_f64() * 1_000.0);
    made
}

fn show(args: &WatchArgs, times: Times, ui: &mut Ui) -> Result<(), CliError> {
    let Times { read, why, take, draw } = times;
    let [read, why, take, draw] = [read, why, take, draw].map(median_and_longest);
    if ui.is_json() {
        return ui.json(&json!({
            "jobs": args.jobs,
            "columns": args.columns,
            "rows": args.rows,
            "runs": args.runs,
            "read_milliseconds_median": digits(read.0),
            "read_milliseconds_max": digits(read.1),
            "why_milliseconds_median": digits(why.0),
            "why_milliseconds_max": digits(why.1),
            "take_milliseconds_median": digits(take.0),
            "take_milliseconds_max": digits(take.1),
            "draw_milliseconds_median": digits(draw.0),
            "draw_milliseconds_max": digits(draw.1),
        }));
    }
    let mut columns = Columns::new(&["WHAT", ">MEDIAN", ">LONGEST"]);
    for (what, (median, longest)) in [
        ("reading", read),
        ("why, for the selected job", why),
        ("taking a reading in", take),
        ("drawing a frame", draw),
    ] {
        columns.row([what.to_owned(), format!("{median:.2} ms"), format!("{longest:.2} ms")]);
    }
    ui.text(&columns.render())
}

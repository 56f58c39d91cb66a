//! How far a long replay has come: one line on standard error, drawn over itself, and only for a person who watches.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use crate::ui::Ui;

/// A replay that takes less than this is not worth a line.
const PATIENCE: Duration = Duration::from_millis(400);
/// How often the line is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// The line.
pub struct Progress<'u> {
    ui: Option<RefCell<&'u mut Ui>>,
    jobs: usize,
    strategy: Cell<&'static str>,
    began: Cell<Instant>,
    drawn: Cell<Option<Instant>>,
}

impl<'u> Progress<'u> {
    /// Of replays of so many jobs.
    pub fn new(ui: &'u mut Ui, jobs: usize) -> Self {
        let ui = ui.shows_progress().then(|| RefCell::new(ui));
        Self { ui, jobs, strategy: Cell::new(""), began: Cell::new(Instant::now()), drawn: Cell::new(None) }
    }

    /// A strategy's turn begins.
    pub fn begin(&self, strategy: &'static str) {
        self.strategy.set(strategy);
        self.began.set(Instant::now());
    }

    /// So many jobs have been submitted.
    pub fn show(&self, submitted: usize) {
        let Some(ui) = &self.ui else { return };
        let is_due = self.drawn.get().is_none_or(|drawn| drawn.elapsed() >= DRAW_EVERY);
        if self.began.get().elapsed() >= PATIENCE && is_due {
            self.drawn.set(Some(Instant::now()));
            ui.borrow_mut().overdraw(&line(self.strategy.get(), submitted, self.jobs, self.began.get().elapsed()));
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if let (Some(ui), Some(_)) = (&self.ui, self.drawn.get()) {
            ui.borrow_mut().overdraw("");
        }
    }
}

fn line(strategy: &str, submitted: usize, jobs: usize, elapsed: Duration) -> String {
    let percent = submitted * 100 / jobs.max(1);
    format!("{strategy}: {submitted} of {jobs} jobs, {percent} %, {:.1} s", elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is() {
        assert_eq!(
            line("backfill", 250, 1_000, Duration::from_millis(1_240)),
            "backfill: 250 of 1000 jobs, 25 %, 1.2 s"
        );
        assert_eq!(line("fifo", 0, 0, Duration::ZERO), "fifo: 0 of 0 jobs, 0 %, 0.0 s");
    }
}

//! `osprey simulate --etas N`: how often what `osprey why` foretells comes true, on jobs that wait at moments of a simulation.

use std::cell::RefCell;

use osprey_model::id::JobId;
use osprey_policy::Policy;
use osprey_schedule::why::Fate;
use osprey_scheduler::snapshot::Queued;
use osprey_sim::decided::{Onlooker, Sight, place_of};
use osprey_sim::kernel::fork;
use osprey_sim::kernel::random::Random;
use osprey_sim::replay::Record;
use osprey_sim::schedule::Schedule;
use serde::Serialize;

use super::SimulateArgs;
use super::source::Source;
use super::strategy::{self, Settings};
use crate::error::CliError;
use crate::render::table::Columns;
use crate::render::time;
use crate::ui::Ui;

/// A forecast further than this from now counts as far, in milliseconds: most of what moves it is yet to be submitted.
const FAR_MS: i64 = 3_600_000;

/// What was foretold of one job at one moment; times are milliseconds since the first submission.
#[derive(Clone, Copy, Debug)]
struct Foretold {
    place: usize,
    asked_ms: i64,
    p50_ms: Option<i64>,
    p80_ms: Option<i64>,
}

/// How forecasts came out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hits {
    /// Which of them.
    pub foreseen: &'static str,
    /// How many jobs.
    pub jobs: usize,
    /// Those that started by the time that was named if runs take as long as expected.
    pub by_p50: usize,
    /// Those that started by the time that was named if they take longer.
    pub by_p80: usize,
    /// Median distance between `p50` and the start, in seconds.
    pub off_seconds_median: i64,
}

/// Asks about so many jobs, one at each of as many moments, spread evenly over the time in which jobs are submitted.
///
/// # Errors
/// For a strategy that decides nothing itself.
pub fn etas(args: &SimulateArgs, count: u32, policy: &Policy, source: &Source) -> Result<Vec<Hits>, CliError> {
    let strategy = super::why::production(args)?;
    let settings = Settings::of(policy, source, args.estimates.into(), Record::Outcomes);
    let last_ms = source.workload.jobs.iter().map(|job| job.submit_ms).max().unwrap_or(0);
    let asker = RefCell::new(Asker::new(count, last_ms, args.jobs.seed));
    let see = |sight: &Sight<'_>| asker.borrow_mut().see(sight);
    let (_, schedule) = strategy::run_seen(strategy, source, &settings, Onlooker(&see));
    Ok(came_out(&asker.into_inner().told, &schedule))
}

/// Asks at moments.
struct Asker {
    step_ms: u64,
    next_ms: u64,
    random: Random,
    told: Vec<Foretold>,
}

impl Asker {
    fn new(count: u32, last_ms: u64, seed: u64) -> Self {
        let step_ms = (last_ms / u64::from(count.max(1))).max(1);
        Self { step_ms, next_ms: step_ms / 2, random: fork(seed, "etas"), told: Vec::new() }
    }

    fn see(&mut self, sight: &Sight<'_>) {
        let Some(now_ms) = u64::try_from(sight.now_ms).ok().filter(|now_ms| *now_ms >= self.next_ms) else { return };
        self.next_ms = (now_ms / self.step_ms + 1) * self.step_ms;
        let look = super::why::look(sight);
        // One that was stopped before would be taken for one that had started already.
        let waits = |job: &&Queued| job.ran_ms == 0 && matches!(look.fate(job.job), Fate::Waits(_));
        let waiting: Vec<JobId> = look.snapshot.queued.iter().filter(waits).map(|job| job.job).collect();
        let drawn = usize::try_from(self.random.below(waiting.len() as u64)).unwrap_or(0);
        let Some((job, place)) = waiting.get(drawn).and_then(|job| Some((*job, place_of(*job)?))) else { return };
        let eta = look.eta(job);
        let at = |after: Option<u64>| after.and_then(|ms| sight.now_ms.checked_add(i64::try_from(ms).ok()?));
        let (p50_ms, p80_ms) = (at(eta.p50_ms), at(eta.p80_ms));
        self.told.push(Foretold { place, asked_ms: sight.now_ms, p50_ms, p80_ms });
    }
}

/// All forecasts, the near ones, the far ones; those where nothing could be foreseen aren't counted as either.
fn came_out(told: &[Foretold], schedule: &Schedule) -> Vec<Hits> {
    let started = |told: &Foretold| {
        let start = schedule.outcomes.get(told.place)?.start_ms.and_then(|start| i64::try_from(start).ok())?;
        // One that had started before, and was stopped, isn't asked about.
        (start >= told.asked_ms).then_some(start)
    };
    let known: Vec<(Foretold, i64, i64)> =
        told.iter().filter_map(|told| Some((*told, told.p50_ms?, started(told)?))).collect();
    let hits = |foreseen: &'static str, is_in: &dyn Fn(i64) -> bool| {
        let some: Vec<_> = known.iter().filter(|(told, p50_ms, _)| is_in(p50_ms - told.asked_ms)).collect();
        let mut off: Vec<i64> = some.iter().map(|(_, p50_ms, start)| (start - p50_ms).abs()).collect();
        off.sort_unstable();
        Hits {
            foreseen,
            jobs: some.len(),
            by_p50: some.iter().filter(|(_, p50_ms, start)| start <= p50_ms).count(),
            by_p80: some.iter().filter(|(told, _, start)| told.p80_ms.is_none_or(|p80_ms| *start <= p80_ms)).count(),
            off_seconds_median: off.get(off.len() / 2).map_or(0, |ms| ms / 1_000),
        }
    };
    let unforeseen = told.iter().filter(|told| told.p50_ms.is_none() && started(told).is_some()).count();
    vec![
        hits("all", &|_| true),
        hits("within 1 h", &|in_ms| in_ms <= FAR_MS),
        hits("later", &|in_ms| in_ms > FAR_MS),
        Hits { foreseen: "not at all", jobs: unforeseen, ..Hits::default() },
    ]
}

/// Shows how forecasts came out.
///
/// # Errors
/// When standard output can't be written.
pub fn show(hits: &[Hits], ui: &mut Ui) -> Result<(), CliError> {
    if ui.is_json() {
        return ui.json(&hits);
    }
    let mut columns = Columns::new(&["FORESEEN", "JOBS", "STARTED BY P50", "BY P80", "MEDIAN DISTANCE FROM P50"]);
    for hit in hits {
        let share = |part: usize| match hit.jobs {
            0 => "-".to_owned(),
            jobs => format!("{:.0} %", part as f64 * 100.0 / jobs as f64),
        };
        let is_known = hit.jobs > 0 && hit.foreseen != "not at all";
        let cells = if is_known {
            [share(hit.by_p50), share(hit.by_p80), time::short(hit.off_seconds_median * 1_000)]
        } else {
            ["-", "-", "-"].map(str::to_owned)
        };
        let [by_p50, by_p80, off] = cells;
        columns.row([hit.foreseen.to_owned(), hit.jobs.to_string(), by_p50, by_p80, off]);
    }
    ui.text(&columns.render())
}

//! What teams use: GPU-milliseconds of closed attempts, split by day in the transaction that closes the attempt.
//!
//! Counters hold the milliseconds that Batch tells, so that a thousand jobs of half a second count for what they held.
//! Whoever shows GPU-seconds rounds the sum, once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use osprey_model::end::EndClass;
use osprey_model::facts::TeamFacts;
use osprey_policy::share::waste::GpuTime;
use osprey_policy::share::{DAY_MS, Day};
use osprey_ports::{Index, IndexQuery, Key, QueryIndex, QueryItems, SortQuery, Write};

use crate::failure::Failure;
use crate::{key, repository};

/// Days of a week's window, today included.
const WINDOW_DAYS: i64 = 7;
/// Most days that are read: the window, and a tomorrow that a clock ahead of ours has begun.
const DAYS_READ_MAX: usize = 8;
/// Counters are dropped after so many days.
const KEPT_DAYS: i64 = 400;

/// Counter of all GPU-milliseconds of a day.
const ALL: &str = "gpu_ms";
/// Counter of those that came to something.
const USEFUL: &str = "useful_gpu_ms";
/// Counter of those of failed attempts.
const FAILED: &str = "failed_gpu_ms";
/// Counter of those of attempts that were interrupted.
const INTERRUPTED: &str = "interrupted_gpu_ms";

/// Counter of what crashes lost: work that no checkpoint holds.
const CRASH: &str = "crash_gpu_ms";
/// Counter of what evictions and lost hosts lost.
const EVICTION: &str = "eviction_gpu_ms";
/// Counter of what was waited for: the time, times the GPUs.
const QUEUE: &str = "queue_gpu_ms";
/// Counter of attempts that went on after a crash.
const RESTARTS: &str = "restarts";

/// GPU-milliseconds between two times: GPUs × milliseconds, at least 0.
#[must_use]
pub fn gpu_ms(gpus: u32, from: i64, to: i64) -> u64 {
    let ms = u64::try_from(to.saturating_sub(from)).unwrap_or(0);
    ms.saturating_mul(u64::from(gpus))
}

/// An attempt that has ended, as its team is charged for it. Times are milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Spent<'a> {
    /// Its team.
    pub team: &'a str,
    /// GPUs that it held.
    pub gpus: u32,
    /// When it started.
    pub from: i64,
    /// When it ended.
    pub to: i64,
    /// How it ended.
    pub class: EndClass,
    /// Since when it waited for its start.
    pub queued_at: i64,
    /// How often it says that it saves its work, in milliseconds of its run; `None` for one that doesn't.
    pub saves_every_ms: Option<u64>,
    /// Whether it went on after a crash.
    pub is_restart: bool,
}

impl Spent<'_> {
    /// The work at its end that no checkpoint holds, in milliseconds. Of a run that ended well, or that a person stopped,
    /// nothing is lost.
    fn lost_ms(&self) -> i64 {
        let ran = self.to.saturating_sub(self.from).max(0);
        match self.saves_every_ms.and_then(|every| i64::try_from(every).ok()).filter(|every| *every > 0) {
            Some(every) => ran % every,
            None => ran,
        }
    }
}

/// The writes that count an attempt for its team: one for each day that it touched.
#[must_use]
pub fn writes(spent: &Spent<'_>) -> Vec<Write> {
    let mut counted: BTreeMap<String, (BTreeMap<String, i64>, i64)> = BTreeMap::new();
    let mut add = |day: &str, name: &str, amount: i64, to: i64| {
        let (amounts, end) = counted.entry(day.to_owned()).or_default();
        *amounts.entry(name.to_owned()).or_default() += amount;
        *end = to.max(*end);
    };
    let ms = |from: i64, to: i64| i64::try_from(gpu_ms(spent.gpus, from, to)).unwrap_or(i64::MAX);
    let held = days(spent.from, spent.to);
    for (day, from, to) in held.iter().filter(|(_, from, to)| ms(*from, *to) > 0) {
        add(day, ALL, ms(*from, *to), *to);
        add(day, kind(spent.class), ms(*from, *to), *to);
    }
    if let Some(lost) = lost(spent.class) {
        let from = spent.to.saturating_sub(spent.lost_ms());
        for (day, from, to) in days(from, spent.to).into_iter().filter(|(_, from, to)| ms(*from, *to) > 0) {
            add(&day, lost, ms(from, to), to);
        }
    }
    if let (Some((first, _, end)), true) = (held.first(), spent.gpus > 0) {
        let waited = ms(spent.queued_at, spent.from);
        if waited > 0 {
            add(first, QUEUE, waited, *end);
        }
        if spent.is_restart {
            add(first, RESTARTS, 1, *end);
        }
    }
    let write = |(day, (amounts, to)): (String, (BTreeMap<String, i64>, i64))| Write::Add {
        key: key::usage(spent.team, &day),
        amounts,
        at_most: BTreeMap::new(),
        expires_at: Timestamp::from_millisecond(to.saturating_add(KEPT_DAYS * DAY_MS)).ok(),
    };
    counted.into_iter().map(write).collect()
}

/// What the counters of a day say.
pub(crate) fn day_of(starts_ms: i64, counts: &BTreeMap<String, i64>) -> Day {
    let count = |name: &str| counts.get(name).and_then(|number| u64::try_from(*number).ok()).unwrap_or(0);
    let (all, crash, eviction) = (count(ALL), count(CRASH), count(EVICTION));
    let useful = all.saturating_sub(crash).saturating_sub(eviction);
    Day {
        starts_ms,
        gpu_ms: all,
        time: GpuTime { useful, crash, eviction, idle: 0, queue: count(QUEUE) },
        restarts: u32::try_from(count(RESTARTS)).unwrap_or(u32::MAX),
    }
}

/// The counter of what is lost by an end; `None` where nothing is.
fn lost(class: EndClass) -> Option<&'static str> {
    match class {
        _ if class.is_failure() => Some(CRASH),
        EndClass::Preempted | EndClass::HostLost => Some(EVICTION),
        _ => None,
    }
}

/// The counter of an attempt that ended so.
fn kind(class: EndClass) -> &'static str {
    if class == EndClass::Succeeded {
        USEFUL
    } else if class.is_failure() {
        FAILED
    } else {
        INTERRUPTED
    }
}

/// Cuts a stretch of time at midnights UTC. A stretch longer than a year counts in its last year only.
fn days(from: i64, to: i64) -> Vec<(String, i64, i64)> {
    let mut start = from.max(to.saturating_sub(366 * DAY_MS)).max(0);
    let mut days = Vec::new();
    while start < to {
        let end = (start / DAY_MS + 1).saturating_mul(DAY_MS).min(to);
        days.push((day(start), start, end));
        start = end;
    }
    days
}

/// A day as keys name it.
pub(crate) fn day(ms: i64) -> String {
    TimeZone::UTC.to_datetime(Timestamp::from_millisecond(ms).unwrap_or_default()).date().to_string()
}

/// What a team used today and in the last seven days.
///
/// # Errors
/// When the store fails.
pub async fn team_facts<P: QueryItems + QueryIndex + Sync>(
    ports: &P,
    team: &str,
    now: Timestamp,
) -> Result<TeamFacts, Failure> {
    let day_key = |back: i64| key::usage(team, &day(now.as_millisecond().saturating_sub(back * DAY_MS)));
    let Key { partition, sort: today_sort } = day_key(0);
    // One range instead of a read for each day: this is on the way of every submission.
    let (prefix, after) = (key::DAY.to_owned(), Some(day_key(WINDOW_DAYS).sort));
    let query = SortQuery { partition, prefix, after, limit: DAYS_READ_MAX };
    let (mut today, mut all, mut failed) = (0_u64, 0_u64, 0_u64);
    for item in ports.query_items(&query).await?.items {
        let counts: BTreeMap<String, i64> = repository::read(&item)?;
        let count = |name: &str| counts.get(name).and_then(|ms| u64::try_from(*ms).ok()).unwrap_or(0);
        all = all.saturating_add(count(ALL));
        failed = failed.saturating_add(count(FAILED));
        if item.key.sort == today_sort {
            today = count(ALL);
        }
    }
    Ok(TeamFacts {
        gpus_running: gpus_running(ports, team).await?,
        gpu_hours_day: hours(today),
        gpu_hours_week: hours(all),
        waste_ratio: if all > 0 { hours(failed) / hours(all) } else { 0.0 },
    })
}

/// Most running jobs of a team that are counted.
const RUNNING_MAX: usize = 1000;

/// GPUs that a team's jobs hold, as of some moment not long ago: the index carries the number in its sort keys.
async fn gpus_running<P: QueryIndex + Sync>(ports: &P, team: &str) -> Result<u32, Failure> {
    let query = IndexQuery {
        index: Index::Running,
        partition: key::running_partition(team),
        from: None,
        to: None,
        newest_first: false,
        after: None,
        limit: RUNNING_MAX,
    };
    let page = ports.query_index_lagging(&query).await?;
    let gpus = page.entries.iter().filter_map(|(sort, _)| sort.split('#').next()?.parse::<u32>().ok());
    Ok(gpus.fold(0, u32::saturating_add))
}

/// GPU-milliseconds as GPU-hours. Exact up to 2⁵³ milliseconds.
#[expect(clippy::cast_precision_loss, reason = "285,000 years of GPU time fit exactly")]
#[must_use]
pub fn hours(ms: u64) -> f64 {
    ms as f64 / 3_600_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_split_at_midnight_and_nothing_is_lost() {
        let (from, to) = (DAY_MS - 5_000, 2 * DAY_MS + 7_000);
        let parts = days(from, to);
        assert_eq!(
            parts.iter().map(|(day, ..)| day.as_str()).collect::<Vec<_>>(),
            ["1970-01-01", "1970-01-02", "1970-01-03"]
        );
        assert_eq!(parts.iter().map(|(_, from, to)| to - from).sum::<i64>(), to - from);
    }

    /// The counters of each day, by the amounts that aren't 0.
    fn told(spent: &Spent<'_>) -> Vec<String> {
        let of = |write: &Write| match write {
            Write::Add { key, amounts, .. } => format!("{} {amounts:?}", key.sort),
            _ => String::new(),
        };
        writes(spent).iter().map(of).collect()
    }

    const fn spent(from: i64, to: i64, class: EndClass) -> Spent<'static> {
        Spent { team: "search", gpus: 8, from, to, class, queued_at: from, saves_every_ms: None, is_restart: false }
    }

    #[test]
    fn an_attempt_that_never_started_counts_nothing() {
        assert_eq!(writes(&spent(5_000, 5_000, EndClass::HostLost)), []);
        assert_eq!(gpu_ms(8, 9_000, 5_000), 0);
        assert_eq!(writes(&Spent { gpus: 0, is_restart: true, ..spent(0, 5_000, EndClass::ExitCode) }), []);
    }

    #[test]
    fn a_short_attempt_counts_to_the_millisecond_on_both_sides_of_midnight() {
        let found = told(&spent(DAY_MS - 300, DAY_MS + 450, EndClass::Succeeded));
        assert_eq!(
            found,
            [
                "DAY#1970-01-01 {\"gpu_ms\": 2400, \"useful_gpu_ms\": 2400}",
                "DAY#1970-01-02 {\"gpu_ms\": 3600, \"useful_gpu_ms\": 3600}",
            ]
        );
        assert_eq!(gpu_ms(3, 0, 999), 2_997);
    }

    /// C29: what crashes lose is what no checkpoint holds, counted on the days on which it was done.
    #[test]
    fn a_crash_loses_the_work_since_the_last_checkpoint_and_an_eviction_is_told_apart() {
        let saves = |class| Spent { saves_every_ms: Some(400), ..spent(DAY_MS - 600, DAY_MS + 100, class) };
        // 700 ms ran: 400 are saved, and of the 300 that are lost 200 were yesterday's.
        assert_eq!(
            told(&saves(EndClass::ExitCode)),
            [
                "DAY#1970-01-01 {\"crash_gpu_ms\": 1600, \"failed_gpu_ms\": 4800, \"gpu_ms\": 4800}",
                "DAY#1970-01-02 {\"crash_gpu_ms\": 800, \"failed_gpu_ms\": 800, \"gpu_ms\": 800}",
            ]
        );
        let lost = told(&spent(0, 10, EndClass::Preempted));
        assert_eq!(lost, ["DAY#1970-01-01 {\"eviction_gpu_ms\": 80, \"gpu_ms\": 80, \"interrupted_gpu_ms\": 80}"]);
        let stopped = told(&spent(0, 10, EndClass::Cancelled));
        assert_eq!(stopped, ["DAY#1970-01-01 {\"gpu_ms\": 80, \"interrupted_gpu_ms\": 80}"]);
    }

    #[test]
    fn a_restart_and_a_wait_are_counted_once_on_the_day_of_the_start() {
        let found = told(&Spent { queued_at: 5, is_restart: true, ..spent(15, 25, EndClass::Succeeded) });
        assert_eq!(
            found,
            ["DAY#1970-01-01 {\"gpu_ms\": 80, \"queue_gpu_ms\": 80, \"restarts\": 1, \"useful_gpu_ms\": 80}"]
        );
    }

    #[test]
    fn a_day_reads_back_as_what_became_of_its_time() {
        let counts = [(ALL, 100), (CRASH, 30), (EVICTION, 20), (QUEUE, 7), (RESTARTS, 2)];
        let counts = counts.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect();
        let time = GpuTime { useful: 50, crash: 30, eviction: 20, idle: 0, queue: 7 };
        assert_eq!(day_of(5, &counts), Day { starts_ms: 5, gpu_ms: 100, time, restarts: 2 });
    }

    #[test]
    fn interruptions_are_neither_useful_nor_failed() {
        assert_eq!(kind(EndClass::Preempted), INTERRUPTED);
        assert_eq!(kind(EndClass::HostLost), INTERRUPTED);
        assert_eq!(kind(EndClass::OutOfMemory), FAILED);
        assert_eq!(kind(EndClass::Cancelled), INTERRUPTED);
    }
}

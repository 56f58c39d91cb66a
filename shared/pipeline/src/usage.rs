//! What teams use: GPU-milliseconds of closed attempts, split by day in the transaction that closes the attempt.
//!
//! Counters hold the milliseconds that Batch tells, so that a thousand jobs of half a second count for what they held.
//! Whoever shows GPU-seconds rounds the sum, once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use osprey_model::end::EndClass;
use osprey_model::facts::TeamFacts;
use osprey_ports::{Index, IndexQuery, Key, QueryIndex, QueryItems, SortQuery, Write};

use crate::failure::Failure;
use crate::{key, repository};

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
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

/// GPU-milliseconds between two times: GPUs × milliseconds, at least 0.
#[must_use]
pub fn gpu_ms(gpus: u32, from: i64, to: i64) -> u64 {
    let ms = u64::try_from(to.saturating_sub(from)).unwrap_or(0);
    ms.saturating_mul(u64::from(gpus))
}

/// The writes that count an attempt for its team: one for each day that it touched.
#[must_use]
pub fn writes(team: &str, gpus: u32, from: i64, to: i64, class: EndClass) -> Vec<Write> {
    days(from, to)
        .into_iter()
        .filter_map(|(day, from, to)| {
            let ms = i64::try_from(gpu_ms(gpus, from, to)).unwrap_or(i64::MAX);
            (ms > 0).then(|| Write::Add {
                key: key::usage(team, &day),
                amounts: BTreeMap::from([(ALL.to_owned(), ms), (kind(class).to_owned(), ms)]),
                at_most: BTreeMap::new(),
                expires_at: Timestamp::from_millisecond(to.saturating_add(KEPT_DAYS * DAY_MS)).ok(),
            })
        })
        .collect()
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

fn day(ms: i64) -> String {
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

    #[test]
    fn an_attempt_that_never_started_counts_nothing() {
        assert_eq!(writes("search", 8, 5_000, 5_000, EndClass::HostLost), []);
        assert_eq!(gpu_ms(8, 9_000, 5_000), 0);
    }

    #[test]
    fn a_short_attempt_counts_to_the_millisecond_on_both_sides_of_midnight() {
        let counted = |write: &Write| match write {
            Write::Add { amounts, .. } => amounts.get(ALL).copied().unwrap_or(0),
            _ => 0,
        };
        let writes = writes("search", 8, DAY_MS - 300, DAY_MS + 450, EndClass::Succeeded);
        assert_eq!(writes.iter().map(counted).collect::<Vec<_>>(), [2_400, 3_600]);
        assert_eq!(gpu_ms(3, 0, 999), 2_997);
    }

    #[test]
    fn interruptions_are_neither_useful_nor_failed() {
        assert_eq!(kind(EndClass::Preempted), INTERRUPTED);
        assert_eq!(kind(EndClass::HostLost), INTERRUPTED);
        assert_eq!(kind(EndClass::OutOfMemory), FAILED);
        assert_eq!(kind(EndClass::Cancelled), INTERRUPTED);
    }
}

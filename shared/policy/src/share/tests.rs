use proptest::collection::vec;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;

const HOUR: u64 = 3_600_000;
const HOUR_MS: i64 = 3_600_000;
/// Ten o'clock on some day.
const NOW: i64 = 20_000 * DAY_MS + 10 * HOUR_MS;

fn policy() -> Policy {
    let text = r#"
name = "t"
[[tier]]
name = "high"
at_least = 800
team_gpus_max = 8
[[tier]]
name = "low"
at_least = 0
team_gpus_max = 32
[[tier]]
name = "spare"
takes = "preemptible"
[quota]
gpu_hours_day = 50
gpu_hours_week = 200
gpus = { high = 16 }
[quota.team.search]
gpu_hours_day = 100
weight = 2
"#;
    Policy::load(text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy
}

/// A day so many days ago, with so many GPU-hours of useful work and so many that crashes lost.
fn day(ago: i64, useful: u64, crash: u64) -> Day {
    let time = GpuTime { useful: useful * HOUR, crash: crash * HOUR, ..GpuTime::default() };
    Day {
        starts_ms: midnight(NOW) - ago * DAY_MS,
        gpu_ms: (useful + crash) * HOUR,
        time,
        restarts: u32::from(crash > 0),
    }
}

/// A job of so many GPUs that started so many hours ago and runs for so many.
fn held(gpus: u32, ago: i64, hours: u64) -> Held {
    let started_ms = Some(NOW - ago * HOUR_MS);
    Held { tier: "low".into(), gpus, started_ms, expected_ms: Some(hours * HOUR), is_borrowed: false }
}

fn of(days: &[Day], holds: &[Held]) -> TeamUse {
    Account { days: days.to_vec(), holds: holds.to_vec() }.team_use("ads", &policy(), NOW)
}

#[test]
fn a_day_is_what_closed_attempts_and_running_ones_used_since_midnight() {
    // Started at eight yesterday evening: ten hours of its fourteen are today's.
    let found = of(&[day(0, 3, 0), day(1, 7, 0)], &[held(2, 14, 20)]);
    assert_eq!((found.day.used_gpu_ms, found.week.used_gpu_ms), (23 * HOUR, 38 * HOUR));
    // It runs for six more hours.
    assert_eq!((found.day.promised_gpu_ms, found.week.promised_gpu_ms), (12 * HOUR, 12 * HOUR));
}

#[test]
fn promises_of_a_day_end_at_midnight_and_those_of_the_overdue_are_over() {
    let found = of(&[], &[held(1, 0, 100), held(1, 5, 5), Held { started_ms: None, ..held(4, 0, 2) }]);
    assert_eq!((found.day.promised_gpu_ms, found.week.promised_gpu_ms), ((14 + 8) * HOUR, (100 + 8) * HOUR));
    // Who is on his way has used nothing.
    assert_eq!(found.day.used_gpu_ms, 5 * HOUR);
    let unknown = of(&[], &[Held { expected_ms: None, started_ms: None, ..held(1, 0, 0) }]);
    assert_eq!(unknown.day.promised_gpu_ms, policy().estimates().unknown_ms);
}

#[test]
fn a_week_is_seven_days_with_today() {
    let found = of(&[day(6, 5, 0), day(7, 11, 0)], &[]);
    assert_eq!(found.week.used_gpu_ms, 5 * HOUR);
}

/// C25, C26
#[test]
fn a_team_has_its_own_quota_or_that_of_every_team() {
    let account = Account::default();
    let limits = |team: &str| {
        let found = account.team_use(team, &policy(), NOW);
        (found.day.limit_gpu_ms, found.week.limit_gpu_ms, found.gpus_max)
    };
    let gpus = BTreeMap::from([("high".into(), 16), ("low".into(), 32)]);
    assert_eq!(limits("ads"), (Some(50 * HOUR), Some(200 * HOUR), gpus.clone()));
    assert_eq!(limits("search"), (Some(100 * HOUR), Some(200 * HOUR), gpus));
}

#[test]
fn what_is_over_passes_at_the_first_midnight_that_leaves_enough_behind() {
    let passes = |days: &[Day]| {
        let found = of(days, &[]);
        (found.day.passes_ms, found.week.passes_ms)
    };
    let at = |days: i64| Some(midnight(NOW) + days * DAY_MS);
    assert_eq!(passes(&[day(0, 49, 0)]), (None, None));
    assert_eq!(passes(&[day(0, 50, 0)]), (at(1), None));
    // Of 210 GPU-hours the 20 of six days ago leave the window tomorrow, and that is enough.
    assert_eq!(passes(&[day(6, 20, 0), day(1, 190, 0)]), (None, at(1)));
    assert_eq!(passes(&[day(6, 5, 0), day(5, 5, 0), day(3, 200, 0)]), (None, at(4)));
}

/// C30: what is wasted cuts the day and the week alike.
#[test]
fn a_team_that_wastes_has_a_smaller_quota() {
    let (x, y) = (of(&[day(1, 36, 13)], &[]), of(&[day(1, 38, 0)], &[]));
    assert_eq!((x.receipt.waste_permille, x.receipt.quota_permille), (265, 885));
    assert_eq!((x.day.limit_gpu_ms, x.week.limit_gpu_ms), (Some(44 * HOUR + HOUR / 4), Some(177 * HOUR)));
    assert_eq!((y.day.limit_gpu_ms, y.receipt.restarts, x.receipt.restarts), (Some(50 * HOUR), 0, 1));
}

#[test]
fn the_share_of_a_team_forgets_and_goes_by_its_weight() {
    let account = Account { days: vec![day(0, 8, 0), day(7, 8, 0)], holds: vec![held(1, 4, 9)] };
    // The day that ended a week ago counts half; today's and what runs count whole.
    let ads = account.team_use("ads", &policy(), NOW + 14 * HOUR_MS);
    assert_eq!(ads.share_gpu_ms, (8 + 4 + 18) * HOUR);
    assert_eq!(account.team_use("search", &policy(), NOW + 14 * HOUR_MS).share_gpu_ms, 15 * HOUR);
}

#[test]
fn what_is_held_is_counted_by_tier() {
    let found = of(&[], &[held(2, 0, 1), held(3, 0, 1), Held { tier: "high".into(), ..held(8, 0, 1) }]);
    assert_eq!(found.gpus, BTreeMap::from([("high".into(), 8), ("low".into(), 5)]));
}

proptest! {
    /// Any order of days and holds gives one use; a window holds no more than there was, and a day no more than the week.
    #[test]
    fn the_use_of_a_team_equals_its_replay(
        days in vec((0_i64..12, 0_u64..100, 0_u64..50), 0..12), holds in vec((0_u32..9, 0_i64..200, 0_u64..300), 0..9),
        turn in 0_usize..9,
    ) {
        let days: Vec<Day> = days.into_iter().map(|(ago, useful, crash)| day(ago, useful, crash)).collect();
        let holds: Vec<Held> = holds.into_iter().map(|(gpus, ago, hours)| held(gpus, ago, hours)).collect();
        let found = of(&days, &holds);
        let (mut turned, mut others) = (days.clone(), holds.clone());
        turned.rotate_left(turn % days.len().max(1));
        others.rotate_left(turn % holds.len().max(1));
        prop_assert_eq!(&found, &of(&turned, &others));
        let ran: u64 = holds.iter().map(|held| held.used(i64::MIN / 2, NOW)).sum();
        prop_assert!(found.day.used_gpu_ms <= found.week.used_gpu_ms);
        prop_assert!(found.week.used_gpu_ms <= days.iter().map(|day| day.gpu_ms).sum::<u64>() + ran);
        prop_assert!(found.week.promised_gpu_ms >= found.day.promised_gpu_ms);
    }

    /// What a run uses is conserved however midnights cut it: closed by days or running, a window counts the same.
    #[test]
    fn a_run_counts_the_same_while_it_runs_and_once_it_is_closed(gpus in 1_u32..64, ago in 1_i64..160) {
        let running = of(&[], &[held(gpus, ago, 1_000)]);
        let start = NOW - ago * HOUR_MS;
        let mut days = Vec::new();
        let mut from = start;
        while from < NOW {
            let to = (midnight(from) + DAY_MS).min(NOW);
            let gpu_ms = (to - from).unsigned_abs() * u64::from(gpus);
            days.push(Day { starts_ms: midnight(from), gpu_ms, ..Day::default() });
            from = to;
        }
        let closed = of(&days, &[]);
        prop_assert_eq!(running.day.used_gpu_ms, closed.day.used_gpu_ms);
        prop_assert_eq!(running.week.used_gpu_ms, closed.week.used_gpu_ms);
    }
}

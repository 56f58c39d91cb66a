//! The waste ledger: what became of a team's GPU-time, and what that means for its quota.
//!
//! A team loses time by crashes and restarts, and by GPUs that it holds idle; that is its own. What evictions lose, and how
//! long its jobs wait, is shown apart and never counts against it. Above a share of waste its quota shrinks by what is
//! above it, never below a floor; what is old counts less and less, and every clean run dilutes the rest.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::rules::WasteRules;

/// What became of GPU-time, in GPU-milliseconds. `queue` is the time that was waited, times the GPUs that were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuTime {
    /// Work that was kept.
    pub useful: u64,
    /// Work that crashes lost, and restarts after them.
    pub crash: u64,
    /// Work that evictions and lost hosts lost, and restarts after them.
    pub eviction: u64,
    /// GPUs held and not used.
    pub idle: u64,
    /// GPUs waited for.
    pub queue: u64,
}

/// What became of the time of attempts that ended at one time, or on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When they ended, milliseconds since 1970.
    pub ended_ms: i64,
    /// What became of their time.
    pub time: GpuTime,
    /// How many of them went on after a crash.
    pub restarts: u32,
}

/// What a team is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// What became of its time, the old counted less.
    pub time: GpuTime,
    /// Attempts that went on after a crash, each counted whole.
    pub restarts: u32,
    /// Its own waste as a share of what it held, in tenths of a percent.
    pub waste_permille: u32,
    /// What is left of its quota, in tenths of a percent.
    pub quota_permille: u32,
}

/// A quota isn't cut for waste before so much of a team's time has ended, in GPU-milliseconds: an hour of one GPU.
const JUDGED_FROM_GPU_MS: u128 = 3_600_000;

/// The receipt of a team at a time. The order of the entries means nothing: an account equals its replay.
#[must_use]
pub fn receipt(entries: &[Entry], rules: &WasteRules, now_ms: i64) -> Receipt {
    let mut receipt = Receipt::default();
    for entry in entries {
        receipt.time = receipt.time.plus(entry.time.aged(now_ms.saturating_sub(entry.ended_ms), rules.half_life_ms));
        receipt.restarts = receipt.restarts.saturating_add(entry.restarts);
    }
    receipt.waste_permille = receipt.time.waste_permille();
    // A first crash of a minute is all that some teams have on record, and says nothing of them.
    let is_known = receipt.time.judged() >= JUDGED_FROM_GPU_MS;
    receipt.quota_permille = if is_known { quota_permille(receipt.waste_permille, rules) } else { 1_000 };
    receipt
}

/// What is left of a quota: all of it up to the share that is let pass, then as much less as the share is above it.
fn quota_permille(waste_permille: u32, rules: &WasteRules) -> u32 {
    let above = waste_permille.saturating_sub(rules.above_percent.saturating_mul(10));
    let floor = rules.floor_percent.saturating_mul(10).min(1_000);
    1_000_u32.saturating_sub(above).max(floor)
}

impl Receipt {
    /// What is left of a quota, in its own unit, rounded down.
    #[must_use]
    pub fn effective(&self, quota: u64) -> u64 {
        let left = u128::from(quota) * u128::from(self.quota_permille) / 1_000;
        u64::try_from(left).unwrap_or(quota)
    }
}

impl GpuTime {
    /// A team's own waste over what its jobs held, in tenths of a percent, rounded down. Neither waiting nor what others
    /// took from it is in either number.
    #[must_use]
    pub fn waste_permille(&self) -> u32 {
        let own = u128::from(self.crash) + u128::from(self.idle);
        u32::try_from((own * 1_000).checked_div(self.judged()).unwrap_or(0)).unwrap_or(1_000)
    }

    /// What a team is judged by: what its jobs held, without what others took from it.
    fn judged(&self) -> u128 {
        u128::from(self.crash) + u128::from(self.idle) + u128::from(self.useful)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            useful: self.useful.saturating_add(other.useful),
            crash: self.crash.saturating_add(other.crash),
            eviction: self.eviction.saturating_add(other.eviction),
            idle: self.idle.saturating_add(other.idle),
            queue: self.queue.saturating_add(other.queue),
        }
    }

    /// The same as it counts after so long.
    fn aged(self, age_ms: i64, half_life_ms: u64) -> Self {
        let part = |time: u64| aged(time, age_ms, half_life_ms);
        Self {
            useful: part(self.useful),
            crash: part(self.crash),
            eviction: part(self.eviction),
            idle: part(self.idle),
            queue: part(self.queue),
        }
    }
}

/// An amount as it counts after so long: halved for each half-life, and in between along a straight line, so that whole
/// numbers do.
pub(crate) fn aged(amount: u64, age_ms: i64, half_life_ms: u64) -> u64 {
    let age_ms = u64::try_from(age_ms).unwrap_or(0);
    let (Some(halves), Some(rest_ms)) = (age_ms.checked_div(half_life_ms), age_ms.checked_rem(half_life_ms)) else {
        return amount;
    };
    let halved = u32::try_from(halves).ok().and_then(|halves| amount.checked_shr(halves)).unwrap_or(0);
    let less = u128::from(halved) * u128::from(rest_ms) / (2 * u128::from(half_life_ms));
    halved - u64::try_from(less).unwrap_or(halved)
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, restarts, waste_permille, quota_permille } = self;
        write!(
            f,
            "{} GPU-hours useful, {} lost to crashes with {restarts} restart{}, {} held idle: {} % waste leaves {} % of the \
             quota; {} lost to evictions and {} waited for don't count",
            Hours(time.useful),
            Hours(time.crash),
            if *restarts == 1 { "" } else { "s" },
            Hours(time.idle),
            Tenths(*waste_permille),
            Tenths(*quota_permille),
            Hours(time.eviction),
            Hours(time.queue),
        )
    }
}

/// GPU-milliseconds as GPU-hours, to a tenth.
pub(crate) struct Hours(pub u64);

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0 / 360_000 + u64::from(self.0 % 360_000 >= 180_000);
        write!(f, "{}.{}", tenths / 10, tenths % 10)
    }
}

struct Tenths(u32);

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10, self.0 % 10)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    const HOUR: u64 = 3_600_000;
    const WEEK: i64 = 604_800_000;

    fn entry(ended_ms: i64, time: GpuTime, restarts: u32) -> Entry {
        Entry { ended_ms, time, restarts }
    }

    fn clean(hours: u64) -> Entry {
        entry(0, GpuTime { useful: hours * HOUR, ..GpuTime::default() }, 0)
    }

    /// Team X has used 49 GPU-hours, 13 of them for restarts after crashes; team Y 38 without one.
    fn x() -> Vec<Entry> {
        let crashed = GpuTime { crash: HOUR, ..GpuTime::default() };
        (0..13).map(|_| entry(0, crashed, 1)).chain([clean(36)]).collect()
    }

    fn told(entries: &[Entry], now_ms: i64) -> Receipt {
        receipt(entries, &WasteRules::default(), now_ms)
    }

    /// C29, C30, C25: 49 GPU-hours with 13 restarts leave less of a quota of 50 than 38 clean ones.
    #[test]
    fn a_team_that_restarts_a_lot_has_a_smaller_quota_than_one_that_runs_clean() {
        let (x, y) = (told(&x(), 0), told(&[clean(38)], 0));
        assert_eq!((x.restarts, x.waste_permille, x.quota_permille), (13, 265, 885));
        assert_eq!((y.restarts, y.waste_permille, y.quota_permille), (0, 0, 1_000));
        assert_eq!((x.effective(50 * HOUR), y.effective(50 * HOUR)), (44 * HOUR + HOUR / 4, 50 * HOUR));
        assert_eq!(
            x.to_string(),
            "36.0 GPU-hours useful, 13.0 lost to crashes with 13 restarts, 0.0 held idle: 26.5 % waste leaves 88.5 % of \
             the quota; 0.0 lost to evictions and 0.0 waited for don't count"
        );
    }

    #[test]
    fn nothing_is_cut_before_an_hour_of_a_gpu_has_ended() {
        let crashed = |crash| told(&[entry(0, GpuTime { crash, ..GpuTime::default() }, 1)], 0);
        let (little, much) = (crashed(HOUR - 1), crashed(HOUR));
        assert_eq!((little.waste_permille, little.quota_permille), (1_000, 1_000));
        assert_eq!((much.waste_permille, much.quota_permille), (1_000, 500));
    }

    /// E11
    #[test]
    fn evictions_and_waiting_never_count_against_a_team() {
        let others = GpuTime { eviction: 500 * HOUR, queue: 9_000 * HOUR, ..GpuTime::default() };
        let y = told(&[clean(38), entry(0, others, 0)], 0);
        assert_eq!((y.waste_permille, y.quota_permille, y.time.eviction), (0, 1_000, 500 * HOUR));
    }

    #[test]
    fn nothing_is_cut_up_to_the_share_that_passes_and_never_more_than_to_the_floor() {
        let rules = WasteRules::default();
        for (waste, left) in [(0, 1_000), (150, 1_000), (151, 999), (400, 750), (650, 500), (1_000, 500)] {
            assert_eq!(quota_permille(waste, &rules), left, "{waste}");
        }
    }

    #[test]
    fn old_waste_counts_less_and_clean_runs_dilute_it() {
        let mut entries = x();
        let later = told(&entries, WEEK);
        assert_eq!((later.time.crash, later.time.useful), (13 * HOUR / 2, 18 * HOUR));
        let clean = GpuTime { useful: 36 * HOUR, ..GpuTime::default() };
        entries.push(entry(WEEK, clean, 0));
        assert_eq!(told(&entries, WEEK).quota_permille, 1_000);
        assert_eq!(told(&entries, i64::MAX).time, GpuTime::default());
        // An entry from the future, by a clock that went back, counts whole.
        assert_eq!(told(&x(), -5).time.crash, 13 * HOUR);
    }

    proptest! {
        /// The account of any order of the entries is the same, and a quota stays between floor and whole.
        #[test]
        fn an_account_equals_its_replay(
            times in vec((0_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 40, 0_i64..4 * WEEK), 1..30), turn in 0_usize..30,
        ) {
            let entries: Vec<Entry> = times
                .into_iter()
                .map(|(useful, crash, idle, at)| entry(at, GpuTime { useful, crash, idle, ..GpuTime::default() }, 0))
                .collect();
            let mut turned = entries.clone();
            let middle = turn % turned.len();
            turned.rotate_left(middle);
            let found = told(&entries, 4 * WEEK);
            prop_assert_eq!(&found, &told(&turned, 4 * WEEK));
            prop_assert!((500..=1_000).contains(&found.quota_permille));
            // What is accounted is never more than what was there.
            prop_assert!(found.time.useful <= entries.iter().map(|entry| entry.time.useful).sum());
        }
    }
}

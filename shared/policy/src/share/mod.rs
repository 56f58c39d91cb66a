//! What a team uses: what of its account counts against which of its quotas at a time, and how it stands against others.
//!
//! An account holds the days of closed attempts, and what its jobs hold now. The use of a window is what closed attempts
//! used in it, and what running ones have used in it since they started; an attempt that goes over midnight counts in
//! both days. What running ones are expected to use yet is promised: it keeps others from starting on what is as good as
//! spent.

pub mod waste;

use std::collections::BTreeMap;
use std::fmt;

use osprey_model::id::TierName;
use serde::{Deserialize, Serialize};

use crate::policy::Policy;
use waste::{Entry, GpuTime, Receipt};

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;
/// Days of a week's window, today included.
pub const WEEK_DAYS: i64 = 7;

/// What is known of a team's use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Days in which closed attempts used something, in any order.
    pub days: Vec<Day>,
    /// What its jobs hold.
    pub holds: Vec<Held>,
}

/// What closed attempts used on one day, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Day {
    /// Its midnight, milliseconds since 1970.
    pub starts_ms: i64,
    /// All that was held, in GPU-milliseconds.
    pub gpu_ms: u64,
    /// What became of it.
    pub time: GpuTime,
    /// Attempts that went on after a crash.
    pub restarts: u32,
}

/// What one job holds, from its claim to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its tier.
    pub tier: TierName,
    /// GPUs.
    pub gpus: u32,
    /// When it started to run, milliseconds since 1970; `None` while it is on its way.
    pub started_ms: Option<i64>,
    /// How long it is expected to run, in milliseconds; `None` when nobody knows.
    pub expected_ms: Option<u64>,
    /// Whether it goes on beyond its team's quota while nobody else wants the GPUs.
    pub is_borrowed: bool,
}

/// What a team uses, and what it may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeamUse {
    /// GPUs that its jobs hold, by tier.
    pub gpus: BTreeMap<TierName, u32>,
    /// Most GPUs that it may hold at once, by tier; a tier that isn't there has no limit.
    pub gpus_max: BTreeMap<TierName, u32>,
    /// GPUs that go on beyond its quota while nobody else wants them.
    pub borrowed_gpus: u32,
    /// GPU-time from midnight to midnight UTC.
    pub day: Budget,
    /// GPU-time of seven days, today included.
    pub week: Budget,
    /// All GPU-time that it has used, the old counted less, over its weight, in milliseconds: the team with the least comes
    /// first.
    pub share_gpu_ms: u64,
    /// Its weight; 0 counts as 1.
    pub weight: u32,
    /// What became of its time, and what that leaves of its quota. The limits are what is left already.
    pub receipt: Receipt,
}

/// A budget of GPU-time, in GPU-milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// What was used of it.
    pub used_gpu_ms: u64,
    /// What those that run are expected to use yet.
    pub promised_gpu_ms: u64,
    /// What it is; `None` for one without an end.
    pub limit_gpu_ms: Option<u64>,
    /// When what was used is within it again at the earliest, milliseconds since 1970; `None` when it is, or when nobody
    /// knows.
    pub passes_ms: Option<i64>,
}

impl Budget {
    /// What is used up of it with so much more, and what it is, when that is all of it.
    #[must_use]
    pub fn over(&self, more_gpu_ms: u64) -> Option<(u64, u64)> {
        let used = self.used_gpu_ms.saturating_add(self.promised_gpu_ms).saturating_add(more_gpu_ms);
        self.limit_gpu_ms.filter(|limit| used >= *limit).map(|limit| (used, limit))
    }
}

/// A limit of a quota that is reached. Amounts are GPUs, or GPU-milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Which.
    pub limit: Limit,
    /// What is used of it, or promised.
    pub used: u64,
    /// The limit.
    pub most: u64,
    /// When it is no more, milliseconds since 1970; `None` when that can't be foreseen.
    pub passes_ms: Option<i64>,
}

impl TeamUse {
    /// The limit of GPU-hours that the team has reached with so much more of the day and of the week, in GPU-milliseconds.
    #[must_use]
    pub fn over_hours(&self, more: (u64, u64)) -> Option<Reached> {
        let windows = [(Limit::GpuHoursDay, &self.day, more.0), (Limit::GpuHoursWeek, &self.week, more.1)];
        windows.into_iter().find_map(|(limit, budget, more)| {
            let (used, most) = budget.over(more)?;
            Some(Reached { limit, used, most, passes_ms: budget.passes_ms })
        })
    }
}

/// A limit of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// GPUs of a team in a tier, at once.
    TeamGpus,
    /// GPUs of a user among those that a part of the pool is reserved for, at once.
    UserGpus,
    /// GPU-milliseconds of a team from midnight to midnight UTC.
    GpuHoursDay,
    /// GPU-milliseconds of a team in seven days, today included.
    GpuHoursWeek,
}

impl Limit {
    /// Every one of them.
    pub const ALL: [Self; 4] = [Self::TeamGpus, Self::UserGpus, Self::GpuHoursDay, Self::GpuHoursWeek];

    /// Whether it is a limit of GPU-time, in GPU-milliseconds; else it is one of GPUs.
    #[must_use]
    pub const fn is_of_time(self) -> bool {
        matches!(self, Self::GpuHoursDay | Self::GpuHoursWeek)
    }
}

/// An amount of a limit, in its own unit, as people read it.
pub struct Amount(pub Limit, pub u64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(limit, amount) = self;
        if limit.is_of_time() { waste::Hours(*amount).fmt(f) } else { amount.fmt(f) }
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, most) = (Amount(self.limit, self.used), Amount(self.limit, self.most));
        match self.limit {
            Limit::TeamGpus => write!(f, "its team holds {used} of the {most} GPUs that it may at once in its tier"),
            Limit::UserGpus => write!(f, "its user holds {used} of the {most} GPUs that one may of what is reserved"),
            Limit::GpuHoursDay => write!(f, "its team has used or promised {used} of its {most} GPU-hours of the day"),
            Limit::GpuHoursWeek => {
                write!(f, "its team has used or promised {used} of its {most} GPU-hours of seven days")
            }
        }
    }
}

/// The midnight that began the day of a time, UTC.
#[must_use]
pub fn midnight(at_ms: i64) -> i64 {
    at_ms.div_euclid(DAY_MS).saturating_mul(DAY_MS)
}

impl Held {
    /// GPU-milliseconds that it has used since a time.
    fn used(&self, from_ms: i64, now_ms: i64) -> u64 {
        let ran = self.started_ms.map_or(0, |started| now_ms.saturating_sub(started.max(from_ms)));
        self.over(u64::try_from(ran).unwrap_or(0))
    }

    /// GPU-milliseconds that it is expected to use yet, until a time.
    fn promised(&self, until_ms: i64, unknown_ms: u64, now_ms: i64) -> u64 {
        let ran = self.started_ms.map_or(0, |started| now_ms.saturating_sub(started).max(0));
        let left = self.expected_ms.unwrap_or(unknown_ms).saturating_sub(ran.unsigned_abs());
        self.over(left.min(u64::try_from(until_ms.saturating_sub(now_ms)).unwrap_or(0)))
    }

    fn over(&self, ms: u64) -> u64 {
        ms.saturating_mul(self.gpus.into())
    }
}

impl Account {
    /// How a team stands at a time, milliseconds since 1970.
    #[must_use]
    pub fn team_use(&self, team: &str, policy: &Policy, now_ms: i64) -> TeamUse {
        let (quota, today) = (policy.quota(), midnight(now_ms));
        let receipt = self.receipt(policy, now_ms);
        let unknown_ms = policy.estimates().unknown_ms;
        let budget = |window, limit: Option<u64>| {
            let limit = limit.map(|limit| receipt.effective(limit));
            self.budget(window, limit, unknown_ms, now_ms)
        };
        let week = (today - (WEEK_DAYS - 1) * DAY_MS, now_ms.saturating_add(WEEK_DAYS * DAY_MS));
        let mut gpus: BTreeMap<TierName, u32> = BTreeMap::new();
        for held in &self.holds {
            let sum = gpus.entry(held.tier.clone()).or_default();
            *sum = sum.saturating_add(held.gpus);
        }
        let most = policy
            .tiers()
            .iter()
            .filter_map(|tier| policy.team_gpus_max(team, &tier.name).map(|most| (tier.name.clone(), most)));
        let borrowed = self.holds.iter().filter(|held| held.is_borrowed);
        TeamUse {
            gpus,
            gpus_max: most.collect(),
            borrowed_gpus: borrowed.fold(0, |sum, held| sum.saturating_add(held.gpus)),
            day: budget((today, today + DAY_MS), quota.day_gpu_ms(team)),
            week: budget(week, quota.week_gpu_ms(team)),
            share_gpu_ms: self.decayed(policy, now_ms) / u64::from(quota.weight(team)),
            weight: quota.weight(team),
            receipt,
        }
    }

    /// The budget of a window that began at a time; promises count until another.
    fn budget(&self, (from_ms, until_ms): (i64, i64), limit: Option<u64>, unknown_ms: u64, now_ms: i64) -> Budget {
        let days = self.days.iter().filter(|day| day.starts_ms >= from_ms).map(|day| day.gpu_ms);
        let running = self.holds.iter().map(|held| held.used(from_ms, now_ms));
        let promised = self.holds.iter().map(|held| held.promised(until_ms, unknown_ms, now_ms));
        let used = sum(days.chain(running));
        Budget {
            used_gpu_ms: used,
            promised_gpu_ms: sum(promised),
            limit_gpu_ms: limit,
            passes_ms: limit.filter(|limit| used >= *limit).and_then(|limit| self.passes(from_ms, limit, now_ms)),
        }
    }

    /// The first midnight after which what was used until now is within a limit, if nothing more is; `None` for never.
    fn passes(&self, from_ms: i64, limit: u64, now_ms: i64) -> Option<i64> {
        let days = (midnight(now_ms) - from_ms) / DAY_MS + 1;
        (1..=days).map(|day| (from_ms + day * DAY_MS, midnight(now_ms) + day * DAY_MS)).find_map(|(from, at)| {
            let closed = self.days.iter().filter(|day| day.starts_ms >= from).map(|day| day.gpu_ms);
            let running = self.holds.iter().map(|held| if from > now_ms { 0 } else { held.used(from, now_ms) });
            (sum(closed.chain(running)) < limit).then_some(at)
        })
    }

    /// All that the team has used, the old counted less.
    fn decayed(&self, policy: &Policy, now_ms: i64) -> u64 {
        let half_life_ms = policy.quota().half_life_ms;
        let closed = self.days.iter().map(|day| waste::aged(day.gpu_ms, age(day, now_ms), half_life_ms));
        sum(closed.chain(self.holds.iter().map(|held| held.used(i64::MIN / 2, now_ms))))
    }

    /// What became of the team's time, and what that leaves of its quota.
    #[must_use]
    pub fn receipt(&self, policy: &Policy, now_ms: i64) -> Receipt {
        let entry = |day: &Day| Entry {
            ended_ms: now_ms.saturating_sub(age(day, now_ms)),
            time: day.time,
            restarts: day.restarts,
        };
        let entries: Vec<Entry> = self.days.iter().map(entry).collect();
        waste::receipt(&entries, &policy.quota().waste, now_ms)
    }
}

/// How long ago a day ended; today has just ended.
fn age(day: &Day, now_ms: i64) -> i64 {
    now_ms.saturating_sub(day.starts_ms.saturating_add(DAY_MS)).max(0)
}

fn sum(amounts: impl Iterator<Item = u64>) -> u64 {
    amounts.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;

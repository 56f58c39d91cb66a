//! A higher limit of a quota.

use osprey_policy::share::Limit;

use super::bound::least;
use super::trial::Trial;
use super::{Change, Question, Verified};
use crate::reason::WaitReason;
use crate::rules::Rules;
use crate::snapshot::{Charge, Queued, Snapshot};

/// A limit of a quota, in the unit that a policy says it in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// GPUs of the team in the job's tier, at once.
    TeamGpus,
    /// The share of a reserve that a user may hold, in percent.
    UserPercent,
    /// GPU-hours of the team from midnight to midnight UTC.
    GpuHoursDay,
    /// GPU-hours of the team in seven days.
    GpuHoursWeek,
}

/// Milliseconds of an hour.
const HOUR_MS: u64 = 3_600_000;
/// The most of each: more than any pool and any week has.
const GPUS_MAX: u64 = 1 << 20;
const HOURS_MAX: u64 = 1 << 28;
/// A reserve is never shared by more than it has.
const PERCENT_MAX: u64 = 100;

impl Unit {
    const ALL: [Self; 4] = [Self::TeamGpus, Self::UserPercent, Self::GpuHoursDay, Self::GpuHoursWeek];

    const fn most(self) -> u64 {
        match self {
            Self::TeamGpus => GPUS_MAX,
            Self::UserPercent => PERCENT_MAX,
            Self::GpuHoursDay | Self::GpuHoursWeek => HOURS_MAX,
        }
    }
}

/// The lowest higher limits that start, each alone.
pub(super) fn higher(trial: &mut Trial<'_>) -> Vec<Verified> {
    Unit::ALL.into_iter().filter_map(|unit| of(unit, trial)).collect()
}

fn of(unit: Unit, trial: &mut Trial<'_>) -> Option<Verified> {
    let question = trial.question;
    let from = limit(unit, &trial.job, question.snapshot, question.rules)?;
    let change = |to: u64| Change::Quota { unit, from, to };
    let guess = guess(unit, question);
    let to = least(from, unit.most(), guess, |to| trial.starts(&change(to)).is_some())?;
    trial.verified(change(to))
}

/// The limit as it is; of hours those that are whole. `None` where there is none, or where it isn't what holds the job.
fn limit(unit: Unit, job: &Queued, snapshot: &Snapshot, rules: &Rules) -> Option<u64> {
    let team = job.charge.team.and_then(|team| snapshot.teams.get(usize::from(team)));
    match unit {
        Unit::TeamGpus => {
            let tier = rules.tiers.get(usize::from(job.tier))?;
            team?.gpus_max.get(&tier.name).map(|most| (*most).into())
        }
        Unit::UserPercent => {
            let Charge { reserve: Some(reserve), user: Some(_), .. } = job.charge else { return None };
            rules.quota.reserves.get(usize::from(reserve))?.user_percent.map(Into::into)
        }
        Unit::GpuHoursDay => team?.day.limit_gpu_ms.map(|limit| limit / HOUR_MS),
        Unit::GpuHoursWeek => team?.week.limit_gpu_ms.map(|limit| limit / HOUR_MS),
    }
}

/// The limit that leaves the job what it asks for, where the reason says how much that is.
fn guess(unit: Unit, question: &Question<'_>) -> Option<u64> {
    let WaitReason::OverQuota { limit, used, asked, .. } = question.reason else { return None };
    match (unit, limit) {
        (Unit::TeamGpus, Limit::TeamGpus) => Some(used.saturating_add(asked)),
        // What is used has to be below the limit; the job itself doesn't count.
        (Unit::GpuHoursDay, Limit::GpuHoursDay) | (Unit::GpuHoursWeek, Limit::GpuHoursWeek) => Some(used / HOUR_MS + 1),
        _ => None,
    }
}

/// Sets a limit.
pub(super) fn raise(unit: Unit, to: u64, question: &Question<'_>, snapshot: &mut Snapshot, rules: &mut Rules) {
    let Some(job) = snapshot.queued.iter().find(|queued| queued.job == question.job).copied() else { return };
    let small = |to: u64| u32::try_from(to).unwrap_or(u32::MAX);
    if let (Unit::UserPercent, Some(reserve)) = (unit, job.charge.reserve) {
        if let Some(reserve) = rules.quota.reserves.get_mut(usize::from(reserve)) {
            reserve.user_percent = Some(small(to));
        }
        return;
    }
    let Some(team) = job.charge.team.and_then(|team| snapshot.teams.get_mut(usize::from(team))) else { return };
    let hours = Some(to.saturating_mul(HOUR_MS));
    match unit {
        Unit::TeamGpus => {
            if let Some(tier) = rules.tiers.get(usize::from(job.tier)) {
                team.gpus_max.insert(tier.name.clone(), small(to));
            }
        }
        Unit::UserPercent => {}
        Unit::GpuHoursDay => team.day.limit_gpu_ms = hours,
        Unit::GpuHoursWeek => team.week.limit_gpu_ms = hours,
    }
}

//! Quotas: whether a team, or a user, may have what a job asks for, and what every start of a plan takes of it.
//!
//! 1. GPUs of a team in a tier, at once: never more than its most.
//! 2. GPUs of a user among the jobs that a part of the pool is reserved for: never more than his share.
//! 3. GPU-hours of a day and of a week: a job starts as long as what its team has used, what is promised to its running
//!    jobs, and what the plan's starts are expected to use are below the limit. The job itself isn't counted, so that no
//!    job is too long for a quota. The tier of preemptible jobs has no such limit.
//! 4. What is reserved of the pool for some jobs stays free for them.
//!
//! Whoever is over his GPU-hours waits, or borrows where the policy lets him: after everybody who is within his own, and
//! until one of these wants the GPUs back.

use std::collections::BTreeMap;

pub use osprey_policy::share::Limit;
use osprey_policy::share::{DAY_MS, Reached, TeamUse, WEEK_DAYS, midnight};

use crate::reason::WaitReason;
use crate::rules::{Over, Rules};
use crate::snapshot::{Charge, Queued, Running, Snapshot};

/// Whether a job that waits may have a running one evicted because that one is borrowed: it goes on beyond its team's
/// quota, and the waiting job is within its own. No tier needs to allow it, and the waiting job needn't be the more urgent
/// one: whoever borrows has what others leave. What is preemptible takes nothing back, since it yields to everybody.
#[must_use]
pub fn may_take_back(waiting: &Queued, running: &Running, snapshot: &Snapshot, rules: &Rules) -> bool {
    let is_other = waiting.charge.team.is_none() || waiting.charge.team != running.charge.team;
    let is_within = team_of(waiting.charge, snapshot).is_none_or(|team| team.over_hours((0, 0)).is_none());
    is_other && is_within && !is_free(waiting.tier, rules) && is_loan(running, snapshot)
}

/// Whether a run is borrowed, and its team still over its GPU-hours: once it is within them again, what it has is its own.
pub(crate) fn is_loan(running: &Running, snapshot: &Snapshot) -> bool {
    let team = team_of(running.charge, snapshot);
    running.is_borrowed && team.is_none_or(|team| team.over_hours((0, 0)).is_some())
}

fn team_of(charge: Charge, snapshot: &Snapshot) -> Option<&TeamUse> {
    snapshot.teams.get(usize::from(charge.team?))
}

/// Whether no quota of GPU-hours holds the jobs of a tier: that of preemptible jobs, which yield to everybody.
fn is_free(tier: u16, rules: &Rules) -> bool {
    rules.tiers.get(usize::from(tier)).is_some_and(|tier| tier.at_least.is_none())
}

/// What the starts of a plan have taken of quotas and reserves.
#[derive(Clone, Debug)]
pub(crate) struct Quotas<'s> {
    snapshot: &'s Snapshot,
    rules: &'s Rules,
    now_ms: i64,
    pool_gpus: u32,
    /// GPUs of a team in a tier, of this plan's starts.
    gpus: BTreeMap<(u16, u16), u32>,
    /// GPU-milliseconds that this plan's starts are expected to use, of the day and of the week.
    time: BTreeMap<u16, (u64, u64)>,
    /// GPUs that the jobs of a reserve hold.
    reserved: BTreeMap<u16, u32>,
    /// GPUs that a user's jobs of a reserve hold.
    users: BTreeMap<(u16, u32), u32>,
}

impl<'s> Quotas<'s> {
    pub fn new(snapshot: &'s Snapshot, rules: &'s Rules, pool_gpus: u32, now_ms: i64) -> Self {
        let (gpus, time, reserved, users) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut quotas = Self { snapshot, rules, now_ms, pool_gpus, gpus, time, reserved, users };
        if !rules.quota.reserves.is_empty() {
            for running in &snapshot.running {
                let gpus = running.shape.all_gpus().saturating_mul(running.children.max(1));
                quotas.hold(running.charge, gpus);
            }
        }
        quotas
    }

    /// Counts GPUs for a reserve and a user.
    fn hold(&mut self, charge: Charge, gpus: u32) {
        let Some(reserve) = charge.reserve else { return };
        let held = self.reserved.entry(reserve).or_default();
        *held = held.saturating_add(gpus);
        if let Some(user) = charge.user {
            let held = self.users.entry((reserve, user)).or_default();
            *held = held.saturating_add(gpus);
        }
    }

    /// Takes in that a run goes.
    pub fn gone(&mut self, running: &Running) {
        let Charge { reserve: Some(reserve), user, .. } = running.charge else { return };
        let gpus = running.shape.all_gpus().saturating_mul(running.children.max(1));
        if let Some(held) = self.reserved.get_mut(&reserve) {
            *held = held.saturating_sub(gpus);
        }
        if let Some(held) = user.and_then(|user| self.users.get_mut(&(reserve, user))) {
            *held = held.saturating_sub(gpus);
        }
    }

    /// Takes a start in.
    pub fn charge(&mut self, job: &Queued, gpus: u32) {
        self.hold(job.charge, gpus);
        let Some(team) = job.charge.team else { return };
        let held = self.gpus.entry((team, job.tier)).or_default();
        *held = held.saturating_add(gpus);
        let (day, week) = self.asked(job, gpus);
        let time = self.time.entry(team).or_default();
        *time = (time.0.saturating_add(day), time.1.saturating_add(week));
    }

    /// GPU-milliseconds that a job is expected to use of the day and of the week if it starts now.
    fn asked(&self, job: &Queued, gpus: u32) -> (u64, u64) {
        let run_ms = job.expected_ms.unwrap_or(self.rules.unknown_ms);
        let until_midnight = (midnight(self.now_ms) + DAY_MS).saturating_sub(self.now_ms).unsigned_abs();
        let of = |most_ms: u64| run_ms.min(most_ms).saturating_mul(gpus.into());
        (of(until_midnight), of(WEEK_DAYS.unsigned_abs() * DAY_MS.unsigned_abs()))
    }

    /// Whether a job may start as far as quotas go, and whether it would borrow.
    ///
    /// # Errors
    /// Why it may not.
    pub fn allows(&self, job: &Queued, gpus: u32) -> Result<bool, WaitReason> {
        self.within_gpus(job, gpus)?;
        self.within_user(job, gpus)?;
        match self.over_time(job, gpus) {
            None => Ok(false),
            Some(_) if self.rules.quota.borrowing => Ok(true),
            Some(reason) => Err(reason),
        }
    }

    fn within_gpus(&self, job: &Queued, gpus: u32) -> Result<(), WaitReason> {
        let Some((number, team)) = self.team(job) else { return Ok(()) };
        let Some(tier) = self.rules.tiers.get(usize::from(job.tier)) else { return Ok(()) };
        let Some(most) = team.gpus_max.get(&tier.name).copied() else { return Ok(()) };
        let held = team.gpus.get(&tier.name).copied().unwrap_or(0);
        let held = held.saturating_add(self.gpus.get(&(number, job.tier)).copied().unwrap_or(0));
        if gpus == 0 || held.saturating_add(gpus) <= most {
            return Ok(());
        }
        let (used, asked, most) = (held.into(), gpus.into(), most.into());
        Err(WaitReason::OverQuota { limit: Limit::TeamGpus, used, asked, most, passes_ms: None })
    }

    fn within_user(&self, job: &Queued, gpus: u32) -> Result<(), WaitReason> {
        let Charge { reserve: Some(reserve), user: Some(user), .. } = job.charge else { return Ok(()) };
        let rules = self.rules.quota.reserves.get(usize::from(reserve));
        let Some(most) = rules.and_then(|rules| rules.user_gpus(self.pool_gpus)) else { return Ok(()) };
        let held = self.users.get(&(reserve, user)).copied().unwrap_or(0);
        if gpus == 0 || held.saturating_add(gpus) <= most {
            return Ok(());
        }
        let (used, asked, most) = (held.into(), gpus.into(), most.into());
        Err(WaitReason::OverQuota { limit: Limit::UserGpus, used, asked, most, passes_ms: None })
    }

    fn over_time(&self, job: &Queued, gpus: u32) -> Option<WaitReason> {
        let (number, team) = self.team(job)?;
        if gpus == 0 || is_free(job.tier, self.rules) {
            return None;
        }
        let Reached { limit, used, most, passes_ms } =
            team.over_hours(self.time.get(&number).copied().unwrap_or_default())?;
        let (day, week) = self.asked(job, gpus);
        let asked = if limit == Limit::GpuHoursDay { day } else { week };
        Some(WaitReason::OverQuota { limit, used, asked, most, passes_ms })
    }

    fn team(&self, job: &Queued) -> Option<(u16, &'s TeamUse)> {
        let number = job.charge.team?;
        Some((number, self.snapshot.teams.get(usize::from(number))?))
    }

    /// Whether a start leaves free what is reserved for others.
    ///
    /// # Errors
    /// Why it may not start.
    pub fn leaves(&self, job: &Queued, gpus: u32, free: u32) -> Result<(), WaitReason> {
        let (kept, whole) = self.kept_from(job);
        if gpus == 0 || gpus.saturating_add(kept) <= free {
            return Ok(());
        }
        Err(WaitReason::Reserved { gpus, free, kept, open: self.pool_gpus.saturating_sub(whole) })
    }

    /// GPUs that must stay free for others beside a job, since they are reserved for these and not held by them; and all
    /// that is reserved for others.
    pub fn kept_from(&self, job: &Queued) -> (u32, u32) {
        let others = (0_u16..).zip(&self.rules.quota.reserves).filter(|(place, _)| job.charge.reserve != Some(*place));
        others.fold((0_u32, 0_u32), |(kept, whole), (place, reserve)| {
            let gpus = reserve.gpus(self.pool_gpus);
            let held = self.reserved.get(&place).copied().unwrap_or(0);
            (kept.saturating_add(gpus.saturating_sub(held)), whole.saturating_add(gpus))
        })
    }

    /// Whether a job that waits for this reason goes to the tier of preemptible jobs.
    pub fn demotes(&self, reason: WaitReason) -> bool {
        let is_of_time = matches!(reason, WaitReason::OverQuota { limit, .. } if limit.is_of_time());
        is_of_time && self.rules.quota.over == Over::Demote
    }
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;

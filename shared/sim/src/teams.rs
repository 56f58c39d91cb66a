//! What the teams of a workload use while it runs, under a policy with quotas: their accounts, as the pipeline keeps them.
//!
//! The first submission is at midnight. Of waste nothing is counted: what crashes cost a team's quota is a matter of weeks.

use osprey_policy::Policy;
use osprey_policy::share::{Account, DAY_MS, Day, Held, TeamUse, midnight};
use osprey_scheduler::snapshot::Running;

/// Days of an account that are looked at, as in the pipeline.
const DAYS: i64 = 35;

/// The accounts of teams.
#[derive(Clone, Debug)]
pub struct Teams {
    policy: Policy,
    names: Vec<String>,
    /// What closed runs used, by team.
    days: Vec<Vec<Day>>,
}

impl Teams {
    /// Teams of a workload that have used nothing yet; `None` where the policy doesn't ask for what they use.
    #[must_use]
    pub fn of(policy: &Policy, names: &[String]) -> Option<Self> {
        let teams = Self { policy: policy.clone(), names: names.to_vec(), days: vec![Vec::new(); names.len()] };
        policy.asks_of_teams().then_some(teams)
    }

    /// Takes in a run that has ended, which began at a time, milliseconds since the first submission.
    pub(crate) fn close(&mut self, running: &Running, now_ms: i64) {
        let Some(days) = running.charge.team.and_then(|team| self.days.get_mut(usize::from(team))) else { return };
        let gpus = running.holds.iter().map(|hold| u64::from(hold.gpus)).sum::<u64>();
        let mut from_ms = running.started_ms;
        while from_ms < now_ms {
            let starts_ms = midnight(from_ms);
            let to_ms = now_ms.min(starts_ms.saturating_add(DAY_MS));
            let gpu_ms = to_ms.saturating_sub(from_ms).unsigned_abs().saturating_mul(gpus);
            match days.iter_mut().find(|day| day.starts_ms == starts_ms) {
                Some(day) => day.gpu_ms = day.gpu_ms.saturating_add(gpu_ms),
                None => days.push(Day { starts_ms, gpu_ms, ..Day::default() }),
            }
            from_ms = to_ms;
        }
        days.retain(|day| day.starts_ms > midnight(now_ms).saturating_sub(DAYS * DAY_MS));
    }

    /// How every team stands at a time, with what runs.
    pub(crate) fn uses<'r>(&self, running: impl Iterator<Item = &'r Running>, now_ms: i64) -> Vec<TeamUse> {
        let mut accounts: Vec<Account> =
            self.days.iter().map(|days| Account { days: days.clone(), holds: Vec::new() }).collect();
        for run in running {
            let account = run.charge.team.and_then(|team| accounts.get_mut(usize::from(team)));
            let (Some(account), Some(held)) = (account, self.held(run)) else { continue };
            account.holds.push(held);
        }
        let teams = self.names.iter().zip(accounts);
        teams.map(|(name, account)| account.team_use(name, &self.policy, now_ms)).collect()
    }

    fn held(&self, run: &Running) -> Option<Held> {
        let expected_ms = run.expected_end_ms.map(|end_ms| end_ms.saturating_sub(run.started_ms).max(0).unsigned_abs());
        Some(Held {
            tier: self.policy.tiers().get(usize::from(run.tier))?.name.clone(),
            gpus: run.holds.iter().map(|hold| hold.gpus).sum(),
            started_ms: Some(run.started_ms),
            expected_ms,
            is_borrowed: run.is_borrowed,
        })
    }
}

/// The next midnight, milliseconds since the first submission.
pub(crate) fn next_midnight(now_ms: u64) -> u64 {
    let day_ms = DAY_MS.unsigned_abs();
    (now_ms / day_ms + 1) * day_ms
}

#[cfg(test)]
mod tests {
    use osprey_model::id::JobId;
    use osprey_scheduler::snapshot::{Charge, Hold, Shape};

    use super::*;

    const HOUR: i64 = 3_600_000;

    fn teams() -> Teams {
        let text = "name = \"x\"\n[[tier]]\nname = \"all\"\nat_least = 0\n[quota]\ngpu_hours_day = 50\n";
        let policy = Policy::load(text).unwrap_or_else(|errors| panic!("{errors:?}")).policy;
        Teams::of(&policy, &["a".to_owned(), "b".to_owned()]).unwrap()
    }

    fn run(team: Option<u16>, started_ms: i64, ends_ms: i64) -> Running {
        Running {
            holds: vec![Hold::gpus(0, 4)],
            started_ms,
            expected_end_ms: Some(ends_ms),
            tier: 0,
            charge: Charge { team, ..Charge::default() },
            ..Running::new(JobId::from_uuid(uuid::Uuid::from_u128(1)), Shape::gpus(4))
        }
    }

    #[test]
    fn what_ran_over_midnight_counts_on_both_days_and_what_runs_is_promised() {
        let mut teams = teams();
        teams.close(&run(Some(0), 22 * HOUR, 0), 26 * HOUR);
        teams.close(&run(None, 0, 0), 26 * HOUR);
        let running = [run(Some(0), 25 * HOUR, 31 * HOUR)];
        let uses = teams.uses(running.iter(), 27 * HOUR);
        let hours = |gpu_ms: u64| gpu_ms / HOUR.unsigned_abs();
        // Two hours of the one, and two of the other, with four GPUs each; four hours are to come.
        assert_eq!((hours(uses[0].day.used_gpu_ms), hours(uses[0].day.promised_gpu_ms)), (16, 16));
        assert_eq!((hours(uses[0].week.used_gpu_ms), uses[0].gpus[&"all".into()]), (24, 4));
        assert_eq!((uses[1].day.used_gpu_ms, uses[1].day.limit_gpu_ms.map(hours)), (0, Some(50)));
    }

    #[test]
    fn a_policy_that_asks_for_nothing_has_no_accounts() {
        let policy = Policy::load(osprey_policy::DEFAULT).unwrap_or_else(|errors| panic!("{errors:?}")).policy;
        assert_eq!(Teams::of(&policy, &[]).is_some(), policy.asks_of_teams());
        assert_eq!(
            [0, 1, 86_399_999, 86_400_000].map(next_midnight),
            [86_400_000, 86_400_000, 86_400_000, 172_800_000]
        );
    }
}

//! What a team may use: GPUs at once, GPU-hours of a day and a week, and what is reserved of a pool for whom.

use std::collections::BTreeMap;

use osprey_model::id::TierName;
use osprey_model::metadata::Metadata;

/// Quotas of teams, and what becomes of a job that is over one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaRules {
    /// What a team has that isn't named.
    pub every: TeamQuota,
    /// Teams that have quotas of their own, by name in lower case. What one leaves out is as for every team.
    pub teams: BTreeMap<String, TeamQuota>,
    /// What becomes of a job of a team that has used up its GPU-hours.
    pub over: Over,
    /// Whether a team may go on beyond its GPU-hours while nobody within his own waits for the GPUs.
    pub borrowing: bool,
    /// Whether the order goes by team first, the one that has used least of late before the others, and then by job.
    pub fair_share: bool,
    /// After so long what a team has used counts half in the order of teams, in milliseconds.
    pub half_life_ms: u64,
    /// When waste costs a team a part of its GPU-hours.
    pub waste: WasteRules,
    /// Parts of each pool that are kept for some jobs, in the order of the file.
    pub reserves: Vec<Reserve>,
}

/// What one team may use. A limit that is `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeamQuota {
    /// GPU-milliseconds from midnight to midnight UTC.
    pub day_gpu_ms: Option<u64>,
    /// GPU-milliseconds of seven days, today included.
    pub week_gpu_ms: Option<u64>,
    /// Most GPUs at once, by tier; beside what the tiers say for every team.
    pub gpus: BTreeMap<TierName, u32>,
    /// Its share against others in the order of teams: with 2 it may use twice as much. `None` for 1.
    pub weight: Option<u32>,
}

/// What becomes of a job of a team that has used up its GPU-hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Over {
    /// It waits until the team is within its quota.
    #[default]
    Hold,
    /// It goes to the tier of preemptible jobs, which no quota of GPU-hours holds.
    Demote,
    /// It is refused at the door. One that was let in before waits.
    Reject,
}

impl Over {
    /// Every one of them.
    pub const ALL: [Self; 3] = [Self::Hold, Self::Demote, Self::Reject];

    /// The word in a policy.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Demote => "demote",
            Self::Reject => "reject",
        }
    }
}

/// When waste costs a team a part of its GPU-hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WasteRules {
    /// The share of waste that is let pass, in percent.
    pub above_percent: u32,
    /// What is always left of the quota, in percent.
    pub floor_percent: u32,
    /// After so long an attempt counts half, in milliseconds.
    pub half_life_ms: u64,
}

impl Default for WasteRules {
    /// 15 %, half of the quota, a week.
    fn default() -> Self {
        Self { above_percent: 15, floor_percent: 50, half_life_ms: 604_800_000 }
    }
}

/// A part of each pool that is kept for some jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    /// Its name, which jobs carry.
    pub name: String,
    /// Kinds of work it is for, in lower case; empty for any.
    pub workloads: Vec<String>,
    /// Tiers it is for; empty for any.
    pub tiers: Vec<TierName>,
    /// The share of the pool, in percent; GPUs are rounded down.
    pub share_percent: u32,
    /// So many GPUs in place of a share; for what a person has kept, which no policy says.
    pub gpus: Option<u32>,
    /// When it ends, milliseconds since 1970; `None` for one that lasts.
    pub until_ms: Option<i64>,
    /// The share of the reserve that one user may hold, in percent; GPUs are rounded up. `None` for no limit.
    pub user_percent: Option<u32>,
}

impl Reserve {
    /// Whether a job is one of those that it is kept for.
    #[must_use]
    pub fn is_for(&self, workload: Option<&str>, tier: &TierName) -> bool {
        let works = self.workloads.is_empty()
            || workload.is_some_and(|workload| self.workloads.iter().any(|known| known == workload));
        works && (self.tiers.is_empty() || self.tiers.contains(tier))
    }

    /// GPUs of a pool that are kept.
    #[must_use]
    pub fn gpus(&self, pool_gpus: u32) -> u32 {
        if let Some(gpus) = self.gpus {
            return gpus.min(pool_gpus);
        }
        let part = u64::from(pool_gpus) * u64::from(self.share_percent) / 100;
        u32::try_from(part).unwrap_or(pool_gpus).min(pool_gpus)
    }

    /// Most GPUs that one user holds with the jobs that it is for, where he is limited: never less than one.
    #[must_use]
    pub fn user_gpus(&self, pool_gpus: u32) -> Option<u32> {
        let percent = self.user_percent?;
        let part = (u64::from(self.gpus(pool_gpus)) * u64::from(percent)).div_ceil(100);
        Some(u32::try_from(part).unwrap_or(pool_gpus).max(1))
    }
}

impl Default for QuotaRules {
    /// No quota, and an order that knows no teams.
    fn default() -> Self {
        Self {
            every: TeamQuota::default(),
            teams: BTreeMap::new(),
            over: Over::default(),
            borrowing: false,
            fair_share: false,
            half_life_ms: 604_800_000,
            waste: WasteRules::default(),
            reserves: Vec::new(),
        }
    }
}

impl QuotaRules {
    /// GPU-milliseconds of a day that a team may use.
    #[must_use]
    pub fn day_gpu_ms(&self, team: &str) -> Option<u64> {
        self.of(team).and_then(|quota| quota.day_gpu_ms).or(self.every.day_gpu_ms)
    }

    /// GPU-milliseconds of seven days that a team may use.
    #[must_use]
    pub fn week_gpu_ms(&self, team: &str) -> Option<u64> {
        self.of(team).and_then(|quota| quota.week_gpu_ms).or(self.every.week_gpu_ms)
    }

    /// Most GPUs of a team at once in a tier, beside what the tier says.
    #[must_use]
    pub fn gpus(&self, team: &str, tier: &TierName) -> Option<u32> {
        let own = self.of(team).and_then(|quota| quota.gpus.get(tier));
        own.or_else(|| self.every.gpus.get(tier)).copied()
    }

    /// A team's share against others.
    #[must_use]
    pub fn weight(&self, team: &str) -> u32 {
        self.of(team).and_then(|quota| quota.weight).unwrap_or(1).max(1)
    }

    /// Whether some team has a limit, or the order goes by teams: what a team uses then has to be known.
    #[must_use]
    pub fn asks_of_teams(&self) -> bool {
        let limits =
            |quota: &TeamQuota| quota.day_gpu_ms.is_some() || quota.week_gpu_ms.is_some() || !quota.gpus.is_empty();
        self.fair_share || limits(&self.every) || self.teams.values().any(limits)
    }

    /// Whether some team has a limit of GPU-hours.
    #[must_use]
    pub fn limits_hours(&self) -> bool {
        let limits = |quota: &TeamQuota| quota.day_gpu_ms.is_some() || quota.week_gpu_ms.is_some();
        limits(&self.every) || self.teams.values().any(limits)
    }

    /// The first reserve that a job may take from.
    #[must_use]
    pub fn reserve_of(&self, metadata: &Metadata, tier: &TierName) -> Option<&Reserve> {
        self.reserves.iter().find(|reserve| reserve.is_for(metadata.workload.as_deref(), tier))
    }

    fn of(&self, team: &str) -> Option<&TeamQuota> {
        self.teams.get(team)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interactive() -> Reserve {
        Reserve {
            name: "interactive".to_owned(),
            workloads: vec!["interactive".to_owned()],
            share_percent: 20,
            user_percent: Some(50),
            ..Reserve::default()
        }
    }

    /// C6, C7
    #[test]
    fn a_reserve_is_a_share_of_the_pool_and_a_user_has_a_share_of_that() {
        let of = |pool| (interactive().gpus(pool), interactive().user_gpus(pool));
        assert_eq!(
            [0, 4, 8, 64, 256].map(of),
            [(0, Some(1)), (0, Some(1)), (1, Some(1)), (12, Some(6)), (51, Some(26))]
        );
        assert_eq!(Reserve { user_percent: None, ..interactive() }.user_gpus(64), None);
        assert_eq!(Reserve { share_percent: 100, ..interactive() }.gpus(u32::MAX), u32::MAX);
        assert_eq!([4, 64].map(|pool| Reserve { gpus: Some(8), ..interactive() }.gpus(pool)), [4, 8]);
    }

    #[test]
    fn a_reserve_is_for_its_workloads_in_its_tiers() {
        let tier = TierName::new("high");
        let both = Reserve { tiers: vec![tier.clone()], ..interactive() };
        assert!(both.is_for(Some("interactive"), &tier));
        assert!(!both.is_for(Some("interactive"), &TierName::new("low")));
        assert!(!both.is_for(Some("training"), &tier) && !both.is_for(None, &tier));
        assert!(Reserve { workloads: Vec::new(), ..both }.is_for(None, &tier));
    }

    #[test]
    fn what_a_team_leaves_out_is_as_for_every_team() {
        let every =
            TeamQuota { day_gpu_ms: Some(5), gpus: BTreeMap::from([("high".into(), 8)]), ..TeamQuota::default() };
        let own = TeamQuota { week_gpu_ms: Some(9), weight: Some(2), ..TeamQuota::default() };
        let rules = QuotaRules { every, teams: BTreeMap::from([("search".to_owned(), own)]), ..QuotaRules::default() };
        assert_eq!(
            (rules.day_gpu_ms("search"), rules.week_gpu_ms("search"), rules.weight("search")),
            (Some(5), Some(9), 2)
        );
        assert_eq!((rules.day_gpu_ms("ads"), rules.week_gpu_ms("ads"), rules.weight("ads")), (Some(5), None, 1));
        assert_eq!((rules.gpus("search", &"high".into()), rules.gpus("ads", &"low".into())), (Some(8), None));
        assert!(rules.asks_of_teams() && !QuotaRules::default().asks_of_teams());
    }
}

//! Who is open to a job, one step after the other: what others have borrowed before anybody's own.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::candidate::Candidate;
use super::receipt::Opened;
use crate::decide::Cycle;
use crate::quota::may_take_back;
use crate::rules::TierRules;
use crate::snapshot::Queued;

/// Teams whose loans are opened one by one; those of all others are opened together.
const ONE_BY_ONE: usize = 8;

/// A step of the search: who may go by then, the jobs of all steps before it among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    /// Tiers that the rules of the job's own open.
    tiers: Vec<u16>,
    /// The rule that opens them.
    opened: Opened,
    /// Teams from whom the job takes back what they have borrowed.
    borrowers: Vec<u16>,
}

impl Stage {
    /// By which rule a job may go; `None` for one that stays.
    pub fn opens(&self, candidate: &Candidate) -> Option<Opened> {
        if candidate.loan_of.is_some_and(|team| self.borrowers.contains(&team)) {
            return Some(Opened::Borrowed);
        }
        self.tiers.contains(&candidate.tier).then_some(self.opened)
    }

    /// Whether nobody goes but what is borrowed.
    pub fn is_of_loans(&self) -> bool {
        self.tiers.is_empty()
    }
}

/// The steps of a job: the loans of the team that has used most of late, then those of the next one besides, and then the
/// tiers that its own opens to it, if it may evict at all.
pub(super) fn stages(cycle: &Cycle<'_>, job: &Queued, tier: Option<&TierRules>) -> Vec<Stage> {
    let borrowers = borrowers(cycle, job);
    let loans = |count: usize| Stage {
        tiers: Vec::new(),
        opened: Opened::Borrowed,
        borrowers: borrowers.iter().take(count).copied().collect(),
    };
    let rest = (borrowers.len() > ONE_BY_ONE).then_some(borrowers.len());
    let mut stages: Vec<Stage> = (1..=borrowers.len().min(ONE_BY_ONE)).chain(rest).map(loans).collect();
    let tiers = tier.into_iter().flat_map(|tier| of_tiers(tier, cycle.rules.preemption.tier_by_tier));
    stages.extend(tiers.map(|(tiers, opened)| Stage { tiers, opened, borrowers: borrowers.clone() }));
    stages
}

/// The tiers that are opened one after the other, each time with all before them.
fn of_tiers(tier: &TierRules, tier_by_tier: bool) -> Vec<(Vec<u16>, Opened)> {
    let open = tier.may_preempt.len();
    let first = if tier_by_tier { 1 } else { open };
    let counts = (first..=open).filter(|count| *count > 0);
    let mut steps: Vec<(Vec<u16>, Opened)> =
        counts.map(|count| (tier.may_preempt.iter().copied().take(count).collect(), Opened::Always)).collect();
    if !tier.may_preempt_when_full.is_empty() {
        let all = tier.may_preempt.iter().chain(&tier.may_preempt_when_full).copied().collect();
        steps.push((all, Opened::WhenFull));
    }
    steps
}

/// Teams from whom a job may take back what they have borrowed, the one that has used most of late first (C28).
fn borrowers(cycle: &Cycle<'_>, job: &Queued) -> Vec<u16> {
    let snapshot = cycle.snapshot;
    let may = |candidate: &&Candidate| {
        let mut runs = candidate.runs.iter().filter_map(|run| snapshot.running.get(*run));
        runs.all(|running| may_take_back(job, running, snapshot, cycle.rules))
    };
    let loans = cycle.preempting.candidates.iter().flatten().filter(|candidate| candidate.loan_of.is_some());
    let teams: BTreeSet<u16> = loans.filter(may).filter_map(|candidate| candidate.loan_of).collect();
    let mut teams: Vec<u16> = teams.into_iter().collect();
    let share = |team: &u16| snapshot.teams.get(usize::from(*team)).map_or(0, |team| team.share_gpu_ms);
    teams.sort_by_key(|team| (Reverse(share(team)), *team));
    teams
}

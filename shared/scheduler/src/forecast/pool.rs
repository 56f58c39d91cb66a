//! The pool on its way: who runs until when, and who has come back into line.

use std::collections::{BTreeMap, BTreeSet};

use osprey_model::id::JobId;

use super::Pace;
use crate::plan::{Plan, Start};
use crate::room::ready_ms;
use crate::rules::{Rules, Strategy, TierRules};
use crate::snapshot::{Array, Evicted, Landing, NodeState, Queued, Running, Snapshot};

pub(super) struct Pool {
    snapshot: Snapshot,
    /// When each run of the snapshot ends, in its order.
    ends_ms: Vec<i64>,
    rules: Rules,
    pace: Pace,
}

impl Pool {
    pub fn new(snapshot: &Snapshot, rules: &Rules, now_ms: i64, pace: Pace) -> Self {
        let mut pool = Self { snapshot: snapshot.clone(), ends_ms: Vec::new(), rules: rules.clone(), pace };
        pool.ends_ms = pool.snapshot.running.iter().map(|running| pool.end_of(running, now_ms)).collect();
        pool
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The rules, without what was kept for a time that is over.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// When a run ends at the pace. One that is overdue even then goes on in proportion to what it has run.
    fn end_of(&self, running: &Running, now_ms: i64) -> i64 {
        let usual_ms = running.started_ms.saturating_add_unsigned(self.rules.unknown_ms);
        let expected_ms = running.expected_end_ms.unwrap_or(usual_ms).saturating_sub(running.started_ms).max(0);
        let run_ms = part(expected_ms, self.pace.run_percent);
        let end_ms = running.started_ms.saturating_add(run_ms);
        if end_ms > now_ms {
            return end_ms;
        }
        let ran_ms = now_ms.saturating_sub(running.started_ms).max(0);
        now_ms.saturating_add(part(ran_ms, self.pace.overdue_percent)).max(now_ms.saturating_add(1))
    }

    /// Starts and evicts as a plan says.
    pub fn act(&mut self, plan: &Plan, now_ms: i64) {
        for victim in plan.evictions.iter().flat_map(|eviction| &eviction.victims) {
            self.evict(victim.job, now_ms);
        }
        let waiting: BTreeMap<JobId, Queued> = self.snapshot.queued.iter().map(|job| (job.job, *job)).collect();
        let mut begun: BTreeMap<JobId, u32> = BTreeMap::new();
        let evictors = plan.evictions.iter().map(|eviction| &eviction.start);
        for start in plan.starts.iter().chain(evictors) {
            if let Some(job) = waiting.get(&start.job) {
                self.start(job, start, now_ms);
                *begun.entry(job.job).or_default() += 1;
            }
        }
        self.snapshot.queued.retain_mut(|job| {
            let Some(count) = begun.get(&job.job) else { return true };
            let Some(Array { waiting, singly: true }) = job.array else { return false };
            job.array = Some(Array { waiting: waiting.saturating_sub(*count), singly: true });
            waiting > *count
        });
    }

    fn start(&mut self, job: &Queued, start: &Start, now_ms: i64) {
        let mut begins_ms = now_ms;
        for hold in &start.holds {
            let node = usize::try_from(hold.node).ok().and_then(|node| self.snapshot.nodes.get_mut(node));
            let Some(node) = node else { continue };
            let at_ms = ready_ms(node, now_ms);
            if matches!(node.state, NodeState::Absent { .. }) {
                node.state = NodeState::Starting { ready_ms: at_ms };
            }
            begins_ms = begins_ms.max(at_ms);
        }
        let children = match job.array {
            Some(Array { waiting, singly: false }) => waiting.max(1),
            _ => 1,
        };
        let running = Running {
            children,
            holds: start.holds.clone(),
            // By the next look its event has come.
            has_landed: true,
            started_ms: begins_ms,
            expected_end_ms: job.expected_ms.map(|run_ms| begins_ms.saturating_add_unsigned(run_ms)),
            priority: job.priority,
            tier: job.tier,
            charge: job.charge,
            is_borrowed: start.is_borrowed,
            ..Running::new(job.job, job.shape)
        };
        self.charge(&running, true);
        self.ends_ms.push(self.end_of(&running, begins_ms));
        self.snapshot.running.push(running);
    }

    /// Puts a run back into line, with what it had still to do.
    fn evict(&mut self, job: JobId, now_ms: i64) {
        let gone = self.take(|running, _| running.job == job);
        let Some(running) = gone.first() else { return };
        self.snapshot.evicted.push(Evicted { tier: running.tier, at_ms: now_ms });
        let left_ms =
            running.expected_end_ms.map(|end_ms| u64::try_from(end_ms.saturating_sub(now_ms)).unwrap_or(0).max(1));
        self.snapshot.queued.push(Queued {
            priority: running.priority,
            tier: running.tier,
            enqueued_ms: running.started_ms,
            ran_ms: now_ms.saturating_sub(running.started_ms).max(0).unsigned_abs(),
            not_before_ms: now_ms,
            expected_ms: left_ms,
            charge: running.charge,
            ..Queued::new(job, running.shape)
        });
    }

    /// Takes runs away. Answers which.
    fn take(&mut self, goes: impl Fn(&Running, i64) -> bool) -> Vec<Running> {
        let runs = std::mem::take(&mut self.snapshot.running).into_iter().zip(std::mem::take(&mut self.ends_ms));
        let mut gone = Vec::new();
        for (running, end_ms) in runs {
            if goes(&running, end_ms) {
                self.charge(&running, false);
                gone.push(running);
            } else {
                self.snapshot.running.push(running);
                self.ends_ms.push(end_ms);
            }
        }
        gone
    }

    /// Counts a run for its team, or no more.
    fn charge(&mut self, running: &Running, is_held: bool) {
        let tier = self.rules.tiers.get(usize::from(running.tier)).map(|tier| tier.name.clone());
        let team = running.charge.team.and_then(|team| self.snapshot.teams.get_mut(usize::from(team)));
        let (Some(tier), Some(team)) = (tier, team) else { return };
        let gpus = running.shape.all_gpus().saturating_mul(running.children.max(1));
        let held = team.gpus.entry(tier).or_default();
        *held = if is_held { held.saturating_add(gpus) } else { held.saturating_sub(gpus) };
    }

    /// When something happens next: a run ends, a back-off is over, a quota is free again, what is kept for a time is,
    /// a job that may be evicted has run for its minimum.
    pub fn next_ms(&self, now_ms: i64) -> Option<i64> {
        let back = self.snapshot.queued.iter().map(|job| job.not_before_ms);
        let quotas = self.snapshot.teams.iter().flat_map(|team| [team.day.passes_ms, team.week.passes_ms]).flatten();
        let kept = self.rules.quota.reserves.iter().filter_map(|reserve| reserve.until_ms);
        let all = self.ends_ms.iter().copied().chain(back).chain(quotas).chain(kept).chain(self.minimum_runs());
        all.filter(|at_ms| *at_ms > now_ms).min()
    }

    /// When each run that somebody in line may evict has run for its tier's minimum.
    fn minimum_runs(&self) -> impl Iterator<Item = i64> {
        let tier = |place: u16| self.rules.tiers.get(usize::from(place));
        let opened: BTreeSet<u16> = match self.rules.strategy {
            Strategy::Osprey => self.snapshot.queued.iter().filter_map(|job| tier(job.tier)).flat_map(opens).collect(),
            _ => BTreeSet::new(),
        };
        self.snapshot.running.iter().filter_map(move |running| {
            let of = tier(running.tier).filter(|_| opened.contains(&running.tier))?;
            Some(running.started_ms.saturating_add_unsigned(of.minimum_run_ms))
        })
    }

    /// Lets time pass.
    pub fn pass(&mut self, now_ms: i64) {
        self.take(|_, end_ms| end_ms <= now_ms);
        if self.snapshot.landing == Landing::Anywhere {
            // What was in flight has landed by now where its plan said.
            self.snapshot.running.iter_mut().for_each(|running| running.has_landed |= !running.holds.is_empty());
        }
        // Jobs name reserves by their places, so one that is over stays, and keeps nothing.
        let is_over = |until_ms: Option<i64>| until_ms.is_some_and(|until_ms| until_ms <= now_ms);
        let reserves = self.rules.quota.reserves.iter_mut();
        reserves.filter(|kept| is_over(kept.until_ms)).for_each(|kept| kept.gpus = Some(0));
        for team in &mut self.snapshot.teams {
            for budget in [&mut team.day, &mut team.week] {
                if budget.passes_ms.is_some_and(|passes_ms| passes_ms <= now_ms) {
                    (budget.used_gpu_ms, budget.promised_gpu_ms, budget.passes_ms) = (0, 0, None);
                }
            }
        }
    }
}

/// Tiers whose jobs those of a tier may evict.
fn opens(tier: &TierRules) -> impl Iterator<Item = u16> {
    tier.may_preempt.iter().chain(&tier.may_preempt_when_full).copied()
}

fn part(ms: i64, percent: u32) -> i64 {
    (ms / 100).saturating_mul(percent.into())
}

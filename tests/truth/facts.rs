//! What a pool has, what is free of it, and what a job lacks first: counted from the snapshot, in the order in which
//! `docs/REASONS.md` says that a cycle asks.

use osprey_policy::share::{Budget, Limit};
use osprey_scheduler::WaitReason;
use osprey_scheduler::rules::{Headroom, Reserve};
use osprey_scheduler::snapshot::{Gate, Node, NodeState, Queued, Shape, UNCOUNTED};

use crate::turn::Turn;

/// GPUs and vCPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Free {
    /// GPUs.
    pub gpus: u32,
    /// vCPUs; [`UNCOUNTED`] where nobody counts them.
    pub vcpus: u32,
}

impl Free {
    fn take(self, gpus: u32, vcpus: u32) -> Self {
        let vcpus = if self.vcpus == UNCOUNTED { UNCOUNTED } else { self.vcpus.saturating_sub(vcpus) };
        Self { gpus: self.gpus.saturating_sub(gpus), vcpus }
    }

    fn holds(self, shape: Shape) -> bool {
        self.gpus >= shape.gpus && self.vcpus >= shape.vcpus
    }

    fn times(self, shape: Shape) -> u32 {
        let gpus = self.gpus.checked_div(shape.gpus).unwrap_or(u32::MAX);
        let vcpus =
            if self.vcpus == UNCOUNTED { u32::MAX } else { self.vcpus.checked_div(shape.vcpus).unwrap_or(u32::MAX) };
        gpus.min(vcpus)
    }
}

/// A pool and a job at its turn.
pub struct Facts<'t> {
    turn: &'t Turn,
    job: Queued,
    /// What each node has free.
    pub free: Vec<Free>,
    /// Parts of one node, or of several, that the job takes at once.
    count: u32,
}

impl<'t> Facts<'t> {
    /// Counts.
    pub fn of(turn: &'t Turn) -> Option<Self> {
        let job = *turn.queued()?;
        let free = (0_u32..).zip(&turn.snapshot.nodes).map(|(number, node)| free(turn, number, node)).collect();
        let mut facts = Self { turn, job, free, count: 1 };
        if let Some(array) = job.array.filter(|array| !array.singly) {
            let bare = facts.open().map(|node| full(node).take(node.foreign_gpus, node.foreign_vcpus));
            let most = bare.fold(0_u32, |sum, free| sum.saturating_add(free.times(job.shape)));
            facts.count = array.waiting.min(most).max(1);
        }
        Some(facts)
    }

    /// Children that start at once.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// GPUs that the job takes.
    pub fn gpus(&self) -> u32 {
        self.job.shape.all_gpus().saturating_mul(self.count)
    }

    fn free_gpus(&self) -> u32 {
        self.free.iter().map(|free| free.gpus).sum()
    }

    fn open(&self) -> impl Iterator<Item = &Node> {
        self.turn.snapshot.nodes.iter().filter(|node| node.state != NodeState::Closed)
    }

    fn pool_gpus(&self) -> u32 {
        self.open().map(|node| node.gpus).sum()
    }

    /// Whether the job takes whole nodes: one that has several, or is larger than any that takes jobs.
    pub fn takes_whole(&self) -> bool {
        let takes = self.turn.snapshot.nodes.iter().filter(|node| takes_jobs(node, self.turn.snapshot.gate));
        self.job.shape.nodes > 1 || self.job.shape.gpus > takes.map(|node| node.gpus).max().unwrap_or(0)
    }

    /// What the job lacks first; `None` when there is a place for it, and it is a matter of others, or of where dispatches
    /// land.
    pub fn lacks(&self) -> Option<WaitReason> {
        self.closed().or_else(|| self.never()).or_else(|| self.over()).or_else(|| self.room())
    }

    fn closed(&self) -> Option<WaitReason> {
        let snapshot = &self.turn.snapshot;
        if snapshot.gate == Gate::Paused {
            return Some(WaitReason::PoolPaused);
        }
        if snapshot.drained.contains(&self.job.tier) {
            return Some(WaitReason::TierPaused);
        }
        if snapshot.nodes.is_empty() {
            return Some(WaitReason::NoNodes);
        }
        let until_ms = self.job.not_before_ms;
        (until_ms > self.turn.now_ms).then_some(WaitReason::NotYet { until_ms })
    }

    /// What the empty pool can't do.
    fn never(&self) -> Option<WaitReason> {
        let (gpus, pool_gpus, shape) = (self.job.shape.all_gpus(), self.pool_gpus(), self.job.shape);
        if gpus > pool_gpus {
            return Some(WaitReason::LargerThanPool { gpus, pool_gpus });
        }
        let largest = self.open().map(|node| node.gpus).max().unwrap_or(0);
        let could = if shape.nodes > 1 || shape.gpus > largest {
            is_enough(self.open(), shape)
        } else {
            self.open().any(|node| full(node).holds(shape))
        };
        let Shape { nodes, gpus, vcpus } = shape;
        (!could).then_some(WaitReason::NoSuchNode { nodes: nodes.max(1), gpus, vcpus })
    }

    /// What its team and its user have already. Whoever may borrow isn't held up by GPU-hours.
    pub fn over(&self) -> Option<WaitReason> {
        let (gpus, rules) = (self.gpus(), &self.turn.rules);
        if gpus == 0 {
            return None;
        }
        let over = |limit, used: u64, asked: u64, most: u64, passes_ms| WaitReason::OverQuota {
            limit,
            used,
            asked,
            most,
            passes_ms,
        };
        let team = self.job.charge.team.and_then(|team| self.turn.snapshot.teams.get(usize::from(team)));
        let tier = rules.tiers.get(usize::from(self.job.tier));
        if let (Some(team), Some(tier)) = (team, tier)
            && let Some(most) = team.gpus_max.get(&tier.name)
        {
            let held = team.gpus.get(&tier.name).copied().unwrap_or(0);
            if held + gpus > *most {
                return Some(over(Limit::TeamGpus, held.into(), gpus.into(), (*most).into(), None));
            }
        }
        if let Some((held, most)) = self.user()
            && held + gpus > most
        {
            return Some(over(Limit::UserGpus, held.into(), gpus.into(), most.into(), None));
        }
        let is_free = tier.is_some_and(|tier| tier.at_least.is_none());
        let team = team.filter(|_| !is_free && !rules.quota.borrowing)?;
        let run_ms = self.job.expected_ms.unwrap_or(rules.unknown_ms);
        let day_ms = 86_400_000_i64;
        let midnight_ms = (day_ms - self.turn.now_ms.rem_euclid(day_ms)).unsigned_abs();
        let spent = |budget: &Budget| {
            let used = budget.used_gpu_ms + budget.promised_gpu_ms;
            budget.limit_gpu_ms.filter(|limit| used >= *limit).map(|limit| (used, limit))
        };
        if let Some((used, most)) = spent(&team.day) {
            let asked = run_ms.min(midnight_ms) * u64::from(gpus);
            return Some(over(Limit::GpuHoursDay, used, asked, most, team.day.passes_ms));
        }
        let (used, most) = spent(&team.week)?;
        let asked = run_ms.min(7 * day_ms.unsigned_abs()) * u64::from(gpus);
        Some(over(Limit::GpuHoursWeek, used, asked, most, team.week.passes_ms))
    }

    /// What the job's user holds of its reserve, and the most that he may.
    fn user(&self) -> Option<(u32, u32)> {
        let (reserve, user) = (self.job.charge.reserve?, self.job.charge.user?);
        let rules = self.turn.rules.quota.reserves.get(usize::from(reserve))?;
        let part = u64::from(self.kept_by(rules)) * u64::from(rules.user_percent?);
        let most = u32::try_from(part.div_ceil(100)).unwrap_or(u32::MAX).max(1);
        let is_own =
            |charge: &osprey_scheduler::snapshot::Charge| charge.reserve == Some(reserve) && charge.user == Some(user);
        Some((self.held(is_own), most))
    }

    fn held(&self, counts: impl Fn(&osprey_scheduler::snapshot::Charge) -> bool) -> u32 {
        let running = self.turn.snapshot.running.iter().filter(|running| counts(&running.charge));
        running.map(|running| running.shape.all_gpus() * running.children.max(1)).sum()
    }

    fn kept_by(&self, reserve: &Reserve) -> u32 {
        let pool = self.pool_gpus();
        reserve.gpus.unwrap_or(pool * reserve.share_percent / 100).min(pool)
    }

    /// What it finds free.
    fn room(&self) -> Option<WaitReason> {
        let (gpus, free) = (self.gpus(), self.free_gpus());
        let missing = |reason| match self.turn.snapshot.gate {
            Gate::NoCapacity { since_ms } => WaitReason::NoCapacity { since_ms },
            _ => reason,
        };
        if gpus > free {
            return Some(missing(WaitReason::NoRoom { gpus, free }));
        }
        if gpus > 0 {
            let (kept, all) = self.reserved();
            if gpus + kept > free {
                return Some(WaitReason::Reserved { gpus, free, kept, open: self.pool_gpus().saturating_sub(all) });
            }
            let kept = self.headroom();
            if free - gpus < kept {
                return Some(WaitReason::Headroom { gpus, free, kept });
            }
        }
        if self.fits() {
            return None;
        }
        let shape = self.job.shape;
        let with_gpus = self.free.iter().filter(|free| free.gpus >= shape.gpus).map(|free| free.vcpus).max();
        let is_single = self.job.array.is_none_or(|array| array.singly);
        let short = with_gpus.filter(|vcpus| is_single && *vcpus < shape.vcpus);
        let scattered = WaitReason::Scattered { gpus, free };
        Some(missing(short.map_or(scattered, |free| WaitReason::NoVcpus { vcpus: shape.vcpus, free })))
    }

    /// What stays free for others' reserves, and all of these.
    pub fn reserved(&self) -> (u32, u32) {
        let reserves = (0_u16..).zip(&self.turn.rules.quota.reserves);
        let others = reserves.filter(|(place, _)| self.job.charge.reserve != Some(*place));
        others.fold((0, 0), |(kept, all), (place, reserve)| {
            let gpus = self.kept_by(reserve);
            let held = self.held(|charge| charge.reserve == Some(place));
            (kept + gpus.saturating_sub(held), all + gpus)
        })
    }

    /// What stays free for urgent jobs; nothing in strict orders.
    pub fn headroom(&self) -> u32 {
        let strategy = self.turn.rules.strategy;
        let is_strict = strategy != osprey_scheduler::Strategy::Backfill;
        if is_strict || self.is_urgent() || self.goes_by_age() {
            return 0;
        }
        let pool = self.pool_gpus();
        let kept = match self.turn.rules.headroom {
            Headroom::Gpus(gpus) => gpus,
            Headroom::Percent(percent) => pool * percent / 100,
        };
        kept.min(pool.saturating_sub(self.gpus()))
    }

    fn number(&self) -> u32 {
        self.job.priority.max(self.job.lent)
    }

    /// Whether GPUs are kept for it whoever else waits.
    pub fn is_urgent(&self) -> bool {
        self.number() > self.turn.rules.dive_above
    }

    /// Whether it has waited as long as its tier counts, or so long that it goes before all that aren't urgent.
    fn goes_by_age(&self) -> bool {
        let (rules, number) = (&self.turn.rules, self.number());
        let waited_ms = self.turn.now_ms.saturating_sub(self.job.enqueued_ms).max(0).unsigned_abs();
        let waits_ms = waited_ms.saturating_sub(self.job.ran_ms);
        let is_starving = rules.starving_after_ms.is_some_and(|after| waits_ms > after);
        let lent = self.job.lent > self.job.priority;
        let own = rules.tiers.get(usize::from(self.job.tier)).filter(|_| !lent);
        let tier = own.or_else(|| rules.tiers.iter().find(|tier| tier.at_least.is_some_and(|least| number >= least)));
        let is_at_cap = tier.and_then(|tier| tier.aging).is_some_and(|aging| {
            // A thousandth of a point an hour, in milliseconds: 3.6 thousand million to a point.
            let missing = u64::from(aging.cap.saturating_sub(number)) * 3_600_000_000;
            missing > 0 && u64::from(aging.millipoints_per_hour).saturating_mul(waited_ms) >= missing
        });
        is_at_cap || is_starving && !self.is_urgent()
    }

    /// Whether there is a place for the job, whatever is kept for others.
    pub fn fits(&self) -> bool {
        let shape = self.job.shape;
        if self.job.array.is_some_and(|array| !array.singly) {
            let sum = self.free.iter().filter(|free| free.gpus >= shape.gpus);
            return sum.fold(0_u32, |sum, free| sum.saturating_add(free.times(shape))) >= self.count;
        }
        if !self.takes_whole() {
            return self.free.iter().any(|free| free.holds(shape));
        }
        let empty = self.turn.snapshot.nodes.iter().zip(&self.free).filter(|(node, free)| full(node) == **free);
        let gate = self.turn.snapshot.gate;
        let empty = empty.map(|(node, _)| node).filter(|node| is_unshared(node) && takes_jobs(node, gate));
        is_enough(empty, shape)
    }
}

/// Whether nodes are enough for a job that takes whole ones.
fn is_enough<'n>(nodes: impl Iterator<Item = &'n Node>, shape: Shape) -> bool {
    let nodes = nodes.filter(|node| node.vcpus >= shape.vcpus && (node.gpus > 0 || shape.gpus == 0));
    if shape.nodes > 1 {
        let count = nodes.filter(|node| node.gpus >= shape.gpus).count();
        return u32::try_from(count).is_ok_and(|count| count >= shape.nodes);
    }
    let gpus: Vec<u32> = nodes.map(|node| node.gpus).collect();
    !gpus.is_empty() && gpus.iter().sum::<u32>() >= shape.gpus
}

/// Whether nothing of others is on a node.
fn is_unshared(node: &Node) -> bool {
    node.foreign_gpus == 0 && node.foreign_vcpus == 0
}

fn full(node: &Node) -> Free {
    Free { gpus: node.gpus, vcpus: node.vcpus }
}

fn takes_jobs(node: &Node, gate: Gate) -> bool {
    match node.state {
        NodeState::Closed => false,
        NodeState::Absent { .. } => !matches!(gate, Gate::NoCapacity { .. }),
        NodeState::Up | NodeState::Starting { .. } => true,
    }
}

/// What a node has free: nothing while it takes no jobs.
fn free(turn: &Turn, number: u32, node: &Node) -> Free {
    if !takes_jobs(node, turn.snapshot.gate) {
        return Free::default();
    }
    let holds = turn.snapshot.running.iter().flat_map(|running| &running.holds).filter(|hold| hold.node == number);
    let bare = full(node).take(node.foreign_gpus, node.foreign_vcpus);
    holds.fold(bare, |free, hold| free.take(hold.gpus, hold.vcpus))
}

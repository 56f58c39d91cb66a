//! Step 5, reservations: the earliest place and time of a job that doesn't fit, and who would be in its way.

use std::collections::BTreeMap;

use osprey_model::id::JobId;

use crate::demand::Demand;
use crate::room::{Free, Room, Wanted, is_empty, left, whole_hold};
use crate::snapshot::{Hold, Node, NodeState, Shape};

/// Most reservations of a cycle. Each is looked at by every later one; urgent jobs beyond it wait without a reservation,
/// and those before them are served first anyway.
pub const RESERVATIONS_MAX: usize = 16;

/// Most moments at which a place for a job of several nodes is looked for between the reservations of others. Without
/// others it is found at the first; a job that isn't found a place by then waits without a reservation for this cycle.
const LOOKS_MAX: usize = 32;

/// What is kept, and when what runs ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    list: Vec<Keep>,
    /// For each node with reservations, what is left at the begin of each: the only moments at which less is free than
    /// the moment before.
    points: BTreeMap<u32, Vec<Point>>,
    /// What is left of the pool at the begin of each reservation whose job has to leave GPUs free for others.
    of_pool: Vec<OfPool>,
    ends: BTreeMap<u32, Ends>,
    /// The same of all nodes together, once it is asked for.
    all_ends: Option<Ends>,
    is_known: bool,
}

/// A reservation.
#[derive(Clone, Debug)]
pub(crate) struct Keep {
    pub job: JobId,
    pub at_ms: i64,
    until_ms: i64,
    pub holds: Vec<Hold>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    at_ms: i64,
    /// The reservation, by its place in the list.
    keep: usize,
    gpus: i64,
    vcpus: i64,
}

#[derive(Clone, Copy, Debug)]
struct OfPool {
    at_ms: i64,
    /// The reservation, by its place in the list.
    keep: usize,
    /// GPUs, without its job and what that has to leave.
    gpus: i64,
}

/// When what a node runs ends, the earliest first, and how much has been given back by then.
#[derive(Clone, Debug, Default)]
struct Ends {
    at_ms: Vec<i64>,
    given: Vec<(i64, i64)>,
}

impl Ends {
    fn of(mut ends: Vec<(i64, i64, i64)>) -> Self {
        ends.sort_unstable_by_key(|(at_ms, ..)| *at_ms);
        let mut sum = (0, 0);
        let given = ends.iter().map(|(_, gpus, vcpus)| {
            sum = (sum.0 + gpus, sum.1 + vcpus);
            sum
        });
        let given = given.collect();
        Self { at_ms: ends.into_iter().map(|(at_ms, ..)| at_ms).collect(), given }
    }

    /// Each end with what it gives back.
    fn each(&self) -> impl Iterator<Item = (i64, i64, i64)> {
        let before = std::iter::once(&(0, 0)).chain(&self.given);
        let amounts = self.given.iter().zip(before).map(|(now, before)| (now.0 - before.0, now.1 - before.1));
        self.at_ms.iter().zip(amounts).map(|(at_ms, (gpus, vcpus))| (*at_ms, gpus, vcpus))
    }

    /// What has been given back at a time.
    fn by(&self, at_ms: i64) -> (i64, i64) {
        let passed = self.at_ms.partition_point(|end_ms| *end_ms <= at_ms);
        passed.checked_sub(1).and_then(|last| self.given.get(last)).copied().unwrap_or((0, 0))
    }

    fn add(&mut self, at_ms: i64, hold: &Hold) {
        let place = self.at_ms.partition_point(|end_ms| *end_ms <= at_ms);
        let before = place.checked_sub(1).and_then(|last| self.given.get(last)).copied().unwrap_or((0, 0));
        self.at_ms.insert(place, at_ms);
        self.given.insert(place, before);
        let (gpus, vcpus) = (i64::from(hold.gpus), i64::from(hold.vcpus));
        self.given.iter_mut().skip(place).for_each(|given| *given = (given.0 + gpus, given.1 + vcpus));
    }
}

/// What is free, with a sign: a contradiction may leave less than nothing.
#[derive(Clone, Copy, Debug)]
struct Balance {
    gpus: i64,
    vcpus: i64,
}

impl Balance {
    fn of(free: Free) -> Self {
        Self { gpus: free.gpus.into(), vcpus: free.vcpus.into() }
    }

    fn holds(self, gpus: u32, vcpus: u32) -> bool {
        self.gpus >= i64::from(gpus) && self.vcpus >= i64::from(vcpus)
    }

    fn take(&mut self, hold: &Hold) {
        self.gpus -= i64::from(hold.gpus);
        self.vcpus -= i64::from(hold.vcpus);
    }

    fn least(self, other: Self) -> Self {
        Self { gpus: self.gpus.min(other.gpus), vcpus: self.vcpus.min(other.vcpus) }
    }

    fn free(self) -> Free {
        let part = |amount: i64| u32::try_from(amount.max(0)).unwrap_or(u32::MAX);
        Free { gpus: part(self.gpus), vcpus: part(self.vcpus) }
    }
}

impl Kept {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.list.len() >= RESERVATIONS_MAX
    }

    /// Whether [`Self::know`] has been told.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Takes in what runs, by when it ends. Cycles in which nothing has to wait never ask for it.
    pub fn know<'h>(&mut self, runs: impl Iterator<Item = (i64, &'h [Hold])>) {
        let mut by_node: BTreeMap<u32, Vec<(i64, i64, i64)>> = BTreeMap::new();
        for (end_ms, holds) in runs {
            for hold in holds {
                by_node.entry(hold.node).or_default().push((end_ms, hold.gpus.into(), hold.vcpus.into()));
            }
        }
        self.ends = by_node.into_iter().map(|(node, ends)| (node, Ends::of(ends))).collect();
        self.all_ends = None;
        self.is_known = true;
    }

    /// When what all nodes run ends.
    fn all_ends(&mut self) -> &Ends {
        let ends = &self.ends;
        self.all_ends.get_or_insert_with(|| Ends::of(ends.values().flat_map(Ends::each).collect()))
    }

    /// Takes in a job that starts now; `of_reserve` says whether it takes from what others have to leave free.
    pub fn started(&mut self, holds: &[Hold], end_ms: i64, of_reserve: bool) {
        if !self.is_known {
            return;
        }
        if !of_reserve {
            let gpus: i64 = holds.iter().map(|hold| i64::from(hold.gpus)).sum();
            self.of_pool.iter_mut().filter(|point| point.at_ms < end_ms).for_each(|point| point.gpus -= gpus);
        }
        for hold in holds {
            for point in self.points.get_mut(&hold.node).into_iter().flatten().filter(|point| point.at_ms < end_ms) {
                point.gpus -= i64::from(hold.gpus);
                point.vcpus -= i64::from(hold.vcpus);
            }
            self.ends.entry(hold.node).or_default().add(end_ms, hold);
            if let Some(all_ends) = &mut self.all_ends {
                all_ends.add(end_ms, hold);
            }
        }
    }

    /// Takes in that a job goes which was to run until then. When the others end has to be told again.
    pub fn gone(&mut self, holds: &[Hold], end_ms: i64) {
        let gpus: i64 = holds.iter().map(|hold| i64::from(hold.gpus)).sum();
        self.of_pool.iter_mut().filter(|point| point.at_ms < end_ms).for_each(|point| point.gpus += gpus);
        for hold in holds {
            for point in self.points.get_mut(&hold.node).into_iter().flatten().filter(|point| point.at_ms < end_ms) {
                point.gpus += i64::from(hold.gpus);
                point.vcpus += i64::from(hold.vcpus);
            }
        }
    }

    /// What is left of a node at the begin of each of its reservations before a time: when, GPUs and vCPUs.
    pub fn left_before(&self, node: u32, end_ms: i64) -> impl Iterator<Item = (i64, i64, i64)> {
        let points = self.points.get(&node).into_iter().flatten().filter(move |point| point.at_ms < end_ms);
        points.map(|point| (point.at_ms, point.gpus, point.vcpus))
    }

    /// The first reservation that a job on this part of a node until then would delay.
    pub fn delayed(&self, hold: &Hold, end_ms: i64) -> Option<&Keep> {
        let is_short = |point: &&Point| point.gpus < i64::from(hold.gpus) || point.vcpus < i64::from(hold.vcpus);
        let points = self.points.get(&hold.node)?;
        let short = points.iter().filter(|point| point.at_ms < end_ms).find(is_short)?;
        self.list.get(short.keep)
    }

    /// The first reservation that a job of so many GPUs until then would delay wherever it is: too little of the pool would be
    /// left for what has to stay free beside that one.
    pub fn delayed_by_any(&self, gpus: u32, end_ms: i64) -> Option<&Keep> {
        let is_short = |point: &&OfPool| point.at_ms < end_ms && point.gpus < i64::from(gpus);
        self.list.get(self.of_pool.iter().find(is_short)?.keep)
    }

    /// The first reservation that a job until then would delay if it landed on one of the nodes that are kept.
    pub fn delayed_anywhere(&self, room: &Room<'_>, demand: Demand, end_ms: i64) -> Option<&Keep> {
        let (Demand::Nodes(shape) | Demand::Children { shape, .. }) = demand;
        self.points.keys().find_map(|number| {
            let node = room.node(*number)?;
            let hold = if room.takes_whole(shape) { whole_hold(*number, node) } else { shape.times(*number, 1) };
            let free = room.free_of(*number);
            let could = free.gpus >= hold.gpus && free.vcpus >= hold.vcpus;
            if could { self.delayed(&hold, end_ms) } else { None }
        })
    }

    /// When a job fits at the earliest; `None` when that can't be foreseen.
    pub fn earliest_ms(&mut self, room: &Room<'_>, wanted: &Wish) -> Option<i64> {
        self.earliest(room, wanted).map(|(at_ms, _)| at_ms)
    }

    /// Keeps the earliest place of a job for it. `None` when it can't be foreseen.
    pub fn keep(&mut self, room: &Room<'_>, wanted: &Wish) -> Option<&Keep> {
        let (at_ms, holds) = self.earliest(room, wanted)?;
        let until_ms = at_ms.saturating_add(wanted.run_ms.max(1));
        let keep = self.list.len();
        for hold in &holds {
            let inside = |point: &&mut Point| at_ms <= point.at_ms && point.at_ms < until_ms;
            for point in self.points.get_mut(&hold.node).into_iter().flatten().filter(inside) {
                point.gpus -= i64::from(hold.gpus);
                point.vcpus -= i64::from(hold.vcpus);
            }
            let mut left = self.balance(room, hold.node, at_ms);
            left.take(hold);
            let point = Point { at_ms, keep, gpus: left.gpus, vcpus: left.vcpus };
            self.points.entry(hold.node).or_default().push(point);
        }
        let gpus: i64 = holds.iter().map(|hold| i64::from(hold.gpus)).sum();
        let inside = |point: &&mut OfPool| at_ms <= point.at_ms && point.at_ms < until_ms;
        self.of_pool.iter_mut().filter(inside).for_each(|point| point.gpus -= gpus);
        if wanted.spare > 0 {
            let gpus = self.pool_at(room, at_ms) - gpus - i64::from(wanted.spare);
            self.of_pool.push(OfPool { at_ms, keep, gpus });
        }
        self.list.push(Keep { job: wanted.job, at_ms, until_ms, holds });
        self.list.last()
    }

    /// GPUs that the pool has free at a time, without what is kept of it then.
    fn pool_at(&mut self, room: &Room<'_>, at_ms: i64) -> i64 {
        let kept = self.list.iter().filter(|keep| keep.at_ms <= at_ms && at_ms < keep.until_ms);
        let kept: i64 = kept.flat_map(|keep| &keep.holds).map(|hold| i64::from(hold.gpus)).sum();
        i64::from(room.free()) + self.all_ends().by(at_ms).0 - kept
    }

    /// From when on the pool has GPUs for a job and for what it has to leave free beside it.
    fn pool_free_from(&mut self, room: &Room<'_>, wanted: &Wish) -> Option<i64> {
        if wanted.spare == 0 {
            return Some(wanted.now_ms);
        }
        let gpus = i64::from(wanted.demand.gpus()) + i64::from(wanted.spare);
        let mut times = self.all_ends().at_ms.clone();
        times.extend(self.list.iter().map(|keep| keep.until_ms).chain([wanted.now_ms]));
        times.retain(|at_ms| *at_ms >= wanted.now_ms);
        times.sort_unstable();
        times.into_iter().find(|at_ms| self.pool_at(room, *at_ms) >= gpus)
    }

    /// What a node has free at a time, as if nothing were kept of it.
    fn given_back(&self, room: &Room<'_>, node: u32, at_ms: i64) -> Balance {
        let mut balance = Balance::of(room.free_of(node));
        if let Some(ends) = self.ends.get(&node) {
            let (gpus, vcpus) = ends.by(at_ms);
            let most = Balance::of(room.node(node).map(left).unwrap_or_default());
            balance.gpus = (balance.gpus + gpus).min(most.gpus);
            balance.vcpus = (balance.vcpus + vcpus).min(most.vcpus);
        }
        balance
    }

    /// What a node has free at a time, without what is kept of it then.
    fn balance(&self, room: &Room<'_>, node: u32, at_ms: i64) -> Balance {
        let mut balance = self.given_back(room, node, at_ms);
        for keep in self.kept_of(node).filter(|keep| keep.at_ms <= at_ms && at_ms < keep.until_ms) {
            keep.holds.iter().filter(|hold| hold.node == node).for_each(|hold| balance.take(hold));
        }
        balance
    }

    fn kept_of(&self, node: u32) -> impl Iterator<Item = &Keep> {
        self.points.get(&node).into_iter().flatten().filter_map(|point| self.list.get(point.keep))
    }

    /// The least that a node has free from a time on for so long.
    fn through(&self, room: &Room<'_>, node: u32, at_ms: i64, run_ms: i64) -> Balance {
        let until_ms = at_ms.saturating_add(run_ms);
        let begins = self.kept_of(node).map(|keep| keep.at_ms).filter(|begin| at_ms < *begin && *begin < until_ms);
        begins.fold(self.balance(room, node, at_ms), |least, begin| least.least(self.balance(room, node, begin)))
    }

    fn earliest(&mut self, room: &Room<'_>, wanted: &Wish) -> Option<(i64, Vec<Hold>)> {
        let from_ms = self.pool_free_from(room, wanted)?;
        match wanted.demand {
            Demand::Nodes(shape) if !room.takes_whole(shape) => {
                self.earliest_on_one(room, shape, wanted.run_ms, from_ms)
            }
            _ => self.earliest_on_many(room, wanted, from_ms),
        }
    }

    fn earliest_on_one(&self, room: &Room<'_>, shape: Shape, run_ms: i64, from_ms: i64) -> Option<(i64, Vec<Hold>)> {
        // The lowest number of those that are free first. What is started behind a reservation changes neither, so that
        // the next cycle finds the same.
        let mut best: Option<(i64, u32)> = None;
        let could = |(_, node, _): &(u32, &Node, Free)| node.state != NodeState::Closed && left(node).holds(shape);
        for (number, ..) in room.all().filter(could) {
            let Some(at_ms) = self.free_from(room, number, shape, run_ms, from_ms) else { continue };
            best = Some(best.map_or((at_ms, number), |best| best.min((at_ms, number))));
        }
        best.map(|(at_ms, node)| (at_ms, vec![Hold { node, gpus: shape.gpus, vcpus: shape.vcpus }]))
    }

    /// From when on a node has room for so long.
    fn free_from(&self, room: &Room<'_>, node: u32, shape: Shape, run_ms: i64, from_ms: i64) -> Option<i64> {
        let is_free = |at_ms: &i64| self.through(room, node, *at_ms, run_ms).holds(shape.gpus, shape.vcpus);
        if is_free(&from_ms) {
            return Some(from_ms);
        }
        let ends = self.ends.get(&node).map(|ends| ends.at_ms.as_slice()).unwrap_or_default();
        // What runs gives back more and more: before enough of it has ended nothing else need be looked at.
        let free = Balance::of(room.free_of(node));
        let is_short = |at_ms: &i64| {
            let (gpus, vcpus) = self.ends.get(&node).map(|ends| ends.by(*at_ms)).unwrap_or_default();
            !Balance { gpus: free.gpus + gpus, vcpus: free.vcpus + vcpus }.holds(shape.gpus, shape.vcpus)
        };
        let ends = ends.get(ends.partition_point(is_short)..).unwrap_or_default();
        let untils = self.kept_of(node).map(|keep| keep.until_ms);
        let mut times: Vec<i64> = ends.iter().copied().chain(untils).filter(|at_ms| *at_ms > from_ms).collect();
        if self.points.contains_key(&node) {
            times.sort_unstable();
        }
        times.into_iter().find(is_free)
    }

    /// A job of several nodes, or an array that starts as one.
    fn earliest_on_many(&mut self, room: &Room<'_>, wanted: &Wish, from_ms: i64) -> Option<(i64, Vec<Hold>)> {
        let mut times = self.all_ends().at_ms.clone();
        times.extend(self.list.iter().map(|keep| keep.until_ms).chain([from_ms]));
        times.sort_unstable();
        times.dedup();
        // Without reservations room only grows, so half of the times can be left out at each look.
        let bare = |node: u32, at_ms: i64| self.given_back(room, node, at_ms).free();
        let is_short = |at_ms: &i64| *at_ms < from_ms || fits(room, wanted, |node| bare(node, *at_ms)).is_none();
        let first = times.partition_point(is_short);
        let times = times.get(first..).unwrap_or_default();
        times.iter().take(LOOKS_MAX).find_map(|at_ms| {
            let through = |node| self.through(room, node, *at_ms, wanted.run_ms).free();
            fits(room, wanted, through).map(|holds| (*at_ms, holds))
        })
    }
}

/// Where a job fits that takes several nodes, with what each of them has free.
fn fits(room: &Room<'_>, wanted: &Wish, free: impl Fn(u32) -> Free) -> Option<Vec<Hold>> {
    let nodes = room.all().filter(|(_, node, _)| node.state != NodeState::Closed);
    let nodes = nodes.map(|(number, node, _)| (number, node, free(number)));
    match wanted.demand {
        Demand::Nodes(shape) => whole_nodes(nodes, shape),
        Demand::Children { shape, count } => children(nodes, shape, count),
    }
}

/// Whole nodes of those that are empty.
fn whole_nodes<'n>(nodes: impl Iterator<Item = (u32, &'n Node, Free)>, shape: Shape) -> Option<Vec<Hold>> {
    let (wanted, mut missing) = (Wanted::of(shape), Wanted::of(shape));
    let mut holds = Vec::new();
    for (number, node, _) in nodes.filter(|(_, node, free)| is_empty(node, *free) && wanted.takes(node)) {
        holds.push(whole_hold(number, node));
        missing.count(node);
        if missing.is_met() {
            return Some(holds);
        }
    }
    None
}

/// Children wherever they fit.
fn children<'n>(nodes: impl Iterator<Item = (u32, &'n Node, Free)>, shape: Shape, count: u32) -> Option<Vec<Hold>> {
    let mut missing = count;
    let mut holds = Vec::new();
    for (node, _, free) in nodes {
        let here = free.times(shape).min(missing);
        if here > 0 {
            holds.push(shape.times(node, here));
            missing -= here;
        }
        if missing == 0 {
            return Some(holds);
        }
    }
    None
}

/// What a reservation is wanted for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub job: JobId,
    pub demand: Demand,
    /// GPUs of the pool that have to stay free for others beside it.
    pub spare: u32,
    /// How long it is to be kept.
    pub run_ms: i64,
    pub now_ms: i64,
}

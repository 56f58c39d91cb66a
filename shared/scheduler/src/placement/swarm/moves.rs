//! Moves in the space of orders.

use super::random::Random;
use crate::placement::problem::Problem;

/// The moves of one sub-swarm.
#[derive(Clone, Debug)]
pub(super) struct Moves {
    /// The kind of each job: exchanging two jobs of one kind changes nothing.
    kinds: Vec<u32>,
    /// Jobs that need several nodes.
    gangs: Vec<u32>,
}

/// Draws until two jobs of different kinds are found, at most.
const DRAWS_MAX: u32 = 4;

impl Moves {
    pub(super) fn of(problem: &Problem) -> Self {
        let jobs = (0_u32..).zip(problem.jobs());
        let kind = |job: u32| problem.kinds.of_job(job).and_then(|kind| u32::try_from(kind).ok()).unwrap_or(0);
        let kinds = jobs.clone().map(|(job, _)| kind(job)).collect();
        let gangs = jobs.filter(|(_, job)| job.slots > problem.node_slots_max).map(|(job, _)| job).collect();
        Self { kinds, gangs }
    }

    /// Any move, over any distance.
    pub(super) fn any(&self, order: &mut [u32], random: &mut Random) {
        self.over(order, order.len(), random);
    }

    /// A move, half of them over a distance that shrinks with the rounds.
    pub(super) fn near(&self, order: &mut [u32], round: u32, random: &mut Random) {
        let shrunk = order.len() / usize::try_from(round).unwrap_or(1).max(1);
        let distance = if random.below(2) == 0 { order.len() } else { shrunk.max(4) };
        self.over(order, distance, random);
    }

    fn over(&self, order: &mut [u32], distance: usize, random: &mut Random) {
        match random.below(8) {
            0 if !self.gangs.is_empty() => self.move_gang(order, random),
            0..=3 => self.swap(order, distance, random),
            _ => self.insert(order, distance, random),
        }
    }

    /// Two places of jobs of different kinds, at most so far apart.
    fn places(&self, order: &[u32], distance: usize, random: &mut Random) -> (usize, usize) {
        let kind = |place: usize| {
            order.get(place).and_then(|job| usize::try_from(*job).ok()).and_then(|job| self.kinds.get(job))
        };
        let mut places = (0, 0);
        for _ in 0..DRAWS_MAX {
            let from = random.below(order.len());
            let low = from.saturating_sub(distance);
            let to = low + random.below((from + distance + 1).min(order.len()) - low);
            places = (from, to);
            if kind(from) != kind(to) {
                break;
            }
        }
        places
    }

    fn swap(&self, order: &mut [u32], distance: usize, random: &mut Random) {
        if order.is_empty() {
            return;
        }
        let (from, to) = self.places(order, distance, random);
        order.swap(from, to);
    }

    /// Takes a job out and puts it in elsewhere.
    fn insert(&self, order: &mut [u32], distance: usize, random: &mut Random) {
        if order.is_empty() {
            return;
        }
        let (from, to) = self.places(order, distance, random);
        shift(order, from, to);
    }

    /// Puts a job of several nodes first or last: it needs nodes that nobody else has touched.
    fn move_gang(&self, order: &mut [u32], random: &mut Random) {
        let gang = self.gangs.get(random.below(self.gangs.len()));
        let Some(from) = order.iter().position(|job| Some(job) == gang) else { return };
        let to = if random.below(2) == 0 { 0 } else { order.len() - 1 };
        shift(order, from, to);
    }
}

fn shift(order: &mut [u32], from: usize, to: usize) {
    if from < to {
        if let Some(part) = order.get_mut(from..=to) {
            part.rotate_left(1);
        }
    } else if let Some(part) = order.get_mut(to..=from) {
        part.rotate_right(1);
    }
}

/// An order that has a part of another: the jobs of a stretch of it, in its order, and at its place; around them the
/// own jobs as they were (order crossover).
pub(super) fn taken_over(own: &[u32], fish: &[u32], random: &mut Random) -> Vec<u32> {
    if own.len() != fish.len() || own.is_empty() {
        return own.to_vec();
    }
    let begin = random.below(own.len());
    let length = 1 + random.below((own.len() - begin).min(own.len() / 2).max(1));
    let part = fish.get(begin..begin + length).unwrap_or_default();
    let mut is_taken = vec![false; own.len()];
    let place = |job: u32| usize::try_from(job).unwrap_or(usize::MAX);
    for job in part {
        if let Some(taken) = is_taken.get_mut(place(*job)) {
            *taken = true;
        }
    }
    let mut rest = own.iter().copied().filter(|job| !is_taken.get(place(*job)).copied().unwrap_or(false));
    let mut order: Vec<u32> = Vec::with_capacity(own.len());
    order.extend(rest.by_ref().take(begin));
    order.extend_from_slice(part);
    order.extend(rest);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{Job, Node};

    fn moves() -> Moves {
        let job = |slots| Job { slots, weight: 1, is_urgent: false, outlasts: false };
        let jobs = [1, 2, 16, 1, 4, 2, 8, 16].map(job).to_vec();
        Moves::of(&Problem::new(vec![Node { slots: 8, free: 8, spare: 8 }; 4], jobs, 0.0).unwrap())
    }

    #[test]
    fn every_move_keeps_every_job() {
        let (moves, mut random) = (moves(), Random::of(1, 0));
        let mut order: Vec<u32> = (0..8).collect();
        let mut changed = 0;
        for round in 1..500 {
            let before = order.clone();
            moves.near(&mut order, round, &mut random);
            changed += u32::from(before != order);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6, 7]);
        }
        assert!(changed > 400, "{changed}");
    }

    #[test]
    fn a_part_of_the_fish_is_taken_over_at_its_place() {
        let (own, fish): (Vec<u32>, Vec<u32>) = ((0..20).collect(), (0..20).rev().collect());
        let mut random = Random::of(1, 0);
        for _ in 0..100 {
            let order = taken_over(&own, &fish, &mut random);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, own);
            let same = order.iter().zip(&fish).filter(|(a, b)| a == b).count();
            assert!((1..=11).contains(&same), "{same}");
        }
    }

    #[test]
    fn orders_without_jobs_stay_as_they_are() {
        let mut random = Random::of(1, 0);
        moves().any(&mut [], &mut random);
        assert_eq!(taken_over(&[], &[], &mut random), [0; 0]);
    }
}

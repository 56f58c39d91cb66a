//! Classes of nodes, and the ways of filling one.

use crate::placement::problem::Problem;

/// Most ways of filling the nodes of a problem: with 8-GPU nodes there are some 200, with 64 vCPUs far too many.
const PATTERNS_MAX: usize = 4000;

/// Nodes that have as much free, and are as empty.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Its nodes.
    pub nodes: Vec<usize>,
    /// Whether nothing runs on them.
    pub is_empty: bool,
    /// How one of its nodes can be filled.
    pub patterns: Vec<Pattern>,
}

/// One way of filling a node.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// Jobs of each kind.
    pub counts: Vec<u8>,
    /// Slots that it strands.
    pub stranded: u32,
}

/// The nodes of a problem by class; `None` when there are too many ways of filling them. Kinds are given by their slots
/// and by how many jobs they have.
pub(super) fn classes(problem: &Problem, kinds: &[(u32, usize)]) -> Option<Vec<Class>> {
    let mut found: Vec<((u32, bool), Vec<usize>)> = Vec::new();
    for (place, node) in problem.nodes().iter().enumerate().filter(|(_, node)| node.free > 0) {
        let key = (node.free, node.free == node.slots);
        match found.iter_mut().find(|(other, _)| *other == key) {
            Some((_, nodes)) => nodes.push(place),
            None => found.push((key, vec![place])),
        }
    }
    // Small classes first: their states are few.
    found.sort_by_key(|((free, is_empty), _)| (*is_empty, *free));
    let mut left = PATTERNS_MAX;
    found
        .into_iter()
        .map(|((free, is_empty), nodes)| {
            let patterns = Filling { kinds, free, is_empty }.all(left)?;
            left -= patterns.len();
            Some(Class { nodes, is_empty, patterns })
        })
        .collect()
}

/// A node that is filled.
struct Filling<'k> {
    kinds: &'k [(u32, usize)],
    free: u32,
    is_empty: bool,
}

impl Filling<'_> {
    /// Every way, if there are at most so many.
    fn all(&self, most: usize) -> Option<Vec<Pattern>> {
        let (mut found, mut counts) = (Vec::new(), vec![0; self.kinds.len()]);
        self.add(0, self.free, &mut counts, &mut found, most).then_some(found)
    }

    fn add(&self, kind: usize, left: u32, counts: &mut Vec<u8>, found: &mut Vec<Pattern>, most: usize) -> bool {
        let Some((slots, jobs)) = self.kinds.get(kind).copied() else {
            let is_untouched = self.is_empty && left == self.free;
            let stranded = if is_untouched { 0 } else { left };
            found.push(Pattern { counts: counts.clone(), stranded });
            return found.len() <= most;
        };
        let fitting = usize::try_from(left / slots.max(1)).unwrap_or(0).min(jobs);
        (0..=fitting).all(|count| {
            let Ok(taken) = u8::try_from(count) else { return false };
            if let Some(place) = counts.get_mut(kind) {
                *place = taken;
            }
            let goes_on = self.add(kind + 1, left - u32::from(taken) * slots, counts, found, most);
            if let Some(place) = counts.get_mut(kind) {
                *place = 0;
            }
            goes_on
        })
    }
}

impl Pattern {
    /// What it is worth at these prices of jobs and of a stranded slot.
    pub(super) fn worth(&self, prices: &[f64], stranded_price: f64) -> f64 {
        let jobs: f64 = self.counts.iter().zip(prices).map(|(count, price)| f64::from(*count) * price).sum();
        jobs - stranded_price * f64::from(self.stranded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Node;

    #[test]
    fn every_way_of_filling_a_node_is_found() {
        let node = |free| Node { slots: 8, free, spare: free };
        let problem = Problem::new(vec![node(8), node(3), node(8), node(0)], vec![], 0.0).unwrap();
        let kinds: Vec<(u32, usize)> = (1..=8).map(|slots| (slots, 99)).collect();
        let classes = classes(&problem, &kinds).unwrap();
        // Partitions of 0 to 3, and of 0 to 8.
        let sizes: Vec<(usize, usize)> =
            classes.iter().map(|class| (class.nodes.len(), class.patterns.len())).collect();
        assert_eq!(sizes, [(1, 1 + 1 + 2 + 3), (2, 1 + 1 + 2 + 3 + 5 + 7 + 11 + 15 + 22)]);
        let untouched = |class: &Class| class.patterns.first().map(|pattern| pattern.stranded);
        assert_eq!((untouched(&classes[0]), untouched(&classes[1])), (Some(3), Some(0)));
    }

    #[test]
    fn too_many_ways_are_told() {
        let problem = Problem::new(vec![Node { slots: 64, free: 64, spare: 64 }], vec![], 0.0).unwrap();
        let kinds: Vec<(u32, usize)> = (1..=8).map(|slots| (slots, 99)).collect();
        assert!(classes(&problem, &kinds).is_none());
    }
}

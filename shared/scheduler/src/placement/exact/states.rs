//! The proof: node after node, every way of filling it that a better plan could still have.

use super::bound::{Bound, Market, sold};
use super::patterns::Pattern;
use crate::placement::kinds::Kind;

/// Most kinds of a problem that is solved exactly: a state counts them in 8 bits each.
pub(super) const KINDS_MAX: usize = 16;
/// Most jobs of a kind.
pub(super) const KIND_JOBS_MAX: usize = 255;

/// How many jobs of each kind are placed, 8 bits each.
type Counts = u128;

/// A state after some nodes.
#[derive(Clone, Copy, Debug)]
struct State {
    counts: Counts,
    /// What is lost against the bound so far.
    loss: f64,
    /// The state that it comes from, in the layer before.
    from: u32,
    /// The pattern of the node, by its place in the class.
    pattern: u16,
}

/// What the search says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Searched {
    /// The best plan: a pattern for each filled node, in the order of the classes; and what is lost against the bound.
    Best(Vec<u16>, f64),
    /// No plan loses less than the allowed.
    Nothing,
    /// It takes more tries than are allowed.
    TooMany,
}

/// The way through the nodes of a market.
struct Way<'m> {
    market: Market<'m>,
    bound: &'m Bound,
    allowed: f64,
    /// By kind: what is lost when a plan has so many of it.
    losses: Vec<Vec<f64>>,
    /// Classes of the nodes, in the order in which they are filled.
    nodes: Vec<usize>,
    tries_left: usize,
}

/// Looks for the plan that loses the least against a bound, and at most `allowed`.
pub(super) fn search(market: Market<'_>, bound: &Bound, allowed: f64, tries_max: usize) -> Searched {
    let losses = market.kinds.iter().zip(&bound.prices).map(|(kind, price)| losses(kind, *price)).collect();
    let classes = market.nodes.iter().enumerate();
    let nodes = classes.flat_map(|(class, nodes)| std::iter::repeat_n(class, *nodes)).collect();
    Way { market, bound, allowed, losses, nodes, tries_left: tries_max }.walk()
}

/// What is lost when a kind has so many jobs placed.
fn losses(kind: &Kind, price: f64) -> Vec<f64> {
    let (_, best) = sold(kind, price);
    kind.worth.iter().enumerate().map(|(placed, worth)| best - (*worth as f64 - price * placed as f64)).collect()
}

impl Way<'_> {
    fn walk(mut self) -> Searched {
        let mut layers = vec![vec![State { counts: 0, loss: 0.0, from: 0, pattern: 0 }]];
        let patterns = self.patterns();
        let reaches = self.reaches();
        for (class, reach) in self.nodes.clone().into_iter().zip(reaches) {
            let of_class = patterns.get(class).map_or(&[][..], Vec::as_slice);
            let before = layers.last().map_or(&[][..], Vec::as_slice);
            let Some(layer) = self.step(before, of_class, &reach) else { return Searched::TooMany };
            layers.push(layer);
        }
        self.best(&layers)
    }

    /// By class: the patterns that lose little enough, with what they lose.
    fn patterns(&self) -> Vec<Vec<(u16, Counts, f64)>> {
        let of_class = self.market.classes.iter().map(|class| {
            let best = self.market.best(class, &self.bound.prices).map_or(0.0, |(_, worth)| worth);
            let lossy = (0_u16..).zip(&class.patterns).map(|(number, pattern)| {
                let loss = best - pattern.worth(&self.bound.prices, self.market.stranded_price);
                (number, packed(pattern), loss)
            });
            lossy.filter(|(_, _, loss)| *loss <= self.allowed).collect()
        });
        of_class.collect()
    }

    /// After each node: how many jobs of each kind the nodes that follow can take at most.
    fn reaches(&self) -> Vec<Vec<usize>> {
        let most = |class: usize, kind: usize| {
            let patterns = self.market.classes.get(class).map_or(&[][..], |class| class.patterns.as_slice());
            let counts = patterns.iter().filter_map(|pattern| pattern.counts.get(kind));
            counts.max().map_or(0, |most| usize::from(*most))
        };
        let mut reach = vec![0; self.market.kinds.len()];
        let mut reaches = Vec::with_capacity(self.nodes.len());
        for class in self.nodes.iter().rev() {
            reaches.push(reach.clone());
            for (kind, reach) in reach.iter_mut().enumerate() {
                *reach += most(*class, kind);
            }
        }
        reaches.reverse();
        reaches
    }

    /// Fills one node in every way.
    fn step(&mut self, before: &[State], patterns: &[(u16, Counts, f64)], reach: &[usize]) -> Option<Vec<State>> {
        self.tries_left = self.tries_left.checked_sub(before.len() * patterns.len())?;
        let mut layer = Vec::with_capacity(before.len());
        for (from, state) in (0_u32..).zip(before) {
            for (pattern, counts, loss) in patterns {
                let Some(counts) = self.sum(state.counts, *counts) else { continue };
                let loss = state.loss + loss;
                if loss + self.least_loss(counts, reach) <= self.allowed {
                    layer.push(State { counts, loss, from, pattern: *pattern });
                }
            }
        }
        layer.sort_unstable_by(|a, b| {
            a.counts
                .cmp(&b.counts)
                .then(a.loss.total_cmp(&b.loss))
                .then(a.from.cmp(&b.from))
                .then(a.pattern.cmp(&b.pattern))
        });
        layer.dedup_by_key(|state| state.counts);
        Some(layer)
    }

    /// Both together, unless a kind hasn't so many jobs.
    fn sum(&self, a: Counts, b: Counts) -> Option<Counts> {
        let has_room = (0..).zip(&self.losses).all(|(kind, losses)| count(a, kind) + count(b, kind) < losses.len());
        has_room.then_some(a + b)
    }

    /// What the kinds lose at least, wherever the nodes that follow lead.
    fn least_loss(&self, counts: Counts, reach: &[usize]) -> f64 {
        let kinds = (0..).zip(&self.losses).zip(reach);
        kinds
            .map(|((kind, losses), reach)| {
                let placed = count(counts, kind);
                let within = losses.get(placed..losses.len().min(placed + reach + 1)).unwrap_or_default();
                within.iter().copied().fold(f64::INFINITY, f64::min)
            })
            .sum()
    }

    fn best(&self, layers: &[Vec<State>]) -> Searched {
        let none = vec![0; self.losses.len()];
        let whole = |state: &State| state.loss + self.least_loss(state.counts, &none);
        let last = layers.last().map_or(&[][..], Vec::as_slice);
        let best = last.iter().min_by(|a, b| whole(a).total_cmp(&whole(b)).then(a.counts.cmp(&b.counts)));
        let Some(best) = best else { return Searched::Nothing };
        let (mut patterns, mut at) = (Vec::new(), Some(best));
        for layer in layers.iter().rev().skip(1) {
            let Some(state) = at else { break };
            patterns.push(state.pattern);
            at = usize::try_from(state.from).ok().and_then(|from| layer.get(from));
        }
        patterns.reverse();
        Searched::Best(patterns, whole(best))
    }
}

/// The counts of a pattern, 8 bits each.
fn packed(pattern: &Pattern) -> Counts {
    pattern.counts.iter().rev().fold(0, |packed, count| (packed << 8) | Counts::from(*count))
}

/// How many of a kind there are.
fn count(counts: Counts, kind: u32) -> usize {
    usize::try_from((counts >> (8 * kind)) & 0xff).unwrap_or(0)
}

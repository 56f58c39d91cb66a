//! The bound: what no plan can exceed.
//!
//! Every job of a kind is given a price. A node is then filled in the way that earns the most at these prices, and a
//! kind sells as many jobs as are worth more than their price; the sum of both is a bound, whatever the prices
//! (Lagrangian relaxation of the rule that what nodes take and what kinds sell is the same). The prices that make it
//! smallest are looked for by steps against the difference of the two.

use super::patterns::{Class, Pattern};
use crate::placement::kinds::Kind;

/// Steps of the descent; it ends sooner when the bound meets the best plan.
const STEPS_MAX: u32 = 400;
/// Steps without a better bound after which they become half as long.
const STEPS_STILL_MAX: u32 = 12;

/// Prices, and the bound that they give.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    /// The price of a job of each kind, in thousandths.
    pub prices: Vec<f64>,
    /// More than this no plan is worth, in thousandths.
    pub worth: f64,
}

/// What is to be bounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Market<'m> {
    pub kinds: &'m [&'m Kind],
    pub classes: &'m [Class],
    /// How many nodes of each class are filled.
    pub nodes: &'m [usize],
    pub stranded_price: f64,
}

impl Market<'_> {
    /// The smallest bound that is found from these prices on. `reached` is what some plan is worth.
    pub(super) fn bound(&self, from: &[f64], reached: f64) -> Bound {
        let mut best = Bound { prices: from.to_vec(), worth: f64::INFINITY };
        let (mut prices, mut length, mut still) = (from.to_vec(), 1.0, 0);
        for _ in 0..STEPS_MAX {
            let (worth, surplus) = self.at(&prices);
            if worth < best.worth {
                best = Bound { prices: prices.clone(), worth };
                still = 0;
            } else {
                still += 1;
            }
            let square: f64 = surplus.iter().map(|surplus| surplus * surplus).sum();
            if square <= 0.0 || best.worth <= reached {
                break;
            }
            if still >= STEPS_STILL_MAX {
                (length, still) = (length / 2.0, 0);
                prices.clone_from(&best.prices);
                continue;
            }
            // The step that would reach the best plan, were the bound a plane and as low as that.
            let step = length * (worth - reached).max(1.0) / square;
            for (price, surplus) in prices.iter_mut().zip(&surplus) {
                *price = (*price - step * surplus).max(0.0);
            }
        }
        best
    }

    /// The bound at these prices, and how many more of each kind nodes take than the kind sells.
    fn at(&self, prices: &[f64]) -> (f64, Vec<f64>) {
        let (mut worth, mut surplus) = (0.0, vec![0.0; prices.len()]);
        for (class, nodes) in self.classes.iter().zip(self.nodes) {
            let Some((best, earned)) = self.best(class, prices) else { continue };
            let nodes = *nodes as f64;
            worth += nodes * earned;
            for (surplus, count) in surplus.iter_mut().zip(&best.counts) {
                *surplus += nodes * f64::from(*count);
            }
        }
        for ((kind, price), surplus) in self.kinds.iter().zip(prices).zip(&mut surplus) {
            let (sold, earned) = sold(kind, *price);
            worth += earned;
            *surplus -= sold as f64;
        }
        (worth, surplus)
    }

    /// How a node of a class earns the most.
    pub(super) fn best<'c>(&self, class: &'c Class, prices: &[f64]) -> Option<(&'c Pattern, f64)> {
        let worth = class.patterns.iter().map(|pattern| (pattern, pattern.worth(prices, self.stranded_price)));
        worth.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }
}

/// How many of its jobs a kind sells at a price, and what they earn beyond it.
pub(super) fn sold(kind: &Kind, price: f64) -> (usize, f64) {
    let earned = |(sold, worth): (usize, &i64)| (sold, *worth as f64 - price * sold as f64);
    let best = kind.worth.iter().enumerate().map(earned).max_by(|(_, a), (_, b)| a.total_cmp(b));
    best.unwrap_or((0, 0.0))
}

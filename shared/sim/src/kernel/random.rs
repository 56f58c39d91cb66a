//! Chance, made of a seed: one generator for each purpose, so that one more draw here doesn't shift the draws there.

use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};

/// A generator of its own for one purpose.
#[derive(Debug)]
pub struct Random(ChaCha8Rng);

/// The generator for `label`: the same seed and label give the same draws on every machine.
#[must_use]
pub fn fork(seed: u64, label: &str) -> Random {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(fnv1a(label));
    Random(generator)
}

/// FNV-1a of 64 bits. The standard library's hash isn't promised to stay the same.
fn fnv1a(text: &str) -> u64 {
    let start: u64 = 0xcbf2_9ce4_8422_2325;
    text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

impl Random {
    /// A number from 0 up to, and without, 1.
    pub fn unit(&mut self) -> f64 {
        // The 53 bits that a double can tell apart.
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number from 0 up to, and without, `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The bias of the product is end/2⁶⁴: nobody can see it in the ranges used here.
        let product = u128::from(self.0.next_u64()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// Whether something of this probability happens.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// A number of the standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A number whose logarithm is normal, with this median and this deviation of the logarithm.
    pub fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        median * (sigma * self.normal()).exp()
    }

    /// One of the values, each as likely as its weight says; `None` when there are no weights.
    pub fn weighted<T: Copy>(&mut self, choices: &[(T, f64)]) -> Option<T> {
        let total: f64 = choices.iter().map(|(_, weight)| weight).sum();
        let mut left = self.unit() * total;
        for (value, weight) in choices {
            left -= weight;
            if left < 0.0 {
                return Some(*value);
            }
        }
        choices.last().map(|(value, _)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // The published test vectors.
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_seed_and_a_label_say_everything() {
        let draws = |seed, label: &str| {
            let mut random = fork(seed, label);
            [random.below(1000), random.below(1000), random.below(1000)]
        };
        assert_eq!(draws(1, "arrivals"), draws(1, "arrivals"));
        assert_ne!(draws(1, "arrivals"), draws(1, "durations"));
        assert_ne!(draws(1, "arrivals"), draws(2, "arrivals"));
    }

    #[test]
    fn distributions_have_the_mean_that_they_say() {
        let mut random = fork(7, "test");
        let mean = |draw: &mut dyn FnMut() -> f64| (0..200_000).map(|_| draw()).sum::<f64>() / 200_000.0;
        assert!((mean(&mut || random.exponential(3.0)) - 3.0).abs() < 0.05);
        let mut random = fork(8, "test");
        assert!(mean(&mut || random.normal()).abs() < 0.01);
        let mut random = fork(9, "test");
        // The mean of a lognormal is median · e^(σ²/2).
        assert!((mean(&mut || random.lognormal(2.0, 0.5)) - 2.0 * 0.125_f64.exp()).abs() < 0.02);
    }

    #[test]
    fn weights_are_kept() {
        let mut random = fork(1, "weights");
        let heads = (0..10_000).filter(|_| random.weighted(&[("head", 3.0), ("tail", 1.0)]) == Some("head")).count();
        assert!((7_300..7_700).contains(&heads), "{heads}");
        assert_eq!(random.weighted::<u8>(&[]), None);
    }

    #[test]
    fn whole_numbers_stay_below_their_end() {
        let mut random = fork(1, "below");
        assert!((0..1000).all(|_| random.below(3) < 3));
        assert_eq!(random.below(0), 0);
    }
}

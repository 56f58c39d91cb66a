//! Chance, made of a seed: a stream of its own for each agent, so that a run can be repeated and audited, and an agent
//! more doesn't change what the others draw.

use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};

/// The generator of one agent.
#[derive(Debug)]
pub(super) struct Random(ChaCha8Rng);

impl Random {
    /// The stream of this number.
    pub(super) fn of(seed: u64, stream: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        Self(generator)
    }

    /// A number from 0 up to, and without, 1.
    pub(super) fn unit(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / (f64::from(u32::MAX) + 1.0)
    }

    /// A whole number from 0 up to, and without, `end`; 0 when `end` is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        // The bias of the product is end / 2³²: nobody can see it in the ranges used here.
        let product = u64::from(self.0.next_u32()) * end as u64;
        usize::try_from(product >> 32).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_stream_say_everything() {
        let draws = |seed, stream| {
            let mut random = Random::of(seed, stream);
            [random.below(1000), random.below(1000), random.below(1000)]
        };
        assert_eq!(draws(1, 0), draws(1, 0));
        assert_ne!(draws(1, 0), draws(1, 1));
        assert_ne!(draws(1, 0), draws(2, 0));
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut random = Random::of(1, 1);
        assert!((0..1000).all(|_| random.below(3) < 3 && (0.0..1.0).contains(&random.unit())));
        assert_eq!(random.below(0), 0);
    }
}

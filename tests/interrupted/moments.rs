//! Numbers that look random and are the same each time.

/// SplitMix64: a number that looks random, the same for the same input.
pub fn mixed(input: u64) -> u64 {
    let mut z = input.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of draws of one part of a round; a draw more in one part changes no other.
#[derive(Clone, Debug)]
pub struct Draws {
    seed: u64,
    drawn: u64,
}

impl Draws {
    /// The stream of the part `label` of a round.
    pub fn new(round: u64, label: &str) -> Self {
        let seed = label.bytes().fold(mixed(round), |seed, byte| mixed(seed ^ u64::from(byte)));
        Self { seed, drawn: 0 }
    }

    /// A number from 0 up to, not including, `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.drawn += 1;
        mixed(self.seed.wrapping_add(self.drawn)) % end.max(1)
    }

    /// A number from `from` up to, not including, `end`.
    pub fn between(&mut self, from: u64, end: u64) -> u64 {
        from + self.below(end.saturating_sub(from))
    }

    /// Whether something of this many in a hundred happens.
    pub fn percent(&mut self, many: u64) -> bool {
        self.below(100) < many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_each_time_and_differs_by_round_and_label() {
        let draws = |round, label| {
            let mut draws = Draws::new(round, label);
            (0..5).map(|_| draws.between(10, 1_000)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, "a"), draws(1, "a"));
        assert_ne!(draws(1, "a"), draws(1, "b"));
        assert_ne!(draws(1, "a"), draws(2, "a"));
        assert!(draws(3, "c").iter().all(|n| (10..1_000).contains(n)));
    }
}

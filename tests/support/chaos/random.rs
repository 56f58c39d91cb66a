//! Chance from one seed: SplitMix64, forked by label, so that more draws of one kind don't change those of another.

/// A stream of numbers (Steele, Lea and Flood, 2014). Twenty lines that never change beat a dependency here: a seed
/// that was written down must mean the same run for ever.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

/// One in a million, the unit of every chance.
pub type Ppm = u32;

impl Random {
    /// The stream of `label` under `seed`.
    #[must_use]
    pub fn fork(seed: u64, label: &str) -> Self {
        let named = label
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut random = Self { state: seed ^ named };
        random.draw();
        random
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        u64::try_from((u128::from(self.draw()) * u128::from(end)) >> 64).unwrap_or(0)
    }

    /// An index into something of `len` elements.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// A number from `from` to `to`, both included.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        let span = u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        from.saturating_add(i64::try_from(self.below(span.saturating_add(1))).unwrap_or(0))
    }

    /// Whether something of this chance happens.
    pub fn chance(&mut self, ppm: Ppm) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.index(of.len());
        of.get(at)
    }

    /// Puts elements into a random order.
    pub fn shuffle<T>(&mut self, of: &mut [T]) {
        for end in (1..of.len()).rev() {
            let other = self.index(end + 1);
            of.swap(end, other);
        }
    }
}

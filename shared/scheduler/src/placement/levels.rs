//! Nodes by how much is free on them.

/// The nodes of each level, where a level is a number of free slots: a set of bits for each, so that the tightest node
/// that fits is found without looking at the others.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    /// Words of a level.
    words: usize,
    bits: Vec<u64>,
    /// Nodes on each level.
    count: Vec<u32>,
}

#[expect(clippy::indexing_slicing, reason = "levels and nodes come from the problem that this was made for")]
impl Levels {
    pub(super) fn of(free: &[u32]) -> Self {
        let levels = free.iter().max().map_or(0, |most| *most as usize) + 1;
        let words = free.len().div_ceil(64).max(1);
        let mut made = Self { words, bits: vec![0; levels * words], count: vec![0; levels] };
        free.iter().enumerate().for_each(|(node, free)| made.insert(node, *free));
        made
    }

    pub(super) fn copy(&mut self, other: &Self) {
        self.bits.copy_from_slice(&other.bits);
        self.count.copy_from_slice(&other.count);
    }

    fn insert(&mut self, node: usize, free: u32) {
        let level = free as usize;
        self.bits[level * self.words + node / 64] |= 1 << (node % 64);
        self.count[level] += 1;
    }

    /// Moves a node from one level to another.
    pub(super) fn shift(&mut self, node: usize, from: u32, to: u32) {
        let level = from as usize;
        self.bits[level * self.words + node / 64] &= !(1 << (node % 64));
        self.count[level] -= 1;
        self.insert(node, to);
    }

    /// The node with the fewest free slots that are enough, the lowest number of equals.
    pub(super) fn tightest(&self, slots: u32) -> Option<usize> {
        let level = (slots as usize..self.count.len()).find(|level| self.count[*level] > 0)?;
        let bits = &self.bits[level * self.words..(level + 1) * self.words];
        let word = bits.iter().position(|bits| *bits != 0)?;
        Some(word * 64 + bits[word].trailing_zeros() as usize)
    }

    /// The same among those that `suits`.
    pub(super) fn tightest_that(&self, slots: u32, suits: impl Fn(usize) -> bool) -> Option<usize> {
        let occupied = (slots as usize..self.count.len()).filter(|level| self.count[*level] > 0);
        occupied.flat_map(|level| self.on(level)).find(|node| suits(*node))
    }

    fn on(&self, level: usize) -> impl Iterator<Item = usize> {
        let bits = &self.bits[level * self.words..(level + 1) * self.words];
        bits.iter().enumerate().flat_map(|(word, bits)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(word * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_node_is_found_and_the_lowest_of_equals() {
        let mut levels = Levels::of(&[8, 3, 5, 3, 0]);
        let found: Vec<Option<usize>> = [1, 3, 4, 6, 8, 9].iter().map(|slots| levels.tightest(*slots)).collect();
        assert_eq!(found, [Some(1), Some(1), Some(2), Some(0), Some(0), None]);
        levels.shift(1, 3, 1);
        assert_eq!((levels.tightest(1), levels.tightest(2)), (Some(1), Some(3)));
        assert_eq!(levels.tightest_that(2, |node| node != 3), Some(2));
        assert_eq!(levels.tightest_that(2, |_| false), None);
    }

    #[test]
    fn more_nodes_than_a_word_holds_are_found_too() {
        let mut free = vec![0; 200];
        (free[130], free[70], free[199]) = (4, 4, 4);
        let levels = Levels::of(&free);
        assert_eq!(levels.tightest(2), Some(70));
        assert_eq!(levels.tightest_that(2, |node| node > 130), Some(199));
    }
}

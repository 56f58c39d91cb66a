//! Drawing one of several.

use osprey_sim::kernel::random::Random;

/// A place of so many.
pub fn place(random: &mut Random, count: usize) -> usize {
    usize::try_from(random.below(u64::try_from(count).unwrap_or(u64::MAX))).unwrap_or(0)
}

/// One of several; `None` of none.
pub fn one_of<'t, T>(random: &mut Random, of: &'t [T]) -> Option<&'t T> {
    let at = place(random, of.len());
    of.get(at)
}

/// A number from `from` to `to`, both included.
pub fn between(random: &mut Random, from: u32, to: u32) -> u32 {
    let span = u64::from(to.saturating_sub(from)) + 1;
    from.saturating_add(u32::try_from(random.below(span)).unwrap_or(0))
}

/// A number from `from` to `to`, both included.
pub fn amount(random: &mut Random, from: u64, to: u64) -> u64 {
    from.saturating_add(random.below(to.saturating_sub(from).saturating_add(1)))
}

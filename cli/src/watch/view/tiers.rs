//! The tiers: who waits, how long, what runs.

use super::brush::{Brush, Piece, fit, right};
use crate::joined::overview::{Overview, PoolStatus, TierStatus};
use crate::render::time::short;
use crate::watch::look::Look;

/// A wait of the most urgent tier above which somebody should look, in milliseconds.
const URGENT_WAIT_MS: i64 = 600_000;
/// The same of the others.
const WAIT_MS: i64 = 3 * 3_600_000;
/// Columns of a pool's name.
const POOL: usize = 12;
/// Columns of a tier's name.
const TIER: usize = 14;

/// Rows that the tiers take of so many that they may have.
pub(super) fn height(overview: &Overview, most: u16) -> u16 {
    let tiers = || overview.pools.iter().flat_map(|pool| &pool.tiers);
    let rows = |count: usize| u16::try_from(count + 1).unwrap_or(u16::MAX);
    let all = rows(tiers().count());
    if all <= most { all } else { rows(tiers().filter(|tier| !is_quiet(tier)).count()).min(most) }
}

/// Draws the tiers; where there isn't room for all, those in which something waits or runs.
pub(super) fn draw(overview: &Overview, brush: &mut Brush<'_>) {
    let look = brush.look();
    brush.heading("tiers", &format!("{} ", columns(&["waiting", "median", "oldest", "sent", "run", "GPUs"])));
    let all: Vec<(&PoolStatus, usize, &TierStatus)> = overview
        .pools
        .iter()
        .flat_map(|pool| pool.tiers.iter().enumerate().map(move |(place, tier)| (pool, place, tier)))
        .collect();
    let is_cramped = all.len() > brush.room();
    let shown: Vec<_> = all.into_iter().filter(|(.., tier)| !is_cramped || !is_quiet(tier)).collect();
    let room = brush.room();
    let fits = if shown.len() > room { room.saturating_sub(1) } else { shown.len() };
    for (pool, place, tier) in shown.iter().take(fits) {
        let line = row(pool, *place, tier, brush.width(), look);
        brush.line(&line);
    }
    if shown.len() > fits {
        brush.text(&format!(" … and {} tiers more", shown.len() - fits), look.faint());
    }
}

fn is_quiet(tier: &TierStatus) -> bool {
    tier.waiting == 0 && tier.blocked == 0 && tier.sent == 0 && tier.running == 0
}

/// Columns of the numbers.
const NUMBERS: [usize; 6] = [8, 8, 8, 6, 6, 7];

fn columns(texts: &[&str; 6]) -> String {
    texts.iter().zip(NUMBERS).map(|(text, columns)| right(text, columns)).collect()
}

fn row(pool: &PoolStatus, place: usize, tier: &TierStatus, width: usize, look: Look) -> Vec<Piece> {
    let wait = |ms: Option<i64>| ms.map_or_else(|| "-".to_owned(), short);
    let numbers = columns(&[
        &tier.waiting.to_string(),
        &wait(tier.median_wait_ms),
        &wait(tier.oldest_wait_ms),
        &tier.sent.to_string(),
        &tier.running.to_string(),
        &tier.running_gpus.to_string(),
    ]);
    let limit = if place == 0 { URGENT_WAIT_MS } else { WAIT_MS };
    let is_long = tier.oldest_wait_ms.is_some_and(|ms| ms > limit);
    let names = width.saturating_sub(numbers.len() + 2);
    let (pool_columns, tier_columns) =
        if names >= POOL + TIER + 2 { (POOL, names - POOL - 2) } else { (names / 2, names - names / 2 - 2) };
    let name = if tier.drained { format!("‖ {}", tier.name) } else { tier.name.to_string() };
    let style = if is_quiet(tier) { look.faint() } else { look.plain() };
    vec![
        (format!(" {} ", fit(pool.name.as_str(), pool_columns)), look.faint()),
        (fit(&name, tier_columns), if is_quiet(tier) { look.faint() } else { look.strong() }),
        (numbers, if is_long { look.alarming() } else { style }),
        (if is_long { " !" } else { "  " }.to_owned(), look.alarming()),
    ]
}

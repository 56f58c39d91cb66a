//! The pools: a bar each of its GPUs, and below it its nodes.

use osprey_ports::NodeCapacity;

use super::brush::{Brush, Piece, fit, right};
use crate::joined::overview::{Overview, PoolStatus};
use crate::render::pools::capacity;
use crate::watch::feed::NODE_NAME;
use crate::watch::look::Look;

/// Columns of a pool's name.
const NAME: usize = 12;
/// Columns of a mode.
const MODE: usize = 12;
/// Columns of the numbers behind a bar.
const NUMBERS: usize = 26;
/// GPUs of a node that has a bar with a sign for each.
const NODE_GPUS_MAX: u32 = 8;
/// Rows that the nodes of a pool take at most.
const NODE_ROWS_MAX: usize = 4;
/// How full a node is, in eighths.
const EIGHTHS: [&str; 9] = ["·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// How much is shown of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// Each with its name, where they aren't too many, else a sign each.
    Named,
    /// One row of signs.
    Signs,
    /// Nothing: the pools alone.
    Pools,
}

/// Rows that the pools want.
pub(super) fn height(overview: &Overview, columns: u16) -> u16 {
    u16::try_from(rows(overview, usize::from(columns), Detail::Named) + 1).unwrap_or(u16::MAX)
}

fn rows(overview: &Overview, columns: usize, detail: Detail) -> usize {
    let of_pool = |pool| 1 + node_rows(pool, columns, detail);
    overview.pools.iter().map(of_pool).sum::<usize>() + overview.faults.len()
}

/// Draws the pools; every pool has its bar before any has its nodes.
pub(super) fn draw(overview: &Overview, brush: &mut Brush<'_>) {
    let look = brush.look();
    brush.heading("pools", "█ taken  ░ kept for some  · free");
    let (columns, room) = (brush.width(), brush.room());
    let fits = |detail: &Detail| rows(overview, columns, *detail) <= room;
    let detail = [Detail::Named, Detail::Signs].into_iter().find(fits).unwrap_or(Detail::Pools);
    for pool in &overview.pools {
        brush.line(&bar_line(pool, columns, look));
        nodes(pool, detail, brush);
    }
    for fault in &overview.faults {
        brush.text(&fit(&format!(" ! {fault}"), columns), look.alarming());
    }
}

fn bar_line(pool: &PoolStatus, columns: usize, look: Look) -> Vec<Piece> {
    let gpus = pool.gpus;
    let is_drained = pool.setup.is_some_and(|setup| setup.drained);
    let mode = pool.setup.map_or("gone", |setup| if is_drained { "‖ drained" } else { setup.mode.as_str() });
    let kind = pool.setup.map(|setup| capacity(setup.capacity)).filter(|kind| *kind == "spot").unwrap_or_default();
    let mode = if kind.is_empty() { mode.to_owned() } else { format!("{mode} {kind}") };
    let numbers = match (gpus.total, gpus.free()) {
        (Some(total), Some(free)) => format!(" {}/{total} GPUs, {free} free", gpus.used),
        _ => format!(" {} GPUs taken", gpus.used),
    };
    let cells = columns.saturating_sub(1 + NAME + 1 + MODE + NUMBERS);
    let kept = gpus.headroom.saturating_add(gpus.reserved.saturating_sub(gpus.reserved_used));
    let of_mode = if is_drained { look.alarming() } else { look.faint() };
    let mut pieces = vec![(format!(" {} ", fit(pool.name.as_str(), NAME)), look.strong()), (fit(&mode, MODE), of_mode)];
    pieces.extend(bar(cells, gpus.total.unwrap_or(gpus.used), gpus.used, kept, look));
    pieces.push((fit(&numbers, NUMBERS), look.plain()));
    pieces
}

/// A bar: taken, free, and of that kept for some. Whatever isn't nothing has a cell at least.
fn bar(cells: usize, total: u32, used: u32, kept: u32, look: Look) -> Vec<Piece> {
    let of = |part: u32| -> usize {
        let part = usize::try_from(part.min(total)).unwrap_or(0);
        let total = usize::try_from(total).unwrap_or(1).max(1);
        // Rounded, and never away from nothing or from everything.
        let rounded = (part * cells + total / 2) / total;
        let most = if part == total { cells } else { cells.saturating_sub(1) };
        if part == 0 { 0 } else { rounded.clamp(1.min(cells), most.max(1.min(cells))) }
    };
    let taken = of(used);
    let kept = of(kept.min(total.saturating_sub(used))).min(cells - taken);
    vec![
        ("█".repeat(taken), look.taken()),
        ("·".repeat(cells - taken - kept), look.faint()),
        ("░".repeat(kept), look.kept()),
    ]
}

/// How the nodes of a pool are shown.
enum Nodes<'p> {
    /// Each with its name and a sign for each GPU.
    Named(&'p [NodeCapacity], usize),
    /// One sign each.
    Signs(&'p [NodeCapacity], usize),
    /// None is up, or they can't be seen.
    None,
}

fn arranged(pool: &PoolStatus, columns: usize, detail: Detail) -> Nodes<'_> {
    let Some(nodes) = pool.nodes.as_deref().filter(|nodes| !nodes.is_empty()) else { return Nodes::None };
    let gpus = nodes.iter().map(|node| node.gpus).max().unwrap_or(0);
    let cell = node_cell(gpus);
    let across = columns.saturating_sub(2) / cell;
    if detail == Detail::Named && gpus <= NODE_GPUS_MAX && across > 0 && nodes.len().div_ceil(across) <= NODE_ROWS_MAX {
        Nodes::Named(nodes, across)
    } else {
        Nodes::Signs(nodes, columns.saturating_sub(2 + NUMBERS))
    }
}

/// Columns of a node with its name: ` i-0a10     ████████ 8/8 `.
fn node_cell(gpus: u32) -> usize {
    NODE_NAME + 1 + usize::try_from(gpus).unwrap_or(0) + 6
}

fn node_rows(pool: &PoolStatus, columns: usize, detail: Detail) -> usize {
    match (detail, arranged(pool, columns, detail)) {
        (Detail::Pools, _) => 0,
        (_, Nodes::Named(nodes, across)) => nodes.len().div_ceil(across),
        (Detail::Signs, Nodes::Signs(..)) => 1,
        (_, Nodes::Signs(nodes, across)) => nodes.len().div_ceil(across.max(1)).min(NODE_ROWS_MAX),
        (_, Nodes::None) => usize::from(pool.setup.is_some()),
    }
}

fn nodes(pool: &PoolStatus, detail: Detail, brush: &mut Brush<'_>) {
    let look = brush.look();
    let most = node_rows(pool, brush.width(), detail);
    if most == 0 {
        return;
    }
    match arranged(pool, brush.width(), detail) {
        Nodes::Named(nodes, across) => {
            for row in nodes.chunks(across) {
                let pieces: Vec<Piece> = row.iter().flat_map(|node| named(node, look)).collect();
                let pieces: Vec<Piece> = std::iter::once(("  ".to_owned(), look.plain())).chain(pieces).collect();
                brush.line(&pieces);
            }
        }
        Nodes::Signs(nodes, across) => signs(pool, nodes, (across.max(1), most), brush),
        Nodes::None if pool.setup.is_some() => brush.text(&format!("  {}", none_up(pool)), look.faint()),
        Nodes::None => {}
    }
}

fn none_up(pool: &PoolStatus) -> String {
    match pool.nodes {
        Some(_) => format!("no node is up; {} can be had", pool.obtainable),
        None => "its nodes can't be seen".to_owned(),
    }
}

fn named(node: &NodeCapacity, look: Look) -> [Piece; 4] {
    let NodeCapacity { id, gpus, gpus_used, .. } = node;
    let used = (*gpus_used).min(*gpus);
    let cells = |count: u32| usize::try_from(count).unwrap_or(0);
    // The beginning of a node's name tells it from others.
    let name: String = id.chars().take(NODE_NAME).collect();
    [
        (format!("{} ", fit(&name, NODE_NAME)), look.faint()),
        ("█".repeat(cells(used)), look.taken()),
        ("·".repeat(cells(gpus - used)), look.faint()),
        (format!("{} ", right(&format!("{gpus_used}/{gpus}"), 5)), look.plain()),
    ]
}

fn signs(pool: &PoolStatus, nodes: &[NodeCapacity], (across, most): (usize, usize), brush: &mut Brush<'_>) {
    let look = brush.look();
    let rows = nodes.len().div_ceil(across).min(most);
    let shown = nodes.len().min(rows * across);
    for (number, row) in nodes.chunks(across).take(rows).enumerate() {
        let text: String = row.iter().map(|node| sign(node)).collect();
        let is_last = number + 1 == rows;
        let note = if is_last { note(pool, nodes.len(), shown) } else { String::new() };
        brush.line(&[(format!("  {text}"), look.taken()), (note, look.faint())]);
    }
}

fn note(pool: &PoolStatus, all: usize, shown: usize) -> String {
    let more = if all > shown { format!(" +{}", all - shown) } else { String::new() };
    let obtainable = if pool.obtainable > 0 { format!(", {} more to have", pool.obtainable) } else { String::new() };
    format!("{more} {all} nodes{obtainable}")
}

/// How full a node is; what isn't empty or full is never shown as if it were.
fn sign(node: &NodeCapacity) -> &'static str {
    let (used, gpus) = (node.gpus_used.min(node.gpus), node.gpus.max(1));
    let eighths = if used == 0 {
        0
    } else if used == gpus {
        8
    } else {
        (used * 8 / gpus).clamp(1, 7)
    };
    usize::try_from(eighths).ok().and_then(|eighths| EIGHTHS.get(eighths)).copied().unwrap_or("█")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_cells_and_hides_nothing() {
        let look = Look { has_colours: false };
        let drawn =
            |total, used, kept| bar(10, total, used, kept, look).into_iter().map(|(text, _)| text).collect::<String>();
        for (total, used, kept, want) in [
            (64, 37, 12, "██████··░░"),
            (64, 1, 0, "█·········"),
            (64, 63, 0, "█████████·"),
            (64, 64, 4, "██████████"),
            (64, 0, 0, "··········"),
            (0, 0, 0, "··········"),
            (8, 20, 0, "██████████"),
        ] {
            assert_eq!(drawn(total, used, kept), want, "{used}/{total}");
        }
    }

    #[test]
    fn a_node_that_is_nearly_empty_or_full_isnt_shown_as_if_it_were() {
        let node = |gpus_used| NodeCapacity { gpus: 16, gpus_used, ..NodeCapacity::default() };
        assert_eq!([0, 1, 8, 15, 16, 20].map(|used| sign(&node(used))), ["·", "▁", "▄", "▇", "█", "█"]);
    }
}

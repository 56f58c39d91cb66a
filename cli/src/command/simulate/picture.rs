//! The picture for a terminal: what each node did over time.

use osprey_sim::cluster::{Cluster, Placement};
use osprey_sim::schedule::{Schedule, Segment};

use super::answer::{Answer, Outcome};
use crate::render::time;

/// Most nodes of a picture: a screen's worth.
pub const NODES_MAX: u32 = 32;
/// Moments across the picture.
const COLUMNS: u64 = 96;
/// How full a node is, from empty to all of its GPUs.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];
/// A start that evicted others.
const DIVE: char = '▼';

/// Whether a cluster has a picture: its nodes matter, and they fit a screen.
#[must_use]
pub fn is_drawn(cluster: &Cluster) -> bool {
    cluster.placement == Placement::Node && cluster.nodes <= NODES_MAX
}

/// A picture of each strategy's schedule; empty where there is none to draw.
#[must_use]
pub fn render(answer: &Answer) -> String {
    let Some(source) = answer.source().filter(|source| is_drawn(&source.cluster)) else { return String::new() };
    let drawn = || answer.outcomes().iter().filter(|outcome| !outcome.schedule.segments.is_empty());
    // One end for all of them, so that the pictures can be compared.
    let ends = drawn().flat_map(|outcome| &outcome.schedule.segments).map(|segment| segment.end_ms);
    let end_ms = ends.max().unwrap_or(0).max(1);
    drawn().map(|outcome| one(outcome, &source.cluster, end_ms)).collect::<Vec<_>>().join("\n\n")
}

fn one(outcome: &Outcome, cluster: &Cluster, end_ms: u64) -> String {
    let mut lines = vec![format!("{}, one row a node, {DIVE} a dive", outcome.strategy)];
    lines.extend((0..cluster.nodes).map(|node| {
        let row = Row { node, end_ms, gpus: cluster.gpus_per_node, schedule: &outcome.schedule };
        format!("{node:>4} {}", row.text())
    }));
    let until = i64::try_from(end_ms).map_or_else(|_| String::new(), time::short);
    let gap = usize::try_from(COLUMNS).unwrap_or(0).saturating_sub(1);
    lines.push(format!("     0{until:>gap$}"));
    lines.join("\n")
}

/// One node's row.
struct Row<'s> {
    node: u32,
    end_ms: u64,
    gpus: u32,
    schedule: &'s Schedule,
}

impl Row<'_> {
    fn text(&self) -> String {
        let here: Vec<(&Segment, u32)> =
            self.schedule.segments.iter().filter_map(|s| Some((s, self.held(s)?))).collect();
        (0..COLUMNS).map(|column| self.cell(&here, column)).collect()
    }

    /// GPUs of this node that a run holds.
    fn held(&self, segment: &Segment) -> Option<u32> {
        segment.nodes.iter().find(|(node, _)| *node == self.node).map(|(_, gpus)| *gpus)
    }

    fn cell(&self, here: &[(&Segment, u32)], column: u64) -> char {
        let at = |column: u64| self.end_ms * column / COLUMNS;
        let (from, to) = (at(column), at(column + 1).max(at(column) + 1));
        if here.iter().any(|(segment, _)| segment.is_dive && (from..to).contains(&segment.start_ms)) {
            return DIVE;
        }
        let overlap = |segment: &Segment| segment.end_ms.min(to).saturating_sub(segment.start_ms.max(from));
        let held: u64 = here.iter().map(|(segment, gpus)| overlap(segment) * u64::from(*gpus)).sum();
        let whole = (to - from) * u64::from(self.gpus.max(1));
        // Rounded up, so that whatever ran can be seen; all of the GPUs only when all were held all the time.
        let shade = if held >= whole { 4 } else { (held * 3).div_ceil(whole) };
        usize::try_from(shade).ok().and_then(|shade| SHADES.get(shade)).copied().unwrap_or(' ')
    }
}

#[cfg(test)]
mod tests {
    use osprey_sim::schedule::SegmentEnd;

    use super::*;

    #[test]
    fn a_row_shows_how_full_a_node_is_and_where_a_dive_was() {
        let segment = |start_ms, end_ms, gpus, is_dive| Segment {
            job: 0,
            start_ms,
            end_ms,
            nodes: vec![(0, gpus)],
            end: SegmentEnd::Done,
            is_dive,
        };
        let segments = vec![segment(0, 24, 8, false), segment(48, 72, 2, false), segment(72, 96, 8, true)];
        let schedule = Schedule { segments, ..Schedule::default() };
        let row = Row { node: 0, end_ms: 96, gpus: 8, schedule: &schedule }.text();
        let parts: Vec<String> = [(0, 24), (24, 48), (48, 72), (72, 73), (73, 96)]
            .map(|(from, to): (usize, usize)| row.chars().skip(from).take(to - from).collect())
            .to_vec();
        let want = ["█".repeat(24), "·".repeat(24), "░".repeat(24), "▼".to_owned(), "█".repeat(23)];
        assert_eq!(parts, want);
        let other = Row { node: 1, end_ms: 96, gpus: 8, schedule: &schedule }.text();
        assert_eq!(other, "·".repeat(96));
    }
}

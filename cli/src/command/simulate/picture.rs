//! The picture for a terminal: what each node did over time.

use osprey_sim::cluster::Placement;
use osprey_sim::schedule::{Schedule, Segment, SegmentEnd};

use super::answer::{Answer, Outcome};
use super::cluster::Described;
use crate::render::time;
use crate::ui::Paint;

/// Most nodes of a picture: a screen's worth.
const NODES_MAX: usize = 32;
/// Moments across the picture where nobody says how wide the terminal is, and the most where somebody does.
const COLUMNS: u64 = 96;
/// The fewest: below, nothing can be told apart.
const COLUMNS_MIN: u64 = 20;
/// Most letters of a node's name.
const NAME_LETTERS_MAX: usize = 16;
/// How full a node is, from empty to all of its GPUs.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];
/// A start that evicted others.
const DIVE: char = '▼';
/// A node that was lost with what ran on it.
const LOST: char = '×';

/// Whether a cluster has a picture: its nodes matter, and they fit a screen.
#[must_use]
pub fn is_drawn(described: &Described) -> bool {
    described.cluster.placement != Placement::Count && described.node_gpus().len() <= NODES_MAX
}

/// A picture of each strategy's schedule; empty where there is none to draw.
#[must_use]
pub fn render(answer: &Answer, width: Option<usize>, paint: Paint) -> String {
    let Some(source) = answer.source().filter(|source| is_drawn(&source.described)) else { return String::new() };
    let drawn = || answer.outcomes().iter().filter(|outcome| !outcome.schedule.segments.is_empty());
    // One end for all of them, so that the pictures can be compared.
    let ends = drawn().flat_map(|outcome| &outcome.schedule.segments).map(|segment| segment.end_ms);
    let end_ms = ends.max().unwrap_or(0).max(1);
    let frame = Frame::new(&source.described, end_ms, width);
    drawn().map(|outcome| frame.picture(outcome, paint)).collect::<Vec<_>>().join("\n\n")
}

/// What all pictures have in common.
struct Frame {
    names: Vec<String>,
    gpus: Vec<u32>,
    end_ms: u64,
    columns: u64,
}

impl Frame {
    fn new(described: &Described, end_ms: u64, width: Option<usize>) -> Self {
        let gpus = described.node_gpus();
        let short = |node| described.name(node).chars().take(NAME_LETTERS_MAX).collect::<String>();
        let names: Vec<String> = (0..gpus.len()).map(short).collect();
        let label = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
        let room = width.and_then(|width| u64::try_from(width.saturating_sub(label + 1)).ok());
        let columns = room.map_or(COLUMNS, |room| room.clamp(COLUMNS_MIN, COLUMNS));
        Self { names: names.iter().map(|name| format!("{name:>label$}")).collect(), gpus, end_ms, columns }
    }

    fn picture(&self, outcome: &Outcome, paint: Paint) -> String {
        let schedule = &outcome.schedule;
        let mut lines = vec![heading(outcome, paint)];
        lines.extend((0_u32..).zip(&self.names).zip(&self.gpus).map(|((node, name), gpus)| {
            let row = Row { node, end_ms: self.end_ms, gpus: *gpus, columns: self.columns, schedule };
            format!("{name} {}", painted(&row.text(), paint))
        }));
        let until = i64::try_from(self.end_ms).map_or_else(|_| String::new(), time::short);
        let label = self.names.first().map_or(4, |name| name.chars().count()) + 1;
        let gap = usize::try_from(self.columns).unwrap_or(0).saturating_sub(1);
        lines.push(format!("{:label$}0{until:>gap$}", ""));
        lines.join("\n")
    }
}

/// The strategy, and what the signs mean that its picture has.
fn heading(outcome: &Outcome, paint: Paint) -> String {
    let segments = &outcome.schedule.segments;
    let mut text = format!("{}, one row a node", paint.strong(outcome.strategy));
    if segments.iter().any(|segment| segment.is_dive) {
        text.push_str(&format!(", {DIVE} a dive"));
    }
    if segments.iter().any(|segment| segment.end == SegmentEnd::HostLost) {
        text.push_str(&format!(", {LOST} a lost host"));
    }
    text
}

/// Signs stand out in colour.
fn painted(row: &str, paint: Paint) -> String {
    let sign = |sign: char| paint.wrong(&sign.to_string());
    row.replace(DIVE, &sign(DIVE)).replace(LOST, &sign(LOST))
}

/// One node's row.
struct Row<'s> {
    node: u32,
    end_ms: u64,
    gpus: u32,
    columns: u64,
    schedule: &'s Schedule,
}

impl Row<'_> {
    fn text(&self) -> String {
        let here: Vec<(&Segment, u32)> =
            self.schedule.segments.iter().filter_map(|s| Some((s, self.held(s)?))).collect();
        (0..self.columns).map(|column| self.cell(&here, column)).collect()
    }

    /// GPUs of this node that a run holds.
    fn held(&self, segment: &Segment) -> Option<u32> {
        segment.nodes.iter().find(|(node, _)| *node == self.node).map(|(_, gpus)| *gpus)
    }

    fn cell(&self, here: &[(&Segment, u32)], column: u64) -> char {
        let at = |column: u64| self.end_ms * column / self.columns;
        let (from, to) = (at(column), at(column + 1).max(at(column) + 1));
        if here.iter().any(|(segment, _)| segment.is_dive && (from..to).contains(&segment.start_ms)) {
            return DIVE;
        }
        let is_lost = |segment: &Segment| segment.end == SegmentEnd::HostLost && (from..to).contains(&segment.end_ms);
        if here.iter().any(|(segment, _)| is_lost(segment)) {
            return LOST;
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
        let row = Row { node: 0, end_ms: 96, gpus: 8, columns: 96, schedule: &schedule }.text();
        let parts: Vec<String> = [(0, 24), (24, 48), (48, 72), (72, 73), (73, 96)]
            .map(|(from, to): (usize, usize)| row.chars().skip(from).take(to - from).collect())
            .to_vec();
        let want = ["█".repeat(24), "·".repeat(24), "░".repeat(24), "▼".to_owned(), "█".repeat(23)];
        assert_eq!(parts, want);
        let other = Row { node: 1, end_ms: 96, gpus: 8, columns: 96, schedule: &schedule }.text();
        assert_eq!(other, "·".repeat(96));
    }
}

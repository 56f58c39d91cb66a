//! What each node did: every run of a small cluster, and how full the nodes of a large one were.

use std::fmt::Write as _;

use osprey_sim::schedule::{Schedule, Segment, SegmentEnd};
use osprey_sim::workload::Workload;

use super::charts::{spoken, tier_class};
use super::html::{Frame, escaped};
use super::scale::Tick;

/// Most nodes whose runs are drawn one by one.
const NODES_MAX: usize = 32;
/// Most rows of a large cluster's picture; a row is then several nodes.
const ROWS_MAX: usize = 48;
/// Moments across it.
const PARTS: usize = 200;
/// The drawing's own width.
const WIDTH: f64 = 1_000.0;
/// How full, in steps.
const LEVELS: u32 = 5;

/// What pictures of all strategies have in common.
pub struct Nodes<'a> {
    /// GPUs of each node.
    pub gpus: &'a [u32],
    /// What each is called.
    pub names: &'a [String],
    /// The end of the axis, in milliseconds.
    pub end_ms: u64,
    /// Its ticks.
    pub x: &'a [Tick],
    /// Whether each run is drawn.
    pub each: bool,
}

/// Whether runs can be drawn one by one.
pub fn is_small(nodes: usize, runs: usize, runs_max: usize) -> bool {
    nodes <= NODES_MAX && runs <= runs_max
}

impl Nodes<'_> {
    /// The picture of a strategy.
    pub fn html(&self, strategy: &str, workload: &Workload, schedule: &Schedule) -> String {
        let label = format!("what each node did under {strategy}");
        let (drawing, names, tall) = if self.each { self.runs(workload, schedule) } else { self.fullness(schedule) };
        let rows = names.len().max(1);
        let y: Vec<Tick> = names
            .iter()
            .enumerate()
            .map(|(row, name)| Tick { at: 1.0 - (row as f64 + 0.5) / rows as f64, text: name.clone() })
            .collect();
        let each = if self.each { 26 } else { 16 };
        let height = u32::try_from(rows).unwrap_or(1).saturating_mul(each).clamp(40, 900);
        let shown = if self.each || rows <= 24 { y } else { y.into_iter().step_by(rows.div_ceil(16)).collect() };
        let size = (WIDTH, tall);
        let frame = Frame { label: &label, height, x: self.x, y: &shown, size, drawing: &drawing, key: "" };
        format!("<figure class=\"nodes\"><figcaption>{}</figcaption>{}</figure>", escaped(strategy), frame.html())
    }

    fn x_of(&self, ms: u64) -> f64 {
        ms as f64 / self.end_ms.max(1) as f64 * WIDTH
    }

    /// A rectangle for each run on each node: as wide as it took, as high as its GPUs.
    fn runs(&self, workload: &Workload, schedule: &Schedule) -> (String, Vec<String>, f64) {
        let mut runs: Vec<&Segment> = schedule.segments.iter().collect();
        runs.sort_unstable_by_key(|run| (run.start_ms, run.job));
        // GPUs of a node, each with the time until which it is taken.
        let mut until: Vec<Vec<u64>> = self.gpus.iter().map(|gpus| vec![0; size(*gpus)]).collect();
        let mut drawing = tracks(self.gpus.len());
        for run in runs {
            let Some(job) = workload.jobs.get(run.job) else { continue };
            let mut shapes = String::new();
            for (node, gpus) in &run.nodes {
                let node = size(*node);
                let strips = until.get_mut(node).map(|until| take(until, run, size(*gpus))).unwrap_or_default();
                let per_gpu = 1.0 / f64::from(self.gpus.get(node).copied().unwrap_or(1).max(1));
                for (first, count) in strips {
                    let y = node as f64 + 0.06 + first as f64 * per_gpu * 0.88;
                    let (x, w) = (self.x_of(run.start_ms), self.x_of(run.end_ms - run.start_ms).max(1.6));
                    let _ = write!(shapes, "M{x:.1},{y:.3}h{w:.1}v{:.3}h-{w:.1}z", count as f64 * per_gpu * 0.88);
                }
            }
            let tier = workload.tiers.get(usize::from(job.tier)).map_or("", String::as_str);
            let title = format!(
                "{} · {tier} · {} GPU · {} to {} · {}",
                job.id,
                job.gpus,
                spoken(run.start_ms as f64 / 1_000.0),
                spoken(run.end_ms as f64 / 1_000.0),
                ended(run)
            );
            let class =
                format!("run {}{}{}", tier_class(job.tier.into()), cut(run), if run.is_dive { " dive" } else { "" });
            let _ = write!(drawing, "<path class=\"{class}\" d=\"{shapes}\"><title>{}</title></path>", escaped(&title));
        }
        (drawing, self.names.to_vec(), self.gpus.len().max(1) as f64)
    }

    /// How full nodes were, several of them in one row where they are many.
    fn fullness(&self, schedule: &Schedule) -> (String, Vec<String>, f64) {
        let each = self.gpus.len().div_ceil(ROWS_MAX).max(1);
        let rows = self.gpus.len().div_ceil(each).max(1);
        let mut held = vec![vec![0.0_f64; PARTS]; rows];
        let length = self.end_ms.max(1) as f64 / PARTS as f64;
        for run in &schedule.segments {
            let (from, to) = (run.start_ms as f64 / length, run.end_ms as f64 / length);
            for (node, gpus) in &run.nodes {
                let Some(row) = held.get_mut(size(*node) / each) else { continue };
                for (part, held) in
                    row.iter_mut().enumerate().skip(whole(from)).take_while(|(part, _)| (*part as f64) < to)
                {
                    let (begin, end) = (part as f64, part as f64 + 1.0);
                    *held += f64::from(*gpus) * (to.min(end) - from.max(begin)).max(0.0);
                }
            }
        }
        let has = |row: usize| self.gpus.iter().skip(row * each).take(each).map(|gpus| f64::from(*gpus)).sum::<f64>();
        let levels: Vec<Vec<u32>> = held
            .iter()
            .enumerate()
            .map(|(row, held)| held.iter().map(|held| level(*held / has(row).max(1.0))).collect())
            .collect();
        let cells: String = (1..=LEVELS).map(|wanted| cells(&levels, wanted)).collect();
        let drawing = tracks(rows) + &cells;
        let name = |row: usize| {
            let (first, last) = (row * each, ((row + 1) * each - 1).min(self.gpus.len().saturating_sub(1)));
            let named = |node: usize| self.names.get(node).cloned().unwrap_or_default();
            if first == last { named(first) } else { format!("{}–{}", named(first), named(last)) }
        };
        (drawing, (0..rows).map(name).collect(), rows as f64)
    }
}

/// What is there of every row, held or not.
fn tracks(rows: usize) -> String {
    let row = |row: usize| format!("M0,{:.2}h{WIDTH}v.88h-{WIDTH}z", row as f64 + 0.06);
    format!("<path class=\"track\" d=\"{}\"/>", (0..rows).map(row).collect::<String>())
}

/// Takes so many strips for a run: neighbours where there are some. Gives first strips and their number.
fn take(until: &mut [u64], run: &Segment, count: usize) -> Vec<(usize, usize)> {
    let is_free = |strip: &u64| *strip <= run.start_ms;
    let together = until.windows(count.max(1)).position(|strips| strips.iter().all(is_free));
    let chosen: Vec<usize> = match together {
        Some(first) => (first..first + count).collect(),
        None => (0..until.len()).filter(|strip| until.get(*strip).is_some_and(is_free)).take(count).collect(),
    };
    let mut strips: Vec<(usize, usize)> = Vec::new();
    for strip in chosen {
        if let Some(until) = until.get_mut(strip) {
            *until = run.end_ms;
        }
        match strips.last_mut() {
            Some((first, count)) if *first + *count == strip => *count += 1,
            _ => strips.push((strip, 1)),
        }
    }
    strips
}

fn ended(run: &Segment) -> &'static str {
    match run.end {
        SegmentEnd::Done => "done",
        SegmentEnd::Preempted => "evicted",
        SegmentEnd::HostLost => "its host was lost",
        SegmentEnd::Failed => "failed",
    }
}

fn cut(run: &Segment) -> &'static str {
    match run.end {
        SegmentEnd::Done => "",
        SegmentEnd::Preempted => " evicted",
        SegmentEnd::HostLost => " lost",
        SegmentEnd::Failed => " failed",
    }
}

/// The cells of one level, neighbours as one.
fn cells(levels: &[Vec<u32>], wanted: u32) -> String {
    let step = WIDTH / PARTS as f64;
    let mut path = String::new();
    for (row, levels) in levels.iter().enumerate() {
        let mut part = 0;
        for run in levels.chunk_by(|a, b| a == b) {
            if run.first() == Some(&wanted) {
                let (x, w) = (part as f64 * step, run.len() as f64 * step);
                let _ = write!(path, "M{x},{:.2}h{w}v.88h-{w}z", row as f64 + 0.06);
            }
            part += run.len();
        }
    }
    format!("<path class=\"cell l{wanted}\" d=\"{path}\"/>")
}

/// How full, from 0 for nothing to [`LEVELS`] for nearly everything.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share, never negative")]
fn level(share: f64) -> u32 {
    (share * f64::from(LEVELS)).ceil().clamp(0.0, f64::from(LEVELS)) as u32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part's number, never negative")]
fn whole(part: f64) -> usize {
    part as usize
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_sit_on_strips_that_are_free() {
        let run = |start_ms, end_ms| Segment {
            job: 0,
            start_ms,
            end_ms,
            nodes: Vec::new(),
            end: SegmentEnd::Done,
            is_dive: false,
        };
        let mut until = vec![0; 4];
        assert_eq!(take(&mut until, &run(0, 9), 1), [(0, 1)]);
        assert_eq!(take(&mut until, &run(0, 5), 2), [(1, 2)]);
        assert_eq!(take(&mut until, &run(0, 9), 1), [(3, 1)]);
        assert_eq!(take(&mut until, &run(5, 7), 1), [(1, 1)]);
        let mut until = vec![0, 9, 0, 0];
        assert_eq!(take(&mut until, &run(1, 2), 3), [(0, 1), (2, 2)]);
    }

    #[test]
    fn neighbours_of_one_level_are_one_cell() {
        assert_eq!([0.0, 0.01, 0.2, 0.21, 1.0, 1.2].map(level), [0, 1, 1, 2, 5, 5]);
        let path = cells(&[vec![2, 2, 0, 2]], 2);
        assert_eq!(path, "<path class=\"cell l2\" d=\"M0,0.06h10v.88h-10zM15,0.06h5v.88h-5z\"/>");
    }
}

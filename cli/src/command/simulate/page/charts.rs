//! The plots of numbers over time, and of waits.

use std::fmt::Write as _;

use osprey_sim::series::Series;
use serde_json::{Value, json};

use super::html::{Frame, escaped};
use super::scale::{self, Tick};

/// The drawing's own width; it is stretched to the screen.
const WIDTH: f64 = 1_000.0;
const TALL: f64 = 100.0;
/// Points of a curve of waits.
const CURVE_POINTS: u32 = 240;

/// A series as it is drawn and told: its name, the class of its colour, its values.
pub struct Line {
    /// Its name.
    pub name: String,
    /// The class of its colour.
    pub class: String,
    /// Values, from the left to the right.
    pub values: Vec<f64>,
}

/// What a script tells of a plot under the pointer.
pub fn told(lines: &[Line], x: &[String], unit: &str) -> Value {
    let line = |line: &Line| {
        let values: Vec<f64> = line.values.iter().map(|value| rounded(*value)).collect();
        json!({ "name": line.name, "class": line.class, "values": values })
    };
    json!({ "x": x, "unit": unit, "lines": lines.iter().map(line).collect::<Vec<_>>() })
}

/// Three digits are enough to be told.
fn rounded(value: f64) -> f64 {
    if value >= 100.0 { value.round() } else { (value * 100.0).round() / 100.0 }
}

/// Areas on top of each other, the first at the bottom.
pub fn stacked(title: &str, lines: &[Line], x: &[Tick], (y, end): (&[Tick], f64), key: &str) -> String {
    let parts = lines.first().map_or(0, |line| line.values.len());
    let mut below = vec![0.0; parts];
    let mut drawing = String::new();
    for line in lines.iter().filter(|line| line.values.iter().any(|value| *value > 0.0)) {
        let above: Vec<f64> = below.iter().zip(&line.values).map(|(below, value)| below + value).collect();
        let _ = write!(drawing, "<path class=\"fill {}\" d=\"{}\"/>", line.class, band(&below, &above, end));
        below = above;
    }
    let frame = Frame { label: title, height: 150, x, y, size: (WIDTH, TALL), drawing: &drawing, key };
    format!("<figure><figcaption>{}</figcaption>{}</figure>", escaped(title), frame.html())
}

/// Steps from one line to another, as a path.
fn band(below: &[f64], above: &[f64], end: f64) -> String {
    let step = WIDTH / below.len().max(1) as f64;
    let y = |value: f64| TALL - (value / end * TALL).clamp(0.0, TALL);
    let mut path = String::new();
    for (index, value) in above.iter().enumerate() {
        let letter = if index == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{letter}{:.1},{:.2}H{:.1}", index as f64 * step, y(*value), (index + 1) as f64 * step);
    }
    for (index, value) in below.iter().enumerate().rev() {
        let _ = write!(path, "L{:.1},{:.2}H{:.1}", (index + 1) as f64 * step, y(*value), index as f64 * step);
    }
    path.push('Z');
    path
}

/// Lines of GPUs held by tier, and of those that packing leaves over.
pub fn use_of(series: &Series, tiers: &[String]) -> Vec<Line> {
    let mut lines = by_tier(&series.held, tiers);
    lines.push(Line { name: "left over".to_owned(), class: "over".to_owned(), values: series.stranded.clone() });
    lines
}

/// A line a tier, the least urgent at the bottom.
pub fn by_tier(values: &[Vec<f64>], tiers: &[String]) -> Vec<Line> {
    let named = values.iter().enumerate().map(|(tier, values)| Line {
        name: tiers.get(tier).cloned().unwrap_or_else(|| "jobs".to_owned()),
        class: tier_class(tier),
        values: values.clone(),
    });
    let mut lines: Vec<Line> = named.collect();
    lines.reverse();
    lines
}

/// The class of a tier's colour.
pub fn tier_class(tier: usize) -> String {
    format!("t{}", tier % 8)
}

/// The class of a strategy's colour and stroke.
pub fn strategy_class(strategy: usize) -> String {
    format!("s{}{}", strategy % 8, if strategy < 8 { "" } else { " dashed" })
}

/// Shares of jobs that waited at most so long, one curve a strategy: the plot, and what a script tells of it.
pub fn waits(strategies: &[(&str, Vec<f64>)], key: &str) -> (String, Value) {
    let longest = strategies.iter().filter_map(|(_, waits)| waits.last().copied()).fold(10.0, f64::max);
    let at = |point: u32| (longest.ln() * f64::from(point) / f64::from(CURVE_POINTS - 1)).exp();
    let curve = |(index, (name, waits)): (usize, &(&str, Vec<f64>))| {
        let share = |point: u32| waits.partition_point(|wait| *wait <= at(point)) as f64 / waits.len().max(1) as f64;
        let values = (0..CURVE_POINTS).map(|point| share(point) * 100.0).collect();
        Line { name: (*name).to_owned(), class: strategy_class(index), values }
    };
    let lines: Vec<Line> = strategies.iter().enumerate().map(curve).collect();
    let drawing: String = lines.iter().map(curve_path).collect();
    let (x, y) = (scale::waits(longest), scale::shares());
    let label = "share of jobs that waited at most so long";
    let frame = Frame { label, height: 260, x: &x, y: &y, size: (WIDTH, TALL), drawing: &drawing, key };
    let said: Vec<String> = (0..CURVE_POINTS).map(|point| format!("waited at most {}", spoken(at(point)))).collect();
    (frame.html(), told(&lines, &said, "%"))
}

fn curve_path(line: &Line) -> String {
    let step = WIDTH / (line.values.len().max(2) - 1) as f64;
    let point = |(index, value): (usize, &f64)| {
        let letter = if index == 0 { 'M' } else { 'L' };
        format!("{letter}{:.1},{:.2}", index as f64 * step, TALL - value)
    };
    let path: String = line.values.iter().enumerate().map(point).collect();
    format!("<path class=\"curve {}\" d=\"{path}\"/>", line.class)
}

/// Seconds as people say them.
#[expect(clippy::cast_possible_truncation, reason = "seconds of a simulation")]
pub fn spoken(seconds: f64) -> String {
    crate::render::time::short((seconds * 1_000.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_steps_there_and_back() {
        assert_eq!(
            band(&[0.0, 1.0], &[2.0, 3.0], 4.0),
            "M0.0,50.00H500.0L500.0,25.00H1000.0L1000.0,75.00H500.0L500.0,100.00H0.0Z"
        );
    }

    #[test]
    fn curves_of_waits_end_at_all_jobs() {
        let (html, told) = waits(&[("fifo", vec![0.0, 5.0, 4_000.0]), ("easy", vec![0.0, 0.0, 90.0])], "waits");
        assert!(html.contains("curve s0") && html.contains("curve s1") && html.contains("1 h"));
        assert_eq!(told["lines"][0]["values"][0], 33.33);
        assert_eq!(told["lines"][1]["values"][239], 100.0);
    }
}

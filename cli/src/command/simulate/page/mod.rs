//! `--html`: one page for browsers, complete in itself, light and dark, for screens from a phone's on.
//!
//! Drawings are stretched to the screen and their texts are not, so that both stay sharp. How much is drawn is bounded
//! whatever the number of jobs is: times are cut into [`PARTS`], waits into as many points, and runs are drawn one by one
//! only where they are few.

mod charts;
mod figures;
mod gantt;
mod html;
mod scale;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use osprey_sim::cluster::Placement;
use osprey_sim::schedule::{Schedule, SegmentEnd};
use osprey_sim::series::{Parts, Series};
use serde_json::Value;

use super::answer::{Answer, Outcome, Summary};
use super::source::Source;
use crate::error::{CliError, cause};
use crate::render::policy::counted;
use crate::ui::Ui;
use charts::{Line, spoken};
use html::{escaped, legend};
use scale::Tick;

/// Parts that time is cut into.
const PARTS: usize = 240;
/// Most runs that are drawn one by one, over all strategies.
const RUNS_MAX: usize = 6_000;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("hover.js");

/// Writes the page and says so.
///
/// # Errors
/// When the file can't be written.
pub fn write(path: &Path, answer: &Answer, ui: &mut Ui) -> Result<(), CliError> {
    let Some(source) = answer.source() else { return Ok(()) };
    let command: Vec<String> = std::env::args().skip(1).map(|word| quoted(&word)).collect();
    let text = Page::new(answer, source).html(&format!("osprey {}", command.join(" ")), answer.seed());
    std::fs::write(path, text)
        .map_err(|error| CliError::failed(format!("`{}` can't be written: {}", path.display(), cause(&error))))?;
    ui.note(&format!("wrote `{}`", path.display()));
    Ok(())
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=,./:@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Everything that the page shows.
struct Page<'a> {
    source: &'a Source,
    outcomes: &'a [Outcome],
    summaries: Vec<Summary>,
    series: Vec<Series>,
    node_gpus: Vec<u32>,
    gpus: u32,
    end_ms: u64,
    /// Numbers that a script tells, by plot.
    told: BTreeMap<String, Value>,
}

impl<'a> Page<'a> {
    fn new(answer: &'a Answer, source: &'a Source) -> Self {
        let outcomes = answer.outcomes();
        let ends = outcomes.iter().flat_map(|outcome| &outcome.schedule.segments).map(|segment| segment.end_ms);
        let end_ms = ends.max().unwrap_or(0).max(1_000);
        let node_gpus = source.described.node_gpus();
        let parts = Parts { end_ms, count: PARTS };
        let series = |outcome: &Outcome| Series::of(&outcome.workload, &outcome.schedule, &node_gpus, parts);
        let series = outcomes.iter().map(series).collect();
        let gpus = node_gpus.iter().sum();
        Self { source, outcomes, summaries: answer.summaries(), series, node_gpus, gpus, end_ms, told: BTreeMap::new() }
    }

    fn html(mut self, command: &str, seed: u64) -> String {
        let waits = self.waits();
        let waiting = self.waiting();
        let used = self.used();
        let nodes = self.nodes();
        let figures = figures::table(&self.summaries);
        let told = html::script_json(&self.told.iter().map(|(key, value)| (key.clone(), value.clone())).collect());
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\">\
             <title>{title}</title><style>\n{STYLE}</style></head><body><main>{head}\
             {figures_section}{waits}{waiting}{used}{nodes}{foot}</main>\
             <script type=\"application/json\" id=\"plots\">{told}</script><script>\n{SCRIPT}</script></body></html>\n",
            title = escaped(&format!("Simulation of {}", self.source.name)),
            head = self.head(),
            figures_section = section(
                "figures",
                "Figures",
                "A wait is a job's completion without its run time, so time out after an interruption counts. Green is the best of a row.",
                &figures
            ),
            foot = self.foot(command, seed),
        )
    }

    fn head(&self) -> String {
        let jobs = grouped(&counted(self.source.workload.jobs.len(), "job"));
        let nodes = grouped(&counted(self.node_gpus.len(), "node"));
        let gpus = grouped(&counted(usize::try_from(self.gpus).unwrap_or(usize::MAX), "GPU"));
        format!(
            "<header><p class=\"over\">Osprey simulation</p><h1>{jobs} on {gpus}</h1>\
             <p class=\"lead\">{}, replayed on {nodes} under {}. {}</p>{}</header>",
            escaped(&self.source.name),
            escaped(&self.names().join(", ")),
            self.finding(),
            self.tiles()
        )
    }

    fn names(&self) -> Vec<&str> {
        self.outcomes.iter().map(|outcome| outcome.strategy).collect()
    }

    /// The strategy with the shortest mean wait.
    fn best(&self) -> Option<&Summary> {
        let wait = |summary: &&Summary| summary.get("mean_wait_seconds").mean;
        self.summaries.iter().min_by(|a, b| wait(a).total_cmp(&wait(b)))
    }

    /// What a reader should take away.
    fn finding(&self) -> String {
        let mean = |summary: &Summary| summary.get("mean_wait_seconds").mean;
        let worst = self.summaries.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)));
        let (Some(best), Some(worst)) = (self.best(), worst) else { return String::new() };
        let name = |summary: &Summary| format!("<strong>{}</strong>", escaped(summary.strategy));
        if spoken(mean(best)) == spoken(mean(worst)) {
            return format!("Jobs waited {} on average.", spoken(mean(best)));
        }
        let (best_wait, worst_wait) = (spoken(mean(best)), spoken(mean(worst)));
        format!(
            "Jobs waited least under {}: {best_wait} on average, and {worst_wait} under {}.",
            name(best),
            name(worst)
        )
    }

    fn tiles(&self) -> String {
        let Some(best) = self.best() else { return String::new() };
        let under = format!("under {}", escaped(best.strategy));
        let get = |name: &str| best.get(name).mean;
        let tile =
            |name: &str, value: String| format!("<div><dt>{name}</dt><dd>{value}<small>{under}</small></dd></div>");
        format!(
            "<dl class=\"tiles\">{}{}{}{}</dl>",
            tile("Mean wait", spoken(get("mean_wait_seconds"))),
            tile("Urgent mean wait", spoken(get("urgent_mean_wait_seconds"))),
            tile("Utilisation while jobs waited", format!("{:.0} %", get("utilisation_backlogged") * 100.0)),
            tile("GPU-hours lost", format!("{:.1}", get("lost_gpu_hours"))),
        )
    }

    fn waits(&mut self) -> String {
        let of = |outcome: &'a Outcome| (outcome.strategy, waits_of(outcome));
        let strategies: Vec<(&str, Vec<f64>)> = self.outcomes.iter().map(of).collect();
        let (plot, told) = charts::waits(&strategies, "waits");
        self.told.insert("waits".to_owned(), told);
        let named = named(&strategies);
        let named = named.iter().enumerate().map(|(index, name)| (charts::strategy_class(index), name.as_str()));
        section(
            "waits",
            "How long jobs waited",
            "The share of jobs that waited at most so long; a curve further up and left is better. Where it begins, jobs waited less than a second.",
            &format!("<div class=\"card\">{}{plot}</div>", legend(named)),
        )
    }

    fn tiers(&self) -> Vec<String> {
        self.source.workload.tiers.clone()
    }

    /// A legend of the tiers that have jobs.
    fn tier_legend(&self, more: &[(&str, &str)]) -> String {
        let has_jobs = |tier: &usize| self.source.workload.jobs.iter().any(|job| usize::from(job.tier) == *tier);
        let tiers = self.tiers();
        let named = tiers.iter().enumerate().filter(|(tier, _)| has_jobs(tier));
        let tiers = named.map(|(tier, name)| (charts::tier_class(tier), name.as_str()));
        legend(tiers.chain(more.iter().map(|(class, text)| ((*class).to_owned(), *text))))
    }

    fn x(&self) -> Vec<Tick> {
        scale::times(self.end_ms as f64 / 1_000.0)
    }

    /// What each part of time is called.
    fn moments(&self) -> Vec<String> {
        let length = self.end_ms as f64 / 1_000.0 / PARTS as f64;
        (0..PARTS).map(|part| format!("after {}", spoken((part as f64 + 0.5) * length))).collect()
    }

    fn waiting(&mut self) -> String {
        let sums = self.series.iter().flat_map(|series| most(&series.waiting));
        let (ticks, end) = scale::counts(sums.fold(0.0, f64::max));
        let plots =
            self.plots("waiting", "jobs", (&ticks, end), |series, tiers| charts::by_tier(&series.waiting, tiers));
        section(
            "waiting",
            "Jobs waiting, by tier",
            "Mean numbers of waiting jobs; every strategy on the same scale.",
            &format!("{}<div class=\"grid-of\">{plots}</div>", self.tier_legend(&[])),
        )
    }

    fn used(&mut self) -> String {
        let ticks = scale::shares();
        let plots = self.plots("used", "GPUs", (&ticks, f64::from(self.gpus.max(1))), charts::use_of);
        let has_nodes = self.source.described.cluster.placement != Placement::Count;
        let more: &[(&str, &str)] = if has_nodes { &[("over", "left over on partly held nodes")] } else { &[] };
        let text = if has_nodes {
            "GPUs held by each tier as a share of the cluster, and on top what packing left over: free GPUs on nodes of which others are held."
        } else {
            "GPUs held by each tier as a share of the cluster. GPUs were counted, so there are no nodes that packing could leave gaps on."
        };
        let body = format!("{}<div class=\"grid-of\">{plots}</div>", self.tier_legend(more));
        section("used", "GPUs in use, and left over", text, &body)
    }

    /// One plot a strategy, all on one scale.
    fn plots(
        &mut self,
        kind: &str,
        unit: &str,
        y: (&[Tick], f64),
        lines: impl Fn(&Series, &[String]) -> Vec<Line>,
    ) -> String {
        let (x, moments, tiers) = (self.x(), self.moments(), self.tiers());
        let mut plots = String::new();
        for (index, (outcome, series)) in self.outcomes.iter().zip(&self.series).enumerate() {
            let mut lines = lines(series, &tiers);
            lines.retain(|line| line.values.iter().any(|value| *value > 0.0));
            let key = format!("{kind}{index}");
            self.told.insert(key.clone(), charts::told(&lines, &moments, unit));
            plots.push_str(&charts::stacked(outcome.strategy, &lines, &x, y, &key));
        }
        plots
    }

    fn nodes(&self) -> String {
        if self.source.described.cluster.placement == Placement::Count {
            return String::new();
        }
        let runs: usize = self.outcomes.iter().map(|outcome| outcome.schedule.segments.len()).sum();
        let each = gantt::is_small(self.node_gpus.len(), runs, RUNS_MAX);
        let names: Vec<String> = (0..self.node_gpus.len()).map(|node| self.source.described.name(node)).collect();
        let x = self.x();
        let nodes = gantt::Nodes { gpus: &self.node_gpus, names: &names, end_ms: self.end_ms, x: &x, each };
        let plots: String = self
            .outcomes
            .iter()
            .map(|outcome| nodes.html(outcome.strategy, &outcome.workload, &outcome.schedule))
            .collect();
        let (text, legend) = if each {
            let marks = marks(self.outcomes.iter().map(|outcome| &outcome.schedule));
            let text = "Every run, as long as it took and as high as its GPUs; the pointer tells which job it is.";
            (text, self.tier_legend(&marks))
        } else {
            let steps = [("cell l1", "up to a fifth"), ("cell l3", "up to three fifths"), ("cell l5", "all GPUs held")];
            let text = "How full nodes were. There are too many runs to draw each, so a cell is a part of the time, and a row may be several nodes.";
            (text, legend(steps.map(|(class, text)| (class.to_owned(), text))))
        };
        section("nodes", "What the nodes did", text, &format!("{legend}<div class=\"one\">{plots}</div>"))
    }

    fn foot(&self, command: &str, seed: u64) -> String {
        let part = spoken(self.end_ms as f64 / 1_000.0 / PARTS as f64);
        let mut facts = vec![
            format!("Seed {seed}. The same command gives the same page, but for the time that replays took."),
            format!(
                "Plots over time are means over {PARTS} parts of {part} each; the curves of waits have as many points."
            ),
            format!(
                "Runs are drawn one by one where they are at most {RUNS_MAX} in all, on at most 32 nodes. The page stays below 3 MB however many jobs there are."
            ),
        ];
        let (bad, refused) = (self.source.bad.len(), self.source.refused.len());
        if bad > 0 {
            facts.push(format!("{} of the trace couldn't be used.", counted(bad, self.source.noun)));
        }
        if refused > 0 {
            facts.push(format!(
                "{} not admitted by the policy ran under the reference strategies only.",
                counted(refused, "job")
            ));
        }
        let facts: String = facts.iter().map(|fact| format!("<li>{}</li>", escaped(fact))).collect();
        let version = env!("CARGO_PKG_VERSION");
        format!("<footer><pre>{}</pre><ul>{facts}<li>Osprey {version}.</li></ul></footer>", escaped(command))
    }
}

/// Strategies by name; one whose waits are all those of another says so, since its curve hides the other's.
fn named(strategies: &[(&str, Vec<f64>)]) -> Vec<String> {
    let one = |(index, (name, waits)): (usize, &(&str, Vec<f64>))| {
        let same = strategies.iter().take(index).find(|(_, others)| others == waits);
        same.map_or_else(|| (*name).to_owned(), |(other, _)| format!("{name} (the same as {other})"))
    };
    strategies.iter().enumerate().map(one).collect()
}

/// A text that begins with a number, with its thousands told apart.
fn grouped(text: &str) -> String {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let comma = |(at, c): (usize, char)| {
        let is_first_of_three = at > 0 && at < digits && (digits - at).is_multiple_of(3);
        [is_first_of_three.then_some(','), Some(c)].into_iter().flatten()
    };
    text.chars().enumerate().flat_map(comma).collect()
}

/// What the marks of runs mean, where there are such runs.
fn marks<'s>(schedules: impl Iterator<Item = &'s Schedule>) -> Vec<(&'static str, &'static str)> {
    let (mut dives, mut evicted, mut lost) = (false, false, false);
    for segment in schedules.flat_map(|schedule| &schedule.segments) {
        dives |= segment.is_dive;
        evicted |= segment.end == SegmentEnd::Preempted;
        lost |= matches!(segment.end, SegmentEnd::HostLost | SegmentEnd::Failed);
    }
    let marks =
        [(dives, "ring", "dived"), (evicted, "evicted", "evicted later"), (lost, "cut", "failed, or lost its host")];
    marks.into_iter().filter(|(is_there, ..)| *is_there).map(|(_, class, text)| (class, text)).collect()
}

fn section(id: &str, title: &str, text: &str, body: &str) -> String {
    let mut html = String::new();
    let _ = write!(html, "<section id=\"{id}\"><h2>{}</h2><p>{}</p>{body}</section>", escaped(title), escaped(text));
    html
}

/// The largest sum over all tiers.
fn most(values: &[Vec<f64>]) -> Option<f64> {
    let parts = values.first().map_or(0, Vec::len);
    let sum = |part: usize| values.iter().filter_map(|values| values.get(part)).sum::<f64>();
    (0..parts).map(sum).max_by(f64::total_cmp)
}

/// Waits in seconds, the shortest first.
fn waits_of(outcome: &Outcome) -> Vec<f64> {
    let pairs = outcome.workload.jobs.iter().zip(&outcome.schedule.outcomes);
    let wait = |end_ms: u64, job: &osprey_sim::workload::Job| {
        end_ms.saturating_sub(job.submit_ms).saturating_sub(job.duration_ms)
    };
    let mut waits: Vec<f64> =
        pairs.filter_map(|(job, ended)| Some(wait(ended.end_ms?, job) as f64 / 1_000.0)).collect();
    waits.sort_unstable_by(f64::total_cmp);
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_told_apart() {
        let told = ["7 jobs", "123 jobs", "2396 jobs", "1000000 GPUs"].map(grouped);
        assert_eq!(told, ["7 jobs", "123 jobs", "2,396 jobs", "1,000,000 GPUs"]);
    }

    #[test]
    fn curves_that_hide_each_other_are_named() {
        let names = named(&[("easy", vec![1.0]), ("dive", vec![2.0]), ("backfill", vec![1.0])]);
        assert_eq!(names, ["easy", "dive", "backfill (the same as easy)"]);
    }

    #[test]
    fn a_command_is_told_as_a_shell_reads_it() {
        assert_eq!(["a=1", "it's", "", "x y"].map(quoted), ["a=1", "'it'\\''s'", "''", "'x y'"]);
    }
}

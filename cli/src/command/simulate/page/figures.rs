//! The table of figures: one row a figure, one column a strategy.

use super::super::answer::Summary;
use super::charts::{spoken, strategy_class};
use super::html::escaped;

/// What a figure is.
#[derive(Clone, Copy)]
enum Kind {
    Seconds,
    Share,
    Number,
    Count,
}

/// Which of the strategies did best.
#[derive(Clone, Copy, PartialEq)]
enum Best {
    Least,
    Most,
    Neither,
}

/// Member of the JSON, what it is called, what it is, and what is best.
const FIGURES: [(&str, &str, Kind, Best); 21] = [
    ("mean_wait_seconds", "Mean wait", Kind::Seconds, Best::Least),
    ("median_wait_seconds", "Median wait", Kind::Seconds, Best::Least),
    ("p95_wait_seconds", "P95 wait", Kind::Seconds, Best::Least),
    ("p99_wait_seconds", "P99 wait", Kind::Seconds, Best::Least),
    ("max_wait_seconds", "Longest wait", Kind::Seconds, Best::Least),
    ("urgent_mean_wait_seconds", "Urgent mean wait", Kind::Seconds, Best::Least),
    ("mean_completion_seconds", "Mean completion", Kind::Seconds, Best::Least),
    ("median_completion_seconds", "Median completion", Kind::Seconds, Best::Least),
    ("p95_completion_seconds", "P95 completion", Kind::Seconds, Best::Least),
    ("p99_completion_seconds", "P99 completion", Kind::Seconds, Best::Least),
    ("makespan_seconds", "Makespan", Kind::Seconds, Best::Least),
    ("utilisation", "Utilisation", Kind::Share, Best::Most),
    ("utilisation_backlogged", "Utilisation while jobs waited", Kind::Share, Best::Most),
    ("fragmentation", "Fragmentation while jobs waited", Kind::Share, Best::Least),
    ("preemptions", "Preemptions", Kind::Count, Best::Neither),
    ("preemptions_per_100_jobs", "Preemptions per 100 jobs", Kind::Number, Best::Neither),
    ("lost_gpu_hours", "GPU-hours lost", Kind::Number, Best::Least),
    ("host_losses", "Hosts lost", Kind::Count, Best::Neither),
    ("failures", "Failures", Kind::Count, Best::Neither),
    ("unfinished_jobs", "Jobs never done", Kind::Count, Best::Least),
    ("jobs", "Jobs done", Kind::Count, Best::Neither),
];

/// The table.
pub fn table(summaries: &[Summary]) -> String {
    let head = |(index, summary): (usize, &Summary)| {
        format!("<th scope=\"col\"><i class=\"{}\"></i>{}</th>", strategy_class(index), escaped(summary.strategy))
    };
    let heads: String = summaries.iter().enumerate().map(head).collect();
    let rows: String = FIGURES.iter().map(|figure| row(figure, summaries)).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Figure</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn row((member, name, kind, best): &(&str, &str, Kind, Best), summaries: &[Summary]) -> String {
    let values: Vec<f64> = summaries.iter().map(|summary| summary.get(member).mean).collect();
    let texts: Vec<String> = values.iter().map(|value| text(*kind, *value)).collect();
    let wanted = match best {
        Best::Least => values.iter().copied().min_by(f64::total_cmp),
        Best::Most => values.iter().copied().max_by(f64::total_cmp),
        Best::Neither => None,
    };
    let wanted = wanted.map(|value| text(*kind, value));
    // Nobody is best where all are the same.
    let differ = texts.iter().any(|text| Some(text) != texts.first());
    let cell = |text: &String| {
        let class = if differ && wanted.as_ref() == Some(text) { " class=\"best\"" } else { "" };
        format!("<td{class}>{}</td>", escaped(text))
    };
    format!("<tr><th scope=\"row\">{name}</th>{}</tr>", texts.iter().map(cell).collect::<String>())
}

fn text(kind: Kind, value: f64) -> String {
    match kind {
        Kind::Seconds => spoken(value),
        Kind::Share => format!("{:.1} %", value * 100.0),
        Kind::Number => format!("{value:.1}"),
        Kind::Count => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::spread::Spread;
    use super::*;

    #[test]
    fn the_best_of_a_row_stands_out_and_equals_do_not() {
        let summary = |strategy, wait| Summary {
            strategy,
            numbers: vec![("mean_wait_seconds".to_owned(), Spread { mean: wait, half: 0.0 })],
        };
        let html = table(&[summary("fifo", 90.0), summary("easy", 30.0)]);
        assert!(html.contains("<td>1m30s</td><td class=\"best\">30s</td>"), "{html}");
        assert!(html.contains("<th scope=\"row\">Makespan</th><td>0.0s</td><td>0.0s</td>"));
    }
}

//! The dashboard and the alarms show what the code emits, and each alarm has its page.

use osprey_lambda::metrics::{self, METRICS, NAMESPACE};
use osprey_tests::text_files;
use serde_json::{Value, json};

use super::{at, parse, resolved, resources, template};
use crate::{Checked, assert_none, list, text};

/// Metrics of AWS's own that the template uses, each with its dimension.
const OF_AWS: [(&str, &str, &str); 4] = [
    ("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName"),
    ("AWS/Lambda", "Invocations", "FunctionName"),
    ("AWS/Lambda", "Errors", "FunctionName"),
    ("AWS/Lambda", "Duration", "FunctionName"),
];

/// Whether somebody emits the metric under exactly these dimensions.
fn is_emitted(namespace: &str, metric: &str, dimensions: &[&str]) -> bool {
    if namespace == NAMESPACE {
        let Some((&"Stack", further)) = dimensions.split_first() else { return false };
        return metrics::named(metric).is_some_and(|known| known.dimensions == further);
    }
    OF_AWS.iter().any(|known| (known.0, known.1) == (namespace, metric) && dimensions == [known.2])
}

/// Metrics of a widget that nobody emits.
fn unknown_in_widget(metric: &Value) -> Option<String> {
    let parts: Vec<&str> = metric.as_array()?.iter().filter_map(Value::as_str).collect();
    if let Some(expression) = metric.get(0).map(|first| text(first, "expression")).filter(|text| !text.is_empty()) {
        // Anything else calculates with other metrics of the graph, which are looked at themselves.
        let dimensions = expression.split_once("SEARCH('{Osprey,")?.1.split_once('}')?.0;
        let name = expression.split_once("MetricName=\"")?.1.split_once('"')?.0;
        let dimensions: Vec<&str> = dimensions.split(',').collect();
        return (!is_emitted("Osprey", name, &dimensions)).then(|| format!("{name} by {dimensions:?}"));
    }
    let [namespace, name, dimensions @ ..] = parts.as_slice() else { return Some(format!("{metric} names no metric")) };
    let dimensions: Vec<&str> = dimensions.iter().step_by(2).copied().collect();
    (!is_emitted(namespace, name, &dimensions)).then(|| format!("{namespace} {name} by {dimensions:?}"))
}

fn dashboard_offences(template: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (name, dashboard) in resources(template, "AWS::CloudWatch::Dashboard") {
        let body: Value = match serde_json::from_str(&resolved(template, at(dashboard, "/DashboardBody"))) {
            Ok(body) => body,
            Err(fault) => return vec![format!("{name} is no JSON: {fault}")],
        };
        for widget in list(&body, "widgets") {
            let metrics = list(at(widget, "/properties"), "metrics");
            if text(widget, "type") == "metric" && metrics.is_empty() {
                found.push(format!("{name}: a graph of nothing"));
            }
            found.extend(metrics.iter().filter_map(unknown_in_widget).map(|unknown| format!("nobody emits {unknown}")));
        }
    }
    found
}

/// The metrics that an alarm looks at, each with its namespace and dimensions: its own, or those that it calculates with
/// or selects from.
fn metrics_of(alarm: &Value) -> Vec<(String, String, Vec<String>)> {
    let named = |metric: &Value| {
        let dimensions = list(metric, "Dimensions").iter().map(|one| text(one, "Name").to_owned());
        (text(metric, "Namespace").to_owned(), text(metric, "MetricName").to_owned(), dimensions.collect())
    };
    let several = list(alarm, "Metrics");
    if several.is_empty() {
        return vec![named(alarm)];
    }
    let stats = several.iter().filter_map(|one| one.pointer("/MetricStat/Metric")).map(named);
    stats.chain(several.iter().filter_map(selected)).collect()
}

/// What a query selects: `SELECT MAX(metric) FROM SCHEMA("namespace", dimension, …)`, whose dimensions have no order.
fn selected(metric: &Value) -> Option<(String, String, Vec<String>)> {
    let query = text(metric.get("Expression")?, "Fn::Sub").strip_prefix("SELECT ")?;
    let (call, rest) = query.split_once(" FROM SCHEMA(")?;
    let name = call.split_once('(')?.1.trim_end_matches(')');
    let mut schema = rest.split_once(')')?.0.split(", ");
    let namespace = schema.next()?.trim_matches('"');
    let mut dimensions: Vec<String> = schema.map(str::to_owned).collect();
    dimensions.sort_by_key(|dimension| dimension != "Stack");
    Some((namespace.to_owned(), name.to_owned(), dimensions))
}

/// Whether the alarm is only a part of one that tells somebody.
fn is_part(template: &Value, name: &str) -> bool {
    let whole = resources(template, "AWS::CloudWatch::CompositeAlarm");
    let mut telling = whole.values().filter(|alarm| list(alarm, "AlarmActions") == [json!({"Ref": "Topic"})]);
    telling.any(|alarm| text(at(alarm, "/AlarmRule"), "Fn::Sub").contains(&format!("ALARM(\"${{{name}}}\")")))
}

/// The page that an alarm names.
fn page(alarm: &Value) -> Option<&str> {
    let (_, rest) = text(alarm, "AlarmDescription").split_once("See ")?;
    Some(rest).filter(|page| page.starts_with("docs/runbooks/") && page.ends_with(".md"))
}

fn alarm_offences(template: &Value, pages: &[String]) -> Vec<String> {
    let alarms = resources(template, "AWS::CloudWatch::Alarm");
    let mut found = Vec::new();
    for (name, alarm) in &alarms {
        for (namespace, metric, dimensions) in metrics_of(alarm) {
            let dimensions: Vec<&str> = dimensions.iter().map(String::as_str).collect();
            if !is_emitted(&namespace, &metric, &dimensions) {
                found.push(format!("{name}: nobody emits {metric} by {dimensions:?}"));
            }
        }
        if !page(alarm).is_some_and(|page| pages.iter().any(|known| known == page)) {
            found.push(format!("{name} names no page of docs/runbooks"));
        }
        if list(alarm, "AlarmActions") != [json!({"Ref": "Topic"})] && !is_part(template, name) {
            found.push(format!("{name} tells nobody"));
        }
    }
    let named = |known: &String| alarms.values().any(|alarm| page(alarm) == Some(known));
    found
        .extend(pages.iter().filter(|known| !named(known)).map(|unnamed| format!("{unnamed} is the page of no alarm")));
    found
}

fn pages() -> std::io::Result<Vec<String>> {
    let files = text_files(&[".md"])?;
    Ok(files.into_iter().map(|file| file.path).filter(|path| path.starts_with("docs/runbooks/")).collect())
}

#[test]
fn the_dashboard_shows_what_is_emitted() -> Checked {
    let template = template()?;
    assert_none("template.yaml", &dashboard_offences(&template));
    let body = resolved(&template, &template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]);
    for metric in METRICS {
        assert!(body.contains(metric.name), "the dashboard doesn't show {}", metric.name);
    }
    Ok(())
}

#[test]
fn every_alarm_has_its_metric_and_its_page() -> Checked {
    assert_none("template.yaml", &alarm_offences(&template()?, &pages()?));
    Ok(())
}

#[test]
fn what_nobody_emits_is_found() -> Checked {
    let whole = crate::read("template.yaml")?;
    for (from, to, want) in [
        ("MetricName: DeadLetters", "MetricName: DeadLetter", "nobody emits DeadLetter by"),
        ("MetricName: JobsStarted", "MetricName: JobsBegun", "nobody emits JobsBegun by"),
        ("Pool, Stack, Tier) WHERE", "Stack, Tier) WHERE", "nobody emits WaitMedianSeconds by"),
        ("AND ALARM(\"${FullPoolAlarm}\")", "", "FullPoolAlarm tells nobody"),
        ("See docs/runbooks/dead-letters.md", "See docs/runbooks/nothing.md", "names no page"),
        ("AlarmActions: [!Ref Topic]", "AlarmActions: []", "tells nobody"),
    ] {
        let found = alarm_offences(&parse(&whole.replacen(from, to, 1))?, &pages()?);
        assert!(found.iter().any(|offence| offence.contains(want)), "{want}: {found:?}");
    }
    for (from, to, want) in [
        ("\"JobsStarted\"", "\"JobsBegun\"", "nobody emits Osprey JobsBegun by"),
        ("MetricName=\\\"JobsWaiting\\\"", "MetricName=\\\"Waiting\\\"", "nobody emits Waiting by"),
        ("{\"widgets\":[", "{\"widgets\":[,", "is no JSON"),
    ] {
        let found = dashboard_offences(&parse(&whole.replacen(from, to, 1))?);
        assert!(found.iter().any(|offence| offence.contains(want)), "{want}: {found:?}");
    }
    Ok(())
}

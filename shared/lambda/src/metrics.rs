//! Metrics, as CloudWatch's embedded metric format: JSON lines on standard output that the log service turns into
//! metrics. One list, which the dashboard and the alarms of the template are compared with.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The namespace of every metric.
pub const NAMESPACE: &str = "Osprey";

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit, as CloudWatch calls it.
    pub unit: &'static str,
    /// What tells its values apart, besides the stack.
    pub dimensions: &'static [&'static str],
    /// Whether several values of one invocation are added; else the newest counts.
    pub adds: bool,
}

const fn count(name: &'static str, dimensions: &'static [&'static str]) -> Metric {
    Metric { name, unit: "Count", dimensions, adds: true }
}

const fn gauge(name: &'static str, unit: &'static str, dimensions: &'static [&'static str]) -> Metric {
    Metric { name, unit, dimensions, adds: false }
}

/// Every metric that Osprey emits.
pub const METRICS: [Metric; 24] = [
    gauge("JobsWaiting", "Count", &["Pool", "Tier"]),
    gauge("WaitMedianSeconds", "Seconds", &["Pool", "Tier"]),
    gauge("WaitOldestSeconds", "Seconds", &["Pool", "Tier"]),
    gauge("GpusRunning", "Count", &["Pool"]),
    gauge("GpusFree", "Count", &["Pool"]),
    gauge("FragmentationPercent", "Percent", &["Pool"]),
    gauge("UtilisationPercent", "Percent", &["Pool"]),
    gauge("ScheduleLagSeconds", "Seconds", &["Pool"]),
    gauge("CycleMilliseconds", "Milliseconds", &["Pool"]),
    count("JobsDerived", &[]),
    count("JobsRefused", &[]),
    count("JobsStarted", &[]),
    count("JobsPreempted", &[]),
    count("DeadLetters", &[]),
    count("DerivationFallbacks", &[]),
    count("ApiThrottles", &[]),
    count("DuplicatesStopped", &[]),
    count("PolicyRejected", &[]),
    gauge("PrioritiesDistinct", "Count", &[]),
    gauge("HighPriorityWaitOldestSeconds", "Seconds", &[]),
    count("JobsRequeued", &["Class"]),
    Metric { name: "WastedGpuHours", unit: "None", dimensions: &["Team"], adds: true },
    count("InvocationsCutShort", &[]),
    count("DeniedCalls", &[]),
];

/// The metric of this name.
#[must_use]
pub fn named(name: &str) -> Option<Metric> {
    METRICS.into_iter().find(|metric| metric.name == name)
}

/// A dimension and its value.
type Dimension = (&'static str, String);

/// Values that wait to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(BTreeMap<(Vec<Dimension>, Metric), f64>);

impl Values {
    /// Notes a value. `dimension` is asked for each dimension of the metric; one without a value is `none`.
    pub fn note(&mut self, metric: Metric, amount: f64, dimension: impl Fn(&str) -> Option<String>) {
        let of = |name: &&'static str| (*name, dimension(name).unwrap_or_else(|| "none".to_owned()));
        let place = (metric.dimensions.iter().map(of).collect(), metric);
        let value = self.0.entry(place).or_insert(0.0);
        *value = if metric.adds { *value + amount } else { amount };
    }

    /// The lines: one for each set of dimension values.
    #[must_use]
    pub fn lines(&self, stack: &str, now_ms: i64) -> Vec<String> {
        let mut sets: BTreeMap<&[Dimension], Vec<(Metric, f64)>> = BTreeMap::new();
        for ((dimensions, metric), value) in &self.0 {
            sets.entry(dimensions).or_default().push((*metric, *value));
        }
        sets.into_iter().map(|(dimensions, values)| line(stack, dimensions, &values, now_ms)).collect()
    }
}

fn line(stack: &str, dimensions: &[Dimension], values: &[(Metric, f64)], now_ms: i64) -> String {
    let names: Vec<&str> = std::iter::once("Stack").chain(dimensions.iter().map(|(name, _)| *name)).collect();
    let metrics: Vec<Value> =
        values.iter().map(|(metric, _)| json!({"Name": metric.name, "Unit": metric.unit})).collect();
    let mut line = Map::new();
    line.insert(
        "_aws".to_owned(),
        json!({"Timestamp": now_ms, "CloudWatchMetrics": [{"Namespace": NAMESPACE, "Dimensions": [names], "Metrics": metrics}]}),
    );
    line.insert("Stack".to_owned(), json!(stack));
    line.extend(dimensions.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    line.extend(values.iter().map(|(metric, value)| (metric.name.to_owned(), json!(value))));
    Value::Object(line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_gauges_keep_the_newest() {
        let mut values = Values::default();
        for amount in [1.0, 2.0] {
            values.note(named("JobsStarted").unwrap(), amount, |_| None);
            values.note(named("GpusFree").unwrap(), amount, |_| Some("main".to_owned()));
        }
        let lines = values.lines("prod", 1_000);
        let want = [
            r#"{"_aws":{"Timestamp":1000,"CloudWatchMetrics":[{"Namespace":"Osprey","Dimensions":[["Stack"]],"Metrics":[{"Name":"JobsStarted","Unit":"Count"}]}]},"Stack":"prod","JobsStarted":3.0}"#,
            r#"{"_aws":{"Timestamp":1000,"CloudWatchMetrics":[{"Namespace":"Osprey","Dimensions":[["Stack","Pool"]],"Metrics":[{"Name":"GpusFree","Unit":"Count"}]}]},"Stack":"prod","Pool":"main","GpusFree":2.0}"#,
        ];
        assert_eq!(lines, want);
    }

    #[test]
    fn no_metric_is_listed_twice() {
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }
}

//! Each alarm fires on the values that it is for, and stays calm on the worst that is still right.
//!
//! Osprey's metrics come as the lines that its functions write, AWS's own as points. An alarm is evaluated as CloudWatch
//! does it: a statistic, or what an expression makes of several, for each of the last periods.

use std::collections::{BTreeMap, BTreeSet};

use osprey_lambda::metrics::{NAMESPACE, Values, named};
use serde_json::Value;

use super::formula::formula;
use super::{resolved, resources, target, template};
use crate::{Checked, list, text};

/// What the stack is called where the template's own name isn't known.
const STACK: &str = "AWS::StackName";
const MINUTE_MS: i64 = 60_000;
/// When alarms are looked at: a whole hour, at which every period ends.
const NOW_MS: i64 = 3_600_000 * 500_000;

type Dimensions = BTreeMap<String, String>;

/// Points of every metric, with their times.
#[derive(Debug, Default)]
struct Metrics(BTreeMap<(String, String, Dimensions), Vec<(i64, f64)>>);

impl Metrics {
    fn point(&mut self, namespace: &str, name: &str, dimensions: Dimensions, at: i64, value: f64) {
        self.0.entry((namespace.to_owned(), name.to_owned(), dimensions)).or_default().push((at, value));
    }

    /// Takes a line in CloudWatch's embedded format.
    fn read(&mut self, line: &str) -> Checked {
        let line: Value = serde_json::from_str(line)?;
        let at = line["_aws"]["Timestamp"].as_i64().ok_or("no time")?;
        for directive in list(&line["_aws"], "CloudWatchMetrics") {
            for set in list(directive, "Dimensions") {
                let names = set.as_array().into_iter().flatten().filter_map(Value::as_str);
                let dimensions: Dimensions =
                    names.map(|name| (name.to_owned(), text(&line, name).to_owned())).collect();
                for metric in list(directive, "Metrics") {
                    let name = text(metric, "Name");
                    let value = line[name].as_f64().ok_or("no value")?;
                    self.point(text(directive, "Namespace"), name, dimensions.clone(), at, value);
                }
            }
        }
        Ok(())
    }

    /// Values of one metric within `(from, to]`.
    fn values(&self, namespace: &str, name: &str, dimensions: &Dimensions, span: (i64, i64)) -> Vec<f64> {
        let points = self.0.get(&(namespace.to_owned(), name.to_owned(), dimensions.clone()));
        let within = |(at, value): &(i64, f64)| (*at > span.0 && *at <= span.1).then_some(*value);
        points.into_iter().flatten().filter_map(within).collect()
    }
}

fn statistic(kind: &str, values: &[f64]) -> Option<f64> {
    match kind {
        _ if values.is_empty() => None,
        "Sum" => Some(values.iter().sum()),
        "Maximum" => values.iter().copied().reduce(f64::max),
        other => panic!("no test knows the statistic {other}"),
    }
}

/// A metric's statistic over a period.
fn stat(metrics: &Metrics, template: &Value, metric: &Value, kind: &str, span: (i64, i64)) -> Option<f64> {
    let name = |value: &Value| match target(value) {
        "" => resolved(template, value),
        target => target.to_owned(),
    };
    let dimension = |one: &Value| (text(one, "Name").to_owned(), name(&one["Value"]));
    let dimensions = list(metric, "Dimensions").iter().map(dimension).collect();
    statistic(kind, &metrics.values(text(metric, "Namespace"), text(metric, "MetricName"), &dimensions, span))
}

/// `SELECT MAX(metric) FROM SCHEMA("namespace", dimension, …) WHERE dimension = 'value' AND …`.
fn select(metrics: &Metrics, query: &str, span: (i64, i64)) -> Option<f64> {
    let (name, rest) = query.strip_prefix("SELECT MAX(")?.split_once(") FROM SCHEMA(\"")?;
    let (namespace, rest) = rest.split_once("\", ")?;
    let (schema, conditions) = rest.split_once(") WHERE ")?;
    let schema: BTreeSet<&str> = schema.split(", ").collect();
    let holds = |dimensions: &Dimensions| {
        schema == dimensions.keys().map(String::as_str).collect()
            && conditions.split(" AND ").all(|condition| {
                let (name, wanted) = condition.split_once(" != ").or_else(|| condition.split_once(" = ")).unwrap();
                (dimensions[name] == wanted.trim_matches('\'')) != condition.contains("!=")
            })
    };
    let chosen = metrics.0.keys().filter(|key| key.0 == namespace && key.1 == name && holds(&key.2));
    let values: Vec<f64> = chosen.flat_map(|key| metrics.values(&key.0, &key.1, &key.2, span)).collect();
    statistic("Maximum", &values)
}

/// The period of an alarm, seconds.
fn period(alarm: &Value) -> i64 {
    let several = list(alarm, "Metrics").iter().flat_map(|one| [&one["Period"], &one["MetricStat"]["Period"]]);
    std::iter::once(&alarm["Period"]).chain(several).find_map(Value::as_i64).unwrap()
}

/// What an alarm looks at, over one period.
fn value(metrics: &Metrics, template: &Value, alarm: &Value, span: (i64, i64)) -> Option<f64> {
    let several = list(alarm, "Metrics");
    if several.is_empty() {
        return stat(metrics, template, alarm, text(alarm, "Statistic"), span);
    }
    let of = |one: &Value| {
        let metric = one.pointer("/MetricStat/Metric")?;
        stat(metrics, template, metric, text(&one["MetricStat"], "Stat"), span)
    };
    let known: BTreeMap<&str, f64> = several.iter().filter_map(|one| Some((text(one, "Id"), of(one)?))).collect();
    let told = several.iter().find(|one| one["ReturnData"] != false).unwrap();
    let expression = resolved(template, &told["Expression"]);
    if expression.starts_with("SELECT") { select(metrics, &expression, span) } else { formula(&expression, &known) }
}

/// Whether an alarm is in alarm.
fn fires(metrics: &Metrics, template: &Value, name: &str) -> bool {
    if let Some(whole) = resources(template, "AWS::CloudWatch::CompositeAlarm").get(name) {
        let parts = text(&whole["AlarmRule"], "Fn::Sub").split(" AND ");
        return parts
            .map(|part| part.trim_start_matches("ALARM(\"${").trim_end_matches("}\")"))
            .all(|part| fires(metrics, template, part));
    }
    let alarm = resources(template, "AWS::CloudWatch::Alarm")[name];
    let (periods, length) = (alarm["EvaluationPeriods"].as_i64().unwrap(), period(alarm) * 1_000);
    let threshold = alarm["Threshold"].as_f64().unwrap();
    let breaches = |value: f64| match text(alarm, "ComparisonOperator") {
        "GreaterThanThreshold" => value > threshold,
        "LessThanThreshold" => value < threshold,
        other => panic!("no test knows {other}"),
    };
    let breaching = (0..periods).filter(|back| {
        let to = NOW_MS - back * length;
        value(metrics, template, alarm, (to - length, to))
            .map_or(text(alarm, "TreatMissingData") == "breaching", breaches)
    });
    let wanted = alarm["DatapointsToAlarm"].as_i64().unwrap_or(periods);
    i64::try_from(breaching.count()).unwrap() >= wanted
}

/// A value that comes once a minute, for so many minutes until now.
type Sample = (&'static str, &'static [(&'static str, &'static str)], f64, i64);

/// What the functions and AWS's services tell of these samples.
fn told(samples: &[Sample]) -> Result<Metrics, Box<dyn std::error::Error>> {
    let mut metrics = Metrics::default();
    for (name, dimensions, value, minutes) in samples {
        for back in 0..*minutes {
            let at = NOW_MS - back * MINUTE_MS;
            if let Some((namespace, name)) = name.rsplit_once('/') {
                let dimensions = dimensions.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
                metrics.point(namespace, name, dimensions.collect(), at, *value);
                continue;
            }
            let mut values = Values::default();
            let of = |wanted: &str| {
                dimensions.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
            };
            values.note(named(name).ok_or(format!("nobody emits {name}"))?, *value, of);
            for line in values.lines(STACK, at) {
                metrics.read(&line)?;
            }
        }
    }
    Ok(metrics)
}

/// An alarm, samples that it fires on, and samples that it stays calm on.
type Case = (&'static str, &'static [Sample], &'static [&'static [Sample]]);

const CRITICAL: &[(&str, &str)] = &[("Pool", "main"), ("Tier", "critical")];
const EXPERIMENTAL: &[(&str, &str)] = &[("Pool", "main"), ("Tier", "experimental")];
const PREEMPTIBLE: &[(&str, &str)] = &[("Pool", "main"), ("Tier", "preemptible")];
const MAIN: &[(&str, &str)] = &[("Pool", "main")];
const AGE: &str = "AWS/SQS/ApproximateAgeOfOldestMessage";
const ERRORS: &str = "AWS/Lambda/Errors";

/// One case for each alarm.
const CASES: &[Case] = &[
    (
        "TopTierWaitAlarm",
        &[("WaitMedianSeconds", CRITICAL, 301.0, 5)],
        &[
            &[("WaitMedianSeconds", CRITICAL, 300.0, 5)],
            &[("WaitMedianSeconds", CRITICAL, 301.0, 4)],
            &[("WaitMedianSeconds", EXPERIMENTAL, 99_999.0, 5)],
        ],
    ),
    (
        "HighPriorityWaitAlarm",
        &[("HighPriorityWaitOldestSeconds", &[], 601.0, 1)],
        &[&[("HighPriorityWaitOldestSeconds", &[], 600.0, 5)]],
    ),
    (
        "PreemptionsAlarm",
        &[("JobsStarted", &[], 19.0, 20), ("JobsPreempted", &[], 1.0, 20)],
        &[
            &[("JobsStarted", &[], 20.0, 20), ("JobsPreempted", &[], 1.0, 20)],
            // A share of a few jobs says nothing.
            &[("JobsStarted", &[], 1.0, 19), ("JobsPreempted", &[], 1.0, 19)],
            &[("JobsStarted", &[], 1.0, 60)],
        ],
    ),
    ("DeadLettersAlarm", &[("DeadLetters", &[], 1.0, 1)], &[&[("DeadLetters", &[], 0.0, 5)]]),
    ("DerivationFallbackAlarm", &[("DerivationFallbacks", &[], 1.0, 1)], &[&[("JobsDerived", &[], 1.0, 5)]]),
    ("PolicyRejectedAlarm", &[("PolicyRejected", &[], 1.0, 1)], &[&[("PolicyRejected", &[], 0.0, 5)]]),
    (
        "LongWaitAlarm",
        &[("WaitOldestSeconds", EXPERIMENTAL, 10_801.0, 15)],
        &[
            &[("WaitOldestSeconds", EXPERIMENTAL, 10_800.0, 15)],
            &[("WaitOldestSeconds", PREEMPTIBLE, 99_999.0, 15)],
            &[("WaitOldestSeconds", EXPERIMENTAL, 10_801.0, 10)],
        ],
    ),
    (
        "FullPoolAlarm",
        &[("UtilisationPercent", MAIN, 95.5, 15)],
        &[&[("UtilisationPercent", MAIN, 95.0, 15)], &[("UtilisationPercent", MAIN, 100.0, 10)]],
    ),
    (
        "CapacityShortAlarm",
        &[("WaitOldestSeconds", EXPERIMENTAL, 10_801.0, 15), ("UtilisationPercent", MAIN, 96.0, 15)],
        &[
            &[("WaitOldestSeconds", EXPERIMENTAL, 10_801.0, 15), ("UtilisationPercent", MAIN, 90.0, 15)],
            &[("WaitOldestSeconds", EXPERIMENTAL, 60.0, 15), ("UtilisationPercent", MAIN, 100.0, 15)],
        ],
    ),
    (
        "ScheduleLagAlarm",
        &[("ScheduleLagSeconds", MAIN, 121.0, 3)],
        &[&[("ScheduleLagSeconds", MAIN, 120.0, 3)], &[("ScheduleLagSeconds", MAIN, 500.0, 2)]],
    ),
    (
        "ConfigDriftAlarm",
        &[("JobsDerived", &[], 1.0, 20), ("PrioritiesDistinct", &[], 1.0, 60)],
        &[
            &[("JobsDerived", &[], 1.0, 19), ("PrioritiesDistinct", &[], 1.0, 60)],
            &[("JobsDerived", &[], 9.0, 60), ("PrioritiesDistinct", &[], 2.0, 60)],
            &[("JobsDerived", &[], 9.0, 60)],
        ],
    ),
    ("DeniedCallsAlarm", &[("DeniedCalls", &[], 1.0, 1)], &[&[("ApiThrottles", &[], 9.0, 5)]]),
    (
        "WatchSilentAlarm",
        &[("AWS/Lambda/Invocations", &[("FunctionName", "SubmitFunction")], 1.0, 5)],
        &[&[("AWS/Lambda/Invocations", &[("FunctionName", "WatchFunction")], 1.0, 1)]],
    ),
    (
        "SubmissionsDeadQueueAlarm",
        &[(AGE, &[("QueueName", "SubmissionsDeadQueue")], 901.0, 1)],
        &[&[(AGE, &[("QueueName", "SubmissionsDeadQueue")], 900.0, 5)]],
    ),
    (
        "InternalDeadQueueAlarm",
        &[(AGE, &[("QueueName", "InternalDeadQueue")], 901.0, 1)],
        &[&[(AGE, &[("QueueName", "InternalDeadQueue")], 900.0, 5)]],
    ),
    (
        "EventsDeadQueueAlarm",
        &[(AGE, &[("QueueName", "EventsDeadQueue")], 901.0, 1)],
        &[&[(AGE, &[("QueueName", "EventsDeadQueue")], 900.0, 5)]],
    ),
    (
        "WakeDeadQueueAlarm",
        &[(AGE, &[("QueueName", "WakeDeadQueue")], 901.0, 1)],
        &[&[(AGE, &[("QueueName", "WakeDeadQueue")], 900.0, 5)]],
    ),
    (
        "SubmissionsAgeAlarm",
        &[(AGE, &[("QueueName", "SubmissionsQueue")], 601.0, 1)],
        &[&[(AGE, &[("QueueName", "SubmissionsQueue")], 600.0, 5)]],
    ),
    (
        "EventsAgeAlarm",
        &[(AGE, &[("QueueName", "EventsQueue")], 601.0, 1)],
        &[&[(AGE, &[("QueueName", "EventsQueue")], 600.0, 5)]],
    ),
    (
        "SubmitErrorsAlarm",
        &[(ERRORS, &[("FunctionName", "SubmitFunction")], 1.0, 10)],
        &[&[(ERRORS, &[("FunctionName", "SubmitFunction")], 1.0, 5)]],
    ),
    (
        "RequeueErrorsAlarm",
        &[(ERRORS, &[("FunctionName", "RequeueFunction")], 1.0, 10)],
        &[&[(ERRORS, &[("FunctionName", "RequeueFunction")], 1.0, 5)]],
    ),
    (
        "ScheduleErrorsAlarm",
        &[(ERRORS, &[("FunctionName", "ScheduleFunction")], 1.0, 10)],
        &[&[(ERRORS, &[("FunctionName", "ScheduleFunction")], 1.0, 5)]],
    ),
    (
        "DeadLetterErrorsAlarm",
        &[(ERRORS, &[("FunctionName", "DeadLetterFunction")], 1.0, 10)],
        &[&[(ERRORS, &[("FunctionName", "DeadLetterFunction")], 1.0, 5)]],
    ),
    (
        "WatchErrorsAlarm",
        &[(ERRORS, &[("FunctionName", "WatchFunction")], 1.0, 10)],
        &[&[(ERRORS, &[("FunctionName", "WatchFunction")], 1.0, 5)]],
    ),
];

#[test]
fn each_alarm_fires_on_what_it_is_for_and_stays_calm_before() -> Checked {
    let template = template()?;
    for (alarm, worse, calm) in CASES {
        assert!(fires(&told(worse)?, &template, alarm), "{alarm} stays calm on {worse:?}");
        for samples in *calm {
            assert!(!fires(&told(samples)?, &template, alarm), "{alarm} fires on {samples:?}");
        }
    }
    Ok(())
}

#[test]
fn every_alarm_has_a_case() -> Checked {
    let template = template()?;
    let tried: BTreeSet<&str> = CASES.iter().map(|(alarm, _, _)| *alarm).collect();
    let mut all: BTreeSet<&str> = resources(&template, "AWS::CloudWatch::Alarm").into_keys().collect();
    all.extend(resources(&template, "AWS::CloudWatch::CompositeAlarm").into_keys());
    assert_eq!(tried, all);
    Ok(())
}

#[test]
fn an_alarm_of_another_stack_stays_calm() -> Checked {
    let mut metrics = Metrics::default();
    let mut values = Values::default();
    values.note(named("DeadLetters").ok_or("unknown")?, 1.0, |_| None);
    for line in values.lines("another", NOW_MS) {
        metrics.read(&line)?;
    }
    assert_eq!(metrics.0.keys().map(|key| key.0.as_str()).collect::<Vec<_>>(), [NAMESPACE]);
    assert!(!fires(&metrics, &template()?, "DeadLettersAlarm"));
    Ok(())
}

//! Schedules: an illegal one is found only when the stack is deployed.

use serde_json::{Value, json};

use super::template;
use crate::{Checked, assert_none};

/// Every member of this name, wherever it is.
fn members<'a>(value: &'a Value, name: &str, into: &mut Vec<&'a str>) {
    match value {
        Value::Object(all) => {
            for (key, inner) in all {
                into.extend(inner.as_str().filter(|_| key == name));
                members(inner, name, into);
            }
        }
        Value::Array(all) => all.iter().for_each(|inner| members(inner, name, into)),
        _ => {}
    }
}

/// Whether EventBridge takes the expression: whole minutes, hours or days, 1 in the singular; cron with six fields, one
/// of day and weekday open.
fn is_legal(expression: &str) -> bool {
    let inner = |name: &str| expression.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(rate) = inner("rate") {
        let Some((number, unit)) = rate.split_once(' ') else { return false };
        let Ok(number) = number.parse::<u32>() else { return false };
        let singular = unit.strip_suffix('s').unwrap_or(unit);
        return number > 0 && ["minute", "hour", "day"].contains(&singular) && (number == 1) == (unit == singular);
    }
    let Some(cron) = inner("cron") else { return false };
    let fields: Vec<&str> = cron.split_whitespace().collect();
    fields.len() == 6 && fields.iter().filter(|field| **field == "?").count() == 1
}

fn offences(template: &Value) -> Vec<String> {
    let mut found = Vec::new();
    members(template, "ScheduleExpression", &mut found);
    members(template, "Schedule", &mut found);
    found
        .into_iter()
        .filter(|expression| !is_legal(expression))
        .map(|wrong| format!("`{wrong}` is no schedule"))
        .collect()
}

#[test]
fn every_schedule_is_legal() -> Checked {
    let template = template()?;
    let mut all = Vec::new();
    members(&template, "ScheduleExpression", &mut all);
    assert_eq!(all, ["rate(1 minute)"]);
    assert_none("template.yaml", &offences(&template));
    Ok(())
}

#[test]
fn illegal_schedules_are_found() {
    for legal in ["rate(1 minute)", "rate(5 minutes)", "rate(1 day)", "cron(0 8 ? * MON *)"] {
        assert!(is_legal(legal), "{legal}");
    }
    for illegal in [
        "rate(30 seconds)",
        "rate(1 minutes)",
        "rate(2 minute)",
        "rate(0 minutes)",
        "rate(1minute)",
        "every minute",
        "cron(0 8 * * *)",
        "cron(0 8 * * * *)",
    ] {
        assert_eq!(offences(&json!({"a": [{"ScheduleExpression": illegal}]})).len(), 1, "{illegal}");
    }
}

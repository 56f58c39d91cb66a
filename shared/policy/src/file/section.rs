//! The single tables: `[derive]`, `[requeue]`, `[admission]`, `[order]`, `[feedback]`, `[estimates]`.

use osprey_model::id::PoolName;
use osprey_model::message::words::quote;

use crate::document::{Item, Reader, Table};
use crate::key::MetadataKey;
use crate::problem::{PolicyErrorCode, did_you_mean};
use crate::rules::{
    AdmissionRules, DeriveRules, EstimateRules, FeedbackRules, Headroom, OrderRules, PRIORITY_MAX, RequeueRules,
};

pub(super) const DERIVE_KEYS: [&str; 4] = ["base", "floor", "ceiling", "fallback"];
pub(super) const REQUEUE_KEYS: [&str; 9] = [
    "failures_max",
    "interruptions_max",
    "base",
    "cap",
    "jitter",
    "on_demand_after",
    "memory_growth",
    "memory_cap_mib",
    "dependency_grace",
];
pub(super) const ADMISSION_KEYS: [&str; 3] = ["require", "array_width_max", "duration_max"];
pub(super) const ORDER_KEYS: [&str; 6] =
    ["dive_above", "headroom", "pool_headroom", "unbounded_wait", "starving_after", "weight_base"];
pub(super) const FEEDBACK_KEYS: [&str; 4] = ["most", "step", "least", "pause"];
pub(super) const ESTIMATES_KEYS: [&str; 4] = ["classes", "quantile", "runs_min", "unknown"];

/// Sets a field when its key is there and its value is good; else the default stays.
pub(super) fn set<'t, T>(
    reader: &mut Reader<'t>,
    table: &Table<'t>,
    key: &str,
    read: impl FnOnce(&mut Reader<'t>, &Item<'t>) -> Option<T>,
    field: &mut T,
) {
    if let Some(value) = table.item(key).and_then(|item| read(reader, &item)) {
        *field = value;
    }
}

/// A number that Batch takes as a priority.
pub(super) fn priority<'t>(reader: &mut Reader<'t>, item: &Item<'t>) -> Option<u32> {
    reader.integer(item, 0..=i64::from(PRIORITY_MAX)).and_then(|number| u32::try_from(number).ok())
}

pub(super) fn derive<'t>(reader: &mut Reader<'t>, root: &Table<'t>) -> DeriveRules {
    let mut rules = DeriveRules::default();
    let Some(table) = reader.section(root, "derive", &DERIVE_KEYS) else { return rules };
    set(reader, &table, "floor", priority, &mut rules.floor);
    set(reader, &table, "ceiling", priority, &mut rules.ceiling);
    set(reader, &table, "base", priority, &mut rules.base);
    set(reader, &table, "fallback", priority, &mut rules.fallback);
    let (floor, ceiling) = (rules.floor, rules.ceiling);
    if floor > ceiling {
        let message = format!("the floor {floor} is above the ceiling {ceiling}");
        reader.error_at(table.span.start, &table.path, PolicyErrorCode::OutOfRange, message, None);
        return rules;
    }
    for (key, number) in [("base", rules.base), ("fallback", rules.fallback)] {
        if !(floor..=ceiling).contains(&number) {
            outside(reader, &table, key, &format!("{number} is outside {floor} to {ceiling}"));
        }
    }
    rules
}

/// A number outside floor and ceiling, at its key or, when it is the default, at the table.
fn outside<'t>(reader: &mut Reader<'t>, table: &Table<'t>, key: &str, range: &str) {
    let message = format!("the {key} {range}");
    match table.item(key) {
        Some(item) => reader.error(&item, PolicyErrorCode::OutOfRange, message, None),
        None => {
            let help = Some(format!("that is the default; give `{key}` as well"));
            reader.error_at(table.span.start, &table.path_of(key), PolicyErrorCode::OutOfRange, message, help);
        }
    }
}

pub(super) fn requeue<'t>(reader: &mut Reader<'t>, root: &Table<'t>) -> RequeueRules {
    let mut rules = RequeueRules::default();
    let Some(table) = reader.section(root, "requeue", &REQUEUE_KEYS) else { return rules };
    set(reader, &table, "failures_max", Reader::count, &mut rules.failures_max);
    set(reader, &table, "interruptions_max", Reader::count, &mut rules.interruptions_max);
    set(reader, &table, "base", Reader::duration_ms, &mut rules.base_ms);
    set(reader, &table, "cap", Reader::duration_ms, &mut rules.cap_ms);
    set(reader, &table, "jitter", |reader, item| reader.percent(item, 0.0..=1.0), &mut rules.jitter_percent);
    set(reader, &table, "on_demand_after", Reader::positive, &mut rules.on_demand_after);
    let growth = |reader: &mut Reader<'t>, item: &Item<'t>| reader.percent(item, 1.0..=16.0);
    set(reader, &table, "memory_growth", growth, &mut rules.memory_growth_percent);
    let cap = |reader: &mut Reader<'t>, item: &Item<'t>| reader.positive(item).map(|mib| Some(mib.into()));
    set(reader, &table, "memory_cap_mib", cap, &mut rules.memory_cap_mib);
    set(reader, &table, "dependency_grace", Reader::duration_ms, &mut rules.dependency_grace_ms);
    if rules.base_ms > rules.cap_ms {
        let message =
            format!("the first delay, {} s, is above the cap, {} s", rules.base_ms / 1000, rules.cap_ms / 1000);
        reader.error_at(table.span.start, &table.path, PolicyErrorCode::OutOfRange, message, None);
    }
    rules
}

pub(super) fn admission<'t>(reader: &mut Reader<'t>, root: &Table<'t>) -> AdmissionRules {
    let mut rules = AdmissionRules::default();
    let Some(table) = reader.section(root, "admission", &ADMISSION_KEYS) else { return rules };
    if let Some(item) = table.item("require") {
        rules.require = required_keys(reader, &item);
    }
    set(reader, &table, "array_width_max", Reader::count, &mut rules.array_width_max);
    let duration = |reader: &mut Reader<'t>, item: &Item<'t>| reader.some_seconds(item).map(Some);
    set(reader, &table, "duration_max", duration, &mut rules.duration_max_seconds);
    rules
}

fn required_keys<'t>(reader: &mut Reader<'t>, item: &Item<'t>) -> Vec<MetadataKey> {
    let mut keys = Vec::new();
    for (item, text) in reader.texts(item) {
        match MetadataKey::of(text) {
            Some(key) if keys.contains(&key) => {
                let message = format!("{} is listed twice", quote(text));
                reader.error(&item, PolicyErrorCode::Duplicate, message, None);
            }
            Some(key) => keys.push(key),
            None => {
                let help = did_you_mean(text, MetadataKey::all().map(MetadataKey::name));
                let message = format!("unknown metadata key {}", quote(text));
                reader.error(&item, PolicyErrorCode::UnknownKey, message, help);
            }
        }
    }
    keys
}

pub(super) fn order<'t>(reader: &mut Reader<'t>, root: &Table<'t>) -> OrderRules {
    let mut rules = OrderRules::default();
    let Some(table) = reader.section(root, "order", &ORDER_KEYS) else { return rules };
    set(reader, &table, "dive_above", priority, &mut rules.dive_above);
    set(reader, &table, "headroom", headroom, &mut rules.headroom);
    set(reader, &table, "unbounded_wait", Reader::boolean, &mut rules.unbounded_wait);
    let some_ms = |reader: &mut Reader<'t>, item: &Item<'t>| reader.some_ms(item).map(Some);
    set(reader, &table, "starving_after", some_ms, &mut rules.starving_after_ms);
    set(reader, &table, "weight_base", Reader::positive, &mut rules.weight_base);
    if let Some(pools) = table.item("pool_headroom").and_then(|item| reader.table(&item)) {
        for (pool, item) in pools.items() {
            rules.pool_headroom.extend(headroom(reader, &item).map(|headroom| (PoolName::new(pool), headroom)));
        }
    }
    rules
}

/// A number of GPUs, or a share of the pool such as `"10%"`.
fn headroom<'t>(reader: &mut Reader<'t>, item: &Item<'t>) -> Option<Headroom> {
    let Some(text) = item.as_text() else { return reader.count(item).map(Headroom::Gpus) };
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
    let headroom = percent.filter(|percent| *percent <= 100).map(Headroom::Percent);
    if headroom.is_none() {
        let message = format!("{} is no headroom", quote(text));
        let help = Some("write a number of GPUs, or a share of the pool such as `\"10%\"`".to_owned());
        reader.error(item, PolicyErrorCode::InvalidValue, message, help);
    }
    headroom
}

pub(super) fn feedback<'t>(reader: &mut Reader<'t>, root: &Table<'t>) -> FeedbackRules {
    let mut rules = FeedbackRules::default();
    let Some(table) = reader.section(root, "feedback", &FEEDBACK_KEYS) else { return rules };
    set(reader, &table, "most", priority, &mut rules.most);
    set(reader, &table, "step", priority, &mut rules.step);
    set(reader, &table, "least", priority, &mut rules.least);
    set(reader, &table, "pause", Reader::duration_ms, &mut rules.pause_ms);
    if rules.most > 0 && rules.step < rules.least.max(1) {
        let message = format!("a step of {} is less than the least change, {}", rules.step, rules.least.max(1));
        let help = Some("no report would move anything; give `step` more, or `most = 0` to take none".to_owned());
        reader.error_at(table.span.start, &table.path, PolicyErrorCode::OutOfRange, message, help);
    }
    rules
}

pub(super) fn estimates<'t>(reader: &mut Reader<'t>, root: &Table<'t>) -> EstimateRules {
    let mut rules = EstimateRules::default();
    let Some(table) = reader.section(root, "estimates", &ESTIMATES_KEYS) else { return rules };
    if let Some(item) = table.item("classes") {
        rules.classes_ms = classes(reader, &item);
    }
    set(reader, &table, "quantile", |reader, item| reader.percent(item, 0.01..=0.99), &mut rules.quantile_percent);
    set(reader, &table, "runs_min", Reader::positive, &mut rules.runs_min);
    set(reader, &table, "unknown", Reader::some_ms, &mut rules.unknown_ms);
    rules
}

/// Upper ends that rise.
fn classes<'t>(reader: &mut Reader<'t>, item: &Item<'t>) -> Vec<u64> {
    let mut classes: Vec<u64> = Vec::new();
    for item in reader.list(item).unwrap_or_default() {
        let Some(seconds) = reader.some_seconds(&item) else { continue };
        let ms = seconds.saturating_mul(1000);
        if classes.last().is_some_and(|last| *last >= ms) {
            let message = "a class isn't longer than the one before it".to_owned();
            reader.error(&item, PolicyErrorCode::OutOfRange, message, Some("list them from short to long".to_owned()));
        }
        classes.push(ms);
    }
    classes
}

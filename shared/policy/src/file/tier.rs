//! `[[tier]]`.

use osprey_model::id::TierName;
use osprey_model::message::words::{all_of, quote};
use osprey_model::pool::CapacityType;

use super::section::priority;
use crate::document::{Item, Reader, Table};
use crate::problem::{PolicyErrorCode, did_you_mean};
use crate::rules::{Aging, DeriveRules, PRIORITY_MAX, Takes, Tier, TierOrder};

pub(super) const KEYS: [&str; 17] = [
    "name",
    "at_least",
    "takes",
    "may_preempt",
    "may_preempt_when_full",
    "minimum_run",
    "grace",
    "checkpoint_window",
    "evictions_per_job",
    "evictions_per_window",
    "eviction_window",
    "team_gpus_max",
    "duration_max",
    "capacity",
    "order",
    "aging",
    "aging_cap",
];

/// Longest name of a tier. It is the end of `osprey-POOL-TIER`, and a queue's name has at most 128 characters.
const NAME_CHARACTERS_MAX: usize = 32;

pub(super) fn tiers<'t>(reader: &mut Reader<'t>, root: &Table<'t>, derive: &DeriveRules) -> Vec<Tier> {
    let tables = reader.tables(root, "tier");
    if tables.is_empty() && root.item("tier").is_none() {
        let help = Some("write at least one `[[tier]]` with `at_least = 0`".to_owned());
        reader.error_at(0, "tier", PolicyErrorCode::MissingKey, "the policy has no tier".to_owned(), help);
    }
    let mut tiers: Vec<Tier> = Vec::new();
    for table in &tables {
        reader.known_keys(table, &KEYS);
        let tier = tier(reader, table);
        duplicates(reader, table, &tier, &tiers);
        tiers.push(tier);
    }
    thresholds(reader, &tables, &tiers, derive);
    for (table, tier) in tables.iter().zip(&tiers) {
        victims(reader, table, tier, &tiers);
    }
    tiers
}

fn tier<'t>(reader: &mut Reader<'t>, table: &Table<'t>) -> Tier {
    let name = name(reader, table);
    let takes = takes(reader, table);
    let mut tier = Tier::new(name, takes);
    let number = |reader: &mut Reader<'t>, key: &str| table.item(key).and_then(|item| reader.count(&item));
    tier.evictions_per_job = number(reader, "evictions_per_job");
    tier.evictions_per_window = number(reader, "evictions_per_window");
    tier.team_gpus_max = number(reader, "team_gpus_max");
    durations(reader, table, &mut tier);
    tier.may_preempt = names(reader, table, "may_preempt");
    tier.may_preempt_when_full = names(reader, table, "may_preempt_when_full");
    if let Some(capacity) = table.item("capacity").and_then(|item| capacity(reader, &item)) {
        tier.capacity = capacity;
    }
    tier.order = table.item("order").and_then(|item| order(reader, &item)).unwrap_or_default();
    tier.aging = aging(reader, table);
    tier
}

fn order<'t>(reader: &mut Reader<'t>, item: &Item<'t>) -> Option<TierOrder> {
    let text = reader.text(item)?;
    let found = TierOrder::ALL.into_iter().find(|order| order.as_str() == text);
    if found.is_none() {
        let names = || TierOrder::ALL.into_iter().map(TierOrder::as_str);
        let help = did_you_mean(text, names()).unwrap_or_else(|| format!("the orders are {}", all_of(names())));
        reader.error(item, PolicyErrorCode::InvalidValue, format!("unknown order {}", quote(text)), Some(help));
    }
    found
}

/// A rate and what it leads to; a rate of 0 is none.
fn aging<'t>(reader: &mut Reader<'t>, table: &Table<'t>) -> Option<Aging> {
    let (rate, cap) = match (table.item("aging"), table.item("aging_cap")) {
        (None, None) => return None,
        (Some(rate), Some(cap)) => (rate, cap),
        (Some(_), None) => {
            let help = "say what number a wait may raise a job to: above every other to go before everybody in the end";
            reader.required(table, "aging_cap", help);
            return None;
        }
        (None, Some(_)) => {
            reader.required(table, "aging", "say how many points an hour a wait is worth");
            return None;
        }
    };
    let millipoints = reader.thousandths(&rate, 0.0..=f64::from(PRIORITY_MAX));
    let cap = reader.integer(&cap, 0..=i64::from(PRIORITY_MAX) + 1).and_then(|cap| u32::try_from(cap).ok());
    Some(Aging { millipoints_per_hour: millipoints?, cap: cap? }).filter(|aging| aging.millipoints_per_hour > 0)
}

fn durations<'t>(reader: &mut Reader<'t>, table: &Table<'t>, tier: &mut Tier) {
    if let Some(seconds) = table.item("minimum_run").and_then(|item| reader.duration_seconds(&item)) {
        tier.minimum_run_seconds = seconds;
    }
    let mut some = |key: &str| table.item(key).and_then(|item| reader.some_seconds(&item));
    tier.grace_seconds = some("grace").unwrap_or(tier.grace_seconds);
    tier.checkpoint_window_seconds = some("checkpoint_window").unwrap_or(tier.checkpoint_window_seconds);
    tier.eviction_window_seconds = some("eviction_window").unwrap_or(tier.eviction_window_seconds);
    tier.duration_max_seconds = some("duration_max");
}

fn name<'t>(reader: &mut Reader<'t>, table: &Table<'t>) -> TierName {
    let item = reader.required(table, "name", "every tier needs a name, which its queues carry");
    let Some((item, name)) = item.and_then(|item| reader.name(&item).map(|name| (item, name))) else {
        return TierName::default();
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.chars().all(plain) || name.starts_with('-') || name.len() > NAME_CHARACTERS_MAX {
        let message = format!("{} is no name of a tier", quote(name));
        let help =
            format!("at most {NAME_CHARACTERS_MAX} lower-case letters, digits and hyphens, since queues carry it");
        reader.error(&item, PolicyErrorCode::InvalidValue, message, Some(help));
    }
    TierName::new(name)
}

fn takes<'t>(reader: &mut Reader<'t>, table: &Table<'t>) -> Takes {
    match (table.item("at_least"), table.item("takes")) {
        (Some(item), None) => Takes::AtLeast(priority(reader, &item).unwrap_or(0)),
        (None, Some(item)) => {
            if reader.text(&item).is_some_and(|text| text != "preemptible") {
                let message = format!("{} is nothing that a tier takes", quote(item.as_text().unwrap_or("")));
                let help = Some("write `takes = \"preemptible\"`, or `at_least` with a number".to_owned());
                reader.error(&item, PolicyErrorCode::InvalidValue, message, help);
            }
            Takes::Preemptible
        }
        (Some(_), Some(item)) => {
            let message = "`at_least` and `takes` exclude each other".to_owned();
            reader.error(&item, PolicyErrorCode::ConflictingKeys, message, Some("keep one of them".to_owned()));
            Takes::Preemptible
        }
        (None, None) => {
            let message = "the tier takes no job".to_owned();
            let help = Some("give it `at_least` with a number, or `takes = \"preemptible\"`".to_owned());
            reader.error_at(table.span.start, &table.path, PolicyErrorCode::MissingKey, message, help);
            Takes::Preemptible
        }
    }
}

fn names<'t>(reader: &mut Reader<'t>, table: &Table<'t>, key: &str) -> Vec<TierName> {
    let Some(item) = table.item(key) else { return Vec::new() };
    reader.texts(&item).into_iter().map(|(_, name)| TierName::new(name)).collect()
}

fn capacity<'t>(reader: &mut Reader<'t>, item: &Item<'t>) -> Option<Vec<CapacityType>> {
    let mut kinds = Vec::new();
    for (item, text) in reader.texts(item) {
        let kind = match text {
            "spot" => CapacityType::Spot,
            "on-demand" => CapacityType::OnDemand,
            _ => {
                let help =
                    did_you_mean(text, ["spot", "on-demand"]).unwrap_or("write `spot` or `on-demand`".to_owned());
                let message = format!("unknown capacity {}", quote(text));
                reader.error(&item, PolicyErrorCode::InvalidValue, message, Some(help));
                continue;
            }
        };
        if kinds.contains(&kind) {
            reader.error(&item, PolicyErrorCode::Duplicate, format!("`{text}` is listed twice"), None);
        }
        kinds.push(kind);
    }
    if item.as_list().is_some_and(|list| list.is_empty()) {
        let help = Some("write `spot`, `on-demand` or both".to_owned());
        reader.error(item, PolicyErrorCode::InvalidValue, "a tier without capacity starts nothing".to_owned(), help);
    }
    (!kinds.is_empty()).then_some(kinds)
}

fn duplicates<'t>(reader: &mut Reader<'t>, table: &Table<'t>, tier: &Tier, before: &[Tier]) {
    if let Some(item) = table.item("name").filter(|_| before.iter().any(|other| other.name == tier.name)) {
        let message = format!("a tier {} stands above already", quote(tier.name.as_str()));
        reader.error(&item, PolicyErrorCode::Duplicate, message, Some("give it another name".to_owned()));
    }
    let preemptible = |tier: &Tier| tier.takes == Takes::Preemptible;
    if let Some(item) = table.item("takes").filter(|_| preemptible(tier) && before.iter().any(preemptible)) {
        let message = "a tier above takes the preemptible jobs already".to_owned();
        reader.error(&item, PolicyErrorCode::Duplicate, message, None);
    }
}

/// Thresholds fall from tier to tier, and the last is at most the floor, so that every number has one tier.
fn thresholds<'t>(reader: &mut Reader<'t>, tables: &[Table<'t>], tiers: &[Tier], derive: &DeriveRules) {
    let with_threshold = tables.iter().zip(tiers).filter_map(|(table, tier)| {
        let number = tier.at_least()?;
        Some((table.item("at_least")?, tier, number))
    });
    let with_threshold: Vec<_> = with_threshold.collect();
    for pair in with_threshold.windows(2) {
        if let [(_, above, limit), (item, _, number)] = pair {
            falls(reader, item, *number, above, *limit);
        }
    }
    match with_threshold.iter().min_by_key(|(_, _, number)| *number) {
        Some((item, _, lowest)) => reaches(reader, item, *lowest, derive.floor),
        None => nobody(reader, tables),
    }
}

fn falls<'t>(reader: &mut Reader<'t>, item: &Item<'t>, number: u32, above: &Tier, limit: u32) {
    if number >= limit {
        let message = format!("{number} isn't below {limit} of the tier {} above", quote(above.name.as_str()));
        let help = Some("list tiers from the highest number to the lowest".to_owned());
        reader.error(item, PolicyErrorCode::TierOrder, message, help);
    }
}

fn reaches<'t>(reader: &mut Reader<'t>, item: &Item<'t>, lowest: u32, floor: u32) {
    if lowest > floor {
        let message = format!("no tier takes the numbers from {floor} to {}", lowest - 1);
        let help = Some("lower the last tier or raise the floor".to_owned());
        reader.error(item, PolicyErrorCode::TierOrder, message, help);
    }
}

fn nobody<'t>(reader: &mut Reader<'t>, tables: &[Table<'t>]) {
    if let Some(table) = tables.first() {
        let message = "no tier takes jobs that aren't preemptible".to_owned();
        let help = Some("give one `at_least = 0`".to_owned());
        reader.error_at(table.span.start, "tier", PolicyErrorCode::TierOrder, message, help);
    }
}

/// Tiers that are preempted exist, stand below, and are named once.
fn victims<'t>(reader: &mut Reader<'t>, table: &Table<'t>, tier: &Tier, tiers: &[Tier]) {
    let mut seen = Vec::new();
    for key in ["may_preempt", "may_preempt_when_full"] {
        // What isn't text was reported when the names were read.
        let items = table.item(key).and_then(|item| item.as_list()).unwrap_or_default();
        for (item, name) in items.iter().filter_map(|item| item.as_text().map(|name| (item, name))) {
            if let Some((code, message, help)) = victim(tier, name, tiers, &seen) {
                reader.error(item, code, message, help);
            }
            seen.push(name);
        }
    }
}

/// The way out of an unknown tier.
pub(super) fn tier_help(name: &str, tiers: &[Tier]) -> String {
    let names = || tiers.iter().map(|tier| tier.name.as_str());
    did_you_mean(name, names()).unwrap_or_else(|| format!("the tiers are {}", all_of(names())))
}

type Fault = (PolicyErrorCode, String, Option<String>);

fn victim(tier: &Tier, name: &str, tiers: &[Tier], seen: &[&str]) -> Option<Fault> {
    let quoted = quote(name);
    let Some(other) = tiers.iter().find(|other| other.name.as_str() == name) else {
        return Some((PolicyErrorCode::UnknownTier, format!("unknown tier {quoted}"), Some(tier_help(name, tiers))));
    };
    if seen.contains(&name) {
        return Some((PolicyErrorCode::Duplicate, format!("{quoted} is listed twice"), None));
    }
    let below = other.takes == Takes::Preemptible || other.at_least() < tier.at_least();
    (!below || other.name == tier.name).then(|| {
        let message = format!("{} can't preempt {quoted}, which isn't below it", quote(tier.name.as_str()));
        (PolicyErrorCode::TierOrder, message, None)
    })
}

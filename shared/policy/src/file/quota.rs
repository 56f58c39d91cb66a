//! `[quota]`.

use osprey_model::id::TierName;
use osprey_model::message::words::{all_of, quote};

use super::section::set;
use super::tier::tier_help;
use crate::document::{Item, Reader, Table};
use crate::problem::{PolicyErrorCode, did_you_mean};
use crate::rules::{Over, QuotaRules, Reserve, Takes, TeamQuota, Tier};

pub(super) const KEYS: [&str; 12] = [
    "gpu_hours_day",
    "gpu_hours_week",
    "gpus",
    "over",
    "borrowing",
    "fair_share",
    "half_life",
    "waste_above",
    "waste_floor",
    "waste_half_life",
    "team",
    "reserve",
];
pub(super) const TEAM_KEYS: [&str; 4] = ["gpu_hours_day", "gpu_hours_week", "gpus", "weight"];
pub(super) const RESERVE_KEYS: [&str; 5] = ["name", "workload", "tier", "share", "user_share"];

/// GPU-milliseconds of a GPU-hour.
const GPU_HOUR: f64 = 3_600_000.0;
/// Most GPU-hours: a thousand GPUs for a century.
const GPU_HOURS_MAX: f64 = 1e9;
/// Most weight of a team.
const WEIGHT_MAX: i64 = 1_000;
/// Longest name of a reserve, which records of jobs carry.
const NAME_CHARACTERS_MAX: usize = 32;

pub(super) fn quota<'t>(reader: &mut Reader<'t>, root: &Table<'t>, tiers: &[Tier]) -> QuotaRules {
    let mut rules = QuotaRules::default();
    let Some(table) = reader.section(root, "quota", &KEYS) else { return rules };
    limits(reader, &table, tiers, &mut rules.every);
    set(reader, &table, "over", |reader, item| over(reader, item, tiers), &mut rules.over);
    set(reader, &table, "borrowing", Reader::boolean, &mut rules.borrowing);
    set(reader, &table, "fair_share", Reader::boolean, &mut rules.fair_share);
    set(reader, &table, "half_life", Reader::some_ms, &mut rules.half_life_ms);
    let share = |reader: &mut Reader<'t>, item: &Item<'t>| reader.percent(item, 0.0..=1.0);
    set(reader, &table, "waste_above", share, &mut rules.waste.above_percent);
    set(reader, &table, "waste_floor", share, &mut rules.waste.floor_percent);
    set(reader, &table, "waste_half_life", Reader::some_ms, &mut rules.waste.half_life_ms);
    if let Some(teams) = table.item("team").and_then(|item| reader.table(&item)) {
        for (name, item) in teams.items() {
            team(reader, name, &item, tiers, &mut rules);
        }
    }
    for table in reader.tables(&table, "reserve") {
        let read = reserve(reader, &table, tiers);
        if let Some(item) = table.item("name").filter(|_| rules.reserves.iter().any(|other| other.name == read.name)) {
            let message = format!("a reserve {} stands above already", quote(&read.name));
            reader.error(&item, PolicyErrorCode::Duplicate, message, Some("give it another name".to_owned()));
        }
        rules.reserves.push(read);
    }
    whole(reader, &table, &rules);
    rules
}

/// Reserves of more than the pool keep everybody out.
fn whole<'t>(reader: &mut Reader<'t>, table: &Table<'t>, rules: &QuotaRules) {
    let percent: u32 = rules.reserves.iter().map(|reserve| reserve.share_percent).sum();
    if percent > 100
        && let Some(item) = table.item("reserve")
    {
        let message = format!("the reserves are {percent} % of a pool");
        let help = Some("let the shares be at most 1 together".to_owned());
        reader.error(&item, PolicyErrorCode::OutOfRange, message, help);
    }
}

fn team<'t>(reader: &mut Reader<'t>, name: &str, item: &Item<'t>, tiers: &[Tier], rules: &mut QuotaRules) {
    let Some(table) = reader.table(item) else { return };
    reader.known_keys(&table, &TEAM_KEYS);
    if name != name.trim().to_lowercase() {
        let message = format!("{} is no name of a team", quote(name));
        let help = Some(format!("teams are compared in lower case: write `{}`", name.trim().to_lowercase()));
        reader.error(item, PolicyErrorCode::InvalidValue, message, help);
    }
    let mut quota = TeamQuota::default();
    limits(reader, &table, tiers, &mut quota);
    let weight = |reader: &mut Reader<'t>, item: &Item<'t>| {
        reader.integer(item, 1..=WEIGHT_MAX).and_then(|weight| u32::try_from(weight).ok()).map(Some)
    };
    set(reader, &table, "weight", weight, &mut quota.weight);
    rules.teams.insert(name.to_owned(), quota);
}

fn limits<'t>(reader: &mut Reader<'t>, table: &Table<'t>, tiers: &[Tier], quota: &mut TeamQuota) {
    set(reader, table, "gpu_hours_day", |reader, item| gpu_hours(reader, item).map(Some), &mut quota.day_gpu_ms);
    set(reader, table, "gpu_hours_week", |reader, item| gpu_hours(reader, item).map(Some), &mut quota.week_gpu_ms);
    let Some(gpus) = table.item("gpus").and_then(|item| reader.table(&item)) else { return };
    for (name, item) in gpus.items() {
        known_tier(reader, &item, name, tiers);
        quota.gpus.extend(reader.count(&item).map(|gpus| (TierName::new(name), gpus)));
    }
}

/// GPU-hours, in GPU-milliseconds.
fn gpu_hours<'t>(reader: &mut Reader<'t>, item: &Item<'t>) -> Option<u64> {
    let hours = reader.amount(item)?;
    if hours > GPU_HOURS_MAX {
        let message = format!("`{hours}` is more than {GPU_HOURS_MAX} GPU-hours");
        reader.error(item, PolicyErrorCode::OutOfRange, message, Some("leave it out for no limit".to_owned()));
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked above")]
    let gpu_ms = (hours * GPU_HOUR).round() as u64;
    Some(gpu_ms)
}

fn over<'t>(reader: &mut Reader<'t>, item: &Item<'t>, tiers: &[Tier]) -> Option<Over> {
    let text = reader.text(item)?;
    let found = Over::ALL.into_iter().find(|over| over.as_str() == text);
    if found.is_none() {
        let names = || Over::ALL.into_iter().map(Over::as_str);
        let help = did_you_mean(text, names()).unwrap_or_else(|| format!("the choices are {}", all_of(names())));
        let message = format!("{} is nothing that becomes of a job over its quota", quote(text));
        reader.error(item, PolicyErrorCode::InvalidValue, message, Some(help));
    }
    if found == Some(Over::Demote) && !tiers.iter().any(|tier| tier.takes == Takes::Preemptible) {
        let message = "there is no tier of preemptible jobs to demote to".to_owned();
        let help = Some("give one tier `takes = \"preemptible\"`, or write `over = \"hold\"`".to_owned());
        reader.error(item, PolicyErrorCode::UnknownTier, message, help);
    }
    found
}

fn known_tier<'t>(reader: &mut Reader<'t>, item: &Item<'t>, name: &str, tiers: &[Tier]) {
    if !tiers.iter().any(|tier| tier.name.as_str() == name) {
        let message = format!("unknown tier {}", quote(name));
        reader.error(item, PolicyErrorCode::UnknownTier, message, Some(tier_help(name, tiers)));
    }
}

fn reserve<'t>(reader: &mut Reader<'t>, table: &Table<'t>, tiers: &[Tier]) -> Reserve {
    reader.known_keys(table, &RESERVE_KEYS);
    let name = reader.required(table, "name", "every reserve needs a name, which its jobs carry");
    let name = name.and_then(|item| {
        let name = reader.name(&item)?;
        if name.chars().count() > NAME_CHARACTERS_MAX {
            let message = format!("{} has more than {NAME_CHARACTERS_MAX} characters", quote(name));
            reader.error(&item, PolicyErrorCode::InvalidValue, message, None);
        }
        Some(name.to_owned())
    });
    let workloads = one_or_several(reader, table, "workload").into_iter().map(|(_, text)| text.to_lowercase());
    let workloads: Vec<String> = workloads.collect();
    let mut names = Vec::new();
    for (item, name) in one_or_several(reader, table, "tier") {
        known_tier(reader, &item, name, tiers);
        names.push(TierName::new(name));
    }
    if table.item("workload").is_none() && table.item("tier").is_none() {
        let help = "say whom it is for: a workload such as `\"interactive\"`, or a tier";
        reader.required(table, "workload", help);
    }
    let share = reader.required(table, "share", "say which share of each pool it keeps, such as 0.2");
    let percent = |reader: &mut Reader<'t>, item: &Item<'t>| reader.percent(item, 0.01..=1.0);
    let share_percent = share.and_then(|item| percent(reader, &item)).unwrap_or(0);
    let user_percent = table.item("user_share").and_then(|item| percent(reader, &item));
    Reserve {
        name: name.unwrap_or_default(),
        workloads,
        tiers: names,
        share_percent,
        user_percent,
        ..Reserve::default()
    }
}

/// A text, or a list of texts.
fn one_or_several<'t>(reader: &mut Reader<'t>, table: &Table<'t>, key: &str) -> Vec<(Item<'t>, &'t str)> {
    let Some(item) = table.item(key) else { return Vec::new() };
    match item.as_text() {
        Some(text) => vec![(item, text)],
        None => reader.texts(&item),
    }
}

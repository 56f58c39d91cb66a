//! `[preemption]`.

use osprey_model::message::words::{all_of, quote};

use super::section::set;
use crate::document::{Item, Reader, Table};
use crate::problem::{PolicyErrorCode, did_you_mean};
use crate::rules::{NEAR_DONE_PERCENT_MAX, PreemptionRules, Victims};

pub(super) const KEYS: [&str; 7] =
    ["wait", "wait_per_victim", "near_done", "restart", "eviction_cost", "victims", "tier_by_tier"];

pub(super) fn preemption<'t>(reader: &mut Reader<'t>, root: &Table<'t>) -> PreemptionRules {
    let mut rules = PreemptionRules::default();
    let Some(table) = reader.section(root, "preemption", &KEYS) else { return rules };
    set(reader, &table, "wait", Reader::duration_ms, &mut rules.wait_ms);
    set(reader, &table, "wait_per_victim", Reader::duration_ms, &mut rules.wait_per_victim_ms);
    set(reader, &table, "near_done", near_done, &mut rules.near_done_percent);
    set(reader, &table, "restart", Reader::duration_ms, &mut rules.restart_ms);
    // One GPU for so long.
    set(reader, &table, "eviction_cost", Reader::duration_ms, &mut rules.eviction_gpu_ms);
    set(reader, &table, "victims", victims, &mut rules.victims);
    set(reader, &table, "tier_by_tier", Reader::boolean, &mut rules.tier_by_tier);
    rules
}

/// A share of a job's work, at most the one at which every job is spared.
fn near_done<'t>(reader: &mut Reader<'t>, item: &Item<'t>) -> Option<u32> {
    reader.percent(item, 0.0..=f64::from(NEAR_DONE_PERCENT_MAX) / 100.0)
}

fn victims<'t>(reader: &mut Reader<'t>, item: &Item<'t>) -> Option<Victims> {
    let text = reader.text(item)?;
    let found = Victims::ALL.into_iter().find(|victims| victims.as_str() == text);
    if found.is_none() {
        let names = || Victims::ALL.into_iter().map(Victims::as_str);
        let help = did_you_mean(text, names()).unwrap_or_else(|| format!("the choices are {}", all_of(names())));
        let message = format!("{} is no choice of victims", quote(text));
        reader.error(item, PolicyErrorCode::InvalidValue, message, Some(help));
    }
    found
}

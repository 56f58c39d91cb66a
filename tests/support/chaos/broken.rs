//! What planted breakages do to writes.

use osprey_ports::{Expect, Item, Write};

use super::breakage::Breakage;
use super::observer::{number, text};
use super::store::key_of;
use super::world::World;

impl World {
    /// The writes that a planted breakage makes of others; `None` when it leaves them alone.
    pub(super) fn broken_writes(&self, writes: &[Write]) -> Option<Vec<Write>> {
        match self.breakage? {
            Breakage::DropTheClaim => Some(writes.iter().map(|write| unconditional_if(write, is_claim)).collect()),
            Breakage::TrustArrivalOrder | Breakage::StaleReads => {
                Some(writes.iter().map(|write| unconditional_if(write, has_version)).collect())
            }
            Breakage::Overwrite => Some(writes.iter().map(|write| unconditional_if(write, must_be_new)).collect()),
            Breakage::TearTransactions => Some(writes.iter().take(1).cloned().collect()),
            Breakage::CountTwice => Some(writes.iter().map(doubled).collect()),
            Breakage::CountNever => Some(without(writes, |write| matches!(write, Write::Add { .. }))),
            Breakage::DropTheCap => Some(writes.iter().map(uncapped).collect()),
            Breakage::ForgetReleases => Some(without(writes, is_release)),
            Breakage::CountOneDay => Some(on_one_day(writes)),
            Breakage::ForgetToLook => Some(writes.iter().map(hidden_while_waiting).collect()),
            Breakage::DropThePlanGuard => Some(writes.iter().map(|write| unconditional_if(write, is_plan)).collect()),
            Breakage::HideJobs => Some(writes.iter().map(unlisted).collect()),
            Breakage::ForgetReceipts => {
                Some(without(writes, |write| key_of(write).sort.starts_with("EVICTION#") && !is_check(write)))
            }
            Breakage::ForgetDepth => Some(writes.iter().map(shallow).collect()),
            _ => None,
        }
    }
}

fn is_check(write: &Write) -> bool {
    matches!(write, Write::Check { .. })
}

fn without(writes: &[Write], drop: impl Fn(&Write) -> bool) -> Vec<Write> {
    writes.iter().filter(|write| !drop(write)).cloned().collect()
}

fn unconditional_if(write: &Write, which: impl Fn(&Item, Expect) -> bool) -> Write {
    match write {
        Write::Put { item, expect } if which(item, *expect) => Write::Put { item: item.clone(), expect: Expect::Any },
        other => other.clone(),
    }
}

fn is_state(item: &Item) -> bool {
    item.key.sort == "STATE"
}

fn is_claim(item: &Item, _: Expect) -> bool {
    is_state(item) && text(&item.body, "state") == Some("claimed")
}

fn is_plan(item: &Item, _: Expect) -> bool {
    item.key.partition == "POOLS"
}

fn has_version(_: &Item, expect: Expect) -> bool {
    matches!(expect, Expect::Version(_))
}

fn must_be_new(_: &Item, expect: Expect) -> bool {
    expect == Expect::Absent
}

fn doubled(write: &Write) -> Write {
    match write {
        Write::Add { key, amounts, at_most, expires_at } => Write::Add {
            key: key.clone(),
            amounts: amounts.iter().map(|(name, amount)| (name.clone(), amount * 2)).collect(),
            at_most: at_most.clone(),
            expires_at: *expires_at,
        },
        other => other.clone(),
    }
}

fn uncapped(write: &Write) -> Write {
    let mut write = write.clone();
    if let Write::Add { at_most, .. } = &mut write {
        at_most.clear();
    }
    write
}

fn is_release(write: &Write) -> bool {
    matches!(write, Write::Add { key, amounts, .. } if key.sort == "GPUS" && amounts.values().any(|amount| *amount < 0))
}

/// What is counted on several days is counted on the first of them.
fn on_one_day(writes: &[Write]) -> Vec<Write> {
    let mut first = None;
    let mut made = Vec::new();
    for write in writes {
        let mut write = write.clone();
        if let Write::Add { key, amounts, .. } = &mut write
            && key.sort.starts_with("DAY#")
        {
            match first.and_then(|place: usize| made.get_mut(place)) {
                Some(Write::Add { amounts: all, .. }) => {
                    for (name, amount) in std::mem::take(amounts) {
                        *all.entry(name).or_insert(0) += amount;
                    }
                    continue;
                }
                _ => first = Some(made.len()),
            }
        }
        made.push(write);
    }
    made
}

/// Nobody finds a waiting job: neither by the edge from its parent nor in the index of what is due.
fn hidden_while_waiting(write: &Write) -> Write {
    let mut write = write.clone();
    if let Write::Put { item, .. } = &mut write {
        let waits = is_state(item) && text(&item.body, "state") == Some("waiting");
        if waits {
            item.indexes.retain(|entry| entry.index != osprey_ports::Index::Due);
        }
        if item.key.sort.starts_with("CHILD#") {
            item.key.sort = item.key.sort.replace("CHILD#", "LOST#");
        }
    }
    write
}

fn unlisted(write: &Write) -> Write {
    let mut write = write.clone();
    if key_of(&write).partition.starts_with("JOB#")
        && let Write::Put { item, .. } = &mut write
    {
        item.indexes.retain(|entry| entry.index != osprey_ports::Index::Listing);
    }
    write
}

fn shallow(write: &Write) -> Write {
    let mut write = write.clone();
    if let Write::Put { item, .. } = &mut write
        && is_state(item)
        && let Some(depth) = number(&item.body, "depth")
    {
        item.body = item.body.replace(&format!("\"depth\":{depth}"), "\"depth\":0");
    }
    write
}

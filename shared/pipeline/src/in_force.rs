//! What is in force: the live policy, the modes of the pools, the layout of the table. Kept in the table, so that a
//! change takes effect everywhere without a deployment.
//!
//! | partition | sort | what |
//! |---|---|---|
//! | `CONFIG` | `LAYOUT` | the number of this arrangement of items |
//! | | `POLICY` | the policy in force |
//! | | `MODE#pool` | a pool's mode, where it isn't the one it was deployed with |
//! | | `PREEMPTION#pool` | whether its cycles may evict, the same |
//! | `CONFIG-HISTORY` | `POLICY#time` | every policy that was in force |

use std::collections::BTreeMap;

use osprey_model::id::PoolName;
use osprey_model::pool::{Pool, PoolMode};
use osprey_policy::Policy;
use osprey_ports::{Clock, Expect, Item, Key, QueryItems, SortQuery, StoreError, Write, WriteItems};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{key, repository};

/// The arrangement of items that this version reads and writes.
pub const LAYOUT: u32 = 1;

const PARTITION: &str = "CONFIG";
const HISTORY: &str = "CONFIG-HISTORY";
const POLICY: &str = "POLICY";
const MODE: &str = "MODE#";
const PREEMPTION: &str = "PREEMPTION#";
const LAYOUT_SORT: &str = "LAYOUT";

/// A policy as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPolicy {
    /// The file's text.
    pub text: String,
    /// When it came into force, milliseconds since 1970.
    pub applied_at: i64,
    /// Who applied it.
    pub by: String,
}

/// A pool's mode as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMode {
    /// The mode.
    pub mode: PoolMode,
    /// When it was set, milliseconds since 1970.
    pub set_at: i64,
    /// Who set it.
    pub by: String,
}

/// Whether a pool's cycles may evict, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPreemption {
    /// Whether they may.
    pub preemption: bool,
    /// When it was set, milliseconds since 1970.
    pub set_at: i64,
    /// Who set it.
    pub by: String,
}

#[derive(Serialize, Deserialize)]
struct StoredLayout {
    layout: u32,
}

/// What the table says is in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The policy, as kept; `None` in a new table.
    pub policy: Option<StoredPolicy>,
    /// What is wrong with items that can't be read.
    pub faults: Vec<String>,
    /// The modes that were set.
    pub modes: BTreeMap<PoolName, PoolMode>,
    /// Whether pools' cycles may evict, where that was set.
    pub preemption: BTreeMap<PoolName, bool>,
    /// The arrangement of items; `None` in a new table.
    pub layout: Option<u32>,
}

/// Reads what is in force, in one request.
///
/// # Errors
/// When the store fails. Items that can't be read are faults, and hinder nothing.
pub async fn read<P: QueryItems + Sync>(ports: &P) -> Result<Found, Failure> {
    let mut found = Found::default();
    for item in repository::all(ports, PARTITION.to_owned(), "").await? {
        found.take(&item);
    }
    Ok(found)
}

impl Found {
    fn take(&mut self, item: &Item) {
        let read = match item.key.sort.as_str() {
            POLICY => repository::read(item).map(|policy| self.policy = Some(policy)),
            LAYOUT_SORT => repository::read::<StoredLayout>(item).map(|stored| self.layout = Some(stored.layout)),
            sort => self.take_of_pool(sort, item),
        };
        if let Err(failure) = read {
            self.faults.push(failure.story());
        }
    }

    /// What was set for one pool.
    fn take_of_pool(&mut self, sort: &str, item: &Item) -> Result<(), Failure> {
        if let Some(pool) = sort.strip_prefix(MODE) {
            let stored: StoredMode = repository::read(item)?;
            self.modes.insert(PoolName::new(pool), stored.mode);
        } else if let Some(pool) = sort.strip_prefix(PREEMPTION) {
            let stored: StoredPreemption = repository::read(item)?;
            self.preemption.insert(PoolName::new(pool), stored.preemption);
        }
        Ok(())
    }

    /// Whether this version can work on the table.
    ///
    /// # Errors
    /// The sentence when it can't.
    pub fn check_layout(&self) -> Result<(), String> {
        match self.layout {
            None | Some(LAYOUT) => Ok(()),
            Some(other) => Err(format!(
                "the table has layout {other}, and this version of Osprey knows layout {LAYOUT}; deploy the version that wrote it, or a newer one"
            )),
        }
    }

    /// The pools, each in the mode that was set for it, and evicting as was set for it.
    #[must_use]
    pub fn pools(&self, deployed: &[Pool]) -> Vec<Pool> {
        let mode = |pool: &Pool| self.modes.get(&pool.name).copied().unwrap_or(pool.mode);
        let preemption = |pool: &Pool| self.preemption.get(&pool.name).copied().unwrap_or(pool.preemption);
        let set = |pool: &Pool| Pool { mode: mode(pool), preemption: preemption(pool), ..pool.clone() };
        deployed.iter().map(set).collect()
    }
}

/// Puts a policy and the layout into a new table. Somebody else's are left alone.
///
/// # Errors
/// When the store fails.
pub async fn seed<P: WriteItems + Clock + Sync>(ports: &P, text: &str) -> Result<(), Failure> {
    let now = ports.now().as_millisecond();
    let policy = StoredPolicy { text: text.to_owned(), applied_at: now, by: "deployment".to_owned() };
    let mut writes = policy_writes(&policy, Expect::Absent);
    writes.push(Write::Put {
        item: Item::new(Key::new(PARTITION, LAYOUT_SORT), repository::json(&StoredLayout { layout: LAYOUT })),
        expect: Expect::Any,
    });
    match ports.write_items(&writes).await {
        Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The writes that put a policy into force, and into the history.
#[must_use]
pub fn policy_writes(policy: &StoredPolicy, expect: Expect) -> Vec<Write> {
    let body = repository::json(policy);
    let past = Key::new(HISTORY, format!("{POLICY}#{}", key::sortable(policy.applied_at)));
    vec![
        Write::Put { item: Item::new(Key::new(PARTITION, POLICY), body.clone()), expect },
        Write::Put { item: Item::new(past, body), expect: Expect::Any },
    ]
}

/// The write that sets a pool's mode.
#[must_use]
pub fn mode_write(pool: &PoolName, mode: &StoredMode) -> Write {
    let item = Item::new(Key::new(PARTITION, format!("{MODE}{pool}")), repository::json(mode));
    Write::Put { item, expect: Expect::Any }
}

/// The write that says whether a pool's cycles may evict.
#[must_use]
pub fn preemption_write(pool: &PoolName, stored: &StoredPreemption) -> Write {
    let item = Item::new(Key::new(PARTITION, format!("{PREEMPTION}{pool}")), repository::json(stored));
    Write::Put { item, expect: Expect::Any }
}

/// The newest policy of the history that this version can read; for a process that starts while the one in force is
/// bad.
///
/// # Errors
/// When the store fails.
pub async fn last_good<P: QueryItems + Sync>(ports: &P) -> Result<Option<Policy>, Failure> {
    let mut after = None;
    let mut good = None;
    loop {
        let query = SortQuery { partition: HISTORY.to_owned(), prefix: format!("{POLICY}#"), after, limit: 100 };
        let page = ports.query_items(&query).await?;
        let read = |item: &Item| Policy::load(&repository::read::<StoredPolicy>(item).ok()?.text).ok();
        good = page.items.iter().rev().find_map(read).map(|loaded| loaded.policy).or(good);
        after = page.items.last().map(|item| item.key.sort.clone());
        if !page.more || after.is_none() {
            return Ok(good);
        }
    }
}

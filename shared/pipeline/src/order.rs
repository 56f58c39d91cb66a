//! Standing orders: what a person wants of a pool for a while. They are rows of the pool, read with what is held of it, so
//! that the next cycle follows them and no process remembers an old one.
//!
//! | sort | what |
//! |---|---|
//! | `ORDER#DRAIN` | the pool starts nothing |
//! | `ORDER#DRAIN#tier` | it starts nothing of that tier |
//! | `ORDER#RESERVE#team` | so many of its GPUs are kept for that team, until then |

use osprey_model::id::{PoolName, TierName};
use osprey_ports::{Expect, Item, Key, Write};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{key, repository};

/// Start of the sort keys of standing orders.
pub const ORDER: &str = "ORDER#";
const DRAIN: &str = "ORDER#DRAIN";
const RESERVE: &str = "ORDER#RESERVE#";

/// The pool, or one tier of it, starts nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// The tier; `None` for all of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierName>,
    /// When it was ordered, milliseconds since 1970.
    pub at: i64,
    /// By whom.
    pub by: String,
}

/// GPUs that are kept for a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The team, lower case as metadata has it.
    pub team: String,
    /// GPUs; what its jobs hold already counts.
    pub gpus: u32,
    /// Until when, milliseconds since 1970.
    pub until: i64,
    /// When it was ordered, milliseconds since 1970.
    pub at: i64,
    /// By whom.
    pub by: String,
}

/// What stands for a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// What starts nothing.
    pub drains: Vec<Drain>,
    /// What is kept for teams, also what has run out.
    pub reservations: Vec<Reservation>,
}

impl Orders {
    /// Takes in a row of the pool; `false` for one that is no order.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn take(&mut self, item: &Item) -> Result<bool, Failure> {
        let sort = item.key.sort.as_str();
        if sort.starts_with(RESERVE) {
            self.reservations.push(repository::read(item)?);
        } else if sort.starts_with(DRAIN) {
            self.drains.push(repository::read(item)?);
        } else {
            return Ok(sort.starts_with(ORDER));
        }
        Ok(true)
    }

    /// Whether the whole pool starts nothing.
    #[must_use]
    pub fn drains_all(&self) -> bool {
        self.drains.iter().any(|drain| drain.tier.is_none())
    }

    /// Whether a tier starts nothing, by an order of its own.
    #[must_use]
    pub fn drains_tier(&self, tier: &TierName) -> bool {
        self.drains.iter().any(|drain| drain.tier.as_ref() == Some(tier))
    }

    /// What is kept at a time, milliseconds since 1970.
    pub fn kept_at(&self, now_ms: i64) -> impl Iterator<Item = &Reservation> {
        self.reservations.iter().filter(move |kept| kept.until > now_ms && kept.gpus > 0)
    }
}

fn drain_key(pool: &PoolName, tier: Option<&TierName>) -> Key {
    let sort = tier.map_or_else(|| DRAIN.to_owned(), |tier| format!("{DRAIN}#{tier}"));
    Key::new(key::pool_partition(pool), sort)
}

/// The write that drains a pool or a tier of it.
#[must_use]
pub fn drain_write(pool: &PoolName, drain: &Drain) -> Write {
    let item = Item::new(drain_key(pool, drain.tier.as_ref()), repository::json(drain));
    Write::Put { item, expect: Expect::Any }
}

/// The write that ends that.
#[must_use]
pub fn resume_write(pool: &PoolName, tier: Option<&TierName>) -> Write {
    Write::Delete { key: drain_key(pool, tier), expect: Expect::Any }
}

/// The write that keeps GPUs for a team; with none it ends what was kept.
#[must_use]
pub fn reserve_write(pool: &PoolName, kept: &Reservation) -> Write {
    let key = Key::new(key::pool_partition(pool), format!("{RESERVE}{}", kept.team));
    if kept.gpus == 0 {
        return Write::Delete { key, expect: Expect::Any };
    }
    Write::Put { item: Item::new(key, repository::json(kept)), expect: Expect::Any }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(write: &Write) -> Item {
        match write {
            Write::Put { item, .. } => item.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn orders_come_back_as_they_were_written_and_what_has_run_out_keeps_nothing() {
        let pool = PoolName::new("main");
        let all = Drain { tier: None, at: 1, by: "1000:ada".to_owned() };
        let tier = Drain { tier: Some("critical".into()), ..all.clone() };
        let kept = Reservation { team: "search".to_owned(), gpus: 8, until: 100, at: 1, by: "1000:ada".to_owned() };
        let mut orders = Orders::default();
        for write in [drain_write(&pool, &all), drain_write(&pool, &tier), reserve_write(&pool, &kept)] {
            assert!(orders.take(&item(&write)).unwrap());
        }
        assert_eq!(
            (orders.drains.as_slice(), orders.reservations.as_slice()),
            ([all, tier].as_slice(), [kept].as_slice())
        );
        assert!(orders.drains_all() && orders.drains_tier(&"critical".into()) && !orders.drains_tier(&"spare".into()));
        assert_eq!([99, 100].map(|now| orders.kept_at(now).count()), [1, 0]);
        assert!(!orders.take(&Item::new(Key::new("POOL#main", "HOLD#x"), "{}")).unwrap());
    }

    #[test]
    fn nothing_kept_is_no_order() {
        let kept = Reservation { team: "a".to_owned(), gpus: 0, until: 9, at: 1, by: String::new() };
        assert!(matches!(reserve_write(&PoolName::new("main"), &kept), Write::Delete { .. }));
    }
}

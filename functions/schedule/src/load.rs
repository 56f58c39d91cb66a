//! What a cycle reads of a pool. The number of requests depends on the number of tiers and on what runs, never on how
//! many jobs wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join_all;
use osprey_model::id::JobId;
use osprey_model::pool::Pool;
use osprey_pipeline::evict::Planned;
use osprey_pipeline::evict::window::{self, Counted};
use osprey_pipeline::failure::Failure;
use osprey_pipeline::line::{self, Held, Holding, InLine};
use osprey_pipeline::order::Orders;
use osprey_pipeline::{account, repository, waits};
use osprey_policy::share::Account;
use osprey_ports::{Capacity, GetItem, ObserveCapacity, QueryItems};
use osprey_scheduler::Rules;
use osprey_scheduler::lending::{self, Dependent, Lent};
use osprey_scheduler::rules::Strategy;

use crate::search;

/// Jobs of each tier that a cycle looks at; those behind them wait until it is their turn, or their wait brings them
/// forward ([`search`]).
pub const WINDOW: usize = 500;
/// Jobs behind that window that are looked at for what others lend them, those first that are lent most.
const LENT_MAX: usize = 16;

/// A pool as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// Nodes, and what is taken of them.
    pub capacity: Capacity,
    /// What our jobs hold.
    pub holds: Vec<Holding>,
    /// Who is to go for jobs that were claimed, and wasn't told so yet.
    pub planned: Vec<Planned>,
    /// What people ordered for the pool.
    pub orders: Orders,
    /// Evictions that budgets count.
    pub evicted: Vec<Counted>,
    /// The front of the line, and those behind it that have a reason to be looked at.
    pub line: Vec<InLine>,
    /// Whether jobs stand behind it.
    pub is_cut: bool,
    /// What the jobs that wait for others lend to those that they wait for, whatever their pools.
    pub lent: BTreeMap<JobId, Lent>,
    /// Jobs behind the front whose wait brings them there.
    pub aged: Vec<JobId>,
    /// How far the line has been looked through for such jobs; `None` when the next search begins at its front.
    pub searched_to: Option<String>,
    /// The accounts of the teams of the line, and of those that borrow, where the policy asks for what teams use.
    pub teams: BTreeMap<String, Account>,
}

/// Reads a pool. `searched_to` is how far the cycle before it has looked through the line.
///
/// # Errors
/// When the store or Batch fails.
pub async fn load<P>(
    ports: &P,
    pool: &Pool,
    rules: &Rules,
    now_ms: i64,
    searched_to: Option<String>,
) -> Result<Loaded, Failure>
where
    P: GetItem + QueryItems + ObserveCapacity + Sync,
{
    // The line before the holds: a job that is claimed in between is then seen in one of the two at least. The plan's
    // guard would refuse to act on it either way.
    let (line, is_cut) = line::front(ports, &pool.name, WINDOW).await?;
    let mut loaded = Loaded { line, is_cut, ..Loaded::default() };
    if is_cut {
        search::aged(ports, pool, rules, now_ms, searched_to, &mut loaded).await?;
    }
    Held { holds: loaded.holds, planned: loaded.planned, orders: loaded.orders } =
        line::held(ports, &pool.name).await?;
    if let Some(window_ms) = longest_window_ms(rules) {
        // After what is planned: who was told to go in between counts twice rather than not at all.
        loaded.evicted = window::since(ports, &pool.name, now_ms.saturating_sub_unsigned(window_ms)).await?;
    }
    loaded.lent = lent(ports, rules).await?;
    if is_cut {
        let far = far_behind(ports, pool, &loaded).await?;
        loaded.line.extend(far);
    }
    if rules.asks_of_teams() {
        loaded.teams = teams(ports, &loaded, now_ms).await?;
    }
    loaded.capacity = observed(ports, pool).await?;
    Ok(loaded)
}

/// What a pool has, and what of it is in use.
///
/// # Errors
/// When it can't be observed.
pub async fn observed<P: ObserveCapacity + Sync>(ports: &P, pool: &Pool) -> Result<Capacity, Failure> {
    ports.observe_capacity(pool).await.map_err(Failure::call("the observation of a pool"))
}

/// Accounts that are read at once.
const ACCOUNTS_AT_ONCE: usize = 16;

/// The accounts of the teams that have jobs in line, or run something that is borrowed: a request a team.
async fn teams<P: QueryItems + Sync>(
    ports: &P,
    loaded: &Loaded,
    now_ms: i64,
) -> Result<BTreeMap<String, Account>, Failure> {
    let borrowed = loaded.holds.iter().filter(|holding| holding.charge.borrowed);
    let borrowers = borrowed.filter_map(|holding| holding.team.as_ref());
    let names: BTreeSet<&String> = loaded.line.iter().filter_map(|job| job.team.as_ref()).chain(borrowers).collect();
    let names: Vec<&String> = names.into_iter().collect();
    let mut teams = BTreeMap::new();
    for some in names.chunks(ACCOUNTS_AT_ONCE) {
        let accounts = try_join_all(some.iter().map(|team| account::load(ports, team, now_ms))).await?;
        teams.extend(some.iter().map(|team| (*team).clone()).zip(accounts));
    }
    Ok(teams)
}

/// The longest window of the tiers' budgets for evictions; `None` where nothing limits them.
fn longest_window_ms(rules: &Rules) -> Option<u64> {
    let may_evict = rules.strategy == Strategy::Osprey;
    let budgeted = rules.tiers.iter().filter(|tier| may_evict && tier.evictions_per_window.is_some());
    budgeted.map(|tier| tier.eviction_window_ms).max()
}

/// What waiting jobs lend to those that they wait for.
///
/// # Errors
/// When the store fails.
pub async fn lent<P: QueryItems + Sync>(ports: &P, rules: &Rules) -> Result<BTreeMap<JobId, Lent>, Failure> {
    let rows = waits::most_urgent(ports).await?;
    let dependents: Vec<Dependent> = rows.into_iter().map(|row| dependent(row, rules)).collect();
    Ok(lending::lent(&dependents))
}

/// What a waiting job may lend. What is preemptible yields to everybody, whatever its number, and lends none of it: nobody
/// goes for whom it waits for.
fn dependent(row: waits::Waits, rules: &Rules) -> Dependent {
    let tier = row.tier.and_then(|tier| rules.tiers.get(usize::from(rules.tier(&tier))));
    let yields = tier.is_some_and(|tier| tier.at_least.is_none());
    let expected_ms = row.expected_seconds.saturating_mul(1_000);
    Dependent {
        job: row.job,
        priority: if yields { 0 } else { row.priority },
        expected_ms: if expected_ms > 0 { expected_ms } else { rules.unknown_ms },
        needs: row.needs,
    }
}

/// Jobs of the line behind its front that others wait for.
async fn far_behind<P: GetItem + Sync>(ports: &P, pool: &Pool, loaded: &Loaded) -> Result<Vec<InLine>, Failure> {
    let seen: BTreeSet<JobId> =
        loaded.line.iter().map(|job| job.job).chain(loaded.holds.iter().map(|holding| holding.job)).collect();
    let mut wanted: Vec<(&JobId, &Lent)> = loaded.lent.iter().filter(|(job, _)| !seen.contains(job)).collect();
    wanted.sort_by_key(|(job, lent)| (Reverse(lent.priority), **job));
    let mut found = Vec::new();
    for (job, _) in wanted.into_iter().take(LENT_MAX) {
        let known = repository::load(ports, *job).await?;
        found.extend(known.and_then(|known| line::place_in(&known.job, &pool.name)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use osprey_scheduler::rules::TierRules;

    use super::*;

    #[test]
    fn a_preemptible_job_lends_nothing_whatever_its_number() {
        let tier = |name: &str, at_least| TierRules { name: name.into(), at_least, ..TierRules::default() };
        let rules =
            Rules { tiers: vec![tier("high", Some(800)), tier("spare", None)], unknown_ms: 7, ..Rules::default() };
        for (tier, lends) in [(Some("high"), 1200), (Some("spare"), 0), (None, 1200)] {
            let tier = tier.map(Into::into);
            let row = waits::Waits {
                job: JobId::of_message(&"a message".into()),
                priority: 1200,
                tier,
                expected_seconds: 0,
                needs: Vec::new(),
            };
            let dependent = dependent(row, &rules);
            assert_eq!((dependent.priority, dependent.expected_ms), (lends, 7));
        }
    }
}

//! What a cycle reads of a pool. The number of requests depends on the number of tiers and on what runs, never on how
//! many jobs wait.

use osprey_model::pool::Pool;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::line::{self, Holding, InLine};
use osprey_ports::{Capacity, ObserveCapacity, QueryItems};

/// Jobs of each tier that a cycle looks at; those behind them wait until it is their turn.
pub const WINDOW: usize = 500;

/// A pool as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// Nodes, and what is taken of them.
    pub capacity: Capacity,
    /// What our jobs hold.
    pub holds: Vec<Holding>,
    /// The front of the line.
    pub line: Vec<InLine>,
    /// Whether jobs stand behind it.
    pub is_cut: bool,
}

/// Reads a pool.
///
/// # Errors
/// When the store or Batch fails.
pub async fn load<P>(ports: &P, pool: &Pool) -> Result<Loaded, Failure>
where
    P: QueryItems + ObserveCapacity + Sync,
{
    // The line before the holds: a job that is claimed in between is then seen in one of the two at least. The plan's
    // guard would refuse to act on it either way.
    let (line, is_cut) = line::front(ports, &pool.name, WINDOW).await?;
    let holds = line::holds(ports, &pool.name).await?;
    let capacity = ports.observe_capacity(pool).await.map_err(Failure::call("the observation of a pool"))?;
    Ok(Loaded { capacity, holds, line, is_cut })
}

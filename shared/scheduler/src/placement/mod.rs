//! Placement: which waiting jobs go to which nodes, so that what starts is worth the most.
//!
//! [`Problem`] says what there is, [`Plan`] what was found, [`Problem::objective`] what it is worth. Three ways of
//! finding one: [`greedy`] walks down the queue once, [`mod@exact`] proves its answer on small problems, and [`osprey`]
//! lets a swarm look around the greedy plan. `docs/osprey.md` says where the swarm comes from and when it helps.
//!
//! Slots are GPUs, or vCPUs where nodes have no GPUs.

pub mod exact;
mod greedy;
mod kinds;
mod levels;
mod order;
mod packing;
mod plan;
pub mod problem;
pub mod swarm;

pub use exact::{Solved, TooLarge, exact};
pub use greedy::greedy;
pub use order::by_priority;
pub use plan::{Infeasible, Plan};
pub use problem::{Head, Job, Node, Problem, Unusable};
pub use swarm::osprey;

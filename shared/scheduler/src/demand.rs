//! What a job demands at once.

use crate::room::Room;
use crate::snapshot::{Queued, Shape};

/// A job's demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Demand {
    /// A part of one node, or whole nodes.
    Nodes(Shape),
    /// So many children of an array, wherever each fits.
    Children { shape: Shape, count: u32 },
}

impl Demand {
    /// What a job demands; of an array whose children start one by one, one child's. An array that starts as one is
    /// given room for all of its children, or for as many as the pool could ever hold: Batch gives the rest what they
    /// free.
    pub fn of(job: &Queued, room: &Room<'_>) -> Self {
        Self::at_most(job, |shape| room.most(shape))
    }

    /// What is kept for a job that doesn't fit yet. Others' work has no end that anybody knows, so nothing is kept where it
    /// is seen, even if some of it turns out to be a dispatch of ours.
    pub fn kept(job: &Queued, room: &Room<'_>) -> Self {
        Self::at_most(job, |shape| room.most_seen(shape))
    }

    /// How many of a shape there is room for takes a look at every node, so only arrays that start as one ask.
    fn at_most(job: &Queued, most: impl FnOnce(Shape) -> u32) -> Self {
        match job.array {
            Some(array) if !array.singly => {
                Self::Children { shape: job.shape, count: array.waiting.min(most(job.shape)).max(1) }
            }
            _ => Self::Nodes(job.shape),
        }
    }

    /// GPUs in all.
    pub fn gpus(&self) -> u32 {
        match self {
            Self::Nodes(shape) => shape.all_gpus(),
            Self::Children { shape, count } => shape.all_gpus().saturating_mul(*count),
        }
    }
}

//! What is free, and what a job takes of it: counted GPUs, or nodes.

mod count;
mod mixed;
mod node;

pub use count::CountPool;
pub use mixed::{MixedPool, Shape};
pub use node::{NodePool, NodeShare};

/// Free GPUs of the cluster.
///
/// A pool is cheap to copy, so that "what if" is asked of a copy.
pub trait Pool: Clone {
    /// What a running job holds.
    type Share: Clone;

    /// GPUs that jobs hold or can hold.
    fn gpus(&self) -> u32;

    /// GPUs of a node that jobs hold or can hold, where nodes come and go; `None` where they stay.
    fn gpus_of(&self, _node: u32) -> Option<u32> {
        None
    }

    /// GPUs that nobody holds.
    fn free(&self) -> u32;

    /// Where a job of this many GPUs would go now; `None` when it doesn't fit.
    fn place(&self, gpus: u32) -> Option<Self::Share>;

    /// Whether a job of this many GPUs fits now.
    fn fits(&self, gpus: u32) -> bool;

    /// Takes exactly this share, if all of it is free.
    fn hold(&mut self, share: &Self::Share) -> bool;

    /// How long a job that starts now on this share, which is held, waits for its nodes to start up, in milliseconds.
    fn start_up_ms(&mut self, _: &Self::Share, _now_ms: u64) -> u64 {
        0
    }

    /// Gives a share back.
    fn give(&mut self, share: &Self::Share);

    /// Free GPUs on nodes of which others are held: what packing leaves over.
    fn stranded(&self) -> u32;

    /// The share that holds these GPUs of these nodes.
    fn share_of(nodes: &[(u32, u32)]) -> Self::Share;

    /// The nodes of a share, each with its GPUs; empty where nodes don't matter.
    fn nodes(share: &Self::Share) -> Vec<(u32, u32)>;
}

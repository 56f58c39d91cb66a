//! One pool of GPUs without nodes.

use super::Pool;

/// Counted GPUs: a job fits when as many are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountPool {
    gpus: u32,
    free: u32,
}

impl CountPool {
    /// A pool of this many GPUs, all free.
    #[must_use]
    pub fn new(gpus: u32) -> Self {
        Self { gpus, free: gpus }
    }
}

impl Pool for CountPool {
    type Share = u32;

    fn gpus(&self) -> u32 {
        self.gpus
    }

    fn free(&self) -> u32 {
        self.free
    }

    fn place(&self, gpus: u32) -> Option<u32> {
        (gpus <= self.free).then_some(gpus)
    }

    fn fits(&self, gpus: u32) -> bool {
        gpus <= self.free
    }

    fn hold(&mut self, share: &u32) -> bool {
        let left = self.free.checked_sub(*share);
        self.free = left.unwrap_or(self.free);
        left.is_some()
    }

    fn give(&mut self, share: &u32) {
        self.free += share;
    }

    fn stranded(&self) -> u32 {
        0
    }

    fn share_of(nodes: &[(u32, u32)]) -> u32 {
        nodes.iter().map(|(_, gpus)| gpus).sum()
    }

    fn nodes(_: &u32) -> Vec<(u32, u32)> {
        Vec::new()
    }
}

//! Ways of walking down the queue.

pub(crate) mod backfill;
pub(crate) mod strict;

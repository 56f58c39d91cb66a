//! The rules of a decision.

/// What a decision follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// How the queue is ordered and walked down.
    pub strategy: Strategy,
}

/// The strategies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// By submission; a head that doesn't fit holds up everybody.
    Fifo,
    /// By priority; a head that doesn't fit holds up everybody. What a queue with static priorities does.
    Priority,
    /// By expected run time, shortest first; a head that doesn't fit holds up everybody.
    Sjf,
    /// By priority; a head that doesn't fit has a reservation, and what can't delay it may start before it (EASY).
    #[default]
    Backfill,
}

impl Strategy {
    /// Every one of them.
    pub const ALL: [Self; 4] = [Self::Fifo, Self::Priority, Self::Sjf, Self::Backfill];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Priority => "priority",
            Self::Sjf => "sjf",
            Self::Backfill => "backfill",
        }
    }
}

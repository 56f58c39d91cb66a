//! Why a job waits: a closed set of reasons, each with the numbers that it is about.

use std::fmt;

use osprey_model::id::JobId;

/// Why a job doesn't start now. Times are milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// It backs off.
    NotYet {
        /// Until then.
        until_ms: i64,
    },
    /// The pool could never hold it. It holds up nobody.
    LargerThanPool {
        /// GPUs it needs.
        gpus: u32,
        /// GPUs of the pool.
        pool_gpus: u32,
    },
    /// Too few GPUs are free. It is the next to start.
    NoRoom {
        /// GPUs it needs.
        gpus: u32,
        /// GPUs free.
        free: u32,
    },
    /// Enough GPUs are free, but not together. It is the next to start, or too large for what nodes have left.
    Scattered {
        /// GPUs it needs.
        gpus: u32,
        /// GPUs free.
        free: u32,
    },
    /// The order is strict, and a job before it doesn't fit.
    BehindHead {
        /// The job that doesn't fit.
        head: JobId,
    },
    /// It would fit, and delay a job that GPUs are kept for.
    WouldDelay {
        /// That job.
        head: JobId,
        /// When that job is expected to fit.
        reserved_at_ms: i64,
        /// When this one would end.
        ends_at_ms: i64,
    },
}

impl WaitReason {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotYet { .. } => "NotYet",
            Self::LargerThanPool { .. } => "LargerThanPool",
            Self::NoRoom { .. } => "NoRoom",
            Self::Scattered { .. } => "Scattered",
            Self::BehindHead { .. } => "BehindHead",
            Self::WouldDelay { .. } => "WouldDelay",
        }
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotYet { until_ms } => write!(f, "it backs off until {}", Time(*until_ms)),
            Self::LargerThanPool { gpus, pool_gpus } => {
                write!(f, "it needs {}, the pool has {pool_gpus}; ask for fewer or use another pool", Gpus(*gpus))
            }
            Self::NoRoom { gpus, free } => write!(f, "it needs {}, {free} are free", Gpus(*gpus)),
            Self::Scattered { gpus, free } => {
                write!(f, "it needs {} together; {free} are free, spread over nodes", Gpus(*gpus))
            }
            Self::BehindHead { head } => write!(f, "job {head} is before it and doesn't fit yet"),
            Self::WouldDelay { head, reserved_at_ms, ends_at_ms } => write!(
                f,
                "it would end at {}, and job {head} is to start at {}",
                Time(*ends_at_ms),
                Time(*reserved_at_ms)
            ),
        }
    }
}

struct Gpus(u32);

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GPU{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

struct Time(i64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.0}"),
            // Beyond the calendar: as good as never.
            Err(_) => f.write_str("no known time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_with_their_numbers() {
        let head = JobId::from_uuid(uuid::Uuid::from_u128(7));
        for (reason, code, sentence) in [
            (WaitReason::NotYet { until_ms: 0 }, "NotYet", "it backs off until 1970-01-01T00:00:00Z"),
            (
                WaitReason::LargerThanPool { gpus: 64, pool_gpus: 16 },
                "LargerThanPool",
                "it needs 64 GPUs, the pool has 16; ask for fewer or use another pool",
            ),
            (WaitReason::NoRoom { gpus: 1, free: 0 }, "NoRoom", "it needs 1 GPU, 0 are free"),
            (
                WaitReason::Scattered { gpus: 8, free: 9 },
                "Scattered",
                "it needs 8 GPUs together; 9 are free, spread over nodes",
            ),
            (
                WaitReason::BehindHead { head },
                "BehindHead",
                "job 00000000-0000-0000-0000-000000000007 is before it and doesn't fit yet",
            ),
            (
                WaitReason::WouldDelay { head, reserved_at_ms: 60_000, ends_at_ms: i64::MAX },
                "WouldDelay",
                "it would end at no known time, and job 00000000-0000-0000-0000-000000000007 is to start at \
                 1970-01-01T00:01:00Z",
            ),
        ] {
            assert_eq!((reason.code(), reason.to_string().as_str()), (code, sentence));
        }
    }
}

//! Why a job waits: a closed set of reasons, each with the numbers that it is about. Sentences are made on demand.

use std::fmt;

use osprey_model::id::JobId;
use osprey_policy::share::{Amount, Limit};
use serde::{Deserialize, Serialize};

/// Why a job doesn't start now. Times are milliseconds since 1970. In JSON the code is the member `code`, and the
/// evidence stands beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code")]
pub enum WaitReason {
    /// It backs off.
    NotYet {
        /// Until then.
        until_ms: i64,
    },
    /// The pool is drained or paused.
    PoolPaused,
    /// Its tier is drained in this pool.
    TierPaused,
    /// The pool has no nodes.
    NoNodes,
    /// The pool could never hold it. It holds up nobody.
    LargerThanPool {
        /// GPUs it needs.
        gpus: u32,
        /// GPUs of the pool.
        pool_gpus: u32,
    },
    /// No node, or too few of them, has what it needs of one. It holds up nobody.
    NoSuchNode {
        /// Nodes it needs.
        nodes: u32,
        /// GPUs it needs on each.
        gpus: u32,
        /// vCPUs it needs on each.
        vcpus: u32,
    },
    /// Work that isn't ours holds so much that it can't be foreseen when it fits. It holds up nobody.
    ForeignWork {
        /// GPUs it needs.
        gpus: u32,
        /// GPUs that foreign work holds.
        foreign: u32,
    },
    /// It runs or is dispatched already.
    AlreadyRuns,
    /// The pool can't get the capacity that it would start on.
    NoCapacity {
        /// Since when.
        since_ms: i64,
    },
    /// Too few GPUs are free.
    NoRoom {
        /// GPUs it needs.
        gpus: u32,
        /// GPUs free.
        free: u32,
    },
    /// Enough GPUs are free, but not together.
    Scattered {
        /// GPUs it needs.
        gpus: u32,
        /// GPUs free.
        free: u32,
    },
    /// Where its GPUs are free, too few vCPUs are.
    NoVcpus {
        /// vCPUs it needs on a node.
        vcpus: u32,
        /// Most vCPUs free on a node with its GPUs.
        free: u32,
    },
    /// It would fit, and leave fewer GPUs free than are kept for urgent jobs.
    Headroom {
        /// GPUs it needs.
        gpus: u32,
        /// GPUs free.
        free: u32,
        /// GPUs kept for urgent jobs.
        kept: u32,
    },
    /// It would fit, and leave fewer GPUs free than are reserved for other jobs.
    Reserved {
        /// GPUs it needs.
        gpus: u32,
        /// GPUs free.
        free: u32,
        /// GPUs kept for those others now.
        kept: u32,
        /// GPUs of the pool that are reserved for nobody else.
        open: u32,
    },
    /// Its team, or its user, has what its quota gives. It holds up nobody.
    OverQuota {
        /// Which limit.
        limit: Limit,
        /// What is used of it, promised to what runs, or taken by the same plan; GPUs, or GPU-milliseconds.
        used: u64,
        /// What the job asks for, in the same unit.
        asked: u64,
        /// The limit, in the same unit.
        most: u64,
        /// When it may start at the earliest; `None` when that can't be foreseen.
        passes_ms: Option<i64>,
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
        /// When this one would end; `None` when nobody knows.
        ends_at_ms: Option<i64>,
    },
    /// It fits, unless the dispatches in flight land where it would.
    InFlight {
        /// How many there are.
        dispatches: u32,
    },
    /// It would fit, and leave fewer nodes empty than are kept for urgent jobs.
    HeadroomNodes {
        /// Empty nodes that it would take.
        nodes: u32,
        /// Empty nodes.
        empty: u32,
        /// Empty nodes kept for urgent jobs.
        kept: u32,
    },
}

impl WaitReason {
    /// Every code, in the order of the reasons.
    pub const CODES: [&str; 19] = [
        "NotYet",
        "PoolPaused",
        "TierPaused",
        "NoNodes",
        "LargerThanPool",
        "NoSuchNode",
        "ForeignWork",
        "AlreadyRuns",
        "NoCapacity",
        "NoRoom",
        "Scattered",
        "NoVcpus",
        "Headroom",
        "Reserved",
        "OverQuota",
        "BehindHead",
        "WouldDelay",
        "InFlight",
        "HeadroomNodes",
    ];

    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotYet { .. } => "NotYet",
            Self::PoolPaused => "PoolPaused",
            Self::TierPaused => "TierPaused",
            Self::NoNodes => "NoNodes",
            Self::LargerThanPool { .. } => "LargerThanPool",
            Self::NoSuchNode { .. } => "NoSuchNode",
            Self::ForeignWork { .. } => "ForeignWork",
            Self::AlreadyRuns => "AlreadyRuns",
            Self::NoCapacity { .. } => "NoCapacity",
            Self::NoRoom { .. } => "NoRoom",
            Self::Scattered { .. } => "Scattered",
            Self::NoVcpus { .. } => "NoVcpus",
            Self::Headroom { .. } => "Headroom",
            Self::Reserved { .. } => "Reserved",
            Self::OverQuota { .. } => "OverQuota",
            Self::BehindHead { .. } => "BehindHead",
            Self::WouldDelay { .. } => "WouldDelay",
            Self::InFlight { .. } => "InFlight",
            Self::HeadroomNodes { .. } => "HeadroomNodes",
        }
    }

    /// Whether no start and no end of another job changes anything: whoever is behind it needn't wait for it.
    #[must_use]
    pub const fn holds_up_nobody(&self) -> bool {
        if let Self::Reserved { gpus, open, .. } = self {
            return *gpus > *open;
        }
        matches!(
            self,
            Self::NotYet { .. }
                | Self::PoolPaused
                | Self::TierPaused
                | Self::NoNodes
                | Self::LargerThanPool { .. }
                | Self::NoSuchNode { .. }
                | Self::ForeignWork { .. }
                | Self::OverQuota { .. }
                | Self::AlreadyRuns
        )
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotYet { until_ms } => write!(f, "it backs off until {}", Time(*until_ms)),
            Self::PoolPaused => f.write_str("the pool is drained; `osprey resume` lets it start jobs again"),
            Self::TierPaused => {
                f.write_str("its tier is drained in this pool; `osprey resume` lets it start jobs again")
            }
            Self::NoNodes => f.write_str("the pool has no nodes; use another pool, or give it some"),
            Self::LargerThanPool { gpus, pool_gpus } => {
                write!(f, "it needs {}, the pool has {pool_gpus}; ask for fewer or use another pool", Gpus(*gpus))
            }
            Self::NoSuchNode { nodes, gpus, vcpus } => write!(
                f,
                "it needs {} with {} and {vcpus} vCPUs each, and the pool has no such {}; ask for fewer or use another pool",
                Count(*nodes, "node"),
                Gpus(*gpus),
                if *nodes == 1 { "node" } else { "nodes" }
            ),
            Self::ForeignWork { gpus, foreign } => write!(
                f,
                "it needs {}, and work that isn't Osprey's holds {foreign} of the pool's; it starts when that ends",
                Gpus(*gpus)
            ),
            Self::AlreadyRuns => f.write_str("it runs or is dispatched already"),
            Self::NoCapacity { since_ms } => {
                write!(f, "the pool hasn't got the capacity it asked for since {}", Time(*since_ms))
            }
            Self::NoRoom { gpus, free } => write!(f, "it needs {}, {} free", Gpus(*gpus), Are(*free)),
            Self::Scattered { gpus, free } => {
                write!(f, "it needs {} together; {} free, spread over nodes", Gpus(*gpus), Are(*free))
            }
            Self::NoVcpus { vcpus, free } => {
                write!(f, "it needs {vcpus} vCPUs; where its GPUs are free, {}", Are(*free))
            }
            Self::Headroom { gpus, free, kept } => {
                write!(f, "it needs {}, {} free, and {} kept for urgent jobs", Gpus(*gpus), Are(*free), OfThem(*kept))
            }
            Self::Reserved { gpus, free, kept, open } => {
                write!(
                    f,
                    "it needs {}, {} free, and {} reserved for other jobs",
                    Gpus(*gpus),
                    Are(*free),
                    OfThem(*kept)
                )?;
                if gpus > open { write!(f, ", which leave {open} at most; ask for fewer") } else { Ok(()) }
            }
            Self::OverQuota { limit, used, asked, most, passes_ms } => {
                over_quota(f, *limit, [*used, *asked, *most])?;
                passes_ms.map_or(Ok(()), |passes_ms| write!(f, "; it starts at {} at the earliest", Time(passes_ms)))
            }
            Self::BehindHead { head } => write!(f, "job {head} is before it and doesn't fit yet"),
            Self::WouldDelay { head, reserved_at_ms, ends_at_ms } => {
                let starts = format_args!("and job {head} is to start at {}", Time(*reserved_at_ms));
                match ends_at_ms {
                    Some(ends_at_ms) => write!(f, "it would end at {}, {starts}", Time(*ends_at_ms)),
                    None => write!(f, "nobody knows how long it runs, {starts}; declare `expected-duration`"),
                }
            }
            Self::InFlight { dispatches } => {
                write!(f, "it fits unless {} where it would", Landings(*dispatches))
            }
            Self::HeadroomNodes { nodes, empty, kept } => {
                let (needed, empty, kept) = (Count(*nodes, "empty node"), Are(*empty), OfThem(*kept));
                write!(f, "it needs {needed}, {empty} there, and {kept} kept for urgent jobs")
            }
        }
    }
}

/// `1 is` or `4 are`.
struct Are(u32);

impl fmt::Display for Are {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, if self.0 == 1 { "is" } else { "are" })
    }
}

/// `1 of them is` or `4 of them are`.
struct OfThem(u32);

impl fmt::Display for OfThem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of them {}", self.0, if self.0 == 1 { "is" } else { "are" })
    }
}

fn over_quota(f: &mut fmt::Formatter<'_>, limit: Limit, amounts: [u64; 3]) -> fmt::Result {
    let is_too_large = amounts[1] > amounts[2];
    let gpus = Gpus(u32::try_from(amounts[1]).unwrap_or(u32::MAX));
    let [used, _, most] = amounts.map(|amount| Amount(limit, amount));
    match limit {
        Limit::TeamGpus if is_too_large => {
            write!(f, "it needs {gpus}, and its team may hold {most} at once in its tier; ask for fewer")
        }
        Limit::TeamGpus => {
            write!(f, "it needs {gpus}, and its team holds {used} of the {most} that it may at once in its tier")
        }
        Limit::UserGpus if is_too_large => {
            write!(f, "it needs {gpus}, and a user may hold {most} at once of what is reserved; ask for fewer")
        }
        Limit::UserGpus => {
            write!(f, "it needs {gpus}, and its user holds {used} of the {most} that one may of what is reserved")
        }
        Limit::GpuHoursDay => write!(f, "its team has used or promised {used} of its {most} GPU-hours of the day"),
        Limit::GpuHoursWeek => write!(f, "its team has used or promised {used} of its {most} GPU-hours of seven days"),
    }
}

/// So many GPUs.
pub(crate) struct Gpus(pub u32);

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Count(self.0, "GPU").fmt(f)
    }
}

/// So many of something.
pub(crate) struct Count(pub u32, pub &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

struct Landings(u32);

impl fmt::Display for Landings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 job that has been dispatched lands"),
            count => write!(f, "{count} jobs that have been dispatched land"),
        }
    }
}

/// A time, milliseconds since 1970.
pub(crate) struct Time(pub i64);

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

    const SEVEN: &str = "00000000-0000-0000-0000-000000000007";

    fn every() -> Vec<WaitReason> {
        let head = JobId::from_uuid(uuid::Uuid::from_u128(7));
        vec![
            WaitReason::NotYet { until_ms: 0 },
            WaitReason::PoolPaused,
            WaitReason::TierPaused,
            WaitReason::NoNodes,
            WaitReason::LargerThanPool { gpus: 64, pool_gpus: 16 },
            WaitReason::NoSuchNode { nodes: 1, gpus: 1, vcpus: 200 },
            WaitReason::ForeignWork { gpus: 16, foreign: 3 },
            WaitReason::AlreadyRuns,
            WaitReason::NoCapacity { since_ms: 60_000 },
            WaitReason::NoRoom { gpus: 1, free: 0 },
            WaitReason::Scattered { gpus: 8, free: 9 },
            WaitReason::NoVcpus { vcpus: 32, free: 8 },
            WaitReason::Headroom { gpus: 8, free: 16, kept: 24 },
            WaitReason::Reserved { gpus: 8, free: 9, kept: 2, open: 14 },
            WaitReason::OverQuota {
                limit: Limit::GpuHoursDay,
                used: 180_000_000,
                asked: 3_600_000,
                most: 180_000_000,
                passes_ms: Some(86_400_000),
            },
            WaitReason::BehindHead { head },
            WaitReason::WouldDelay { head, reserved_at_ms: 60_000, ends_at_ms: Some(i64::MAX) },
            WaitReason::InFlight { dispatches: 1 },
            WaitReason::HeadroomNodes { nodes: 1, empty: 2, kept: 2 },
        ]
    }

    #[test]
    fn reasons_are_told_with_their_numbers() {
        let sentences: Vec<String> = every().iter().map(ToString::to_string).collect();
        assert_eq!(
            sentences,
            [
                "it backs off until 1970-01-01T00:00:00Z".to_owned(),
                "the pool is drained; `osprey resume` lets it start jobs again".to_owned(),
                "its tier is drained in this pool; `osprey resume` lets it start jobs again".to_owned(),
                "the pool has no nodes; use another pool, or give it some".to_owned(),
                "it needs 64 GPUs, the pool has 16; ask for fewer or use another pool".to_owned(),
                "it needs 1 node with 1 GPU and 200 vCPUs each, and the pool has no such node; ask for fewer or use \
                 another pool"
                    .to_owned(),
                "it needs 16 GPUs, and work that isn't Osprey's holds 3 of the pool's; it starts when that ends"
                    .to_owned(),
                "it runs or is dispatched already".to_owned(),
                "the pool hasn't got the capacity it asked for since 1970-01-01T00:01:00Z".to_owned(),
                "it needs 1 GPU, 0 are free".to_owned(),
                "it needs 8 GPUs together; 9 are free, spread over nodes".to_owned(),
                "it needs 32 vCPUs; where its GPUs are free, 8 are".to_owned(),
                "it needs 8 GPUs, 16 are free, and 24 of them are kept for urgent jobs".to_owned(),
                "it needs 8 GPUs, 9 are free, and 2 of them are reserved for other jobs".to_owned(),
                "its team has used or promised 50.0 of its 50.0 GPU-hours of the day; it starts at 1970-01-02T00:00:00Z \
                 at the earliest"
                    .to_owned(),
                format!("job {SEVEN} is before it and doesn't fit yet"),
                format!("it would end at no known time, and job {SEVEN} is to start at 1970-01-01T00:01:00Z"),
                "it fits unless 1 job that has been dispatched lands where it would".to_owned(),
                "it needs 1 empty node, 2 are there, and 2 of them are kept for urgent jobs".to_owned(),
            ]
        );
    }

    #[test]
    fn each_limit_of_a_quota_is_told_in_its_unit() {
        let told =
            |limit, used, asked, most| WaitReason::OverQuota { limit, used, asked, most, passes_ms: None }.to_string();
        assert_eq!(
            told(Limit::TeamGpus, 60, 8, 64),
            "it needs 8 GPUs, and its team holds 60 of the 64 that it may at once in its tier"
        );
        assert_eq!(
            told(Limit::TeamGpus, 0, 72, 64),
            "it needs 72 GPUs, and its team may hold 64 at once in its tier; ask for fewer"
        );
        assert_eq!(
            told(Limit::UserGpus, 6, 1, 6),
            "it needs 1 GPU, and its user holds 6 of the 6 that one may of what is reserved"
        );
        assert_eq!(
            told(Limit::UserGpus, 0, 8, 6),
            "it needs 8 GPUs, and a user may hold 6 at once of what is reserved; ask for fewer"
        );
        assert_eq!(
            told(Limit::GpuHoursWeek, 900_180_000, 1, 900_000_000),
            "its team has used or promised 250.1 of its 250.0 GPU-hours of seven days"
        );
        let too_large = WaitReason::Reserved { gpus: 16, free: 16, kept: 2, open: 14 };
        assert!(
            too_large.holds_up_nobody() && too_large.to_string().ends_with("which leave 14 at most; ask for fewer")
        );
    }

    #[test]
    fn every_reason_has_its_code_in_the_list_and_in_json() {
        let reasons = every();
        assert_eq!(reasons.iter().map(WaitReason::code).collect::<Vec<_>>(), WaitReason::CODES);
        for reason in reasons {
            let json = serde_json::to_value(reason).unwrap();
            assert_eq!(json["code"], reason.code());
            assert_eq!(serde_json::from_value::<WaitReason>(json).unwrap(), reason);
        }
    }
}

//! Changes as people read them.

use std::fmt::{self, Display, Write as _};

use osprey_model::id::JobId;
use osprey_model::metadata::format_duration;

use super::apply::tier;
use super::{Change, Unit, Verified};
use crate::reason::{Count, Gpus, Time};
use crate::rules::Rules;
use crate::snapshot::{Shape, UNCOUNTED};

/// Most ids that a sentence names.
const NAMED_MAX: usize = 3;

impl Change {
    /// Every kind, in the order of the variants.
    pub const KINDS: [&str; 17] = [
        "gpus",
        "children",
        "vcpus",
        "expected_duration",
        "priority",
        "pool",
        "quota",
        "headroom",
        "reserve",
        "job_ends",
        "without_job",
        "resume",
        "resume_tier",
        "release",
        "capacity",
        "foreign_work_ends",
        "nodes",
    ];

    /// Its stable name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Gpus { .. } => "gpus",
            Self::Children { .. } => "children",
            Self::Vcpus { .. } => "vcpus",
            Self::ExpectedMs { .. } => "expected_duration",
            Self::Priority { .. } => "priority",
            Self::Pool { .. } => "pool",
            Self::Quota { .. } => "quota",
            Self::Headroom { .. } => "headroom",
            Self::Reserve { .. } => "reserve",
            Self::Ends { .. } => "job_ends",
            Self::Without { .. } => "without_job",
            Self::Resume => "resume",
            Self::ResumeTier => "resume_tier",
            Self::Release { .. } => "release",
            Self::Capacity => "capacity",
            Self::ForeignEnds { .. } => "foreign_work_ends",
            Self::MoreNodes { .. } => "nodes",
        }
    }
}

impl Verified {
    /// The change as a sentence; `name` says how a job is called.
    #[must_use]
    pub fn sentence(&self, rules: &Rules, name: impl Fn(JobId) -> String) -> String {
        let mut sentence = told(&self.change, rules, &name);
        if self.victims > 0 {
            let jobs = Count(u32::try_from(self.victims).unwrap_or(u32::MAX), "job");
            // INVARIANT: writing to a text doesn't fail.
            let _ = write!(sentence, ", in the place of {jobs}");
        }
        sentence
    }
}

fn told(change: &Change, rules: &Rules, name: &impl Fn(JobId) -> String) -> String {
    match change {
        Change::Gpus { from, to } if from.nodes <= 1 => {
            format!("it starts with {} instead of {}", Gpus(to.gpus), from.gpus)
        }
        Change::Gpus { from, to } => format!("it starts with {} instead of {}", Asked(*to), Asked(*from)),
        Change::Children { from, to } => format!("it starts with {to} children instead of {from}"),
        Change::Vcpus { from, to } => format!("it starts with {to} vCPUs instead of {from}"),
        Change::ExpectedMs { from, to } => shorter(*from, *to),
        Change::Priority { from, to } => {
            format!("it starts with priority {to} instead of {from}{}", in_tier(*from, *to, rules))
        }
        Change::Pool { from, to } => format!("it starts in pool `{to}` instead of `{from}`"),
        Change::Quota { unit, from, to } => format!("it starts if {}", Limit { unit: *unit, from: *from, to: *to }),
        Change::Headroom { from, to } => format!("it starts if {to} GPUs are kept for urgent jobs instead of {from}"),
        Change::Reserve { reserve, from, to } => {
            let reserve = rules.quota.reserves.get(usize::from(*reserve));
            let name = reserve.map_or("", |reserve| reserve.name.as_str());
            match reserve.and_then(|reserve| reserve.until_ms) {
                Some(until_ms) => {
                    format!("it starts if {to} instead of {from} GPUs are {name}, which ends at {}", Time(until_ms))
                }
                None => format!("it starts if {to} % of the pool are reserved for `{name}` instead of {from} %"),
            }
        }
        Change::Ends { jobs, at_ms } => {
            let verb = if jobs.len() == 1 { "ends" } else { "have ended" };
            let at = at_ms.map_or(String::new(), |at_ms| format!(", expected at {}", Time(at_ms)));
            format!("it starts when {} {verb}{at}", Names(jobs, name))
        }
        Change::Without { jobs } => {
            let verb = if jobs.len() == 1 { "is" } else { "are" };
            format!("it starts if {} {verb} cancelled or held", Names(jobs, name))
        }
        Change::Resume => "it starts when the pool is resumed".to_owned(),
        Change::ResumeTier => "it starts when its tier is resumed in the pool".to_owned(),
        Change::Release { until_ms } => {
            format!("it starts when somebody requeues it, before its back-off ends at {}", Time(*until_ms))
        }
        Change::Capacity => "it starts when the pool gets the capacity that it has asked for".to_owned(),
        Change::ForeignEnds { node: Some(node), gpus } => {
            format!("it starts when the work on node {node} that isn't Osprey's ends, which holds {}", Gpus(*gpus))
        }
        Change::ForeignEnds { node: None, gpus } => {
            format!("it starts when all work that isn't Osprey's ends, which holds {}", Gpus(*gpus))
        }
        Change::MoreNodes { from, to, each } => {
            let more = Count(to.saturating_sub(*from), "node");
            format!("it starts if the pool has {more} more, with {} each", Asked(Shape { nodes: 1, ..*each }))
        }
    }
}

/// The tier that a number leads to, where it is another one. A job without a number is preemptible, and stays that.
fn in_tier(from: u32, to: u32, rules: &Rules) -> String {
    let [before, after] = [from, to].map(|number| tier(number, u16::MAX, rules));
    match rules.tiers.get(usize::from(after)) {
        Some(tier) if from > 0 && before != after => format!(", in tier `{}`", tier.name),
        _ => String::new(),
    }
}

fn shorter(from: Option<u64>, to: u64) -> String {
    let duration = |ms: u64| format_duration(ms / 1_000);
    let now = from.map_or(String::new(), |from| format!(" instead of {}", duration(from)));
    format!("it starts if it declares that it runs for at most {}{now} (`expected-duration`)", duration(to))
}

/// What a job asks for.
struct Asked(Shape);

impl Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { nodes, gpus, vcpus } = self.0;
        if nodes > 1 {
            return write!(f, "{} of {}", Count(nodes, "node"), Gpus(gpus));
        }
        if gpus == 0 && vcpus != UNCOUNTED { Count(vcpus, "vCPU").fmt(f) } else { Gpus(gpus).fmt(f) }
    }
}

/// A limit that is raised.
struct Limit {
    unit: Unit,
    from: u64,
    to: u64,
}

impl Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unit, from, to } = self;
        match unit {
            Unit::TeamGpus => write!(f, "its team may hold {to} GPUs at once in its tier instead of {from}"),
            Unit::UserPercent => write!(f, "a user may hold {to} % of what is reserved instead of {from} %"),
            Unit::GpuHoursDay => write!(f, "its team may use {to} GPU-hours a day instead of {from}"),
            Unit::GpuHoursWeek => write!(f, "its team may use {to} GPU-hours in seven days instead of {from}"),
        }
    }
}

/// Jobs by their names.
struct Names<'a, N>(&'a [JobId], &'a N);

impl<N: Fn(JobId) -> String> Display for Names<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(jobs, name) = self;
        f.write_str(if jobs.len() == 1 { "job " } else { "jobs " })?;
        let named: Vec<String> = jobs.iter().take(NAMED_MAX).map(|job| name(*job)).collect();
        let more = jobs.len() - named.len();
        match (named.split_last(), more) {
            (Some((last, [])), 0) => f.write_str(last),
            (Some((last, before)), 0) => write!(f, "{} and {last}", before.join(", ")),
            _ => write!(f, "{} and {more} more", named.join(", ")),
        }
    }
}

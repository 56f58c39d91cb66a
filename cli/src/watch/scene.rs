//! A pipeline that is made up, for tests of the view.

use osprey_model::id::JobId;
use osprey_model::job::JobState;
use osprey_model::pool::{CapacityType, PoolMode};
use osprey_pipeline::census::OpenJob;
use osprey_ports::NodeCapacity;

use super::feed::{Item, Kind};
use super::state::{Event, Reading, State, Why};
use crate::joined::overview::{Gpus, Overview, PoolStatus, Setup, TierStatus};

/// When it is, milliseconds since 1970.
pub const NOW_MS: i64 = 1_796_032_800_000;

/// An id by its number.
pub fn id(number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number))
}

/// A job that has not ended.
pub fn open(number: u128, state: JobState, tier: &str, priority: u32, gpus: u32, since: i64) -> OpenJob {
    OpenJob { id: id(number), state, gpus, priority, since, tier: tier.into(), pool: "gpu-a".into() }
}

/// A line of the feed.
pub fn item(number: u128, kind: Kind, name: &str, text: &str) -> Item {
    let seconds_ago = i64::try_from(60_u128.saturating_sub(number)).unwrap_or(0);
    let (name, text) = (name.to_owned(), text.to_owned());
    Item { at: NOW_MS - seconds_ago * 1_000, kind, id: id(number), attempt: 1, name, text }
}

/// Names, states, tiers, priorities, GPUs and minutes.
const JOBS: [(&str, JobState, &str, u32, u32, i64); 14] = [
    ("serve-eu", JobState::Queued, "critical", 1200, 1, 2),
    ("serve-us", JobState::Running, "critical", 1200, 8, 64),
    ("pretrain-7b", JobState::Queued, "production", 950, 32, 42),
    ("finetune-support", JobState::Queued, "production", 940, 8, 27),
    ("pretrain-3b", JobState::Running, "production", 950, 16, 312),
    ("nightly-eval", JobState::Submitted, "production", 930, 4, 1),
    ("distill", JobState::Waiting, "production", 900, 8, 11),
    ("ablation-12", JobState::Queued, "experimental", 450, 8, 210),
    ("ablation-13", JobState::Queued, "experimental", 450, 8, 208),
    ("ablation-11", JobState::Running, "experimental", 450, 8, 95),
    ("notebook-ada", JobState::Running, "experimental", 500, 1, 18),
    ("sweep-lr", JobState::Running, "preemptible", 0, 4, 33),
    ("sweep-wd", JobState::Queued, "preemptible", 0, 4, 33),
    ("größere-läufe-mit-einem-langen-namen", JobState::Queued, "preemptible", 0, 2, 5),
];

/// What was read of it.
pub fn reading() -> Reading {
    let jobs: Vec<OpenJob> = (1..)
        .zip(JOBS)
        .map(|(number, (_, state, tier, priority, gpus, minutes))| {
            open(number, state, tier, priority, gpus, NOW_MS - minutes * 60_000)
        })
        .collect();
    let names = jobs.iter().zip(JOBS).map(|(job, (name, ..))| (job.id, name.to_owned())).collect();
    let happened = vec![
        item(10, Kind::Came, "sweep-wd", "preemptible 0, 4 GPUs"),
        item(9, Kind::Succeeded, "tokenise-11", "41m10s after its submission"),
        item(5, Kind::Started, "pretrain-3b", "production 950, 16 GPUs on i-0a17, attempt 2"),
        item(11, Kind::MakesRoom, "ablation-9", "for job 00000000-0000-0000-0000-000000000002"),
        item(12, Kind::Evicted, "ablation-9", "for more urgent work, experimental 450, 8 GPUs"),
        item(13, Kind::Failed, "broken", "FailuresExhausted: failed twice where 1 retry is allowed"),
        item(14, Kind::Back, "sweep-lr", "after host_lost, preemptible 0, 4 GPUs"),
        item(6, Kind::Sent, "nightly-eval", "production 930, 4 GPUs"),
    ];
    Reading { overview: overview(), jobs, happened, left_out: 0, names, took_ms: 14 }
}

fn overview() -> Overview {
    let node = |number: u32, gpus_used| NodeCapacity {
        id: format!("i-0a{number}"),
        gpus: 8,
        gpus_used,
        ..NodeCapacity::default()
    };
    let used = [8, 8, 8, 6, 4, 1, 0];
    let setup = |capacity, preemption| Some(Setup { mode: PoolMode::Held, capacity, preemption, drained: false });
    let main = PoolStatus {
        name: "gpu-a".into(),
        setup: setup(CapacityType::OnDemand, true),
        gpus: Gpus { total: Some(64), used: 37, reserved: 12, reserved_used: 4, headroom: 4 },
        nodes: Some((10..).zip(used).map(|(number, used)| node(number, used)).collect()),
        obtainable: 1,
        tiers: vec![
            tier("critical", 1, 90_000, 120_000, 1, (0, 0, 1, 8)),
            tier("production", 2, 2_070_000, 2_520_000, 40, (1, 1, 1, 16)),
            tier("experimental", 2, 12_540_000, 12_600_000, 16, (0, 0, 2, 9)),
            tier("preemptible", 2, 1_140_000, 1_980_000, 6, (0, 0, 1, 4)),
        ],
    };
    let spot = PoolStatus {
        name: "gpu-spot".into(),
        setup: setup(CapacityType::Spot, false),
        gpus: Gpus { total: Some(32), used: 0, ..Gpus::default() },
        nodes: Some(Vec::new()),
        obtainable: 4,
        tiers: vec![
            TierStatus { name: "experimental".into(), ..TierStatus::default() },
            TierStatus { name: "preemptible".into(), ..TierStatus::default() },
        ],
    };
    Overview { pools: vec![main, spot], now_ms: NOW_MS, is_cut: false, faults: Vec::new() }
}

fn tier(
    name: &str,
    waiting: usize,
    median: i64,
    oldest: i64,
    wanted_gpus: u32,
    (blocked, sent, running, running_gpus): (u32, u32, u32, u32),
) -> TierStatus {
    TierStatus {
        name: name.into(),
        drained: name == "preemptible",
        waiting,
        median_wait_ms: Some(median),
        oldest_wait_ms: Some(oldest),
        oldest: None,
        wanted_gpus,
        blocked,
        sent,
        running,
        running_gpus,
    }
}

/// The view of it, with the most urgent job selected.
pub fn state() -> State {
    let mut state = State::new("stack `osprey`");
    state.take(Event::Read(Box::new(reading())));
    state.selected = Some(id(3));
    let text = "  state     queued\n  reason    it needs 32 GPUs, 27 are free, of which 4 are kept for urgent jobs (NoRoom)\n  ahead     1 job";
    state.take(Event::Why(Why { job: id(3), text: text.to_owned() }));
    state
}

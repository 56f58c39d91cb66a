//! The numbers of a schedule by name: of all jobs, of each tier and of each team.

use std::collections::BTreeMap;

use osprey_sim::metrics::{self, GroupMetrics, Metrics};
use serde_json::{Map, Value, json};

use super::limits::Of;
use crate::command::simulate::answer::{Outcome, numbers};

/// Numbers by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    pub all: Map<String, Value>,
    pub tiers: BTreeMap<String, Map<String, Value>>,
    pub teams: BTreeMap<String, Map<String, Value>>,
}

/// What can be limited.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Numbers of all jobs.
    pub all: Vec<String>,
    /// Numbers of a tier or a team.
    pub of_a_group: Vec<String>,
    pub tiers: Vec<String>,
    pub teams: Vec<String>,
}

/// Shares of the jobs, which only a comparison knows: with another number or tier, in another tier, refused, waiting
/// longer.
pub(super) const SHARES: [&str; 4] = ["changed_share", "moved_share", "refused_share", "longer_share"];

/// How fast the simulator was, which is no property of a policy.
const OF_THE_SIMULATOR: [&str; 2] = ["wall_seconds", "jobs_per_second"];

/// Numbers that are there even when no job ended.
const COUNTS: [&str; 5] = ["jobs", "preemptions", "host_losses", "failures", "unfinished_jobs"];

/// The number that only urgent jobs have.
const URGENT: &str = "urgent_mean_wait_seconds";

impl Numbers {
    /// Of a replay in which jobs above `dive_above` were urgent. Numbers that no job has are left out.
    pub(super) fn of(outcome: &Outcome, dive_above: u32) -> Self {
        let (workload, schedule) = (&outcome.workload, &outcome.schedule);
        let has_ended = outcome.metrics.jobs > 0;
        let has_urgent = workload.jobs.iter().any(|job| job.priority > dive_above);
        let mut all = numbers(outcome);
        all.retain(|name, _| {
            let name = name.as_str();
            let is_there = COUNTS.contains(&name) || has_ended && (has_urgent || name != URGENT);
            is_there && !OF_THE_SIMULATOR.contains(&name)
        });
        Self {
            all,
            tiers: groups(metrics::by_tier(workload, schedule)),
            teams: groups(metrics::by_team(workload, schedule)),
        }
    }

    pub(super) fn get(&self, of: &Of, name: &str) -> Option<f64> {
        let members = match of {
            Of::All => Some(&self.all),
            Of::Tier(tier) => self.tiers.get(tier),
            Of::Team(team) => self.teams.get(team),
        };
        members?.get(name).and_then(Value::as_f64)
    }
}

fn groups(groups: Vec<GroupMetrics>) -> BTreeMap<String, Map<String, Value>> {
    groups.into_iter().map(|group| (group.name.clone(), members(&json!(group)))).collect()
}

fn members(value: &Value) -> Map<String, Value> {
    let mut members = value.as_object().cloned().unwrap_or_default();
    members.remove("name");
    members
}

impl Names {
    /// Of comparisons over these tiers and teams.
    pub(super) fn new(tiers: Vec<String>, teams: Vec<String>) -> Self {
        let outcome = json!(Metrics::default());
        let more = ["host_losses", "failures", "unfinished_jobs"].into_iter().chain(SHARES);
        let all = members(&outcome).into_iter().map(|(name, _)| name).chain(more.map(str::to_owned));
        let of_a_group = members(&json!(GroupMetrics::default())).into_iter().map(|(name, _)| name);
        let of_a_group = of_a_group.chain(["longer_share".to_owned()]);
        Self { all: all.collect(), of_a_group: of_a_group.collect(), tiers, teams }
    }
}

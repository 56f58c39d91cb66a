//! What a simulation answers, and its JSON. The members are stable (docs/simulator.md).

use std::rc::Rc;

use osprey_sim::cluster::{Cluster, Placement};
use osprey_sim::metrics::{self, GroupMetrics, Metrics};
use osprey_sim::scenario::PoolSpec;
use osprey_sim::schedule::Schedule;
use osprey_sim::workload::Workload;
use serde_json::{Map, Value, json};

use super::source::Source;
use super::spread::Spread;

/// Lines listed in the JSON; the count is of all.
const LINES_LISTED: usize = 100;

/// One strategy's replay.
pub struct Outcome {
    /// The strategy.
    pub strategy: &'static str,
    /// The jobs that it ran.
    pub workload: Rc<Workload>,
    /// What came out.
    pub schedule: Schedule,
    /// The numbers.
    pub metrics: Metrics,
    /// Time that the replay took, without reading and writing.
    pub wall_seconds: f64,
}

/// Everything that is answered.
pub struct Answer {
    seed: u64,
    /// One for each seed.
    rounds: Vec<(Source, Vec<Outcome>)>,
}

/// A strategy's numbers by name, over all seeds.
pub struct Summary {
    /// The strategy.
    pub strategy: &'static str,
    /// Names and values, in the order of the JSON.
    pub numbers: Vec<(String, Spread)>,
}

impl Summary {
    /// The value of a number.
    #[must_use]
    pub fn get(&self, name: &str) -> Spread {
        let found = self.numbers.iter().find(|(known, _)| known == name);
        found.map_or(Spread { mean: 0.0, half: 0.0 }, |(_, spread)| *spread)
    }
}

impl Answer {
    /// The answer of these rounds, the first of which has this seed.
    #[must_use]
    pub fn new(seed: u64, rounds: Vec<(Source, Vec<Outcome>)>) -> Self {
        Self { seed, rounds }
    }

    /// The first seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How many seeds were replayed.
    #[must_use]
    pub fn seeds(&self) -> usize {
        self.rounds.len()
    }

    /// The first round's jobs.
    #[must_use]
    pub fn source(&self) -> Option<&Source> {
        self.rounds.first().map(|(source, _)| source)
    }

    /// The first round's outcomes.
    #[must_use]
    pub fn outcomes(&self) -> &[Outcome] {
        self.rounds.first().map(|(_, outcomes)| outcomes.as_slice()).unwrap_or_default()
    }

    /// Numbers over all seeds, one summary a strategy.
    #[must_use]
    pub fn summaries(&self) -> Vec<Summary> {
        let strategies = self.outcomes().iter().map(|outcome| outcome.strategy);
        strategies.enumerate().map(|(index, strategy)| self.summary(index, strategy)).collect()
    }

    fn summary(&self, index: usize, strategy: &'static str) -> Summary {
        let rounds: Vec<Map<String, Value>> =
            self.rounds.iter().filter_map(|(_, outcomes)| outcomes.get(index)).map(numbers).collect();
        let names = rounds.first().map(|round| round.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
        let values = |name: &str| -> Vec<f64> {
            rounds.iter().filter_map(|round| round.get(name).and_then(Value::as_f64)).collect()
        };
        let numbers = names.into_iter().map(|name| {
            let spread = Spread::of(&values(&name));
            (name, spread)
        });
        Summary { strategy, numbers: numbers.collect() }
    }

    /// The one object of `--output json`.
    #[must_use]
    pub fn json(&self) -> Value {
        let Some(source) = self.source() else { return Value::Null };
        let Cluster { nodes, gpus_per_node, placement } = source.described.cluster;
        let mut answer = json!({
            "seed": self.seed,
            "trace": source.name,
            "nodes": nodes,
            "gpus_per_node": gpus_per_node,
            "placement": match placement {
                Placement::Count => "count",
                Placement::Node => "node",
                Placement::Spread => "spread",
            },
            "bad_lines": lines(&source.bad),
            "refused": lines(&source.refused),
            "strategies": self.strategies(),
        });
        if let Some(members) = answer.as_object_mut().filter(|_| self.seeds() > 1) {
            members.insert("seeds".to_owned(), json!(self.seeds()));
        }
        if let (Some(scenario), Some(members)) = (&source.described.scenario, answer.as_object_mut()) {
            members.insert("pools".to_owned(), scenario.pools.iter().map(pool).collect());
        }
        answer
    }

    fn strategies(&self) -> Vec<Value> {
        if let [(_, outcomes)] = self.rounds.as_slice() {
            return outcomes.iter().map(one).collect();
        }
        self.summaries().iter().map(several).collect()
    }
}

fn pool(pool: &PoolSpec) -> Value {
    let PoolSpec { name, nodes, gpus_per_node, capacity, .. } = pool;
    json!({ "name": name, "nodes": nodes, "gpus_per_node": gpus_per_node, "capacity": capacity })
}

fn lines(lines: &[osprey_sim::trace::BadLine]) -> Value {
    let listed = lines.iter().take(LINES_LISTED).map(|bad| json!({ "line": bad.line, "message": bad.message }));
    json!({ "count": lines.len(), "lines": listed.collect::<Vec<_>>() })
}

/// The numbers of an outcome by name.
#[must_use]
pub fn numbers(outcome: &Outcome) -> Map<String, Value> {
    let Outcome { metrics, wall_seconds, .. } = outcome;
    let mut members = match serde_json::to_value(metrics) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    };
    members.insert("wall_seconds".to_owned(), json!(wall_seconds));
    members.insert("jobs_per_second".to_owned(), json!(metrics.jobs as f64 / wall_seconds.max(1e-9)));
    members.insert("host_losses".to_owned(), json!(metrics.host_losses));
    members.insert("failures".to_owned(), json!(metrics.failures));
    members.insert("unfinished_jobs".to_owned(), json!(metrics.unfinished));
    members
}

/// A strategy of one seed, with its groups.
fn one(outcome: &Outcome) -> Value {
    let mut members = Map::from_iter([("strategy".to_owned(), json!(outcome.strategy))]);
    members.extend(numbers(outcome));
    let groups: [(&str, Vec<GroupMetrics>); 3] = [
        ("tiers", metrics::by_tier(&outcome.workload, &outcome.schedule)),
        ("teams", metrics::by_team(&outcome.workload, &outcome.schedule)),
        ("sizes", metrics::by_size(&outcome.workload, &outcome.schedule)),
    ];
    members.extend(groups.into_iter().map(|(name, groups)| (name.to_owned(), json!(groups))));
    Value::Object(members)
}

/// A strategy over several seeds: means, and the intervals beside them.
fn several(summary: &Summary) -> Value {
    let mut members = Map::from_iter([("strategy".to_owned(), json!(summary.strategy))]);
    let mut intervals = Map::new();
    for (name, Spread { mean, half }) in &summary.numbers {
        members.insert(name.clone(), json!(mean));
        intervals.insert(name.clone(), json!([mean - half, mean + half]));
    }
    members.insert("confidence_95".to_owned(), Value::Object(intervals));
    Value::Object(members)
}

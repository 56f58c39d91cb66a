//! Strategies by name, and their replay with a stop-watch.

use std::rc::Rc;
use std::time::Instant;

use osprey_model::id::PoolName;
use osprey_model::message::words::nearest;
use osprey_policy::Policy;
use osprey_policy::rules::EstimateRules;
use osprey_scheduler::{Rules, Strategy as Production};
use osprey_sim::decided::{Onlooker, Production as Decided};
use osprey_sim::estimates::Estimates;
use osprey_sim::metrics::Metrics;
use osprey_sim::replay::{self, Record, Setting};
use osprey_sim::schedule::Schedule;
use osprey_sim::strategy::{Reference, Setup};
use osprey_sim::teams::Teams;
use osprey_sim::workload::Workload;

use super::answer::Outcome;
use super::source::Source;
use crate::error::{CliError, ErrorCode};

/// A strategy of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// One of the references: it admits everybody, and nothing costs time.
    Reference(Reference),
    /// The production decision.
    Production(Production),
    /// AWS Batch without Osprey: nobody is refused.
    Batch(Setup),
}

/// Those that ask the production decision. The other names of `decide` are those of references, which are leaner and
/// say the same.
const PRODUCTION: [Production; 2] = [Production::Backfill, Production::Osprey];

/// A replay shorter than this is repeated, in seconds.
const SHORT_SECONDS: f64 = 0.1;
/// How often.
const REPEATS: u32 = 4;

impl Strategy {
    fn all() -> impl Iterator<Item = Self> {
        let references = Reference::ALL.into_iter().map(Self::Reference);
        let batch = Setup::ALL.into_iter().map(Self::Batch);
        references.chain(PRODUCTION.into_iter().map(Self::Production)).chain(batch)
    }

    /// Whether it orders by the number that a row says: references derive none.
    #[must_use]
    pub fn needs_numbers(self) -> bool {
        use Reference::{Dive, Priority, PriorityEasy, PriorityPreempt};
        matches!(self, Self::Reference(Priority | PriorityEasy | PriorityPreempt | Dive))
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reference(reference) => reference.name(),
            Self::Production(production) => production.name(),
            Self::Batch(setup) => setup.name(),
        }
    }
}

/// Reads the names of strategies; one that is given twice runs once.
///
/// # Errors
/// For a name that no strategy has.
pub fn parse(names: &[String]) -> Result<Vec<Strategy>, CliError> {
    let mut strategies = Vec::new();
    for name in names.iter().map(|name| name.trim()) {
        let strategy = Strategy::all().find(|strategy| strategy.name() == name).ok_or_else(|| unknown(name))?;
        if !strategies.contains(&strategy) {
            strategies.push(strategy);
        }
    }
    Ok(strategies)
}

fn unknown(name: &str) -> CliError {
    let names: Vec<&str> = Strategy::all().map(Strategy::name).collect();
    let near = nearest(name, names.iter().copied()).map(|near| format!("did you mean `{near}`? "));
    let help = format!("{}the strategies are {}", near.unwrap_or_default(), names.join(", "));
    CliError::new(ErrorCode::Usage, format!("there is no strategy `{name}`")).help(help)
}

/// What is believed of run times, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EstimatesArg {
    /// The run time itself.
    Exact,
    /// What the trace says.
    Trace,
    /// The run time times a factor.
    Noise,
    /// Declared classes.
    Classes,
    /// Means by size.
    Averages,
    /// One mean for all.
    Unknown,
    /// Means of what has ended by then.
    Learned,
    /// Nothing.
    None,
}

impl From<EstimatesArg> for Estimates {
    fn from(argument: EstimatesArg) -> Self {
        match argument {
            EstimatesArg::Exact => Self::Exact,
            EstimatesArg::Trace => Self::Trace,
            EstimatesArg::Noise => Self::Noise,
            EstimatesArg::Classes => Self::Classes,
            EstimatesArg::Averages => Self::Averages,
            EstimatesArg::Unknown => Self::Unknown,
            EstimatesArg::Learned => Self::Learned,
            EstimatesArg::None => Self::Nothing,
        }
    }
}

/// What replays are made with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the production decision follows in each pool.
    pub rules: Vec<Rules>,
    /// What teams use, where the policy has quotas.
    pub teams: Option<Teams>,
    /// The priority above which a job is urgent.
    pub dive_above: u32,
    /// Whether every run is recorded.
    pub record: Record,
    /// What the production decision believes of run times.
    pub estimates: Estimates,
    /// How it learns them.
    pub estimate_rules: EstimateRules,
    /// The seed of chance.
    pub seed: u64,
}

impl Settings {
    /// What a policy says for the pools of a source.
    #[must_use]
    pub fn of(policy: &Policy, source: &Source, estimates: Estimates, record: Record) -> Self {
        Self {
            rules: rules(policy, source),
            teams: Teams::of(policy, &source.workload.teams),
            dive_above: policy.order().dive_above,
            record,
            estimates,
            estimate_rules: policy.estimates().clone(),
            seed: source.seed,
        }
    }
}

/// What the policy says for each pool; for the one without a name where nothing happens to the cluster.
fn rules(policy: &Policy, source: &Source) -> Vec<Rules> {
    let of = |name: &str| Rules::of(policy, &PoolName::from(name));
    match &source.described.scenario {
        Some(scenario) => scenario.pools.iter().map(|pool| of(&pool.name)).collect(),
        None => vec![of("")],
    }
}

/// Replays the jobs, and tells `watch` of how many it has seen. The stop-watch runs in the simulation alone.
pub fn run(strategy: Strategy, source: &Source, settings: &Settings, watch: Option<&dyn Fn(usize)>) -> Outcome {
    let Settings { dive_above, record, estimates, seed, .. } = *settings;
    let described = &source.described;
    let (cluster, scenario, costs) = (&described.cluster, described.scenario.as_ref(), described.costs);
    let setting = Setting { cluster, scenario, costs, record, watch, onlooker: None };
    let admits_all = !matches!(strategy, Strategy::Production(_)) || source.refused.is_empty();
    let workload =
        if admits_all { Rc::clone(&source.workload) } else { Rc::new(source.workload.filtered(|job| !job.is_refused)) };
    let believed = estimates.of(&workload, &settings.estimate_rules, seed);
    let (schedule, wall_seconds) = fastest(|| match strategy {
        Strategy::Reference(reference) => replay::run(&workload, reference, dive_above, &setting),
        Strategy::Production(strategy) => {
            let rules = settings.rules.iter().map(|rules| Rules { strategy, ..rules.clone() }).collect();
            let production = Decided { rules, believed: believed.clone(), teams: settings.teams.clone() };
            replay::run_decided(&workload, production, &setting)
        }
        Strategy::Batch(setup) => replay::run_batch(&workload, setup, &setting),
    });
    let metrics = Metrics::of(&workload, &schedule, dive_above);
    Outcome { strategy: strategy.name(), workload, schedule, metrics, wall_seconds }
}

/// Replays the jobs under the production decision, seen by somebody.
pub fn run_seen(
    strategy: Production,
    source: &Source,
    settings: &Settings,
    onlooker: Onlooker<'_>,
) -> (Workload, Schedule) {
    let described = &source.described;
    let (cluster, scenario, costs) = (&described.cluster, described.scenario.as_ref(), described.costs);
    let record = settings.record;
    let setting = Setting { cluster, scenario, costs, record, watch: None, onlooker: Some(onlooker) };
    let workload = source.workload.filtered(|job| !job.is_refused);
    let believed = settings.estimates.of(&workload, &settings.estimate_rules, settings.seed);
    let rules = settings.rules.iter().map(|rules| Rules { strategy, ..rules.clone() }).collect();
    let production = Decided { rules, believed, teams: settings.teams.clone() };
    let schedule = replay::run_decided(&workload, production, &setting);
    (workload, schedule)
}

/// Replays and times it. A replay of milliseconds is one that anything else on the machine can double, so a short one
/// is repeated, and the fastest time counts; the schedule is the same each time.
fn fastest(replay: impl Fn() -> Schedule) -> (Schedule, f64) {
    let timed = || {
        let began = Instant::now();
        let schedule = replay();
        (schedule, began.elapsed().as_secs_f64())
    };
    let (schedule, first) = timed();
    let repeats = if first < SHORT_SECONDS { REPEATS } else { 0 };
    let fastest = (0..repeats).map(|_| timed().1).fold(first, f64::min);
    (schedule, fastest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_once_each_and_in_order() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let parsed = parse(&names(&["backfill", " easy", "backfill"])).unwrap();
        assert_eq!(parsed, [Strategy::Production(Production::Backfill), Strategy::Reference(Reference::Easy)]);
        let error = parse(&names(&["esay"])).unwrap_err();
        assert_eq!(error.message, "there is no strategy `esay`");
        assert!(error.help.unwrap().starts_with("did you mean `easy`?"));
    }
}

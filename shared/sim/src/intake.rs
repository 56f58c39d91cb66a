//! From a trace to a workload: what each job deserves, whether it may enter, and whether the cluster could ever run it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use osprey_model::facts::{Facts, JobFacts, LineageFacts, TeamFacts};
use osprey_model::id::PoolName;
use osprey_model::metadata::Metadata;
use osprey_model::pool::{CapacityType, Pool, PoolMode};
use osprey_model::request::{ContainerOverrides, NodeOverrides, SubmitJobRequest};
use osprey_model::resources::Demand;
use osprey_policy::Policy;
use osprey_policy::admission::{self, AdmissionInput};

use crate::cluster::Cluster;
use crate::scenario::Scenario;
use crate::trace::{BadLine, Entry};
use crate::workload::{Job, Workload};

/// Where a job saves when it says nothing of it: a checkpoint every 5 minutes.
const CHECKPOINT_SECONDS: u64 = 300;

/// What decides about a trace's jobs.
#[derive(Clone, Copy, Debug)]
pub struct Intake<'p> {
    /// The policy.
    pub policy: &'p Policy,
    /// The cluster.
    pub cluster: Cluster,
    /// Its pools, where it has some and things happen to it.
    pub scenario: Option<&'p Scenario>,
    /// Where the numbers come from.
    pub numbers: Numbers,
}

/// Where the numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// A column of the trace: it gives number and tier, and nobody is refused.
    Column,
    /// The policy derives them, and admits or refuses.
    Policy,
}

/// A workload, and what didn't become part of it as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taken {
    /// The jobs. Those that aren't admitted are in it and marked.
    pub workload: Workload,
    /// Lines whose jobs can't be run at all.
    pub bad: Vec<BadLine>,
    /// Jobs that aren't admitted, each with why. The reference strategies run them all the same.
    pub refused: Vec<BadLine>,
    /// The first line whose row says no number; `None` when all do.
    pub unnumbered: Option<u64>,
}

/// What was decided about one kind of job.
#[derive(Clone)]
struct Verdict {
    priority: u32,
    tier: u16,
    refusal: Option<String>,
    /// Whether a rule looked at the time, so that the verdict is good for one moment only.
    is_of_the_moment: bool,
}

impl Intake<'_> {
    /// Takes the jobs of a trace in.
    #[must_use]
    pub fn take(&self, entries: Vec<Entry>) -> Taken {
        let mut taken = Taken::default();
        let mut names = Names::default();
        let mut verdicts: BTreeMap<String, Verdict> = BTreeMap::new();
        let mut jobs = Vec::new();
        let first_ms = entries.iter().map(|entry| entry.submit_ms).min().unwrap_or(0);
        for entry in entries {
            if let Some(message) = self.impossible(&entry, &mut names) {
                taken.bad.push(BadLine { line: entry.line, message });
                continue;
            }
            let verdict = self.remembered(&entry, first_ms, &mut verdicts);
            if entry.priority.is_none() {
                taken.unnumbered = taken.unnumbered.or(Some(entry.line));
            }
            let mut job = job(&entry, &verdict, &mut names);
            job.after_failures = self.after_failures(&entry, first_ms, &mut verdicts);
            job.pool = self.pool_of(&job);
            job.reserve = self.reserve_of(&entry, job.tier);
            jobs.push(job);
            taken.refused.extend(verdict.refusal.map(|message| BadLine { line: entry.line, message }));
        }
        let tiers = self.policy.tiers().iter().map(|tier| tier.name.to_string()).collect();
        taken.workload = Workload::new(jobs, tiers, names.teams);
        taken
    }

    /// Why a job can't be run at all.
    fn impossible(&self, entry: &Entry, names: &mut Names) -> Option<String> {
        if let Some(line) = names.seen.insert(entry.id.clone(), entry.line) {
            names.seen.insert(entry.id.clone(), line);
            return Some(format!("its id `{}` is that of line {line}", entry.id));
        }
        let Cluster { nodes, gpus_per_node, .. } = self.cluster;
        let gpus = entry.gpus;
        if let Some(scenario) = self.scenario {
            return (!scenario.could_run(gpus)).then(|| {
                format!("it needs {gpus} GPUs, and no pool could ever hold it; jobs of several nodes stay off Spot")
            });
        }
        (!self.cluster.could_hold(gpus)).then(|| {
            let nodes = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
            format!("it needs {gpus} GPUs, the cluster has {nodes} of {gpus_per_node}")
        })
    }

    fn remembered(&self, entry: &Entry, first_ms: u64, verdicts: &mut BTreeMap<String, Verdict>) -> Verdict {
        if let (Numbers::Column, Some(priority)) = (self.numbers, entry.priority) {
            let preemptible = entry.metadata.preemptible == Some(true);
            let tier = self.tier(self.policy.tier_of(priority, preemptible).name.as_str());
            return Verdict { priority, tier, refusal: None, is_of_the_moment: false };
        }
        if entry.request.is_some() {
            return self.verdict(entry, first_ms);
        }
        // Jobs of which the same is said deserve the same: a trace has few kinds of them.
        let kind = format!("{:?} {} {}", entry.metadata, entry.gpus, entry.failures);
        match verdicts.get(&kind) {
            Some(verdict) if !verdict.is_of_the_moment => verdict.clone(),
            _ => {
                let verdict = self.verdict(entry, first_ms);
                verdicts.insert(kind, verdict.clone());
                verdict
            }
        }
    }

    /// Derives and admits.
    fn verdict(&self, entry: &Entry, first_ms: u64) -> Verdict {
        let mut metadata = entry.metadata.clone();
        metadata.checkpoint_interval = metadata.checkpoint_interval.or(Some(CHECKPOINT_SECONDS));
        let demand = entry.demand.unwrap_or_else(|| self.demand(entry.gpus));
        let request = entry.request.as_deref().cloned().unwrap_or_else(|| request(&demand));
        let facts = facts(entry, &metadata, &demand, first_ms);
        let derivation = self.policy.derive(&facts);
        let pools = self.pools();
        let admission = admission::admit(&AdmissionInput {
            request: &request,
            definition: None,
            definition_required: false,
            metadata: &metadata,
            demand: &demand,
            derivation: &derivation,
            pools: &pools,
            policy: self.policy,
            our_tags: 0,
        });
        // A definition that nobody gave is taken as good, so it has the command; the queue is the simulated one.
        let counts = |code: &str| !["MissingCommand", "UnknownQueue"].contains(&code);
        let refusals = admission.refusals.into_iter().filter(|refusal| counts(&refusal.code.to_string()));
        let refusal = refusals.map(|refusal| refusal.message).collect::<Vec<_>>().join("; ");
        let reads_time = |step: &osprey_model::decision::Step| step.because.keys().any(|fact| fact.starts_with("now."));
        Verdict {
            priority: derivation.priority,
            tier: self.tier(derivation.tier.as_str()),
            refusal: Some(refusal).filter(|refusal| !refusal.is_empty()),
            is_of_the_moment: derivation.steps.iter().any(reads_time),
        }
    }

    /// The priorities after one failure, two, and so on, where failures happen.
    fn after_failures(&self, entry: &Entry, first_ms: u64, verdicts: &mut BTreeMap<String, Verdict>) -> Vec<u32> {
        let failures_max = self.scenario.filter(|scenario| scenario.failure_chance > 0.0);
        let failures_max = failures_max.map_or(0, |scenario| scenario.budgets.failures_max);
        let again = |failures: u32| Entry { failures: entry.failures.saturating_add(failures), ..entry.clone() };
        (1..=failures_max).map(|failures| self.remembered(&again(failures), first_ms, verdicts).priority).collect()
    }

    /// The pool that a job goes to: the first of a kind that its tier takes and that could hold it, else any.
    fn pool_of(&self, job: &Job) -> u16 {
        let Some(scenario) = self.scenario else { return 0 };
        let kinds = self.policy.tiers().get(usize::from(job.tier)).map(|tier| tier.capacity.as_slice());
        let any = &[CapacityType::OnDemand, CapacityType::Spot];
        let pool = kinds.and_then(|kinds| scenario.pool_for(job.gpus, kinds));
        pool.or_else(|| scenario.pool_for(job.gpus, any)).unwrap_or(0)
    }

    /// The reserve that a job of a tier may take from.
    fn reserve_of(&self, entry: &Entry, tier: u16) -> Option<u16> {
        let quota = self.policy.quota();
        let tier = &self.policy.tiers().get(usize::from(tier))?.name;
        let reserve = quota.reserve_of(&entry.metadata, tier)?;
        let place = quota.reserves.iter().position(|known| known.name == reserve.name)?;
        u16::try_from(place).ok()
    }

    /// Part of a node, or whole nodes at once.
    fn demand(&self, gpus: u32) -> Demand {
        let per_node = self.cluster.gpus_per_node;
        let whole = per_node > 0 && gpus > per_node && gpus.is_multiple_of(per_node);
        let nodes = if whole { gpus / per_node } else { 1 };
        Demand { gpus_per_node: gpus / nodes, nodes, gpus, vcpus: nodes, memory_mib: u64::from(nodes), array_size: 1 }
    }

    fn tier(&self, name: &str) -> u16 {
        let tiers = (0_u16..).zip(self.policy.tiers());
        tiers.into_iter().find(|(_, tier)| tier.name.as_str() == name).map_or(0, |(index, _)| index)
    }

    /// The cluster as On-Demand and as Spot capacity: every tier may use it.
    fn pools(&self) -> Vec<Pool> {
        let Cluster { nodes, gpus_per_node, .. } = self.cluster;
        let Some(scenario) = self.scenario else {
            let kinds = [("on-demand", CapacityType::OnDemand), ("spot", CapacityType::Spot)];
            return kinds.map(|(name, capacity)| pool(name, capacity, gpus_per_node, nodes)).into();
        };
        let described = scenario.pools.iter().enumerate();
        described
            .map(|(at, spec)| pool(&spec.name, spec.capacity, spec.gpus_per_node, scenario.nodes_max(at)))
            .collect()
    }
}

fn pool(name: &str, capacity: CapacityType, gpus_per_node: u32, nodes: u32) -> Pool {
    Pool {
        name: PoolName::new(name),
        mode: PoolMode::Held,
        capacity,
        gpus_per_node,
        nodes_max: Some(nodes),
        vcpus_per_node: None,
        memory_mib_per_node: None,
        queues: BTreeMap::new(),
        fair_share: true,
        preemption: true,
    }
}

/// What has been seen of names.
#[derive(Default)]
struct Names {
    /// Ids, each with its line.
    seen: BTreeMap<String, u64>,
    teams: Vec<String>,
    team_places: BTreeMap<String, u16>,
}

impl Names {
    fn team(&mut self, name: &str) -> Option<u16> {
        if let Some(place) = self.team_places.get(name) {
            return Some(*place);
        }
        // Teams beyond 65,536 count as none.
        let place = u16::try_from(self.teams.len()).ok()?;
        self.teams.push(name.to_owned());
        self.team_places.insert(name.to_owned(), place);
        Some(place)
    }
}

fn job(entry: &Entry, verdict: &Verdict, names: &mut Names) -> Job {
    Job {
        id: entry.id.clone(),
        submit_ms: entry.submit_ms,
        duration_ms: entry.duration_ms,
        estimate_ms: entry.estimate_ms,
        gpus: entry.gpus,
        priority: verdict.priority,
        row_priority: entry.priority.unwrap_or(0),
        tier: verdict.tier,
        checkpoint_ms: entry.metadata.checkpoint_interval.map(|seconds| seconds.saturating_mul(1_000)),
        team: entry.metadata.team.as_deref().and_then(|team| names.team(team)),
        reserve: None,
        is_preemptible: entry.metadata.preemptible == Some(true),
        is_refused: verdict.refusal.is_some(),
        after_failures: Vec::new(),
        pool: 0,
    }
}

/// A request that stands for a line of a trace: admission looks at its shape and at nothing that a trace doesn't say.
fn request(demand: &Demand) -> SubmitJobRequest {
    let command = vec!["true".to_owned()];
    let mut request =
        SubmitJobRequest { job_name: "trace".to_owned(), job_definition: "trace".to_owned(), ..Default::default() };
    if demand.nodes > 1 {
        let nodes = NodeOverrides { num_nodes: Some(demand.nodes.into()), node_property_overrides: None };
        request.node_overrides = Some(nodes);
    } else {
        request.container_overrides = Some(ContainerOverrides { command: Some(command), ..Default::default() });
    }
    request
}

fn facts(entry: &Entry, metadata: &Metadata, demand: &Demand, first_ms: u64) -> Facts {
    let submitted = entry.request.as_deref();
    let now_ms = i64::try_from(entry.submit_ms.saturating_sub(first_ms)).unwrap_or(i64::MAX);
    Facts {
        job: JobFacts {
            metadata: metadata.clone(),
            gpus: demand.gpus,
            vcpus: demand.vcpus,
            memory_mib: demand.memory_mib,
            nodes: demand.nodes,
            array_size: demand.array_size,
            name: submitted.map_or_else(|| entry.id.clone(), |request| request.job_name.clone()),
            definition: submitted.map_or_else(String::new, |request| request.job_definition.clone()),
            tags: submitted.and_then(|request| request.tags.clone()).unwrap_or_default(),
        },
        lineage: LineageFacts { attempts: entry.failures, failures: entry.failures, ..LineageFacts::default() },
        team: TeamFacts::default(),
        now: Timestamp::from_millisecond(now_ms).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Placement;
    use crate::trace::csv;

    fn take(text: &str, numbers: Numbers) -> Taken {
        let policy = Policy::load(osprey_policy::DEFAULT).unwrap().policy;
        let cluster = Cluster { nodes: 4, gpus_per_node: 8, placement: Placement::Count };
        let priority = (numbers == Numbers::Column).then_some("number");
        Intake { policy: &policy, cluster, scenario: None, numbers }.take(csv::read(text, priority).unwrap().entries)
    }

    const HEADER: &str = "id,submit,duration,gpus,environment,workload_type,preemptible,failure_count,number\n";

    #[test]
    fn the_policy_derives_numbers_and_tiers() {
        let rows =
            "1,0,60,1,production,inference,0,0,7\n2,0,60,8,dev,training,0,3,7\n3,0,60,16,production,inference,1,0,7\n";
        let taken = take(&format!("{HEADER}{rows}"), Numbers::Policy);
        let derived: Vec<(u32, &str)> = taken
            .workload
            .jobs
            .iter()
            .map(|job| (job.priority, taken.workload.tiers[usize::from(job.tier)].as_str()))
            .collect();
        assert_eq!(derived, [(1200, "critical"), (420, "experimental"), (0, "preemptible")]);
        assert_eq!(taken.refused, []);
    }

    #[test]
    fn a_column_gives_number_and_tier_and_refuses_nobody() {
        let rows = "1,0,60,7,dev,training,0,0,1150\n2,0,60,7,dev,training,1,0,900\n";
        let taken = take(&format!("{HEADER}{rows}"), Numbers::Column);
        assert_eq!(
            taken.workload.jobs.iter().map(|job| (job.priority, job.tier)).collect::<Vec<_>>(),
            [(1150, 0), (900, 3)]
        );
        assert_eq!(taken.refused, []);
    }

    #[test]
    fn jobs_that_the_policy_refuses_are_marked_and_told() {
        let taken = take(&format!("{HEADER}1,0,60,7,dev,training,0,0,0\n"), Numbers::Policy);
        assert_eq!(taken.workload.jobs.iter().map(|job| job.is_refused).collect::<Vec<_>>(), [true]);
        assert!(taken.refused[0].message.contains('7'), "{:?}", taken.refused);
    }

    #[test]
    fn jobs_that_can_never_run_and_ids_used_twice_are_bad_lines() {
        let rows = "1,0,60,33,dev,training,0,0,0\n2,0,60,1,dev,training,0,0,0\n2,5,60,1,dev,training,0,0,0\n";
        let taken = take(&format!("{HEADER}{rows}"), Numbers::Policy);
        let bad: Vec<(u64, &str)> = taken.bad.iter().map(|bad| (bad.line, bad.message.as_str())).collect();
        assert_eq!(bad, [(2, "it needs 33 GPUs, the cluster has 4 nodes of 8"), (4, "its id `2` is that of line 3")]);
        assert_eq!(taken.workload.jobs.len(), 1);
    }
}

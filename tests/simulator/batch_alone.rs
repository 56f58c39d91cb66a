//! AWS Batch alone, as the simulator has it, against the scheduler of the local Batch.
//!
//! Goal: both start the same jobs at the same times. Method: 200 small made-up workloads; the simulator replays them,
//! and a loop of its own here asks the local Batch's pure functions, cycle by cycle.

use std::collections::BTreeMap;

use osprey_local_batch::queue::FairShare;
use osprey_local_batch::requirement::Need;
use osprey_local_batch::schedule::{self, Candidate, Demand, Node, NodeState, Queue, Share};
use osprey_local_batch::share::decayed;
use osprey_sim::cluster::{Cluster, Placement};
use osprey_sim::kernel::fork;
use osprey_sim::replay::{self, Setting};
use osprey_sim::strategy::{DECAY_MS, START_CHARGE_MS, Setup, VCPUS_PER_GPU};
use osprey_sim::workload::{Job, Workload};

/// Cases that are tried.
const CASES: u64 = 200;
/// Tiers, each a queue.
const TIERS: u16 = 2;

/// A workload of up to 24 jobs of 3 teams, and a cluster on which it has to wait.
fn case(seed: u64) -> (Workload, Cluster) {
    let mut random = fork(seed, "case");
    let cluster = Cluster {
        nodes: u32::try_from(1 + random.below(3)).unwrap_or(1),
        gpus_per_node: 4,
        placement: Placement::Node,
    };
    let jobs = (0..4 + random.below(21)).map(|number| Job {
        id: number.to_string(),
        submit_ms: random.below(40) * 5_000,
        duration_ms: (1 + random.below(60)) * 10_000,
        gpus: u32::try_from(1 + random.below(4)).unwrap_or(1),
        priority: u32::try_from(random.below(3) * 100).unwrap_or(0),
        tier: u16::try_from(random.below(u64::from(TIERS))).unwrap_or(0),
        team: Some(u16::try_from(random.below(3)).unwrap_or(0)),
        ..Job::default()
    });
    let teams = ["search", "ads", "maps"].map(str::to_owned).to_vec();
    (Workload::new(jobs.collect(), vec!["high".to_owned(), "low".to_owned()], teams), cluster)
}

/// The local Batch's side of a case.
struct Local<'w> {
    workload: &'w Workload,
    nodes: Vec<Node>,
    waiting: Vec<usize>,
    /// Job, node, devices, start.
    running: Vec<(usize, usize, Vec<i64>, u64)>,
    /// Past use by queue and share, as of a time.
    past: BTreeMap<(u16, u16), (f64, u64)>,
    starts: Vec<Option<u64>>,
}

fn policy() -> FairShare {
    let share_decay_seconds = i64::try_from(DECAY_MS / 1000).unwrap_or(0);
    FairShare { share_decay_seconds, compute_reservation: 0, share_distribution: Vec::new() }
}

fn need(gpus: u32) -> Need {
    Need { gpus: gpus.into(), vcpus_milli: i64::from(gpus * VCPUS_PER_GPU) * 1_000, memory_mib: 0 }
}

#[expect(clippy::indexing_slicing, reason = "places come from the case; a wrong one fails the test")]
impl<'w> Local<'w> {
    fn new(workload: &'w Workload, cluster: &Cluster) -> Self {
        let node = |index: u32| Node {
            environment: 0,
            index: index.into(),
            state: NodeState::Open,
            free_devices: (0..i64::from(cluster.gpus_per_node)).collect(),
            free: need(cluster.gpus_per_node),
            total: need(cluster.gpus_per_node),
            ..Node::default()
        };
        Self {
            workload,
            nodes: (0..cluster.nodes).map(node).collect(),
            waiting: Vec::new(),
            running: Vec::new(),
            past: BTreeMap::new(),
            starts: vec![None; workload.jobs.len()],
        }
    }

    fn job(&self, job: usize) -> &'w Job {
        &self.workload.jobs[job]
    }

    fn used(&self, job: usize, started: u64, now: u64) -> f64 {
        f64::from(self.job(job).gpus * VCPUS_PER_GPU) * (now - started).max(START_CHARGE_MS) as f64
    }

    fn past_at(&self, queue: u16, team: u16, now: u64) -> f64 {
        let (used, as_of) = self.past.get(&(queue, team)).copied().unwrap_or_default();
        decayed(used, (now - as_of) as f64, &policy())
    }

    fn end(&mut self, now: u64) {
        let ended = |run: &(usize, usize, Vec<i64>, u64)| run.3 + self.workload.jobs[run.0].duration_ms == now;
        let (done, running): (Vec<_>, Vec<_>) = std::mem::take(&mut self.running).into_iter().partition(ended);
        self.running = running;
        for (job, node, devices, started) in done {
            let (queue, team) = (self.job(job).tier, self.job(job).team.unwrap_or(0));
            let used = self.past_at(queue, team, now) + self.used(job, started, now);
            self.past.insert((queue, team), (used, now));
            let node = &mut self.nodes[node];
            node.free_devices.extend(devices);
            node.free_devices.sort_unstable();
            node.free.vcpus_milli += need(self.workload.jobs[job].gpus).vcpus_milli;
        }
    }

    fn share(&self, queue: u16, team: u16, now: u64) -> Share {
        let mut jobs: Vec<usize> = self.waiting.clone();
        jobs.retain(|job| (self.job(*job).tier, self.job(*job).team) == (queue, Some(team)));
        jobs.sort_by_key(|job| (std::cmp::Reverse(self.job(*job).priority), *job));
        let ours =
            self.running.iter().filter(|(job, ..)| (self.job(*job).tier, self.job(*job).team) == (queue, Some(team)));
        let running: f64 = ours.map(|(job, _, _, started)| self.used(*job, *started, now)).sum();
        let candidate = |job: usize| Candidate {
            job: i64::try_from(job).unwrap_or(0),
            demand: Demand::One(need(self.job(job).gpus)),
        };
        Share {
            id: self.workload.teams[usize::from(team)].clone(),
            usage: self.past_at(queue, team, now) + running,
            weight: 1.0,
            jobs: jobs.into_iter().map(candidate).collect(),
            more: false,
        }
    }

    fn cycle(&mut self, now: u64) {
        let teams = u16::try_from(self.workload.teams.len()).unwrap_or(0);
        let queue = |queue| Queue {
            environments: vec![0],
            shares: (0..teams).map(|team| self.share(queue, team, now)).collect(),
            vcpus_left_milli: None,
        };
        let queues: Vec<Queue> = (0..TIERS).map(queue).collect();
        for placement in schedule::cycle(&mut self.nodes, &queues).placements {
            let job = usize::try_from(placement.job).unwrap_or(0);
            self.starts[job] = Some(now);
            self.waiting.retain(|waiting| *waiting != job);
            let seat = &placement.seats[0];
            self.running.push((job, seat.node, seat.devices.clone(), now));
        }
    }

    fn run(mut self) -> Vec<Option<u64>> {
        let mut next = 0;
        loop {
            let ends = self.running.iter().map(|(job, _, _, started)| started + self.job(*job).duration_ms);
            let submission = self.workload.jobs.get(next).map(|job| job.submit_ms);
            let Some(now) = ends.chain(submission).min() else { return self.starts };
            self.end(now);
            while self.workload.jobs.get(next).is_some_and(|job| job.submit_ms == now) {
                self.waiting.push(next);
                next += 1;
            }
            self.cycle(now);
        }
    }
}

#[test]
fn fair_share_agrees_with_the_local_batch_on_200_cases() {
    for seed in 0..CASES {
        let (workload, cluster) = case(seed);
        let ours = replay::run_batch(&workload, Setup::FairShare, &Setting::of(&cluster));
        let starts: Vec<Option<u64>> = ours.outcomes.iter().map(|outcome| outcome.start_ms).collect();
        assert_eq!(starts, Local::new(&workload, &cluster).run(), "case {seed}");
    }
}

#[test]
fn the_cases_are_worth_comparing() {
    let waits = (0..CASES).filter(|seed| {
        let (workload, cluster) = case(*seed);
        let schedule = replay::run_batch(&workload, Setup::FairShare, &Setting::of(&cluster));
        let pairs = workload.jobs.iter().zip(&schedule.outcomes);
        pairs.filter(|(job, outcome)| outcome.start_ms > Some(job.submit_ms)).count() > 2
    });
    assert!(waits.count() > 100, "in most cases jobs have to wait");
}

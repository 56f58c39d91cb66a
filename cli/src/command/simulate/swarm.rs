//! What a swarm makes of the jobs if all of them wait at once and every node is empty: assignments, dives and
//! convergence, round by round. It starts from the order of submission, so that there is something to be seen.

use osprey_scheduler::placement::swarm::{self, AtSync};
use osprey_scheduler::placement::{Job, Node, Plan, Problem, greedy};
use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::source::Source;
use crate::command::place::SwarmArgs;
use crate::error::CliError;
use crate::render::policy::counted;
use crate::render::table::Columns;
use crate::threads::Threads;
use crate::ui::Paint;

/// The price of a GPU left free on a partly used node.
const ALPHA: f64 = 0.25;
/// The priority above which an osprey dives for a job.
const DIVE_ABOVE: u32 = 800;
/// Most jobs that the swarm is shown: the first ones.
const JOBS_MAX: usize = 2000;
/// Most rows of the convergence.
const ROWS_MAX: usize = 16;
/// The longest bar.
const BAR: f64 = 30.0;
/// Most jobs named in a row.
const NAMES_MAX: usize = 16;
/// A job that ospreys dive for.
const DIVE: char = '▼';

/// What came of it.
pub struct Flown<'a> {
    source: &'a Source,
    problem: Problem,
    ospreys: Option<u32>,
    flown: swarm::Flown,
    greedy: f64,
}

/// Flies a swarm where ospreys or rounds were asked for, and one seed.
///
/// # Errors
/// When the cluster is larger than what is planned at once.
pub fn fly(args: SwarmArgs, answer: &Answer) -> Result<Option<Flown<'_>>, CliError> {
    let Some(source) = answer.source().filter(|_| answer.seeds() == 1) else { return Ok(None) };
    if args.ospreys.is_none() && args.rounds.is_none() {
        return Ok(None);
    }
    let problem = problem(source).map_err(|unusable| CliError::failed(format!("the swarm can't fly: {unusable}")))?;
    let settings = args.settings(source.seed);
    // From the order of submission: around greedy's there is often nothing left to be seen.
    let submitted: Vec<u32> = (0_u32..).zip(problem.jobs()).map(|(job, _)| job).collect();
    let flown = swarm::search(&problem, &settings, &submitted, &Threads::of(None));
    let greedy = problem.objective(&greedy(&problem)).unwrap_or(0.0);
    Ok(Some(Flown { source, problem, ospreys: args.ospreys, flown, greedy }))
}

fn problem(source: &Source) -> Result<Problem, osprey_scheduler::placement::Unusable> {
    let nodes = source.described.node_gpus().into_iter().map(|gpus| Node { slots: gpus, free: gpus, spare: gpus });
    let jobs = source.workload.jobs.iter().take(JOBS_MAX).map(|job| Job {
        slots: job.gpus,
        weight: job.priority,
        is_urgent: job.priority > DIVE_ABOVE,
        outlasts: false,
    });
    Problem::new(nodes.collect(), jobs.collect(), ALPHA)
}

impl Flown<'_> {
    /// The member `swarm` of the answer.
    #[must_use]
    pub fn json(&self) -> Value {
        let sync = |AtSync { round, best, dives, .. }: &AtSync| json!({ "round": round, "best": best, "dives": dives });
        let placed = self.source.workload.jobs.iter().zip(&self.flown.plan.nodes);
        let plan: Map<String, Value> = placed
            .filter(|(_, nodes)| !nodes.is_empty())
            .map(|(job, nodes)| (job.id.clone(), nodes.clone().into()))
            .collect();
        json!({
            "jobs": self.problem.jobs().len(),
            "objective": self.objective(),
            "greedy_objective": self.greedy,
            "evaluations": self.flown.evaluations,
            "plan": plan,
            "rounds": self.flown.syncs.iter().map(sync).collect::<Vec<_>>(),
        })
    }

    fn objective(&self) -> f64 {
        self.problem.objective(&self.flown.plan).unwrap_or(0.0)
    }

    /// The picture.
    #[must_use]
    pub fn text(&self, paint: Paint) -> String {
        [self.heading(paint), self.convergence(), self.assignments()].join("\n\n")
    }

    fn heading(&self, paint: Paint) -> String {
        let (jobs, nodes) = (self.problem.jobs().len(), self.problem.nodes().len());
        let swarm = self.ospreys.map_or_else(String::new, |ospreys| {
            format!(" by {}", counted(usize::try_from(ospreys).unwrap_or(usize::MAX), "osprey"))
        });
        format!(
            "{}, {} at once on {} that are empty, from the order of submission{swarm}: {:.3}; greedy finds {:.3}",
            paint.strong("swarm"),
            counted(jobs, "job"),
            counted(nodes, "node"),
            self.objective(),
            self.greedy,
        )
    }

    /// The best plan and the dives by round: the first rounds, those that found something better, and the last.
    fn convergence(&self) -> String {
        let syncs = &self.flown.syncs;
        let (low, high) = (syncs.first().map_or(0.0, |sync| sync.best), self.objective());
        let mut columns = Columns::new(&[">ROUND", ">BEST", ">DIVES", ""]);
        let mut shown = 0;
        let (mut before, mut dives) = (f64::NEG_INFINITY, 0);
        for (place, sync) in syncs.iter().enumerate() {
            dives += sync.dives;
            let is_last = place + 1 == syncs.len();
            let is_told = sync.best > before || place.is_power_of_two();
            if is_last || (is_told && shown + 1 < ROWS_MAX) {
                let share = if high > low { (sync.best - low) / (high - low) } else { 1.0 };
                columns.row([sync.round.to_string(), format!("{:.3}", sync.best), dives.to_string(), bar(share)]);
                (shown, before, dives) = (shown + 1, sync.best, 0);
            }
        }
        columns.render()
    }

    /// The jobs of each node with their GPUs; those that ospreys dive for are marked.
    fn assignments(&self) -> String {
        let mut columns = Columns::new(&["NODE", ">FREE", &format!("JOBS AND THEIR GPUS, {DIVE} ABOVE {DIVE_ABOVE}")]);
        for (place, node) in (0_u32..).zip(self.problem.nodes()) {
            let jobs = on(&self.flown.plan, place);
            let of = |job: &usize| self.problem.jobs().get(*job).map_or(0, |job| job.slots.min(node.slots));
            let taken: u32 = jobs.iter().map(of).sum();
            let mut names: Vec<String> = jobs.iter().take(NAMES_MAX).map(|job| self.name(*job, of(job))).collect();
            if jobs.len() > NAMES_MAX {
                names.push("…".to_owned());
            }
            let name = self.source.described.name(usize::try_from(place).unwrap_or(usize::MAX));
            columns.row([name, node.slots.saturating_sub(taken).to_string(), names.join(" ")]);
        }
        columns.render()
    }

    fn name(&self, job: usize, gpus: u32) -> String {
        let id = self.source.workload.jobs.get(job).map_or("", |job| job.id.as_str());
        let is_urgent = self.problem.jobs().get(job).is_some_and(|job| job.is_urgent);
        let mark = if is_urgent { DIVE.to_string() } else { String::new() };
        format!("{mark}{id}×{gpus}")
    }
}

fn on(plan: &Plan, node: u32) -> Vec<usize> {
    let jobs = plan.nodes.iter().enumerate().filter(|(_, nodes)| nodes.contains(&node));
    jobs.map(|(job, _)| job).collect()
}

/// A bar for a share of the way from the first plan to the best.
fn bar(share: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of thirty")]
    let length = (share.clamp(0.0, 1.0) * BAR).round() as usize;
    "█".repeat(length.max(1))
}

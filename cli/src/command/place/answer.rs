//! What a plan is worth and where jobs go, for people and for programs.

use osprey_scheduler::placement::swarm::Flown;
use osprey_scheduler::placement::{Plan, greedy};
use serde_json::{Map, Value};

use super::instance::Instance;
use crate::render::policy::counted;
use crate::render::table::Columns;

/// Most names of jobs in a line of the table.
const NAMES_MAX: usize = 12;

/// A plan that was found.
pub(super) struct Answer<'i> {
    pub instance: &'i Instance,
    pub strategy: &'static str,
    pub seed: u64,
    pub plan: Plan,
    pub objective: f64,
    pub milliseconds: f64,
    pub account: Account,
}

/// How it was found.
pub(super) enum Account {
    None,
    Flown(Flown),
    Solved { bound: f64, is_proven: bool },
}

impl Answer<'_> {
    pub(super) fn json(&self) -> Value {
        let placed = self.instance.jobs.iter().zip(&self.plan.nodes).filter(|(_, nodes)| !nodes.is_empty());
        let plan: Map<String, Value> = placed.map(|(job, nodes)| (job.clone(), self.names(nodes))).collect();
        let mut answer = Map::new();
        answer.insert("strategy".to_owned(), self.strategy.into());
        answer.insert("seed".to_owned(), self.seed.into());
        answer.insert("objective".to_owned(), self.objective.into());
        answer.insert("plan".to_owned(), plan.into());
        answer.insert("milliseconds".to_owned(), self.milliseconds.into());
        match &self.account {
            Account::None => {}
            Account::Flown(flown) => drop(answer.insert("evaluations".to_owned(), flown.evaluations.into())),
            Account::Solved { bound, is_proven } => {
                answer.insert("bound".to_owned(), (*bound).into());
                answer.insert("proven".to_owned(), (*is_proven).into());
            }
        }
        Value::Object(answer)
    }

    fn names(&self, nodes: &[u32]) -> Value {
        nodes.iter().filter_map(|node| self.instance.nodes.get(usize::try_from(*node).ok()?).cloned()).collect()
    }

    /// The objective in a sentence, how it was found, and a row a node.
    pub(super) fn text(&self) -> String {
        format!("{}\n{}\n\n{}", self.worth(), self.story(), self.table())
    }

    fn worth(&self) -> String {
        let (placed, jobs) = (self.plan.placed(), self.instance.jobs.len());
        let nodes = counted(self.instance.nodes.len(), "node");
        format!("{}: {:.3} with {placed} of {} on {nodes}", self.strategy, self.objective, counted(jobs, "job"))
    }

    fn story(&self) -> String {
        match &self.account {
            Account::None => "one walk down the queue, the highest priority first".to_owned(),
            Account::Flown(flown) => {
                let greedy = self.instance.problem.objective(&greedy(&self.instance.problem)).unwrap_or(f64::NAN);
                let rounds = flown.syncs.last().map_or(0, |sync| sync.round);
                let tried = counted(usize::try_from(flown.evaluations).unwrap_or(usize::MAX), "order");
                if rounds == 0 {
                    return format!("greedy finds {greedy:.3}, and no plan can be worth more");
                }
                format!("greedy finds {greedy:.3}; {tried} tried in {rounds} rounds")
            }
            Account::Solved { is_proven: true, .. } => "proven: no plan is worth more".to_owned(),
            Account::Solved { bound, .. } => format!("not proven: no plan is worth more than {bound:.3}"),
        }
    }

    fn table(&self) -> String {
        let unit = self.instance.unit.noun();
        let heading = format!(">{unit}S");
        let mut columns = Columns::new(&["NODE", &heading, ">USED BEFORE", ">FREE", "JOBS"]);
        let names: Vec<String> = self.instance.nodes.iter().map(super::instance::plain).collect();
        for (place, (node, name)) in (0_u32..).zip(self.instance.problem.nodes().iter().zip(names)) {
            let jobs = self.on(place);
            let taken: u32 = jobs.iter().map(|(_, slots)| slots.min(&node.slots)).sum();
            let mut shown: Vec<&str> = jobs.iter().map(|(job, _)| job.as_str()).take(NAMES_MAX).collect();
            if jobs.len() > NAMES_MAX {
                shown.push("…");
            }
            columns.row([
                name,
                node.slots.to_string(),
                (node.slots - node.free).to_string(),
                node.free.saturating_sub(taken).to_string(),
                shown.join(" "),
            ]);
        }
        columns.render()
    }

    /// Jobs of a node with what they need.
    fn on(&self, node: u32) -> Vec<(&String, u32)> {
        let jobs = self.instance.jobs.iter().zip(self.instance.problem.jobs()).zip(&self.plan.nodes);
        jobs.filter(|(_, nodes)| nodes.contains(&node)).map(|((name, job), _)| (name, job.slots)).collect()
    }
}

//! A job and its kin: a tree for people, jobs and edges for programs.

use std::collections::BTreeSet;

use osprey_model::id::JobId;
use osprey_model::job::{Attempt, Job, cut};
use osprey_model::message::words::{counted, shown};
use serde_json::{Value, json};

use super::job::summary;
use super::time::{rfc3339, short};
use crate::joined::lineage::{Edge, End, Kin, Lineage, Link};

/// Most characters of Batch's words in a tree.
const REASON_CHARACTERS_MAX: usize = 60;

/// A line of the tree, and what hangs on it.
struct Branch {
    text: String,
    branches: Vec<Branch>,
}

impl Branch {
    fn leaf(text: impl Into<String>) -> Self {
        Self { text: text.into(), branches: Vec::new() }
    }

    /// The lines, each with what leads to it.
    fn draw(&self, lead: &str, lines: &mut Vec<String>) {
        for (number, branch) in self.branches.iter().enumerate() {
            let is_last = number + 1 == self.branches.len();
            let (fork, on) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            lines.push(format!("{lead}{fork}{}", shown(&branch.text)));
            branch.draw(&format!("{lead}{on}"), lines);
        }
    }
}

/// The tree of the job that was asked after: its attempts, where it comes from, who needs it.
#[must_use]
pub fn tree(lineage: &Lineage) -> String {
    let Some(kin) = lineage.jobs.get(&lineage.asked) else { return String::new() };
    let mut seen = BTreeSet::from([lineage.asked]);
    let mut branches = attempts(kin, lineage.now_ms);
    for (heading, way) in [
        ("depends on", Way::Up(Link::DependsOn)),
        ("comes from (parent-job-id)", Way::Up(Link::ParentJobId)),
        ("needed by", Way::Down),
    ] {
        let kin = relatives(lineage, lineage.asked, way, &mut seen);
        if !kin.is_empty() {
            branches.push(Branch { text: heading.to_owned(), branches: kin });
        }
    }
    let root = Branch { text: line(kin, lineage.asked), branches };
    let mut lines = vec![shown(&root.text)];
    root.draw("", &mut lines);
    lines.join("\n")
}

/// In which direction a tree is followed.
#[derive(Clone, Copy)]
enum Way {
    /// To where it comes from; the first step by this link, the others by any.
    Up(Link),
    /// To those that need it.
    Down,
}

/// What hangs on a job. A job that stands in the tree already is named, and not followed again.
fn relatives(lineage: &Lineage, of: JobId, way: Way, seen: &mut BTreeSet<JobId>) -> Vec<Branch> {
    let is_next = |edge: &&Edge| match way {
        Way::Up(link) => edge.child == of && edge.by == link,
        Way::Down => edge.parent == End::Job(of) && edge.by == Link::DependsOn,
    };
    let mut branches = Vec::new();
    for edge in lineage.edges.iter().filter(is_next) {
        let next = match (way, &edge.parent) {
            (Way::Down, _) => edge.child,
            (Way::Up(_), End::Job(parent)) => *parent,
            (Way::Up(_), End::Other(given)) => {
                branches.push(Branch::leaf(format!("{given}, not a job of Osprey")));
                continue;
            }
        };
        branches.push(relative(lineage, next, way, seen));
    }
    branches
}

fn relative(lineage: &Lineage, id: JobId, way: Way, seen: &mut BTreeSet<JobId>) -> Branch {
    let Some(kin) = lineage.jobs.get(&id) else {
        let why = if lineage.is_cut { "not shown" } else { "not on record" };
        return Branch::leaf(format!("{id}, {why}"));
    };
    let text = line(kin, id);
    if !seen.insert(id) {
        return Branch::leaf(format!("{text}, shown above"));
    }
    let branches = match way {
        Way::Down => relatives(lineage, id, way, seen),
        Way::Up(_) => [Link::DependsOn, Link::ParentJobId]
            .into_iter()
            .flat_map(|link| relatives(lineage, id, Way::Up(link), seen))
            .collect(),
    };
    Branch { text, branches }
}

/// `train-7  running  production 950  8 GPUs  2 attempts  (ID)`
fn line(kin: &Kin, id: JobId) -> String {
    let Job { name, state, tier, priority, gpus, attempt, .. } = &kin.job;
    let mut text = format!("{name}  {}", state.as_str());
    if !tier.as_str().is_empty() {
        text.push_str(&format!("  {tier} {priority}{}  {}", lent(kin), counted(u64::from(*gpus), "GPU")));
    }
    if *attempt > 1 {
        text.push_str(&format!("  {}", counted(u64::from(*attempt), "attempt")));
    }
    if let Some(end) = &kin.job.end {
        text.push_str(&format!("  {}", end.code));
    }
    format!("{text}  ({id})")
}

/// `, lent 1150`, for a job that a more urgent one waits for.
fn lent(kin: &Kin) -> String {
    kin.lent.filter(|lent| lent.priority > kin.job.priority).map_or_else(String::new, |lent| {
        let path = if lent.critical_path_ms > 0 {
            format!(", {} of work behind it", short(i64::try_from(lent.critical_path_ms).unwrap_or(i64::MAX)))
        } else {
            String::new()
        };
        format!(", lent {}{path}", lent.priority)
    })
}

fn attempts(kin: &Kin, now_ms: i64) -> Vec<Branch> {
    let ended = kin.attempts.iter().map(|attempt| Branch::leaf(attempt_line(attempt)));
    let job = &kin.job;
    let running = job.run.iter().map(|run| {
        let since = run.started_at.map_or_else(
            || "in Batch, not started".to_owned(),
            |started| format!("runs for {}", short(now_ms - started)),
        );
        Branch::leaf(format!("attempt {}  {since}  (Batch {})", job.attempt, run.id))
    });
    ended.chain(running).collect()
}

fn attempt_line(attempt: &Attempt) -> String {
    let Attempt { number, batch_job_id, started_at, stopped_at, end_class, reason, exit_code, then, .. } = attempt;
    let ran =
        started_at.map_or_else(|| "never started".to_owned(), |started| format!("ran {}", short(stopped_at - started)));
    let code = exit_code.map(|code| format!(" {code}")).unwrap_or_default();
    let words = if reason.is_empty() { String::new() } else { format!(": {}", cut(reason, REASON_CHARACTERS_MAX)) };
    format!("attempt {number}  {ran}  {}{code}{words}  then {then}  (Batch {batch_job_id})", end_class.as_str())
}

/// Jobs and edges as JSON.
#[must_use]
pub fn document(lineage: &Lineage) -> Value {
    json!({
        "job": lineage.asked,
        "jobs": lineage.jobs.values().map(kin).collect::<Vec<_>>(),
        "edges": lineage.edges.iter().map(edge).collect::<Vec<_>>(),
        "is_cut": lineage.is_cut,
    })
}

fn kin(kin: &Kin) -> Value {
    let mut document = summary(&kin.job);
    let attempt = |attempt: &Attempt| {
        json!({
            "number": attempt.number,
            "batch_job_id": attempt.batch_job_id,
            "started_at": attempt.started_at.map(rfc3339),
            "stopped_at": rfc3339(attempt.stopped_at),
            "end_class": attempt.end_class,
            "exit_code": attempt.exit_code,
            "reason": attempt.reason,
            "then": attempt.then,
        })
    };
    let more = json!({
        "lent_priority": kin.lent.map(|lent| lent.priority).filter(|priority| *priority > 0),
        "critical_path_ms": kin.lent.map(|lent| lent.critical_path_ms),
        "attempts": kin.attempts.iter().map(attempt).collect::<Vec<_>>(),
    });
    if let (Value::Object(document), Value::Object(more)) = (&mut document, more) {
        document.extend(more);
    }
    document
}

fn edge(edge: &Edge) -> Value {
    let Edge { parent, child, by } = edge;
    let parent = match parent {
        End::Job(id) => id.to_string(),
        End::Other(given) => given.clone(),
    };
    json!({ "parent": parent, "child": child, "by": by.as_str() })
}

#[cfg(test)]
mod tests {
    use osprey_model::id::MessageId;
    use osprey_model::job::JobState;
    use osprey_scheduler::lending::Lent;

    use super::*;

    fn id(number: u128) -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(number))
    }

    fn kin(number: u128, name: &str, state: JobState) -> (JobId, Kin) {
        let job = Job {
            name: name.to_owned(),
            state,
            tier: "production".into(),
            priority: 900,
            gpus: 8,
            ..Job::new(id(number), MessageId::new(name), 0)
        };
        (id(number), Kin { job, attempts: Vec::new(), lent: None })
    }

    fn edge_of(parent: End, child: u128) -> Edge {
        Edge { parent, child: id(child), by: Link::DependsOn }
    }

    #[test]
    fn a_job_stands_between_what_it_needs_and_what_needs_it_and_no_job_is_followed_twice() {
        let mut jobs: std::collections::BTreeMap<JobId, Kin> = [
            kin(1, "fetch", JobState::Succeeded),
            kin(2, "left", JobState::Succeeded),
            kin(3, "right", JobState::Succeeded),
            kin(4, "train", JobState::Queued),
            kin(5, "evaluate", JobState::Waiting),
        ]
        .into();
        if let Some(train) = jobs.get_mut(&id(4)) {
            train.lent = Some(Lent { priority: 1150, critical_path_ms: 60_000 });
        }
        let edges = vec![
            edge_of(End::Job(id(2)), 4),
            edge_of(End::Job(id(3)), 4),
            edge_of(End::Other("b-7".to_owned()), 4),
            edge_of(End::Job(id(1)), 2),
            edge_of(End::Job(id(1)), 3),
            edge_of(End::Job(id(4)), 5),
        ];
        let lineage = Lineage { asked: id(4), jobs, edges, is_cut: false, now_ms: 0 };
        let text = tree(&lineage);
        let short: Vec<&str> = text.lines().map(|line| line.split("  (0").next().unwrap_or_default()).collect();
        let want = [
            "train  queued  production 900, lent 1150, 1m00s of work behind it  8 GPUs",
            "├─ depends on",
            "│  ├─ left  succeeded  production 900  8 GPUs",
            "│  │  └─ fetch  succeeded  production 900  8 GPUs",
            "│  ├─ right  succeeded  production 900  8 GPUs",
            "│  │  └─ fetch  succeeded  production 900  8 GPUs",
            "│  └─ b-7, not a job of Osprey",
            "└─ needed by",
            "   └─ evaluate  waiting  production 900  8 GPUs",
        ];
        assert_eq!(short, want);
        assert!(text.lines().nth(5).is_some_and(|line| line.ends_with(", shown above")), "{text}");
    }
}

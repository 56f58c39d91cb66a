//! Watches every write of a job's state as it happens, by a table of edges of its own.

use std::collections::{BTreeMap, BTreeSet};

use osprey_ports::{Item, Write};

/// What the state items said of one job.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// The state.
    pub state: String,
    /// The message that it came with.
    pub message: String,
    /// The attempt's number.
    pub attempt: u64,
    /// Whether a person's wish to stop it is noted.
    pub stop: bool,
    /// Every change of state.
    pub edges: Vec<Edge>,
}

/// A change of state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// When.
    pub at: i64,
    /// From which state.
    pub from: String,
    /// To which.
    pub to: String,
    /// The attempt's number after it.
    pub attempt: u64,
    /// Whether a person's wish to stop it was noted before.
    pub stop: bool,
}

/// A change that somebody may want to react to.
#[derive(Clone, Debug)]
pub enum Moment {
    /// A job is in a new state.
    Job(String, String),
    /// A dead letter was written.
    Letter(String),
}

/// What was seen of all jobs and dead letters.
#[derive(Default)]
pub struct Observer {
    /// Jobs by id.
    pub jobs: BTreeMap<String, Track>,
    /// Times at which each dead letter died.
    pub deaths: BTreeMap<String, BTreeSet<u64>>,
    /// Dead letters of which it isn't known yet where they stay, or of which nobody was told.
    pub under_way: BTreeSet<String>,
    /// The first rule that was broken.
    pub violation: Option<String>,
}

/// The edges of the lifecycle, as `docs/lifecycle.md` has them.
const EDGES: [(&str, &[&str]); 10] = [
    ("", &["waiting", "queued", "refused"]),
    ("held", &["queued", "waiting", "failed"]),
    ("waiting", &["queued", "held", "failed", "refused"]),
    ("queued", &["claimed", "held", "failed", "dead", "submitted"]),
    ("claimed", &["queued", "submitted", "failed", "dead", "held"]),
    ("submitted", &["running", "queued", "held", "succeeded", "failed", "dead"]),
    ("running", &["queued", "held", "succeeded", "failed", "dead"]),
    ("failed", &["queued", "waiting"]),
    ("dead", &["queued", "waiting"]),
    ("succeeded", &[]),
];

/// Every edge: from, to.
fn edges() -> impl Iterator<Item = (&'static str, &'static str)> {
    EDGES.iter().flat_map(|(from, to)| to.iter().map(move |to| (*from, *to)))
}

/// Edges that jobs took: a bit for each, in the order of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked(u64);

impl Walked {
    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn take(&mut self, from: &str, to: &str) {
        let at = edges().position(|edge| edge == (from, to));
        self.0 |= at.map_or(0, |at| 1 << at);
    }

    /// The edges that no job took.
    #[must_use]
    pub fn left(self) -> Vec<String> {
        let left = edges().enumerate().filter(|(at, _)| self.0 & (1 << at) == 0);
        left.map(|(_, (from, to))| if from.is_empty() { to.to_owned() } else { format!("{from} to {to}") }).collect()
    }
}

/// Whether a state is an end.
#[must_use]
pub fn is_final(state: &str) -> bool {
    matches!(state, "succeeded" | "failed" | "refused" | "dead")
}

impl Observer {
    /// The edges that jobs took.
    #[must_use]
    pub fn walked(&self) -> Walked {
        let mut walked = Walked::default();
        for edge in self.jobs.values().flat_map(|job| &job.edges) {
            walked.take(&edge.from, &edge.to);
        }
        walked
    }

    /// Looks at writes that were made.
    pub fn see(&mut self, writes: &[Write], now: i64) -> Vec<Moment> {
        let puts = writes.iter().filter_map(|write| match write {
            Write::Put { item, .. } if item.key.sort == "STATE" => Some(item),
            _ => None,
        });
        puts.filter_map(|item| self.state(item, now)).collect()
    }

    fn state(&mut self, item: &Item, now: i64) -> Option<Moment> {
        if let Some(letter) = item.key.partition.strip_prefix("DEAD#") {
            let died_at = number(&item.body, "died_at").unwrap_or(0);
            self.deaths.entry(letter.to_owned()).or_default().insert(died_at);
            let is_message = item.body.contains("\"kind\":{\"message\"");
            let is_known = ["\"arrived\":true", "\"checked\":true"].iter().any(|text| item.body.contains(text));
            let is_untold = ["\"status\":\"open\"", "\"told\":false"].iter().all(|text| item.body.contains(text));
            if (is_message && !is_known) || is_untold {
                self.under_way.insert(letter.to_owned());
            } else {
                self.under_way.remove(letter);
            }
            return Some(Moment::Letter(letter.to_owned()));
        }
        let job = item.key.partition.strip_prefix("JOB#")?;
        let to = text(&item.body, "state").unwrap_or_default();
        // Records have it behind the state: there the way to it is short.
        let rest = behind(&item.body, "state").filter(|rest| rest.len() > to.len());
        let attempt = rest.and_then(|rest| number(rest, "attempt")).or_else(|| number(&item.body, "attempt"));
        let attempt = attempt.unwrap_or(0);
        if !self.jobs.contains_key(job) {
            self.jobs.insert(job.to_owned(), Track::default());
        }
        let track = self.jobs.get_mut(job)?;
        let (from, stop) = (std::mem::replace(&mut track.state, to.to_owned()), track.stop);
        if track.message.is_empty() {
            track.message = text(&item.body, "message").unwrap_or_default().to_owned();
        }
        let before = std::mem::replace(&mut track.attempt, attempt);
        track.stop = item.body.contains("\"stop\":{");
        if from == to && attempt == before {
            return None;
        }
        let edge = Edge { at: now, from, to: to.to_owned(), attempt, stop };
        let broken = broken(job, &edge, before);
        track.edges.push(edge);
        self.violation = self.violation.take().or(broken);
        Some(Moment::Job(job.to_owned(), to.to_owned()))
    }
}

/// The rule that a change breaks.
fn broken(job: &str, edge: &Edge, before: u64) -> Option<String> {
    let Edge { from, to, attempt, .. } = edge;
    let allowed = EDGES.iter().find(|(known, _)| known == from).map(|(_, to)| *to).unwrap_or_default();
    if !allowed.contains(&to.as_str()) {
        return Some(format!("job {job} went from `{from}` to `{to}`, which is no edge of the lifecycle"));
    }
    let want = match (from.as_str(), to.as_str()) {
        ("queued", "claimed" | "submitted") => before + 1,
        ("claimed", "submitted") => before,
        // The attempt was never made.
        ("claimed", _) => before.saturating_sub(1),
        _ => before,
    };
    (*attempt != want)
        .then(|| format!("job {job} went from `{from}` to `{to}` with attempt {attempt} where {want} belongs"))
}

/// The text of a member of a JSON object that was written by a machine, without escapes. Reading the whole of each
/// write would take longer than everything else.
#[must_use]
pub fn text<'a>(body: &'a str, member: &str) -> Option<&'a str> {
    let after = behind(body, member)?.strip_prefix('"')?;
    after.split_once('"').map(|(text, _)| text)
}

/// The number of a member, the same way.
#[must_use]
pub fn number(body: &str, member: &str) -> Option<u64> {
    let after = behind(body, member)?;
    let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// What follows the name of a member and its colon, where it stands first.
fn behind<'a>(body: &'a str, member: &str) -> Option<&'a str> {
    body.match_indices(member).find_map(|(at, _)| {
        let is_name = body.get(..at).is_some_and(|before| before.ends_with('"'));
        body.get(at + member.len()..).filter(|_| is_name)?.strip_prefix("\":")
    })
}

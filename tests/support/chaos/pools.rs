//! Watches the rows of pools as they are written, by rules of its own: a job's place in line and what it holds are what
//! its record says, no two plans of a pool interleave, and no job of a pool's line is claimed but under its plan.

use std::collections::{BTreeMap, BTreeSet};

use osprey_ports::{Item, Key, Write};

use super::observer::{number, text};
use super::store::key_of;

/// What was seen.
#[derive(Default)]
pub struct Pools {
    /// Rows of each job, by key, with their bodies.
    rows: BTreeMap<String, BTreeMap<(String, String), String>>,
    /// The number of each pool's plan.
    plans: BTreeMap<String, u64>,
    /// Plans that were made.
    pub plans_made: u64,
    /// Claims that were made under one.
    pub claims: u64,
    /// Jobs that went from the line of one pool to that of another.
    pub moves: u64,
    /// Jobs that are noted to wait for others, with their numbers.
    waits: BTreeMap<String, u64>,
}

impl Pools {
    /// Looks at the writes of one transaction; the rule that they break, if they break one.
    pub fn see(&mut self, writes: &[Write]) -> Option<String> {
        let states: Vec<&Item> = writes.iter().filter_map(state_of_a_job).collect();
        let moved = self.move_rows(writes);
        let stray = moved.into_iter().find(|job| !states.iter().any(|item| item.key.partition == format!("JOB#{job}")));
        let stray = stray.map(|job| format!("a row of job {job} moved without its record"));
        self.note_waits(writes);
        stray
            .or_else(|| states.iter().find_map(|item| self.drifted(item)))
            .or_else(|| states.iter().find_map(|item| self.waits_wrongly(item)))
            .or_else(|| self.interleaved(writes, &states))
    }

    /// Notes rows that were put or dropped; the jobs that they are of.
    fn move_rows(&mut self, writes: &[Write]) -> BTreeSet<String> {
        let mut moved = BTreeSet::new();
        let line = |write: &&Write| key_of(write).partition.starts_with("LINE#");
        let left = writes.iter().filter(|write| matches!(write, Write::Delete { .. })).find(line);
        let came = writes.iter().filter(|write| matches!(write, Write::Put { .. })).find(line);
        if let (Some(left), Some(came)) = (left, came) {
            self.moves += u64::from(key_of(left).partition != key_of(came).partition);
        }
        for write in writes {
            let Some(job) = row_of(key_of(write)) else { continue };
            let rows = self.rows.entry(job.to_owned()).or_default();
            let key = key_of(write);
            let place = (key.partition.clone(), key.sort.clone());
            match write {
                Write::Put { item, .. } => drop(rows.insert(place, item.body.clone())),
                Write::Delete { .. } => drop(rows.remove(&place)),
                _ => continue,
            }
            moved.insert(job.to_owned());
        }
        moved
    }

    /// Notes who is said to wait for others.
    fn note_waits(&mut self, writes: &[Write]) {
        for write in writes {
            let key = key_of(write);
            let Some((_, job)) = key.sort.split_once('#').filter(|_| key.partition == "WAITS") else { continue };
            match write {
                Write::Put { item, .. } => {
                    let priority = number(&item.body, "priority").unwrap_or(u64::MAX);
                    self.waits.insert(job.to_owned(), priority);
                }
                Write::Delete { .. } => drop(self.waits.remove(job)),
                _ => {}
            }
        }
    }

    /// Where a job waits and isn't said to, or the other way round.
    fn waits_wrongly(&self, item: &Item) -> Option<String> {
        let job = item.key.partition.strip_prefix("JOB#")?;
        let waits = text(&item.body, "state") == Some("waiting");
        let wanted = if waits { number(&item.body, "priority").or(Some(0)) } else { None };
        let said = self.waits.get(job).copied();
        (said != wanted).then(|| format!("job {job} is said to wait with {said:?} where its record wants {wanted:?}"))
    }

    /// Where a job's rows aren't what its record says.
    fn drifted(&self, item: &Item) -> Option<String> {
        let job = item.key.partition.strip_prefix("JOB#")?;
        let empty = BTreeMap::new();
        let rows = self.rows.get(job).unwrap_or(&empty);
        let wanted = wanted(job, &item.body);
        if rows.keys().ne(wanted.as_ref()) {
            return Some(format!("job {job} has the rows {:?} where its record wants {wanted:?}", rows.keys()));
        }
        let members = ["priority", "gpus", "not_before", "started_at"];
        let (_, row) = rows.iter().next()?;
        let is_line = wanted.is_some_and(|(partition, _)| partition.starts_with("LINE#"));
        let counts = |member: &&&str| if is_line { **member != "started_at" } else { **member != "not_before" };
        let differs = members.iter().filter(counts).find(|member| number(row, member) != number(&item.body, member));
        differs.map(|member| format!("the row of job {job} has another `{member}` than its record"))
    }

    /// Where a plan isn't the next of its pool, a step isn't of the pool's plan, or a claim has no plan.
    fn interleaved(&mut self, writes: &[Write], states: &[&Item]) -> Option<String> {
        let claimed = states.iter().filter(|item| is_claimed_from_the_line(item, writes));
        let mut pools: BTreeSet<&str> = claimed.filter_map(|item| text(&item.body, "pool")).collect();
        for write in writes {
            let Write::Put { item, .. } = write else { continue };
            if item.key.partition != "POOLS" {
                continue;
            }
            let pool = item.key.sort.as_str();
            let plan = number(&item.body, "plan").unwrap_or(0);
            let known = self.plans.get(pool).copied().unwrap_or(0);
            let is_step = pools.remove(pool);
            let wanted = if is_step { known } else { known + 1 };
            if plan != wanted {
                return Some(format!("plan {plan} of pool {pool} acted where plan {known} is the pool's"));
            }
            self.plans_made += u64::from(!is_step);
            self.claims += u64::from(is_step);
            self.plans.insert(pool.to_owned(), plan);
        }
        let left = pools.into_iter().next();
        left.map(|pool| format!("a job of the line of pool {pool} was claimed without a plan"))
    }
}

fn state_of_a_job(write: &Write) -> Option<&Item> {
    match write {
        Write::Put { item, .. } if item.key.sort == "STATE" && item.key.partition.starts_with("JOB#") => Some(item),
        _ => None,
    }
}

/// The job that a row is of.
fn row_of(key: &Key) -> Option<&str> {
    if key.partition.starts_with("LINE#") {
        return key.sort.rsplit('#').next();
    }
    key.sort.strip_prefix("HOLD#").filter(|_| key.partition.starts_with("POOL#"))
}

/// The row that a record wants.
fn wanted(job: &str, body: &str) -> Option<(String, String)> {
    let member = |name| text(body, name).unwrap_or_default();
    if !body.contains("\"scheduled\":true") {
        return None;
    }
    match member("state") {
        "queued" => {
            let behind = 9999 - number(body, "priority").unwrap_or(0);
            let since = number(body, "created_at").unwrap_or(0);
            let place = if body.contains("\"aged\":true") { "!".to_owned() } else { format!("{behind:04}") };
            Some((format!("LINE#{}", member("pool")), format!("{}#{place}#{since:013}#{job}", member("tier"))))
        }
        "claimed" | "submitted" | "running" => Some((format!("POOL#{}", member("pool")), format!("HOLD#{job}"))),
        _ => None,
    }
}

/// Whether a job is claimed that stood in line. A wish to stop a claimed job changes its record too, and takes nothing.
fn is_claimed_from_the_line(item: &Item, writes: &[Write]) -> bool {
    let job = item.key.partition.strip_prefix("JOB#");
    let leaves = |write: &Write| match write {
        Write::Delete { key, .. } => key.partition.starts_with("LINE#") && row_of(key) == job,
        _ => false,
    };
    let is_scheduled = item.body.contains("\"scheduled\":true");
    text(&item.body, "state") == Some("claimed") && is_scheduled && writes.iter().any(leaves)
}

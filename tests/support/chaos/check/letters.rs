//! Refused and dead jobs can be seen, and a person is told of each dead letter, once for each cause.

use std::collections::{BTreeMap, BTreeSet};

use super::super::world::World;
use super::table::{Table, number, text};

/// Checks listings, dead letters and notices.
///
/// # Errors
/// The first rule that doesn't hold.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    if let Some((id, _)) = table.jobs.iter().find(|(_, (_, is_listed))| !is_listed) {
        return Err(format!("job {id} is in no listing"));
    }
    if let Some((id, _)) = table.letters.iter().find(|(_, (_, is_listed))| !is_listed) {
        return Err(format!("dead letter {id} is in no listing"));
    }
    if let Some(id) = table.jobs.keys().find(|id| !table.records.contains(*id)) {
        return Err(format!("the message of job {id} is not kept"));
    }
    dead_jobs(table)?;
    told(world, table)
}

fn dead_jobs(table: &Table) -> Result<(), String> {
    let dead = table.jobs.iter().filter(|(_, (job, _))| text(job, "state") == "dead");
    for (id, _) in dead {
        let status = table.letters.get(id).map(|(letter, _)| text(letter, "status"));
        if !matches!(status.as_deref(), Some("open" | "discarded")) {
            return Err(format!("job {id} is dead, and its dead letter is {status:?}"));
        }
    }
    Ok(())
}

fn told(world: &World, table: &Table) -> Result<(), String> {
    let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for told in &world.told {
        let (letter, cause) = told.key.split_once(' ').unwrap_or((&told.key, ""));
        keys.entry(letter).or_default().insert(cause);
    }
    for (id, (letter, _)) in &table.letters {
        let causes = keys.get(id.as_str());
        let died_at = number(letter, "died_at").to_string();
        let is_told = causes.is_some_and(|causes| causes.iter().any(|cause| cause.ends_with(&died_at)));
        if text(letter, "status") == "open" && !is_told {
            return Err(format!("nobody was told of dead letter {id}"));
        }
        let deaths = world.observer.deaths.get(id).map_or(0, BTreeSet::len);
        if causes.map_or(0, BTreeSet::len) > deaths {
            return Err(format!("dead letter {id} died {deaths} times and was told of more often"));
        }
    }
    Ok(())
}

//! How many jobs a minute are let in of one team: the rest of a flood waits for minutes to come, and everybody else's jobs
//! go past it.
//!
//! | partition | sort | what |
//! |---|---|---|
//! | `RATE#team` | `minute` | how many of its jobs may start from that minute on: a counter under the policy's number |
//!
//! A job takes its place in the transaction that records it, so that two functions at once can't let in one too many. Only
//! where an identity vouches for its teams does a team's name count; else a sender could call each job another team's, and
//! the sender counts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::sender::Sender;
use osprey_policy::identity::Identity;
use osprey_ports::{Key, QueryItems, SortQuery, Write};
use serde::Deserialize;

use crate::failure::Failure;
use crate::{key, repository};

/// A minute, in milliseconds.
const MINUTE_MS: i64 = 60_000;
/// Most minutes that a job is put off.
const MINUTES_MAX: i64 = 1_440;
/// How long a counter is kept after its minute, in milliseconds.
const KEPT_MS: i64 = 3_600_000;
const JOBS: &str = "jobs";

/// A place in a minute.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// When the job may start, milliseconds since 1970.
    pub not_before: i64,
    /// The write that takes the place; a conflict when it is gone.
    pub write: Write,
    /// How many jobs a minute there are places for.
    pub per_minute: u32,
}

#[derive(Deserialize)]
struct Counted {
    jobs: i64,
}

/// Whose jobs are counted together.
#[must_use]
pub fn counted_as(identity: &Identity, sender: &Sender, team: Option<&str>) -> String {
    match team.filter(|_| identity.teams.is_some()) {
        Some(team) => format!("TEAM#{team}"),
        None => format!("SENDER#{}#{}", sender.queue, sender.account()),
    }
}

/// The first minute that has a place for one more; `None` where the policy doesn't count.
///
/// # Errors
/// When the store fails; inside, the refusal of a job for which no minute of the next day has a place.
pub async fn place<P: QueryItems + Sync>(
    ports: &P,
    identity: &Identity,
    whose: &str,
    now_ms: i64,
) -> Result<Result<Option<Place>, Refusal>, Failure> {
    let Some(per_minute) = identity.jobs_per_minute else { return Ok(Ok(None)) };
    let this = now_ms.div_euclid(MINUTE_MS);
    let taken = taken(ports, whose, this).await?;
    let is_free = |minute: &i64| taken.get(minute).is_none_or(|jobs| *jobs < i64::from(per_minute));
    let Some(minute) = (this..this.saturating_add(MINUTES_MAX)).find(is_free) else {
        return Ok(Err(too_many(identity, per_minute)));
    };
    let starts_ms = minute.saturating_mul(MINUTE_MS);
    let of = |number: i64| BTreeMap::from([(JOBS.to_owned(), number)]);
    let write = Write::Add {
        key: Key::new(partition(whose), sort(minute)),
        amounts: of(1),
        at_most: of(per_minute.into()),
        expires_at: Timestamp::from_millisecond(starts_ms.saturating_add(MINUTE_MS + KEPT_MS)).ok(),
    };
    Ok(Ok(Some(Place { not_before: starts_ms.max(now_ms), write, per_minute })))
}

fn partition(whose: &str) -> String {
    format!("RATE#{whose}")
}

fn sort(minute: i64) -> String {
    key::sortable(minute.saturating_mul(MINUTE_MS))
}

/// Places taken of this minute and later ones.
async fn taken<P: QueryItems + Sync>(ports: &P, whose: &str, this: i64) -> Result<BTreeMap<i64, i64>, Failure> {
    let mut after = Some(sort(this.saturating_sub(1)));
    let mut taken = BTreeMap::new();
    loop {
        let query = SortQuery { partition: partition(whose), prefix: String::new(), after, limit: 500 };
        let page = ports.query_items(&query).await?;
        for item in &page.items {
            let Ok(starts_ms) = item.key.sort.parse::<i64>() else { continue };
            let Counted { jobs } = repository::read(item)?;
            taken.insert(starts_ms.div_euclid(MINUTE_MS), jobs);
        }
        after = page.items.last().map(|item| item.key.sort.clone());
        if !page.more || after.is_none() {
            return Ok(taken);
        }
    }
}

fn too_many(identity: &Identity, per_minute: u32) -> Refusal {
    let sentence = format!(
        "identity `{}` lets in {per_minute} jobs a minute, and those sent by now take a day; send fewer, or ask whoever keeps the policy for a higher `jobs_per_minute`",
        identity.name
    );
    Refusal::new(ReasonCode::TooManyJobs, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_team_counts_only_where_somebody_vouches_for_it() {
        let sender = Sender::new("submissions", "AROASEARCH:session-7");
        let mut bounded = Identity::anybody();
        bounded.teams = Some(vec!["search".to_owned()]);
        assert_eq!(counted_as(&bounded, &sender, Some("search")), "TEAM#search");
        assert_eq!(counted_as(&Identity::anybody(), &sender, Some("made-up-7")), "SENDER#submissions#AROASEARCH");
        assert_eq!(counted_as(&bounded, &sender, None), "SENDER#submissions#AROASEARCH");
    }
}

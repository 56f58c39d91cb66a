//! The account of a team: what its jobs hold, beside what its closed attempts used.
//!
//! | partition | sort | what |
//! |---|---|---|
//! | `USAGE#team` | `DAY#yyyy-mm-dd` | what closed attempts used on the day ([`crate::usage`]) |
//! | | `GPUS` | GPUs that its jobs hold, by tier: a counter under its caps |
//! | | `HOLD#id` | what one job holds, from its claim to its end |
//!
//! Only jobs whose policy has quotas when they are claimed are counted ([`osprey_model::job::Charge::counted`]). Counter and
//! rows follow from the job record alone, and [`crate::repository`] writes them in the transaction that writes the record, so
//! they can't drift apart from it. A claim adds to the counter under the team's cap, so two pools at once can't break it.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use osprey_model::id::{JobId, PoolName, TierName};
use osprey_model::job::Job;
use osprey_policy::share::{Account, DAY_MS, Held, midnight};
use osprey_ports::{Expect, Item, QueryItems, SortQuery, Write};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{key, repository, usage};

/// Days of an account that are read: five half-lives of a week.
const DAYS: i64 = 35;

/// What one job holds. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRow {
    /// The job.
    pub job: JobId,
    /// Its tier.
    pub tier: TierName,
    /// Its pool.
    pub pool: PoolName,
    /// GPUs: those of one child × children for an array.
    pub gpus: u32,
    /// When it started to run; `None` while it is on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    /// How long it is expected to run, in seconds; 0 when nobody knows.
    #[serde(default)]
    pub expected_seconds: u64,
    /// Whether it goes on beyond its team's quota.
    #[serde(default)]
    pub borrowed: bool,
}

/// The team and what a job holds of its quotas; `None` for one that holds nothing, or isn't counted.
fn held(job: &Job) -> Option<(&str, HeldRow)> {
    let team = job.team.as_deref()?;
    if !job.charge.counted || !job.state.is_dispatched() || job.gpus == 0 {
        return None;
    }
    let needs = job.needs;
    let row = HeldRow {
        job: job.id,
        tier: job.tier.clone(),
        pool: job.pool.clone(),
        gpus: job.gpus,
        started_at: job.run.as_ref().and_then(|run| run.started_at),
        expected_seconds: if needs.expected_seconds > 0 { needs.expected_seconds } else { needs.longest_seconds },
        borrowed: job.charge.borrowed,
    };
    Some((team, row))
}

/// Whether a change makes a job hold something of its team's quotas.
#[must_use]
pub fn takes(before: &Job, after: &Job) -> bool {
    held(before).is_none() && held(after).is_some()
}

/// The writes that move a team's account along with a job's record. What a job takes is added under `most`, where it is
/// given; the counter is the first write.
#[must_use]
pub fn writes(before: Option<&Job>, after: &Job, most: Option<u32>) -> Vec<Write> {
    let (old, new) = (before.and_then(held), held(after));
    let mut writes = Vec::new();
    let mut amounts: BTreeMap<(&str, &TierName), i64> = BTreeMap::new();
    for ((team, row), sign) in old.iter().map(|held| (held, -1)).chain(new.iter().map(|held| (held, 1))) {
        *amounts.entry((team, &row.tier)).or_default() += i64::from(row.gpus) * sign;
    }
    for ((team, tier), amount) in amounts.into_iter().filter(|(_, amount)| *amount != 0) {
        let of = |number: i64| BTreeMap::from([(tier.to_string(), number)]);
        let at_most = most.filter(|_| amount > 0).map(|most| of(most.into())).unwrap_or_default();
        writes.push(Write::Add { key: key::team_gpus(team), amounts: of(amount), at_most, expires_at: None });
    }
    match (old, new) {
        (Some((team, row)), None) => {
            writes.push(Write::Delete { key: key::team_hold(team, row.job), expect: Expect::Any });
        }
        (old, Some((team, row))) if old.as_ref().is_none_or(|(_, old)| *old != row) => {
            let item = Item::new(key::team_hold(team, row.job), repository::json(&row));
            writes.push(Write::Put { item, expect: Expect::Any });
        }
        _ => {}
    }
    writes
}

/// Reads the account of a team: one range of the table, consistently.
///
/// # Errors
/// When the store fails, or an item can't be read.
pub async fn load<P: QueryItems + Sync>(ports: &P, team: &str, now_ms: i64) -> Result<Account, Failure> {
    let first = key::usage(team, &usage::day(midnight(now_ms).saturating_sub(DAYS * DAY_MS)));
    let mut account = Account::default();
    let mut after = Some(first.sort);
    loop {
        // Days sort before holds, and what is older than the first of these isn't read.
        let query = SortQuery { partition: first.partition.clone(), prefix: String::new(), after, limit: 500 };
        let page = ports.query_items(&query).await?;
        for item in &page.items {
            if let Some(starts_ms) = item.key.sort.strip_prefix(key::DAY).and_then(midnight_of) {
                account.days.push(usage::day_of(starts_ms, &repository::read(item)?));
            } else if item.key.sort.starts_with(key::HOLD) {
                account.holds.push(as_held(repository::read(item)?));
            }
        }
        after = page.items.last().map(|item| item.key.sort.clone());
        if !page.more || after.is_none() {
            return Ok(account);
        }
    }
}

fn as_held(row: HeldRow) -> Held {
    Held {
        tier: row.tier,
        gpus: row.gpus,
        started_ms: row.started_at,
        expected_ms: (row.expected_seconds > 0).then(|| row.expected_seconds.saturating_mul(1_000)),
        is_borrowed: row.borrowed,
    }
}

/// When a day began, milliseconds since 1970.
fn midnight_of(day: &str) -> Option<i64> {
    let date: Date = day.parse().ok()?;
    Some(TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?.as_millisecond())
}

/// GPUs that a team's jobs hold, by tier, as the counter has it.
///
/// # Errors
/// When the store fails.
pub async fn gpus<P: osprey_ports::GetItem + Sync>(ports: &P, team: &str) -> Result<BTreeMap<String, i64>, Failure> {
    let item = ports.get_item(&key::team_gpus(team)).await?;
    Ok(item.as_ref().map(repository::read).transpose()?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use osprey_model::id::MessageId;
    use osprey_model::job::{Charge, Claim, JobState, Needs, Run};

    use super::*;

    fn job(state: JobState) -> Job {
        let message = MessageId::new("m-1");
        let run = Run {
            id: "b-1".into(),
            queue: "q".into(),
            submitted_at: 3_100,
            claimed_at: Some(3_000),
            started_at: (state == JobState::Running).then_some(4_000),
            node: None,
        };
        Job {
            state,
            team: Some("search".to_owned()),
            tier: "high".into(),
            pool: "main".into(),
            gpus: 8,
            needs: Needs { longest_seconds: 60, ..Needs::default() },
            charge: Charge { counted: true, ..Charge::default() },
            claim: (state == JobState::Claimed).then(|| Claim { at: 3_000, queue: "q".into(), empty_lists: 0 }),
            run: matches!(state, JobState::Submitted | JobState::Running).then_some(run),
            ..Job::new(JobId::of_message(&message), message, 1_000)
        }
    }

    /// What is added to the counter, under which cap, and what becomes of the row.
    fn told(writes: &[Write]) -> Vec<String> {
        let of = |write: &Write| match write {
            Write::Add { amounts, at_most, .. } => format!("add {amounts:?} at most {at_most:?}"),
            Write::Put { item, .. } => format!("put {}", item.body.contains("started_at")),
            Write::Delete { .. } => "delete".to_owned(),
            Write::Check { .. } => "check".to_owned(),
        };
        writes.iter().map(of).collect()
    }

    #[test]
    fn what_a_job_holds_is_counted_from_its_claim_to_its_end_and_once() {
        use JobState::{Claimed, Held, Queued, Running, Submitted, Succeeded};
        let add = |gpus: i64| format!("add {{\"high\": {gpus}}} at most {{}}");
        for (before, after, want) in [
            (None, Queued, vec![]),
            (Some(Queued), Claimed, vec![add(8), "put false".to_owned()]),
            (Some(Claimed), Submitted, vec![]),
            (Some(Submitted), Running, vec!["put true".to_owned()]),
            (Some(Running), Running, vec![]),
            (Some(Running), Succeeded, vec![add(-8), "delete".to_owned()]),
            (Some(Claimed), Queued, vec![add(-8), "delete".to_owned()]),
            (Some(Queued), Submitted, vec![add(8), "put false".to_owned()]),
            (Some(Queued), Held, vec![]),
        ] {
            let before = before.map(job);
            assert_eq!(told(&writes(before.as_ref(), &job(after), None)), want, "{before:?} to {after:?}");
        }
    }

    #[test]
    fn only_what_is_taken_is_under_the_cap() {
        let of = |before, after| told(&writes(Some(&job(before)), &job(after), Some(16)));
        assert_eq!(of(JobState::Queued, JobState::Claimed)[0], "add {\"high\": 8} at most {\"high\": 16}");
        assert_eq!(of(JobState::Running, JobState::Failed)[0], "add {\"high\": -8} at most {}");
    }

    #[test]
    fn a_job_of_no_team_without_gpus_or_of_a_policy_without_quotas_isnt_counted() {
        let claimed = job(JobState::Claimed);
        for job in [
            Job { team: None, ..claimed.clone() },
            Job { gpus: 0, ..claimed.clone() },
            Job { charge: Charge::default(), ..claimed.clone() },
        ] {
            assert_eq!(writes(Some(&self::job(JobState::Queued)), &job, Some(1)), []);
        }
        assert!(takes(&job(JobState::Queued), &claimed) && !takes(&claimed, &job(JobState::Running)));
    }

    #[test]
    fn a_day_is_read_back_as_its_midnight() {
        assert_eq!(midnight_of("1970-01-02"), Some(DAY_MS));
        assert_eq!(midnight_of("soon"), None);
        assert_eq!(usage::day(midnight_of("2026-11-30").unwrap()), "2026-11-30");
    }
}

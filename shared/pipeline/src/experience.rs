//! What past runs teach about those to come: the newest runs of a definition, of a team, and of a definition by a team;
//! and how good the estimates were that were made of them.
//!
//! | partition | sort | what |
//! |---|---|---|
//! | `RUNS#definition` | `ALL`, `TEAM#team` | the newest runs of a definition, in milliseconds |
//! | `RUNS` | `TEAM#team` | the newest runs of a team |
//! | `ESTIMATES` | how an estimate was known | how such estimates came out |
//!
//! Only pools that hold their jobs ask for estimates, and only their jobs teach. A run that two ends race to note, or
//! whose note is lost, is left out: a quantile of 32 runs is none the worse for it, and nothing waits for an estimate.

use std::collections::BTreeMap;

use osprey_model::definition::JobDefinition;
use osprey_model::end::EndClass;
use osprey_model::id::JobId;
use osprey_model::job::{Attempt, EstimateSource, Job};
use osprey_model::metadata::Metadata;
use osprey_model::request::SubmitJobRequest;
use osprey_policy::estimate::{self, Estimate, Experience, Runs};
use osprey_policy::rules::EstimateRules;
use osprey_ports::{Expect, GetItem, Item, Key, QueryItems, StoreError, Write, WriteItems};

use crate::failure::Failure;
use crate::{dispatch, key, record, repository};

/// Tries of one note before it is left out.
const TRIES_MAX: u32 = 2;

/// The name of a definition, whatever its revision: what a team changes from one revision to the next changes run times
/// less than what it runs at all.
#[must_use]
pub fn definition_name<'n>(request: &'n SubmitJobRequest, definition: Option<&'n JobDefinition>) -> &'n str {
    let given = definition.map_or(request.job_definition.as_str(), |known| known.job_definition_name.as_str());
    let name = given.rsplit_once(":job-definition/").map_or(given, |(_, name)| name);
    match name.rsplit_once(':') {
        Some((name, revision)) if revision.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => name,
    }
}

/// What an estimate is wanted for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The request.
    pub request: &'a SubmitJobRequest,
    /// Its definition, where it is registered.
    pub definition: Option<&'a JobDefinition>,
    /// What it says of itself.
    pub metadata: &'a Metadata,
    /// The job that it comes from.
    pub parent: Option<JobId>,
}

/// How long a job is expected to run. What a job declares needs no reading.
///
/// # Errors
/// When the store fails.
pub async fn expected<P>(ports: &P, rules: &EstimateRules, asked: &Asked<'_>) -> Result<Option<Estimate>, Failure>
where
    P: GetItem + QueryItems + Sync,
{
    if asked.metadata.expected_duration.is_some() {
        return Ok(estimate::expected(rules, asked.metadata, Experience::default()));
    }
    let name = definition_name(asked.request, asked.definition);
    let predecessors = match asked.parent {
        Some(parent) => runs_of_job(ports, parent, name).await?,
        None => None,
    };
    let own = asked.metadata.team.as_deref();
    let (mut definition_of_team, mut team) = (None, None);
    if let Some(own) = own {
        definition_of_team = runs(ports, &key::runs_of_definition(name, Some(own))).await?;
        team = runs(ports, &key::runs_of_team(own)).await?;
    }
    let definition = runs(ports, &key::runs_of_definition(name, None)).await?;
    let experience = Experience {
        predecessors: predecessors.as_ref(),
        definition_of_team: definition_of_team.as_ref(),
        definition: definition.as_ref(),
        team: team.as_ref(),
    };
    Ok(estimate::expected(rules, asked.metadata, experience))
}

async fn runs<P: GetItem + Sync>(ports: &P, key: &Key) -> Result<Option<Runs>, Failure> {
    ports.get_item(key).await?.as_ref().map(repository::read).transpose()
}

/// The runs of a job that ended well, if it ran this definition.
async fn runs_of_job<P>(ports: &P, job: JobId, definition: &str) -> Result<Option<Runs>, Failure>
where
    P: QueryItems + Sync,
{
    let items = repository::all(ports, key::job_partition(job), key::ATTEMPT).await?;
    let mut runs = Runs::default();
    let mut is_any = false;
    for item in &items {
        if let Some(run_ms) = well_ended_ms(&repository::read(item)?) {
            runs.add(run_ms);
            is_any = true;
        }
    }
    if !is_any {
        return Ok(None);
    }
    let request = dispatch::request_of(&record::of_job(ports, job).await?, job)?;
    Ok((definition_name(&request, None) == definition).then_some(runs))
}

fn well_ended_ms(attempt: &Attempt) -> Option<u64> {
    let run_ms = attempt.stopped_at.saturating_sub(attempt.started_at?);
    u64::try_from(run_ms).ok().filter(|_| attempt.end_class == EndClass::Succeeded)
}

/// A run that ended well, by a job as it was before.
#[derive(Clone, Copy, Debug)]
pub struct Ran<'a> {
    /// The job.
    pub job: &'a Job,
    /// How long it ran, milliseconds.
    pub run_ms: u64,
}

/// Takes in a run that ended well, and judges what was expected of it.
///
/// # Errors
/// When the store fails. Whoever calls this has nothing to make up for.
pub async fn learn<P>(ports: &P, ran: Ran<'_>) -> Result<(), Failure>
where
    P: GetItem + QueryItems + WriteItems + Sync,
{
    judge(ports, ran).await?;
    // How long an array runs says how much room it found, and not how long a job like it takes.
    if ran.job.needs.children > 1 {
        return Ok(());
    }
    let request = dispatch::request_of(&record::of_job(ports, ran.job.id).await?, ran.job.id)?;
    let name = definition_name(&request, None);
    add(ports, key::runs_of_definition(name, None), ran.run_ms).await?;
    if let Some(team) = ran.job.team.as_deref() {
        add(ports, key::runs_of_definition(name, Some(team)), ran.run_ms).await?;
        add(ports, key::runs_of_team(team), ran.run_ms).await?;
    }
    Ok(())
}

async fn add<P: GetItem + WriteItems + Sync>(ports: &P, key: Key, run_ms: u64) -> Result<(), Failure> {
    for _ in 0..TRIES_MAX {
        let item = ports.get_item(&key).await?;
        let mut runs: Runs = item.as_ref().map(repository::read).transpose()?.unwrap_or_default();
        runs.add(run_ms);
        let expect = item.map_or(Expect::Absent, |item| Expect::Version(item.version));
        let write = Write::Put { item: Item::new(key.clone(), repository::json(&runs)), expect };
        match ports.write_items(&[write]).await {
            Err(StoreError::Conflict { .. }) => {}
            written => return Ok(written?),
        }
    }
    Ok(())
}

/// Estimates that came out.
const JUDGED: &str = "runs";
/// Those that were at most twice as long as the run, and at least half as long.
const WITHIN_TWO: &str = "within_factor_2";
/// Those that the run was longer than.
const LONGER: &str = "ran_longer";

async fn judge<P: WriteItems + Sync>(ports: &P, ran: Ran<'_>) -> Result<(), Failure> {
    let needs = &ran.job.needs;
    let Some(source) = needs.expected_by else { return Ok(()) };
    let expected_ms = needs.expected_seconds.saturating_mul(1_000).max(1);
    // Estimates are whole seconds.
    let run_ms = ran.run_ms.max(1_000);
    let is_within = expected_ms <= run_ms.saturating_mul(2) && run_ms <= expected_ms.saturating_mul(2);
    let amounts = [(JUDGED, true), (WITHIN_TWO, is_within), (LONGER, run_ms > expected_ms)];
    let amounts = amounts.into_iter().map(|(name, counts)| (name.to_owned(), i64::from(counts))).collect();
    let write = Write::Add { key: key::estimates(source), amounts, at_most: BTreeMap::new(), expires_at: None };
    Ok(ports.write_items(&[write]).await?)
}

/// How estimates of one kind came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// How they were known.
    pub source: EstimateSource,
    /// How many.
    pub runs: u64,
    /// Those that were at most twice as long as the run, and at least half as long.
    pub within_factor_2: u64,
    /// Those that the run was longer than.
    pub ran_longer: u64,
}

/// How estimates came out so far, the kinds in order; kinds without any are left out.
///
/// # Errors
/// When the store fails.
pub async fn judged<P: QueryItems + Sync>(ports: &P) -> Result<Vec<Judged>, Failure> {
    let items = repository::all(ports, key::ESTIMATES.to_owned(), "").await?;
    let mut found = Vec::new();
    for source in EstimateSource::ALL {
        let Some(item) = items.iter().find(|item| item.key.sort == source.as_str()) else { continue };
        let counts: BTreeMap<String, i64> = repository::read(item)?;
        let count = |name: &str| counts.get(name).and_then(|count| u64::try_from(*count).ok()).unwrap_or(0);
        found.push(Judged {
            source,
            runs: count(JUDGED),
            within_factor_2: count(WITHIN_TWO),
            ran_longer: count(LONGER),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_known_by_its_name_whatever_its_revision() {
        let request = |definition: &str| {
            let text = format!(r#"{{"jobName":"a","jobDefinition":"{definition}"}}"#);
            serde_json::from_str::<SubmitJobRequest>(&text).unwrap()
        };
        for given in ["train", "train:7", "arn:aws:batch:us-east-1:123456789012:job-definition/train:12"] {
            assert_eq!(definition_name(&request(given), None), "train", "{given}");
        }
    }

    #[test]
    fn only_a_run_that_ended_well_teaches() {
        let attempt = |end_class, started_at| Attempt {
            number: 1,
            batch_job_id: "b".into(),
            queue: "q".into(),
            submitted_at: 0,
            started_at,
            stopped_at: 9_000,
            end_class,
            reason: String::new(),
            exit_code: None,
            inner_retries: 0,
            gpu_ms: 0,
            then: String::new(),
        };
        assert_eq!(well_ended_ms(&attempt(EndClass::Succeeded, Some(2_000))), Some(7_000));
        assert_eq!(well_ended_ms(&attempt(EndClass::HostLost, Some(2_000))), None);
        assert_eq!(well_ended_ms(&attempt(EndClass::Succeeded, None)), None);
    }
}

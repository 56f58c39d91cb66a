//! `osprey jobs`: the jobs on record.

use std::cmp::Reverse;

use clap::{Args, ValueEnum};
use osprey_model::job::{Job, JobState};

use super::{Exit, Place};
use crate::error::CliError;
use crate::filter::{NamePattern, Since, since};
use crate::joined::{Joined, Listed};
use crate::render::job;
use crate::ui::Ui;

/// List jobs, newest first.
///
/// Filters go together: a job is listed that all of them let through. One that may be given several times lets through what
/// any of its values does. WHY says how the last attempt ended, or the job; `osprey why JOB` says why one waits.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey jobs --local
  osprey jobs --local --state running --state queued
  osprey jobs --local --name 'train-*' --team search --since 2h
  osprey jobs --local --open --sort priority --limit 20
  osprey jobs --local --tier production --output json
  osprey jobs --stack osprey --region eu-west-1")]
pub struct JobsArgs {
    #[command(flatten)]
    wanted: Wanted,
    /// In which order; ties by age, newest first
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Order::Newest)]
    sort: Order,
    /// At most so many, the first of that order
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    limit: usize,
    #[command(flatten)]
    place: Place,
}

/// Which jobs.
#[derive(Debug, Args)]
struct Wanted {
    /// Only jobs in this state; may be given several times
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<JobState>,
    /// Only jobs that have not ended
    #[arg(long, conflicts_with = "state")]
    open: bool,
    /// Only jobs of this tier; may be given several times
    #[arg(long, value_name = "TIER")]
    tier: Vec<String>,
    /// Only jobs of this team; may be given several times
    #[arg(long, value_name = "TEAM")]
    team: Vec<String>,
    /// Only jobs of this pool; may be given several times
    #[arg(long, value_name = "POOL")]
    pool: Vec<String>,
    /// Only jobs whose name begins so, or is so with `*` for any text and `?` for one character
    #[arg(long, value_name = "PATTERN")]
    name: Option<String>,
    /// Only jobs that were recorded since: how long ago, such as `2h`, or a time such as `2026-11-30T08:00:00Z`
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Since>,
}

/// Orders of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    /// The newest first.
    Newest,
    /// The oldest first.
    Oldest,
    /// The highest priority first.
    Priority,
    /// The most GPUs first.
    Gpus,
    /// What changed last first.
    Changed,
    /// By name.
    Name,
}

fn state(text: &str) -> Result<JobState, String> {
    let found = JobState::ALL.into_iter().find(|state| state.as_str() == text.to_lowercase());
    found.ok_or_else(|| format!("the states are {}", JobState::ALL.map(JobState::as_str).join(", ")))
}

impl Wanted {
    fn is_match(&self, job: &Job, name: Option<&NamePattern>) -> bool {
        let is_of = |values: &[String], own: &str| values.is_empty() || values.iter().any(|value| value == own);
        (self.state.is_empty() || self.state.contains(&job.state))
            && (!self.open || !job.state.is_final())
            && is_of(&self.tier, job.tier.as_str())
            && is_of(&self.team, job.team.as_deref().unwrap_or_default())
            && is_of(&self.pool, job.pool.as_str())
            && name.is_none_or(|name| name.is_match(&job.name))
    }

    fn is_everything(&self) -> bool {
        let Self { state, open, tier, team, pool, name, since } = self;
        state.is_empty()
            && !open
            && [tier, team, pool].into_iter().all(Vec::is_empty)
            && name.is_none()
            && since.is_none()
    }
}

impl Order {
    fn sort(self, jobs: &mut [Job]) {
        match self {
            Self::Newest => {}
            Self::Oldest => jobs.sort_by_key(|job| (job.created_at, job.id)),
            Self::Priority => jobs.sort_by_key(|job| Reverse(job.priority)),
            Self::Gpus => jobs.sort_by_key(|job| Reverse(job.gpus)),
            Self::Changed => jobs.sort_by_key(|job| Reverse(job.updated_at)),
            Self::Name => jobs.sort_by(|a, b| a.name.cmp(&b.name)),
        }
    }
}

/// Lists.
pub fn jobs(args: &JobsArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let Listed { jobs, more } = listed(args, &joined)?;
    if ui.is_json() {
        ui.json(&jobs.iter().map(job::summary).collect::<Vec<_>>())?;
    } else if !jobs.is_empty() {
        ui.text(&job::list(&jobs, joined.now_ms()))?;
    } else if args.wanted.is_everything() {
        ui.note("no job is on record here");
    } else {
        ui.note("no job on record here is like that");
    }
    let (shown, older) = (jobs.len(), if args.sort == Order::Newest { ", older than these" } else { " than these" });
    match more {
        Some(Some(more)) => {
            ui.note(&format!("{more} more{older} {shown}; `--limit {}` shows all", shown + more));
        }
        Some(None) => ui.note(&format!("there may be more{older} {shown}; `--limit` takes more")),
        None => {}
    }
    say_sent(&joined, ui)?;
    Ok(Exit::Ok)
}

/// The jobs that are wanted. The newest are read until there are enough; any other order has to see all of them first.
fn listed(args: &JobsArgs, joined: &Joined) -> Result<Listed, CliError> {
    let name = args.wanted.name.as_deref().map(NamePattern::new);
    let is_wanted = |job: &Job| args.wanted.is_match(job, name.as_ref());
    let since = args.wanted.since.map(|since| since.at(joined.now_ms()));
    if args.sort == Order::Newest {
        return joined.listed(since, args.limit, is_wanted);
    }
    let Listed { mut jobs, more } = joined.listed(since, joined.sorted_max(), is_wanted)?;
    args.sort.sort(&mut jobs);
    let left_out = jobs.len().saturating_sub(args.limit);
    jobs.truncate(args.limit);
    let more = if more.is_some() { Some(None) } else { Some(Some(left_out)).filter(|_| left_out > 0) };
    Ok(Listed { jobs, more })
}

/// Says which jobs were sent and aren't on record yet.
fn say_sent(joined: &Joined, ui: &mut Ui) -> Result<(), CliError> {
    let sent = joined.sent_jobs()?;
    let Some(first) = sent.first() else { return Ok(()) };
    let what = match sent.len() {
        1 => format!("1 job is sent, and not yet taken in: {} ({})", first.id, first.name),
        count => format!("{count} jobs are sent, and not yet taken in, such as {} ({})", first.id, first.name),
    };
    let way_out = joined.resting()?.map(|command| format!("; `{command}` takes it in")).unwrap_or_default();
    ui.note(&format!("{what}{way_out}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use osprey_model::id::{JobId, MessageId};

    use super::*;

    fn job(name: &str, state: JobState, team: Option<&str>, priority: u32) -> Job {
        let message = MessageId::new(name);
        let team = team.map(str::to_owned);
        Job {
            name: name.to_owned(),
            state,
            team,
            priority,
            tier: "production".into(),
            pool: "main".into(),
            ..Job::new(JobId::of_message(&message), message, i64::from(priority))
        }
    }

    fn everything() -> Wanted {
        let none = Vec::new;
        Wanted { state: none_of(), open: false, tier: none(), team: none(), pool: none(), name: None, since: None }
    }

    fn none_of() -> Vec<JobState> {
        Vec::new()
    }

    #[test]
    fn filters_go_together_and_the_values_of_one_dont() {
        let train = job("train-7", JobState::Running, Some("search"), 900);
        let done = job("train-8", JobState::Succeeded, None, 500);
        let of = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        for (wanted, want) in [
            (everything(), [true, true]),
            (Wanted { open: true, ..everything() }, [true, false]),
            (Wanted { team: of(&["search", "vision"]), ..everything() }, [true, false]),
            (Wanted { pool: of(&["main"]), tier: of(&["critical"]), ..everything() }, [false, false]),
            (Wanted { state: vec![JobState::Running, JobState::Succeeded], ..everything() }, [true, true]),
        ] {
            assert_eq!([&train, &done].map(|job| wanted.is_match(job, None)), want, "{wanted:?}");
        }
        let name = NamePattern::new("*-8");
        assert_eq!([&train, &done].map(|job| everything().is_match(job, Some(&name))), [false, true]);
    }

    #[test]
    fn an_order_keeps_the_newest_first_where_it_says_nothing() {
        let newest = [3, 1, 3].map(|priority| job("j", JobState::Queued, None, priority));
        let mut jobs = newest.to_vec();
        if let [first, _, third] = jobs.as_mut_slice() {
            "a".clone_into(&mut first.name);
            "b".clone_into(&mut third.name);
        }
        Order::Priority.sort(&mut jobs);
        assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["a", "b", "j"]);
        Order::Name.sort(&mut jobs);
        assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["a", "b", "j"]);
        Order::Oldest.sort(&mut jobs);
        assert_eq!(jobs.first().map(|job| job.priority), Some(1));
    }
}

//! What teams use, as a cycle counts it now.

use std::collections::BTreeSet;

use osprey_model::job::Job;
use osprey_pipeline::account;
use osprey_policy::share::Held;

use super::Joined;
use crate::error::CliError;
use crate::render::usage::Used;

impl Joined {
    /// What these teams use; without names every team that the policy names or that has a job on record, by name.
    ///
    /// # Errors
    /// When the store or the policy can't be read.
    pub fn usage(&self, teams: &[String]) -> Result<Vec<Used>, CliError> {
        let (policy, _, _) = self.deciding(None)?;
        let now_ms = self.now_ms();
        // What running jobs hold is counted only where the policy asks for it.
        let counts = policy.asks_of_teams();
        let jobs = if teams.is_empty() || !counts { self.jobs()? } else { Vec::new() };
        let mut names: BTreeSet<String> = teams.iter().cloned().collect();
        if names.is_empty() {
            names.extend(policy.quota().teams.keys().cloned());
            names.extend(jobs.iter().filter_map(|job| job.team.clone()));
        }
        let mut used = Vec::new();
        for team in names {
            let mut account = self.run(account::load(&self.home, &team, now_ms))?;
            if !counts {
                let of_team = jobs.iter().filter(|job| job.team.as_deref() == Some(team.as_str()));
                account.holds = of_team.filter(|job| job.state.is_dispatched()).map(held).collect();
            }
            let team_use = account.team_use(&team, &policy, now_ms);
            used.push(Used { team, team_use });
        }
        Ok(used)
    }
}

fn held(job: &Job) -> Held {
    Held {
        tier: job.tier.clone(),
        gpus: job.gpus,
        started_ms: job.run.as_ref().and_then(|run| run.started_at),
        expected_ms: (job.needs.expected_seconds > 0).then(|| job.needs.expected_seconds.saturating_mul(1_000)),
        is_borrowed: job.charge.borrowed,
    }
}

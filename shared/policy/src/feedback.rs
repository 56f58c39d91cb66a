//! What people and running steps say of a number, after the rules: bounded, and in an account's step of its own.
//!
//! A step of a graph of jobs may report that what comes after it matters more or less. A storm of reports must not make a
//! queue flutter, so a report moves the number by a step at most, and one that is too small or too soon moves nothing.

use std::collections::BTreeMap;

use osprey_model::decision::{Derivation, FactValue, Step};
use osprey_model::job::{Job, Reported};

use crate::identity::Identity;
use crate::policy::Policy;
use crate::rules::FeedbackRules;

/// What was said of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// What the newest step before it reported.
    pub reported: Option<Reported>,
    /// Whether a person moved it to the front of its tier.
    pub topped: bool,
}

impl Said {
    /// What was said of a job by its record.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        Self { reported: job.reported, topped: job.topped.is_some() }
    }
}

/// Why a report moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmoved {
    /// A newer one is known.
    Older,
    /// The last one is too young.
    TooSoon {
        /// How long reports rest, in milliseconds.
        pause_ms: u64,
    },
    /// It differs too little from the last one.
    TooSmall {
        /// Points that a report must differ by.
        least: u32,
    },
    /// The policy takes no reports.
    Off,
}

impl FeedbackRules {
    /// What stands after a report of `points`, sent at a time in milliseconds since 1970, on top of what stood before.
    ///
    /// # Errors
    /// Why nothing changes.
    pub fn after(&self, before: Option<Reported>, points: i32, at: i64) -> Result<Reported, Unmoved> {
        if self.most == 0 {
            return Err(Unmoved::Off);
        }
        if let Some(before) = before {
            if before.at > at {
                return Err(Unmoved::Older);
            }
            if before.at.saturating_add_unsigned(self.pause_ms) > at {
                return Err(Unmoved::TooSoon { pause_ms: self.pause_ms });
            }
        }
        let stood = before.map_or(0, |before| i64::from(before.points));
        let wanted = i64::from(points).clamp(-i64::from(self.most), i64::from(self.most));
        if wanted.abs_diff(stood) < u64::from(self.least).max(1) {
            return Err(Unmoved::TooSmall { least: self.least });
        }
        let points = stood + (wanted - stood).clamp(-i64::from(self.step), i64::from(self.step));
        Ok(Reported { points: i32::try_from(points).unwrap_or(0), at })
    }
}

impl Policy {
    /// A derivation moved by what was said of its job. It never goes past what the sender's identity or the job's own
    /// `priority-class` reaches, and a job of the preemptible tier stays where it is.
    #[must_use]
    pub fn moved(
        &self,
        mut derivation: Derivation,
        said: Said,
        identity: &Identity,
        class: Option<&str>,
    ) -> Derivation {
        let is_preemptible = self.preemptible_tier().is_some_and(|tier| tier.name == derivation.tier);
        if is_preemptible {
            return derivation;
        }
        if let Some(reported) = said.reported.filter(|reported| reported.points != 0) {
            let limits = self.derive_rules();
            let reach = [identity.tier_at_most.as_ref().map(osprey_model::id::TierName::as_str), class];
            let most = reach.into_iter().flatten().filter_map(|tier| self.highest_of(tier)).min();
            let (floor, ceiling) = (i64::from(limits.floor), i64::from(limits.ceiling));
            let most = most.unwrap_or(ceiling).clamp(floor, ceiling);
            let points = i64::from(reported.points);
            let number = (i64::from(derivation.priority) + points).clamp(floor, most);
            let because = BTreeMap::from([("reported.points".to_owned(), FactValue::Int(points))]);
            set(&mut derivation, "report", number, because);
            derivation.tier = self.tier_of(derivation.priority, false).name.clone();
        }
        if said.topped {
            let highest = self.highest_of(derivation.tier.as_str()).unwrap_or(self.derive_rules().ceiling.into());
            set(&mut derivation, "top", highest, BTreeMap::new());
        }
        derivation
    }
}

fn set(derivation: &mut Derivation, rule: &str, number: i64, because: BTreeMap<String, FactValue>) {
    let contribution = number - i64::from(derivation.priority);
    derivation.priority = u32::try_from(number).unwrap_or(derivation.priority);
    derivation.steps.push(Step {
        rule: rule.to_owned(),
        matched: true,
        contribution,
        priority_after: number,
        because,
        error: None,
    });
}

#[cfg(test)]
#[path = "feedback_tests.rs"]
mod tests;

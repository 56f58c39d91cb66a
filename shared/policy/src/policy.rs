//! A policy: the only thing that decisions accept, and it can't be made from a file with a mistake.

use osprey_model::id::{PolicyRevision, TierName};
use sha2::{Digest as _, Sha256};

use crate::case::Case;
use crate::file;
use crate::identity::Identity;
use crate::lint;
use crate::problem::{PolicyError, Warning};
use crate::rule::Rule;
use crate::rules::{
    AdmissionRules, DeriveRules, EstimateRules, FeedbackRules, OrderRules, PreemptionRules, QuotaRules, RequeueRules,
    Takes, Tier,
};

/// The policy that ships: the acceptance table as rules.
pub const DEFAULT: &str = include_str!("../policies/default.toml");

/// Interactive work first, long training behind a reserve.
pub const INTERACTIVE_FIRST: &str = include_str!("../policies/interactive-first.toml");

/// Four numeric tiers; the top one only for a deadline within the hour.
pub const FOUR_TIERS_SLA: &str = include_str!("../policies/four-tiers-sla.toml");

/// The default numbers in a strict order, for comparison.
pub const STRICT_ORDER: &str = include_str!("../policies/strict-order.toml");

/// Every key of metadata demanded.
pub const STRICT_METADATA: &str = include_str!("../policies/strict-metadata.toml");

/// A policy, compiled and immutable.
#[derive(Clone, Debug)]
pub struct Policy {
    revision: PolicyRevision,
    name: String,
    derive: DeriveRules,
    rules: Vec<Rule>,
    tiers: Vec<Tier>,
    requeue: RequeueRules,
    admission: AdmissionRules,
    order: OrderRules,
    quota: QuotaRules,
    preemption: PreemptionRules,
    feedback: FeedbackRules,
    estimates: EstimateRules,
    identities: Vec<Identity>,
    tests: Vec<Case>,
}

/// A policy and what is odd about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The policy.
    pub policy: Policy,
    /// What is odd, in the order of the file.
    pub warnings: Vec<Warning>,
}

impl Policy {
    /// Reads, checks and compiles a policy.
    ///
    /// Whether its own tests pass is another question: [`Policy::run_tests`].
    ///
    /// # Errors
    /// Every mistake of the file, in its order; when it isn't TOML, only what makes it so.
    pub fn load(text: &str) -> Result<Loaded, Vec<PolicyError>> {
        let policy = Self::compiled(text, file::read(text)?);
        let warnings = lint::warnings(&policy);
        Ok(Loaded { policy, warnings })
    }

    fn compiled(text: &str, file: file::File) -> Self {
        let file::File {
            name,
            derive,
            rules,
            tiers,
            requeue,
            admission,
            order,
            quota,
            preemption,
            feedback,
            estimates,
            identities,
            tests,
        } = file;
        let revision = revision(text);
        Self {
            revision,
            name,
            derive,
            rules,
            tiers,
            requeue,
            admission,
            order,
            quota,
            preemption,
            feedback,
            estimates,
            identities,
            tests,
        }
    }

    /// First twelve hexadecimal digits of the SHA-256 of its text: two texts with one revision are one policy.
    #[must_use]
    pub fn revision(&self) -> &PolicyRevision {
        &self.revision
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Base, floor, ceiling and fallback of the number.
    #[must_use]
    pub fn derive_rules(&self) -> &DeriveRules {
        &self.derive
    }

    /// Its rules, in the order tried.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Its tiers, in the order of the file: those with thresholds fall from the most urgent.
    #[must_use]
    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// The tier of a name.
    #[must_use]
    pub fn tier(&self, name: &TierName) -> Option<&Tier> {
        self.tiers.iter().find(|tier| tier.name == *name)
    }

    /// What happens after a failure or an interruption.
    #[must_use]
    pub fn requeue(&self) -> &RequeueRules {
        &self.requeue
    }

    /// What it demands at the door.
    #[must_use]
    pub fn admission(&self) -> &AdmissionRules {
        &self.admission
    }

    /// Which waiting job comes next.
    #[must_use]
    pub fn order(&self) -> &OrderRules {
        &self.order
    }

    /// What a team may use.
    #[must_use]
    pub fn quota(&self) -> &QuotaRules {
        &self.quota
    }

    /// Most GPUs of a team at once in a tier: what its quota says, else the tier.
    #[must_use]
    pub fn team_gpus_max(&self, team: &str, tier: &TierName) -> Option<u32> {
        let own = self.quota.gpus(team, tier);
        own.or_else(|| self.tier(tier).and_then(|tier| tier.team_gpus_max))
    }

    /// Whether what teams use has to be known to decide: some team has a limit, or the order goes by teams.
    #[must_use]
    pub fn asks_of_teams(&self) -> bool {
        self.quota.asks_of_teams() || self.tiers.iter().any(|tier| tier.team_gpus_max.is_some())
    }

    /// When a job that waits may have running ones evicted.
    #[must_use]
    pub fn preemption(&self) -> &PreemptionRules {
        &self.preemption
    }

    /// How far steps' reports move numbers.
    #[must_use]
    pub fn feedback(&self) -> &FeedbackRules {
        &self.feedback
    }

    /// What is believed of run times.
    #[must_use]
    pub fn estimates(&self) -> &EstimateRules {
        &self.estimates
    }

    /// What it knows of senders, in the order tried.
    #[must_use]
    pub fn identities(&self) -> &[Identity] {
        &self.identities
    }

    /// Its own tests.
    #[must_use]
    pub fn tests(&self) -> &[Case] {
        &self.tests
    }

    /// The tier of a number: the preemptible tier for preemptible jobs, where there is one, else the first tier whose
    /// threshold the number reaches.
    ///
    /// A job that asks for the preemptible tier by `priority-class` goes there too; [`Policy::derive`] knows of it.
    #[must_use]
    pub fn tier_of(&self, priority: u32, preemptible: bool) -> &Tier {
        let takes = |tier: &&Tier| match tier.takes {
            Takes::Preemptible => preemptible,
            Takes::AtLeast(_) => false,
        };
        let reached = |tier: &&Tier| tier.at_least().is_some_and(|number| priority >= number);
        let by_number = || self.tiers.iter().find(reached).or_else(|| self.lowest());
        // INVARIANT: a file without a tier is refused, so there is a last one.
        self.tiers.iter().find(takes).or_else(by_number).unwrap_or(&NO_TIER)
    }

    /// The tier with the lowest threshold.
    fn lowest(&self) -> Option<&Tier> {
        self.tiers.iter().filter(|tier| tier.at_least().is_some()).min_by_key(|tier| tier.at_least())
    }

    /// The preemptible tier, where there is one.
    pub(crate) fn preemptible_tier(&self) -> Option<&Tier> {
        self.tiers.iter().find(|tier| tier.takes == Takes::Preemptible)
    }
}

/// What stands in for the tier of a policy without one, which can't be made.
static NO_TIER: std::sync::LazyLock<Tier> =
    std::sync::LazyLock::new(|| Tier::new(TierName::default(), Takes::AtLeast(0)));

fn revision(text: &str) -> PolicyRevision {
    let digest = Sha256::digest(text.as_bytes());
    PolicyRevision::new(digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;

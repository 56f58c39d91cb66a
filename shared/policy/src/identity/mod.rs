//! Identity: who a sender is to the policy, what its jobs may claim, and what it may do to whose jobs.
//!
//! A sender is known by a queue and by what the queue's service authenticated; the first `[[identity]]` that matches
//! both speaks for it, and the one named `default` for everybody else. A policy without any lets everybody do
//! everything, which `policy check` warns of.

mod claims;
mod pattern;
mod right;

use std::borrow::Cow;
use std::collections::BTreeMap;

use osprey_model::id::TierName;
use osprey_model::pool::Pool;
use osprey_model::sender::Sender;

pub use claims::{Bounded, Claims, bound};
pub use pattern::Pattern;
pub use right::{Relation, Scope, Verb};

use crate::place::Place;
use crate::policy::Policy;

/// The name of the identity of everybody whom no other one matches.
pub const DEFAULT_NAME: &str = "default";

/// What a policy knows of some senders. A list that is `None` allows everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its name, which explanations show.
    pub name: String,
    /// Ids of senders. Without a `:` a pattern is about what stands before the `:` of an id.
    pub who: Vec<Pattern>,
    /// Queues by which they come.
    pub from: Vec<Pattern>,
    /// Whether the part behind the `:` is vouched for as well, as it is for permission sets of IAM Identity Center.
    pub sessions: bool,
    /// Teams that its jobs may be of, lower case; the first is the one of a job that names none.
    pub teams: Option<Vec<String>>,
    /// Environments that its jobs may claim, lower case. A job that claims none is let through.
    pub environments: Option<Vec<String>>,
    /// The highest tier that its jobs reach.
    pub tier_at_most: Option<TierName>,
    /// Names of job definitions that it may run.
    pub definitions: Option<Vec<Pattern>>,
    /// ARNs of roles that the definitions it runs may give their containers.
    pub job_roles: Option<Vec<Pattern>>,
    /// Pools that its jobs go to.
    pub pools: Option<Vec<Pattern>>,
    /// What becomes of a claim that goes too far.
    pub beyond: Beyond,
    /// How many jobs a minute may start of one team, or of one sender; the others are put off. `None` where nobody counts.
    pub jobs_per_minute: Option<u32>,
    /// What it may do, on whose jobs. [`Verb::unsaid`] holds where nothing is said.
    pub may: BTreeMap<Verb, Scope>,
    /// Where it begins in the file.
    pub(crate) place: Place,
}

/// What becomes of a claim of a team or an environment that goes beyond what the identity allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beyond {
    /// The job is refused.
    #[default]
    Refuse,
    /// The job goes on without the claim, and its sender is warned.
    Lower,
}

impl Identity {
    /// An identity that nothing is said of yet.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            who: Vec::new(),
            from: Vec::new(),
            sessions: false,
            teams: None,
            environments: None,
            tier_at_most: None,
            definitions: None,
            job_roles: None,
            pools: None,
            beyond: Beyond::default(),
            jobs_per_minute: None,
            may: BTreeMap::new(),
            place: Place::default(),
        }
    }

    /// The identity of everybody in a policy that knows of none: everything is allowed.
    #[must_use]
    pub fn anybody() -> Self {
        let may = Verb::ALL.into_iter().map(|verb| (verb, Scope::All)).collect();
        Self { may, ..Self::new(DEFAULT_NAME) }
    }

    /// Whether it speaks for a sender.
    fn matches(&self, sender: &Sender) -> bool {
        let id = |pattern: &Pattern| {
            let whole = self.sessions && pattern.text().contains(':');
            pattern.matches(if whole { &sender.principal } else { sender.account() })
        };
        let from = self.from.is_empty() || self.from.iter().any(|queue| queue.matches(&sender.queue));
        from && (self.who.is_empty() || self.who.iter().any(id))
    }

    /// Whether it says nothing of claims: every environment and every tier is open to it.
    #[must_use]
    pub fn may_claim_everything(&self) -> bool {
        self.environments.is_none() && self.tier_at_most.is_none()
    }

    /// The pools that its jobs go to.
    #[must_use]
    pub fn open_pools<'p>(&self, pools: &'p [Pool]) -> Cow<'p, [Pool]> {
        let Some(open) = &self.pools else { return Cow::Borrowed(pools) };
        let is_open = |pool: &&Pool| open.iter().any(|pattern| pattern.matches(pool.name.as_str()));
        Cow::Owned(pools.iter().filter(is_open).cloned().collect())
    }

    /// What names a sender for good, and tells two senders of this identity apart.
    fn key<'s>(&self, sender: &'s Sender) -> (&'s str, &'s str) {
        (&sender.queue, if self.sessions { &sender.principal } else { sender.account() })
    }
}

impl Policy {
    /// The identity that speaks for a sender.
    #[must_use]
    pub fn identity_of(&self, sender: &Sender) -> &Identity {
        let named = |identity: &&Identity| identity.name != DEFAULT_NAME && identity.matches(sender);
        let default = || self.identities().iter().find(|identity| identity.name == DEFAULT_NAME);
        self.identities().iter().find(named).or_else(default).unwrap_or(&ANYBODY)
    }

    /// Whether two messages come from one sender, whatever the sessions of its role are called.
    #[must_use]
    pub fn is_same_sender(&self, a: &Sender, b: &Sender) -> bool {
        let (one, other) = (self.identity_of(a), self.identity_of(b));
        one.name == other.name && one.key(a) == other.key(b)
    }
}

/// The identity in a policy that has none.
static ANYBODY: std::sync::LazyLock<Identity> = std::sync::LazyLock::new(Identity::anybody);

#[cfg(test)]
mod tests;

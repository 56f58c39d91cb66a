//! Rights: what an identity may do, on whose jobs.

use osprey_model::message::Action;
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::sender::Sender;

use super::Identity;
use crate::policy::Policy;

/// What people do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// End a job for good.
    Cancel,
    /// Start a job again.
    Requeue,
    /// Keep a job from starting.
    Hold,
    /// Let a held job start.
    Release,
    /// Take a running job off its GPUs.
    Preempt,
    /// Say where a job's newest checkpoint is.
    ReportCheckpoint,
    /// Send a dead letter through again.
    Redrive,
    /// Close a dead letter.
    Discard,
    /// Move a waiting job to the front of its tier.
    Top,
    /// Say that what comes after a job matters more or less.
    ReportPriority,
    /// Let a pool start nothing more, and resume it.
    Drain,
    /// Keep GPUs of a pool for a team.
    Reserve,
    /// Put a policy into force.
    ApplyPolicy,
    /// Set a pool's mode.
    SetMode,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 14] = [
        Self::Cancel,
        Self::Requeue,
        Self::Hold,
        Self::Release,
        Self::Preempt,
        Self::ReportCheckpoint,
        Self::Top,
        Self::ReportPriority,
        Self::Drain,
        Self::Reserve,
        Self::Redrive,
        Self::Discard,
        Self::ApplyPolicy,
        Self::SetMode,
    ];

    /// Its name in a policy.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Requeue => "requeue",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Preempt => "preempt",
            Self::ReportCheckpoint => "report_checkpoint",
            Self::Top => "top",
            Self::ReportPriority => "report_priority",
            Self::Drain => "drain",
            Self::Reserve => "reserve",
            Self::Redrive => "redrive",
            Self::Discard => "discard",
            Self::ApplyPolicy => "apply_policy",
            Self::SetMode => "set_mode",
        }
    }

    /// Whether it is about a job or a dead letter of somebody's.
    #[must_use]
    pub const fn has_owner(self) -> bool {
        !matches!(self, Self::ApplyPolicy | Self::SetMode | Self::Drain | Self::Reserve)
    }

    /// Whose jobs it reaches where an identity doesn't say: one's own, and nothing that concerns everybody.
    #[must_use]
    pub const fn unsaid(self) -> Scope {
        // Whose job goes first is a matter between senders, so nobody says it of his own without being told that he may.
        if self.has_owner() && !matches!(self, Self::Top) { Scope::Own } else { Scope::Nobody }
    }

    /// The verb of an action.
    #[must_use]
    pub const fn of(action: &Action) -> Self {
        match action {
            Action::CancelJob { .. } => Self::Cancel,
            Action::RequeueJob { .. } => Self::Requeue,
            Action::HoldJob { .. } => Self::Hold,
            Action::ReleaseJob { .. } => Self::Release,
            Action::PreemptJob { .. } => Self::Preempt,
            Action::ReportCheckpoint { .. } => Self::ReportCheckpoint,
            Action::TopJob { .. } => Self::Top,
            Action::ReportPriority { .. } => Self::ReportPriority,
            Action::DrainPool { .. } | Action::ResumePool { .. } => Self::Drain,
            Action::Reserve { .. } => Self::Reserve,
            Action::RedriveDeadLetter { .. } => Self::Redrive,
            Action::DiscardDeadLetter { .. } => Self::Discard,
            Action::ApplyPolicy { .. } => Self::ApplyPolicy,
            Action::SetMode { .. } => Self::SetMode,
        }
    }
}

/// Whose jobs a verb reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Nobody's: the verb isn't allowed.
    Nobody,
    /// Those that the same sender sent.
    Own,
    /// Those of the teams of the identity, and its own.
    Team,
    /// Everybody's.
    All,
}

impl Scope {
    /// Every scope, the narrowest first.
    pub const ALL: [Self; 4] = [Self::Nobody, Self::Own, Self::Team, Self::All];

    /// Its name in a policy.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Own => "own",
            Self::Team => "team",
            Self::All => "all",
        }
    }
}

/// What a job or a dead letter is to whoever acts on it. Team is the recorded one, which the owner's identity allowed.
#[derive(Clone, Copy, Debug)]
pub struct Relation<'a> {
    /// Who sent it.
    pub owner: &'a Sender,
    /// The team it was recorded with.
    pub team: Option<&'a str>,
}

impl Policy {
    /// Whether a sender may do this to what stands in `relation` to it; `None` for what concerns everybody.
    ///
    /// # Errors
    /// A refusal that names the identity, what it may do, and who could be asked.
    pub fn permit(&self, sender: &Sender, verb: Verb, relation: Option<Relation<'_>>) -> Result<(), Refusal> {
        let identity = self.identity_of(sender);
        let scope = identity.may.get(&verb).copied().unwrap_or(verb.unsaid());
        let own = || relation.is_some_and(|to| self.is_same_sender(sender, to.owner));
        let allowed = match scope {
            Scope::Nobody => false,
            Scope::Own => own(),
            Scope::Team => own() || relation.is_some_and(|to| identity.has_team(to.team)),
            Scope::All => true,
        };
        if allowed { Ok(()) } else { Err(denied(identity, verb, scope)) }
    }
}

impl Identity {
    /// Whether a team is one of its. Without a list every claim of a team is open to it, so none makes a job its own.
    fn has_team(&self, team: Option<&str>) -> bool {
        let (Some(teams), Some(team)) = (&self.teams, team) else { return false };
        teams.iter().any(|own| own == team)
    }
}

fn denied(identity: &Identity, verb: Verb, scope: Scope) -> Refusal {
    let (name, verb) = (&identity.name, verb.name());
    let sentence = match scope {
        Scope::Own => format!("identity `{name}` may {verb} its own jobs only, and somebody else sent this one"),
        Scope::Team => format!("identity `{name}` may {verb} jobs of its teams only, and this is none"),
        Scope::Nobody | Scope::All => format!("identity `{name}` may not {verb}"),
    };
    let way_out = format!("ask somebody whose identity has `{verb} = \"all\"` in the policy");
    Refusal::new(ReasonCode::NotAllowed, format!("{sentence}; {way_out}"))
}

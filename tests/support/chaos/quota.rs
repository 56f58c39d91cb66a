//! Which quotas the policies of a run have.

use super::random::Random;
use super::wiring;

/// The quotas of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// None: nobody counts what teams use.
    Nothing,
    /// GPUs at once, and GPU-hours so few that teams soon borrow.
    Borrow,
    /// The same with enough of them that one team borrows while another is within its own, and takes back what is lent.
    Lend,
    /// Jobs of a team that has used up its GPU-hours wait.
    Hold,
    /// They go to the tier of preemptible jobs.
    Demote,
    /// They are refused.
    Reject,
    /// A part of each pool is kept for urgent jobs.
    Reserve,
    /// GPUs at once alone: what is left once faults stop of quotas that jobs wait for until midnight.
    Caps,
}

/// Most GPUs that a team holds at once in a tier, in runs with quotas. The largest job has as many.
pub const TEAM_GPUS_MAX: u32 = 32;
/// GPU-milliseconds of a day after which jobs are held, demoted or refused.
pub const HOURS_GPU_MS: i64 = 5_400_000;
/// The part of each pool that is kept for urgent jobs, in percent.
pub const RESERVED_PERCENT: i64 = 25;

impl Quota {
    /// Every one of them.
    pub const ALL: [Self; 8] =
        [Self::Nothing, Self::Borrow, Self::Lend, Self::Hold, Self::Demote, Self::Reject, Self::Reserve, Self::Caps];

    /// The quotas of a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut kind = Random::fork(seed, "kind of quota");
        if wiring::is_packed(seed) {
            return kind.pick(&[Self::Nothing, Self::Lend, Self::Lend, Self::Reserve]).copied().unwrap_or(Self::Lend);
        }
        if !Random::fork(seed, "quotas").chance(500_000) {
            return Self::Nothing;
        }
        let kinds = [Self::Borrow, Self::Borrow, Self::Lend, Self::Hold, Self::Demote, Self::Reject, Self::Reserve];
        kind.pick(&kinds).copied().unwrap_or(Self::Borrow)
    }

    /// What is left of them once faults stop: nobody waits for a midnight then.
    #[must_use]
    pub fn lifted(self) -> Self {
        if self.stops_at_hours() { Self::Caps } else { self }
    }

    /// Whether a team that has used up its GPU-hours can't go on in a tier that isn't preemptible.
    #[must_use]
    pub fn stops_at_hours(self) -> bool {
        matches!(self, Self::Hold | Self::Demote | Self::Reject)
    }

    /// Whether what teams hold is counted.
    #[must_use]
    pub fn counts(self) -> bool {
        self != Self::Nothing
    }

    /// What is added to each policy.
    #[must_use]
    pub fn text(self) -> String {
        let hours = |over: &str| format!("gpu_hours_day = 1.5\nover = \"{over}\"\n");
        let own = match self {
            Self::Nothing => return String::new(),
            Self::Borrow => "gpu_hours_day = 0.5\nborrowing = true\nfair_share = true\n".to_owned(),
            Self::Lend => "gpu_hours_day = 1.0\nborrowing = true\n".to_owned(),
            Self::Hold => hours("hold"),
            Self::Demote => hours("demote"),
            Self::Reject => hours("reject"),
            Self::Reserve => "reserve = [{ name = \"urgent\", tier = \"critical\", share = 0.25 }]\n".to_owned(),
            Self::Caps => String::new(),
        };
        let caps = "gpus = { critical = 32, experimental = 32, preemptible = 32 }\n";
        let known = if self == Self::Borrow { "" } else { "\n[estimates]\nunknown = \"6m\"\n" };
        format!("\n[quota]\n{own}{caps}{known}")
    }
}

//! Planted breakages: each takes away one thing that exactly-once effect rests on. They are in the ports and in the
//! settings of the harness, so nothing of them is in the product.

use osprey_pipeline::context::Settings;

/// One breakage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Breakage {
    /// The write that claims a job has no condition.
    DropTheClaim,
    /// No write has a condition but that an item be new: what comes last stands.
    TrustArrivalOrder,
    /// Items that must be new overwrite what is there.
    Overwrite,
    /// Only the first write of a transaction is made.
    TearTransactions,
    /// A write that was throttled is believed to have happened.
    BelieveThrottledWrites,
    /// Counters are added to twice.
    CountTwice,
    /// Counters are never added to.
    CountNever,
    /// A submission is sent however long ago it was claimed.
    IgnoreTheLease,
    /// A submission whose outcome isn't known is made again at once.
    RetrySubmitBlindly,
    /// A submission whose outcome isn't known is taken for refused.
    TakeUnknownForRefused,
    /// Lists of jobs show nothing.
    BlindLists,
    /// A claim is given up on the first lists, without waiting for the first request to lose its force.
    GiveUpAtOnce,
    /// Our tags aren't sent with a submission.
    ForgetTags,
    /// Jobs that are asked after are never found.
    BlindDescriptions,
    /// Stops are not sent.
    StopNothing,
    /// Messages are acknowledged before they are handled.
    AcknowledgeFirst,
    /// Messages that failed are acknowledged like the others.
    AcknowledgeFailures,
    /// Messages that were received too often are dropped.
    DropDeadLetters,
    /// A message has another number at each delivery.
    RenumberMessages,
    /// A job's dependencies are read as none.
    ReleaseDependentsEarly,
    /// Edges from parents to children are not written, and nobody looks again.
    ForgetToLook,
    /// `watch` never runs.
    NoWatch,
    /// Nobody is told of dead letters.
    TellNobody,
    /// Other systems are told nothing.
    TellNoOthers,
    /// Wake-ups and redrives are not sent.
    SendNothing,
    /// Jobs are not put into the listing.
    HideJobs,
    /// How deep a job's lineage is isn't kept.
    ForgetDepth,
    /// Every read of a job shows what it was a moment ago, and writes have no conditions.
    StaleReads,
    /// A plan's step has no condition.
    DropThePlanGuard,
    /// A pool is always seen to have room.
    PlanWithoutLooking,
    /// What jobs hold of a pool isn't read.
    ForgetHoldings,
    /// No policy tells senders apart.
    LetEverybodyIn,
    /// Whoever asks for something is taken for an operator.
    TakeAllForOperators,
    /// What a team holds is added up without its cap.
    DropTheCap,
    /// What a team holds is never given back.
    ForgetReleases,
    /// An attempt over midnight counts on its first day alone.
    CountOneDay,
    /// Receipts of evictions aren't written.
    ForgetReceipts,
    /// Nobody finds an eviction that broke off.
    ForgetPlannedEvictions,
    /// What budgets for evictions count isn't read.
    ForgetBudgets,
    /// How often a job was evicted isn't read.
    ForgetCaps,
    /// Every tier may evict those below it.
    LetAnybodyEvict,
    /// Whoever takes the place of others reaches Batch minutes after it has answered.
    EvictBeforeSubmitting,
    /// Whatever runs is taken for borrowed.
    TakeAllForBorrowed,
    /// What teams have used isn't read.
    ForgetHours,
    /// No policy reserves anything.
    ForgetReserves,
}

impl Breakage {
    /// Every breakage with its name, and the seeds within which it must be caught.
    pub const ALL: [(Self, &'static str, u64); 45] = [
        (Self::DropTheClaim, "drop-the-claim", 50),
        (Self::TrustArrivalOrder, "trust-arrival-order", 50),
        (Self::Overwrite, "overwrite", 200),
        (Self::TearTransactions, "tear-transactions", 10),
        (Self::BelieveThrottledWrites, "believe-throttled-writes", 50),
        (Self::CountTwice, "count-twice", 10),
        (Self::CountNever, "count-never", 10),
        (Self::IgnoreTheLease, "ignore-the-lease", 2_000),
        (Self::RetrySubmitBlindly, "retry-submit-blindly", 50),
        (Self::TakeUnknownForRefused, "take-unknown-for-refused", 50),
        (Self::BlindLists, "blind-lists", 50),
        (Self::GiveUpAtOnce, "give-up-at-once", 200),
        (Self::ForgetTags, "forget-tags", 50),
        (Self::BlindDescriptions, "blind-descriptions", 50),
        (Self::StopNothing, "stop-nothing", 50),
        (Self::AcknowledgeFirst, "acknowledge-first", 50),
        (Self::AcknowledgeFailures, "acknowledge-failures", 50),
        (Self::DropDeadLetters, "drop-dead-letters", 500),
        (Self::RenumberMessages, "renumber-messages", 20),
        (Self::ReleaseDependentsEarly, "release-dependents-early", 20),
        (Self::ForgetToLook, "forget-to-look", 50),
        (Self::NoWatch, "no-watch", 20),
        (Self::TellNobody, "tell-nobody", 20),
        (Self::TellNoOthers, "tell-no-others", 20),
        (Self::SendNothing, "send-nothing", 500),
        (Self::HideJobs, "hide-jobs", 10),
        (Self::ForgetDepth, "forget-depth", 50),
        (Self::StaleReads, "stale-reads", 50),
        (Self::DropThePlanGuard, "drop-the-plan-guard", 200),
        (Self::PlanWithoutLooking, "plan-without-looking", 50),
        (Self::ForgetHoldings, "forget-holdings", 50),
        (Self::LetEverybodyIn, "let-everybody-in", 50),
        (Self::TakeAllForOperators, "take-all-for-operators", 50),
        (Self::DropTheCap, "drop-the-cap", 500),
        (Self::ForgetReleases, "forget-releases", 20),
        (Self::CountOneDay, "count-one-day", 100),
        (Self::ForgetReceipts, "forget-receipts", 50),
        (Self::ForgetPlannedEvictions, "forget-planned-evictions", 500),
        (Self::ForgetBudgets, "forget-budgets", 500),
        (Self::ForgetCaps, "forget-caps", 500),
        (Self::LetAnybodyEvict, "let-anybody-evict", 200),
        (Self::EvictBeforeSubmitting, "evict-before-submitting", 50),
        (Self::TakeAllForBorrowed, "take-all-for-borrowed", 100),
        (Self::ForgetHours, "forget-hours", 500),
        (Self::ForgetReserves, "forget-reserves", 100),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(known, _, _)| *known == self).map_or("", |(_, name, _)| *name)
    }

    /// The breakage of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(breakage, _, _)| *breakage)
    }
}

/// The settings of a run, broken or not.
#[must_use]
pub fn settings(breakage: Option<Breakage>) -> Settings {
    let sound = Settings::default();
    match breakage {
        Some(Breakage::GiveUpAtOnce) => Settings { act_window_ms: -sound.send_limit_ms, ..sound },
        _ => sound,
    }
}

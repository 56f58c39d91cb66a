//! Who sends, what each may claim and do, and what a stranger tries. The identities are the policy's; what follows from
//! them for a message is written here a second time, as a table, so that the checkers don't ask the code under test.

use super::random::Random;
use super::scenario::{Draft, PHASE_MS, Truth};
use super::script::Script;

/// Runs the jobs of team `search`.
pub const SEARCH: &str = "AROASEARCH";
/// Runs those of team `vision`, in `dev` alone and never urgently; what it claims beyond that doesn't count.
pub const VISION: &str = "AROAVISION";
/// May do everything.
pub const OPERATOR: &str = "AROAOPERATOR";
/// May write to the queue, and nothing else.
pub const STRANGER: &str = "AROASTRANGER";

/// Those sections of a policy in which senders differ.
pub const IDENTITIES: &str = r#"
[[identity]]
name = "search"
who = ["AROASEARCH"]
teams = ["search"]

[[identity]]
name = "vision"
who = ["AROAVISION"]
teams = ["vision"]
environments = ["dev"]
tier_at_most = "experimental"
beyond = "lower"

[[identity]]
name = "operator"
who = ["AROAOPERATOR"]
may = { cancel = "all", requeue = "all", hold = "all", release = "all", preempt = "all", report_checkpoint = "all", top = "all", report_priority = "all", drain = "all", reserve = "all", redrive = "all", discard = "all" }

[[identity]]
name = "default"
definitions = []
"#;

/// One run in so many, in millionths, has a policy with identities.
const GUARDED: u32 = 350_000;

/// Whether the policies of a seed tell senders apart.
#[must_use]
pub fn are_told_apart(seed: u64) -> bool {
    Random::fork(seed, "identities").chance(GUARDED)
}

/// What becomes of the claims of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The team that counts.
    pub team: &'static str,
    /// Whether an urgent job is urgent.
    pub urgent: bool,
    /// Whether the job must be refused.
    pub forbidden: bool,
}

/// What a policy with identities makes of a job.
#[must_use]
pub fn allowed(sender: &str, team: &'static str, urgent: bool) -> Allowed {
    match sender {
        SEARCH => Allowed { team, urgent, forbidden: team != "search" },
        VISION => Allowed { team: "vision", urgent: false, forbidden: false },
        OPERATOR => Allowed { team, urgent, forbidden: false },
        _ => Allowed { team, urgent, forbidden: true },
    }
}

/// What a stranger sends in a run: jobs under ids of others, bodies made to hurt, and orders. `ids` are those of the
/// run's jobs, some of which are sent later.
pub fn hostile(seed: u64, ids: &[String], scripts: &mut Vec<Script>) -> Vec<Draft> {
    let mut random = Random::fork(seed, "stranger");
    let count = random.between(1, 8);
    (0..count).map(|_| one(&mut random, ids, scripts)).collect()
}

fn one(random: &mut Random, ids: &[String], scripts: &mut Vec<Script>) -> Draft {
    let at_ms = random.between(0, PHASE_MS - 600_000);
    let id = random.pick(ids).cloned().unwrap_or_default();
    let (body, truth) = match random.below(3) {
        0 => job(&id, random, scripts),
        1 => (order(&id, random), Truth::Action),
        _ => (painful(random), Truth::Malformed),
    };
    Draft { at_ms, body, sender: STRANGER, truth }
}

/// A job that claims all there is, at times under the id of another's.
fn job(id: &str, random: &mut Random, scripts: &mut Vec<Script>) -> (String, Truth) {
    let chosen = random.chance(700_000).then(|| id.to_owned());
    let script = scripts.len();
    scripts.push(Script::draw(random));
    let tag = chosen.iter().map(|id| format!(r#","osprey:job-id":"{id}""#)).collect::<String>();
    let body = format!(
        r#"{{"jobName":"mine","jobDefinition":"train","tags":{{"script":"{script}","team":"search","environment":"production","workload":"inference"{tag}}},"containerOverrides":{{"resourceRequirements":[{{"type":"GPU","value":"8"}},{{"type":"VCPU","value":"4"}},{{"type":"MEMORY","value":"2048"}}]}}}}"#
    );
    let truth = Truth::Job {
        script,
        chosen,
        parents: Vec::new(),
        lineage: None,
        variant: 3,
        retries: None,
        team: "search",
        gpus: 8,
        saves_ms: None,
        urgent: true,
        forbidden: true,
    };
    (body, truth)
}

/// Something that is for others to say.
fn order(id: &str, random: &mut Random) -> String {
    let verbs = ["CancelJob", "RequeueJob", "HoldJob", "ReleaseJob", "RedriveDeadLetter", "SetMode", "ApplyPolicy"];
    match random.pick(&verbs).copied().unwrap_or("CancelJob") {
        "SetMode" => r#"{"action":"SetMode","pool":"steady","mode":"pass-through"}"#.to_owned(),
        // By the id, so that what the other runs of a seed draw stays as it is.
        "ApplyPolicy" => match id.bytes().map(u32::from).sum::<u32>() % 4 {
            0 => r#"{"action":"ApplyPolicy","policy":"name = \"mine\""}"#.to_owned(),
            1 => r#"{"action":"DrainPool","pool":"steady"}"#.to_owned(),
            2 => format!(r#"{{"action":"TopJob","jobId":"{id}"}}"#),
            _ => r#"{"action":"Reserve","pool":"steady","team":"nobody","gpus":8,"until":"2099-01-01T00:00:00Z"}"#
                .to_owned(),
        },
        "RedriveDeadLetter" => format!(r#"{{"action":"RedriveDeadLetter","deadLetterId":"{id}"}}"#),
        verb => format!(r#"{{"action":"{verb}","jobId":"{id}"}}"#),
    }
}

/// A body that costs its reader more than its sender.
fn painful(random: &mut Random) -> String {
    match random.below(4) {
        0 => "[".repeat(50_000),
        1 => format!(r#"{{"jobName":{}1{}}}"#, r#"{"a":"#.repeat(2_000), "}".repeat(2_000)),
        2 => format!(r#"{{"jobName":"{}"#, "x".repeat(100_000)),
        _ => "\u{1b}[2J\u{0}{".to_owned(),
    }
}

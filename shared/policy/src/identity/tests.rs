use osprey_model::facts::{Facts, JobFacts};
use osprey_model::metadata::Metadata;
use osprey_model::reason::ReasonCode;
use osprey_model::request::SubmitJobRequest;

use super::*;

const TIERS: &str = r#"
name = "bounded"
[[rule]]
id = "production"
when = 'job.environment == "production" || job.team == "production"'
set = 1000
[[rule]]
id = "by-tag"
when = '"team" in job.tags && job.tags.team == "production"'
set = 9999
[[rule]]
id = "breaks"
when = 'job.name == "break" && 1 / job.gpus > 0'
add = 0
[[tier]]
name = "critical"
at_least = 1100
[[tier]]
name = "production"
at_least = 800
[[tier]]
name = "experimental"
at_least = 0
[[tier]]
name = "preemptible"
takes = "preemptible"
"#;

const IDENTITIES: &str = r#"
[[identity]]
name = "search"
who = ["AROASEARCH", "AIDASEARCH*"]
teams = ["search", "ranking"]
environments = ["Dev", "staging"]
tier_at_most = "production"
definitions = ["search-*"]
job_roles = ["arn:aws:iam::*:role/search-*"]
may = { cancel = "team", hold = "all", requeue = "nobody" }

[[identity]]
name = "people"
who = ["AROASSO:*@example.com"]
sessions = true
beyond = "lower"
teams = ["research"]
environments = []

[[identity]]
name = "robots"
from = ["partner-*"]
tier_at_most = "preemptible"

[[identity]]
name = "operator"
who = ["AROAOPS"]
may = { apply_policy = "all", set_mode = "all", cancel = "all" }

[[identity]]
name = "default"
tier_at_most = "experimental"
"#;

fn policy() -> Policy {
    Policy::load(&format!("{TIERS}{IDENTITIES}")).expect("a policy").policy
}

fn sender(principal: &str) -> Sender {
    Sender::new("osprey-submissions", principal)
}

#[test]
fn the_first_identity_that_matches_speaks_for_a_sender() {
    let policy = policy();
    for (queue, principal, name) in [
        ("osprey-submissions", "AROASEARCH", "search"),
        ("osprey-submissions", "AROASEARCH:any-session-name", "search"),
        ("osprey-submissions", "AIDASEARCHCI", "search"),
        // Whoever assumes another role may call his session anything.
        ("osprey-submissions", "AROAOTHER:AROASEARCH", "default"),
        ("osprey-submissions", "AROASSO:ada@example.com", "people"),
        ("osprey-submissions", "AROASSO:ada@example.org", "default"),
        ("osprey-submissions", "AROASSO", "default"),
        ("partner-one", "AIDASNS", "robots"),
        ("osprey-submissions", "AIDASNS", "default"),
        ("osprey-submissions", "", "default"),
        ("osprey-submissions", "default", "default"),
    ] {
        assert_eq!(policy.identity_of(&Sender::new(queue, principal)).name, name, "{queue} {principal}");
    }
}

#[test]
fn sessions_of_a_role_are_one_sender_unless_they_are_vouched_for() {
    let policy = policy();
    for (a, b, same) in [
        ("AROASEARCH:one", "AROASEARCH:two", true),
        ("AROASEARCH", "AIDASEARCHCI", false),
        ("AROASSO:ada@example.com", "AROASSO:bob@example.com", false),
        ("AROASSO:ada@example.com", "AROASSO:ada@example.com", true),
        ("AROAOTHER:x", "AROAOTHER:y", true),
    ] {
        assert_eq!(policy.is_same_sender(&sender(a), &sender(b)), same, "{a} {b}");
    }
    let elsewhere = Sender::new("partner-one", "AROAOTHER");
    assert!(!policy.is_same_sender(&sender("AROAOTHER"), &elsewhere));
}

fn request(tags: &[(&str, &str)], definition: &str) -> SubmitJobRequest {
    SubmitJobRequest {
        job_name: "j".to_owned(),
        job_definition: definition.to_owned(),
        tags: Some(tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()),
        ..SubmitJobRequest::default()
    }
}

fn bounded(principal: &str, tags: &[(&str, &str)], definition: &str) -> (Bounded, u32, String) {
    let policy = policy();
    let request = request(tags, definition);
    let (metadata, _) = Metadata::read(&request, None).expect("metadata");
    let identity = policy.identity_of(&sender(principal));
    let bounded = bound(identity, &Claims { request: &request, definition: None, metadata: &metadata });
    let job =
        JobFacts { metadata: bounded.metadata.clone(), gpus: 1, tags: bounded.tags.clone(), ..JobFacts::default() };
    let derived = policy.derive_for(&Facts { job, ..Facts::default() }, Some(identity));
    (bounded, derived.priority, derived.tier.to_string())
}

#[test]
fn a_claim_that_goes_too_far_is_refused_and_counts_for_nothing() {
    for (tags, sentence) in [
        (
            [("team", "production")],
            "identity `search` may not claim team `production`; it may claim `search` or `ranking`",
        ),
        (
            [("environment", "production")],
            "identity `search` may not claim environment `production`; it may claim `dev` or `staging`",
        ),
        (
            [("ENV", " Production ")],
            "identity `search` may not claim environment `production`; it may claim `dev` or `staging`",
        ),
    ] {
        let (bounded, priority, tier) = bounded("AROASEARCH", &tags, "search-train");
        let told: Vec<_> = bounded.refusals.iter().map(|refusal| (refusal.code, refusal.message.as_str())).collect();
        assert_eq!(told, [(ReasonCode::NotAllowed, sentence)]);
        assert_eq!((priority, tier.as_str()), (500, "experimental"), "{tags:?}");
    }
}

#[test]
fn a_claim_that_goes_too_far_is_lowered_where_the_policy_says_so() {
    let tags = [("team", "production"), ("environment", "production")];
    let (bounded, priority, _) = bounded("AROASSO:ada@example.com", &tags, "d");
    assert_eq!(bounded.refusals, []);
    assert_eq!(
        bounded.warnings,
        [
            "identity `people` may not claim team `production`, so the claim doesn't count",
            "identity `people` may not claim environment `production`, so the claim doesn't count"
        ]
    );
    assert_eq!((bounded.metadata.team.as_deref(), bounded.metadata.environment.as_deref()), (Some("research"), None));
    assert_eq!(bounded.tags, [("team".to_owned(), "research".to_owned())].into());
    assert_eq!(priority, 500);
}

#[test]
fn a_job_that_names_no_team_is_of_the_first_of_its_senders() {
    let (bounded, ..) = bounded("AROASEARCH", &[("environment", "dev")], "search-train");
    assert_eq!(bounded.metadata.team.as_deref(), Some("search"));
    assert_eq!((bounded.refusals.len(), bounded.warnings.len()), (0, 0));
}

#[test]
fn an_identity_bounds_number_and_tier_and_says_so() {
    for (principal, priority, tier) in [("AROAOTHER", 799, "experimental"), ("AROAOPS", 9999, "critical")] {
        let (_, got, in_tier) = bounded(principal, &[("team", "production")], "d");
        assert_eq!((got, in_tier.as_str()), (priority, tier), "{principal}");
    }
    let policy = policy();
    let job = JobFacts {
        metadata: Metadata { environment: Some("production".to_owned()), ..Metadata::default() },
        gpus: 1,
        ..JobFacts::default()
    };
    let facts = Facts { job, ..Facts::default() };
    let derived = policy.derive_for(&facts, Some(policy.identity_of(&sender("AROAOTHER"))));
    let step = derived.steps.iter().find(|step| step.rule == "identity").expect("a step");
    assert_eq!((step.matched, step.contribution, step.priority_after), (true, -201, 799));
    assert_eq!(step.because.get("identity"), Some(&osprey_model::decision::FactValue::Text("default".to_owned())));
    let robots = policy.identity_of(&Sender::new("partner-one", "AIDASNS"));
    let derived = policy.derive_for(&facts, Some(robots));
    assert_eq!((derived.priority, derived.tier.as_str()), (0, "preemptible"));
}

#[test]
fn a_rule_that_fails_is_no_way_past_an_identity() {
    let text =
        format!("{TIERS}{IDENTITIES}").replace("name = \"bounded\"", "name = \"bounded\"\n[derive]\nfallback = 9000");
    let policy = Policy::load(&text).expect("a policy").policy;
    let facts = Facts { job: JobFacts { name: "break".to_owned(), ..JobFacts::default() }, ..Facts::default() };
    let derived = policy.derive_for(&facts, Some(policy.identity_of(&sender("AROAOTHER"))));
    assert!(derived.fallback.is_some());
    assert_eq!((derived.priority, derived.tier.as_str()), (799, "experimental"));
}

/// The pipeline's role may run everything, so whoever sends to it could run what his own role may not.
#[test]
fn a_definition_or_a_role_beyond_the_identity_is_refused() {
    for (given, allowed) in [
        ("search-train", true),
        ("search-train:7", true),
        ("arn:aws:batch:eu-west-1:123456789012:job-definition/search-train:7", true),
        ("billing", false),
        ("billing:1", false),
        ("arn:aws:batch:eu-west-1:123456789012:job-definition/billing:1", false),
        ("arn:aws:batch:eu-west-1:123456789012:job-definition/x/search-train", true),
    ] {
        let (bounded, ..) = bounded("AROASEARCH", &[], given);
        assert_eq!(bounded.refusals.is_empty(), allowed, "{given}: {:?}", bounded.refusals);
    }
    let policy = policy();
    let request = request(&[], "search-train");
    let definition = serde_json::from_str(
        r#"{"jobDefinitionName":"search-train","type":"container","containerProperties":{"image":"i",
            "jobRoleArn":"arn:aws:iam::1:role/admin","executionRoleArn":"arn:aws:iam::1:role/search-pull"}}"#,
    )
    .expect("a definition");
    let claims = Claims { request: &request, definition: Some(&definition), metadata: &Metadata::default() };
    let told = bound(policy.identity_of(&sender("AROASEARCH")), &claims).refusals;
    let told: Vec<_> = told.into_iter().map(|refusal| refusal.message).collect();
    assert_eq!(
        told,
        ["identity `search` may not run jobs as `arn:aws:iam::1:role/admin`; it may `arn:aws:iam::*:role/search-*`"]
    );
}

#[test]
fn rights_reach_as_far_as_the_policy_says() {
    let policy = policy();
    let (search, other) = (sender("AROASEARCH:a"), sender("AROAOTHER"));
    let of = |owner, team| Some(Relation { owner, team });
    for (who, verb, relation, allowed) in [
        ("AROASEARCH:b", Verb::Cancel, of(&search, Some("search")), true),
        ("AROASEARCH:b", Verb::Cancel, of(&other, Some("ranking")), true),
        ("AROASEARCH:b", Verb::Cancel, of(&other, Some("billing")), false),
        ("AROASEARCH:b", Verb::Cancel, of(&other, None), false),
        ("AROASEARCH:b", Verb::Hold, of(&other, None), true),
        ("AROASEARCH:b", Verb::Requeue, of(&search, Some("search")), false),
        ("AROASEARCH:b", Verb::ApplyPolicy, None, false),
        ("AROASEARCH:b", Verb::Release, of(&search, None), true),
        ("AROASEARCH:b", Verb::Release, of(&other, None), false),
        ("AROAOTHER:x", Verb::Cancel, of(&other, None), true),
        ("AROAOTHER:x", Verb::Cancel, of(&search, None), false),
        ("AROAOTHER:x", Verb::SetMode, None, false),
        ("AROAOPS", Verb::ApplyPolicy, None, true),
        ("AROAOPS", Verb::Cancel, of(&search, None), true),
        ("AROAOPS", Verb::Discard, of(&search, None), false),
    ] {
        let permitted = policy.permit(&sender(who), verb, relation);
        assert_eq!(permitted.is_ok(), allowed, "{who} {verb:?} {relation:?}");
        assert!(permitted.err().is_none_or(|refusal| refusal.code == ReasonCode::NotAllowed));
    }
}

#[test]
fn a_refused_act_says_what_is_allowed_and_whom_to_ask() {
    let policy = policy();
    let (owner, me) = (sender("AROAOTHER"), sender("AROASEARCH"));
    let told = |verb, relation| policy.permit(&me, verb, relation).expect_err("denied").message;
    assert_eq!(
        told(Verb::Cancel, Some(Relation { owner: &owner, team: None })),
        "identity `search` may cancel jobs of its teams only, and this is none; ask somebody whose identity has \
         `cancel = \"all\"` in the policy"
    );
    assert_eq!(
        told(Verb::Release, Some(Relation { owner: &owner, team: None })),
        "identity `search` may release its own jobs only, and somebody else sent this one; ask somebody whose identity \
         has `release = \"all\"` in the policy"
    );
    assert_eq!(
        told(Verb::ApplyPolicy, None),
        "identity `search` may not apply_policy; ask somebody whose identity has `apply_policy = \"all\"` in the policy"
    );
}

#[test]
fn without_identities_everybody_may_do_everything_and_the_check_says_so() {
    let loaded = Policy::load(TIERS).expect("a policy");
    let anybody = loaded.policy.identity_of(&sender("AROAOTHER"));
    assert!(anybody.may_claim_everything());
    for verb in Verb::ALL {
        assert!(loaded.policy.permit(&sender("AROAOTHER"), verb, None).is_ok(), "{verb:?}");
    }
    let told = |text: &str| {
        let warnings = Policy::load(text).expect("a policy").warnings;
        warnings
            .into_iter()
            .filter(|warning| warning.path.starts_with("identity"))
            .map(|warning| warning.to_string())
            .collect::<Vec<_>>()
    };
    let sentence = "whoever may send a job may claim every environment and every tier; bound the identity `default`";
    assert_eq!(told(TIERS), [format!("1:1: identity: {sentence}")]);
    assert_eq!(
        told(&format!("{TIERS}\n[[identity]]\nname = \"default\"\n")),
        [format!("28:1: identity[0]: {sentence}")]
    );
    assert_eq!(told(&format!("{TIERS}{IDENTITIES}")), [] as [String; 0]);
}

#[test]
fn mistakes_of_identities_are_told_with_their_way_out() {
    let told = |body: &str| {
        let text = format!("{TIERS}[[identity]]\n{body}\n[[identity]]\nname = \"default\"\n");
        let errors = Policy::load(&text).expect_err("a policy with mistakes");
        errors
            .iter()
            .map(|error| format!("{}: {} | {}", error.path, error.message, error.help.as_deref().unwrap_or("")))
            .collect::<Vec<_>>()
    };
    for (body, want) in [
        (
            "name = \"a\"",
            "identity[0].who: the identity matches everybody | give `who` with ids of senders, or `from` with names of queues, or name it `default`",
        ),
        ("name = \"default\"", "identity[1].name: an identity `default` stands above already | give it another name"),
        (
            "name = \"a\"\nwho = [\"AROAX:ada\"]",
            "identity[0].who[0]: `AROAX:ada` names a session, which is chosen by whoever assumes the role | leave out what follows the `:`, or write `sessions = true` if the role is a permission set of IAM Identity Center, which names sessions itself",
        ),
        (
            "name = \"a\"\nwho = [\"x\"]\ntier_at_most = \"critcal\"",
            "identity[0].tier_at_most: unknown tier `critcal` | did you mean `critical`?",
        ),
        (
            "name = \"a\"\nwho = [\"x\"]\nbeyond = \"drop\"",
            "identity[0].beyond: `drop` is nothing that can become of a claim | write `refuse` or `lower`",
        ),
        (
            "name = \"a\"\nwho = [\"x\"]\nmay = { cancle = \"own\" }",
            "identity[0].may.cancle: unknown key `cancle` | did you mean `cancel`?",
        ),
        (
            "name = \"a\"\nwho = [\"x\"]\nmay = { cancel = \"everybody\" }",
            "identity[0].may.cancel: `everybody` is no scope of `cancel` | write `nobody`, `own`, `team` or `all`",
        ),
        (
            "name = \"a\"\nwho = [\"x\"]\nmay = { set_mode = \"own\" }",
            "identity[0].may.set_mode: `own` is no scope of `set_mode` | write `nobody` or `all`",
        ),
        ("name = \"a\"\nwho = [\"x\"]\nteam = \"x\"", "identity[0].team: unknown key `team` | did you mean `teams`?"),
    ] {
        assert_eq!(told(body), [want], "{body}");
    }
    let alone = Policy::load(&format!("{TIERS}[[identity]]\nname = \"a\"\nwho = [\"x\"]\n")).expect_err("no default");
    assert_eq!(
        alone.iter().map(|error| error.message.as_str()).collect::<Vec<_>>(),
        ["no identity is named `default`"]
    );
}

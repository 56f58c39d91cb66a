//! What a sender may claim and do, through the whole function: message in, records out.

use osprey_model::id::{JobId, MessageId};
use osprey_model::job::{Job, JobState};
use osprey_model::pool::Pool;
use osprey_model::reason::ReasonCode;
use osprey_model::sender::Sender;
use osprey_pipeline::acted::Acted;
use osprey_pipeline::context::{Context, Settings};
use osprey_pipeline::{key, record, repository};
use osprey_policy::Policy;
use osprey_ports::{GetItem as _, QueueKind, ReceivedMessage};
use serde_json::json;

use crate::counting::Counting;

const IDENTITIES: &str = r#"
[[identity]]
name = "search"
who = ["AROASEARCH"]
teams = ["search"]
environments = ["dev"]
definitions = ["train"]
may = { cancel = "team" }

[[identity]]
name = "bulk"
who = ["AROABULK"]
teams = ["bulk", "other"]
jobs_per_minute = 3

[[identity]]
name = "operator"
who = ["AROAOPS"]
may = { cancel = "all", hold = "all", redrive = "all" }

[[identity]]
name = "default"
tier_at_most = "experimental"
"#;

const POOLS: &str = r#"[{"name":"main","mode":"direct","capacity":"on-demand","gpus_per_node":8,"nodes_max":4,
    "vcpus_per_node":null,"memory_mib_per_node":null,"fair_share":true,
    "queues":{"critical":"osprey-main-critical","production":"osprey-main-production",
              "experimental":"osprey-main-experimental","preemptible":"osprey-main-preemptible"}}]"#;

/// A pipeline with identities, to which senders send.
struct House {
    ports: Counting,
    policy: Policy,
    pools: Vec<Pool>,
    settings: Settings,
    sent: std::cell::Cell<u32>,
}

impl House {
    fn new() -> Self {
        let text = osprey_policy::DEFAULT;
        let (before, after) = text.split_once("[[identity]]").expect("the default policy has an identity");
        let (_, tests) = after.split_once("# ---- tests").expect("tests follow");
        let text = format!("{before}{IDENTITIES}#{tests}");
        Self {
            ports: Counting::new(),
            policy: Policy::load(&text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy,
            pools: serde_json::from_str(POOLS).unwrap(),
            settings: Settings::default(),
            sent: std::cell::Cell::new(0),
        }
    }

    async fn send(&self, principal: &str, body: &serde_json::Value) -> MessageId {
        let number = self.sent.replace(self.sent.get() + 1);
        let id = MessageId::new(format!("6f1c4b54-70c5-4c8e-9a34-{number:012}"));
        let message = ReceivedMessage {
            id: id.clone(),
            body: body.to_string(),
            sender: Sender::new(QueueKind::Submissions.name(), principal),
            sent_at: jiff::Timestamp::now(),
            receive_count: 1,
        };
        let ctx = Context { policy: &self.policy, pools: &self.pools, settings: &self.settings };
        assert_eq!(osprey_submit::handle(&ctx, &self.ports, QueueKind::Submissions, &[message]).await, []);
        id
    }

    async fn job(&self, id: JobId) -> Job {
        repository::load(&self.ports, id).await.unwrap().expect("a job").job
    }

    /// Sends a job with these tags; its record.
    async fn submit(&self, principal: &str, definition: &str, tags: serde_json::Value) -> Job {
        let id = self.send(principal, &json!({"jobName": "j", "jobDefinition": definition, "tags": tags})).await;
        self.job(JobId::of_message(&id)).await
    }

    /// What came of an action: the sentence of what was done, or the refusal's code.
    async fn act(&self, principal: &str, action: serde_json::Value) -> Result<String, ReasonCode> {
        let id = self.send(principal, &action).await;
        let item = self.ports.get_item(&key::action(&id)).await.unwrap().expect("what came of it is kept");
        let acted: Acted = repository::read(&item).unwrap();
        match (acted.done, acted.refusal) {
            (Some(done), None) => Ok(done),
            (None, Some(refusal)) => Err(refusal.code),
            both => panic!("{both:?}"),
        }
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn a_forged_team_or_environment_is_refused_and_recorded() {
    let house = House::new();
    run(async {
        for tags in [json!({"team": "production"}), json!({"environment": "production"}), json!({"ENV": "PRODUCTION"})]
        {
            let job = house.submit("AROASEARCH:x", "train", tags.clone()).await;
            assert_eq!(job.state, JobState::Refused, "{tags}");
            assert_eq!(job.end.map(|end| end.code), Some(ReasonCode::NotAllowed), "{tags}");
        }
    });
}

#[test]
fn a_forged_tier_is_lowered_and_the_record_says_by_whom() {
    let house = House::new();
    run(async {
        let job = house
            .submit("AROASTRANGER:x", "train", json!({"environment": "production", "workload": "inference"}))
            .await;
        assert_eq!((job.priority, job.tier.as_str()), (799, "experimental"));
        let kept = record::of_job(&house.ports, job.id).await.unwrap();
        let steps = kept.decision.expect("a decision").derivation.steps;
        let step = steps.iter().find(|step| step.rule == "identity").expect("a step of the identity");
        assert_eq!((step.matched, step.priority_after), (true, 799));
    });
}

#[test]
fn a_definition_beyond_the_sender_is_not_run_for_it() {
    let house = House::new();
    run(async {
        let job = house.submit("AROASEARCH", "billing:3", json!({})).await;
        assert_eq!(job.end.map(|end| end.code), Some(ReasonCode::NotAllowed));
        assert_eq!(house.ports.counted().submissions, 0);
    });
}

#[test]
fn a_job_without_a_team_is_counted_with_its_senders_team() {
    let house = House::new();
    run(async {
        let job = house.submit("AROASEARCH", "train", json!({"environment": "dev"})).await;
        assert_eq!(job.team.as_deref(), Some("search"));
        assert_ne!(job.state, JobState::Refused);
    });
}

#[test]
fn a_flood_of_one_team_is_spread_over_minutes_and_keeps_nobody_else_waiting() {
    let house = House::new();
    run(async {
        let mut minutes = std::collections::BTreeMap::<i64, u32>::new();
        for _ in 0..8 {
            let job = house.submit("AROABULK:x", "train", json!({"team": "bulk"})).await;
            *minutes.entry(job.not_before.max(job.created_at) / 60_000).or_default() += 1;
        }
        assert!(minutes.len() >= 3 && minutes.values().all(|jobs| *jobs <= 3), "{minutes:?}");
        // A session of another name is the same sender's; another team, and another sender, have places of their own.
        let same = house.submit("AROABULK:y", "train", json!({"team": "bulk"})).await;
        assert!(same.not_before > same.created_at);
        for (who, tags) in [("AROABULK:x", json!({"team": "other"})), ("AROASEARCH:x", json!({}))] {
            let job = house.submit(who, "train", tags).await;
            assert!(job.not_before <= job.created_at, "{who}");
        }
        let kept = record::of_job(&house.ports, same.id).await.unwrap();
        let warnings = kept.decision.expect("a decision").warnings;
        assert!(warnings.iter().any(|why| why.starts_with("3 jobs a minute are let in")), "{warnings:?}");
    });
}

#[test]
fn who_goes_first_and_what_a_pool_starts_is_not_for_everybody_to_say() {
    let house = House::new();
    run(async {
        let job = house.submit("AROASEARCH:x", "train", json!({})).await;
        for action in [
            json!({"action": "TopJob", "jobId": job.id}),
            json!({"action": "ReportPriority", "jobId": job.id, "points": 200}),
            json!({"action": "DrainPool", "pool": "main"}),
            json!({"action": "ResumePool", "pool": "main"}),
            json!({"action": "Reserve", "pool": "main", "team": "x", "gpus": 32, "until": "2099-01-01T00:00:00Z"}),
        ] {
            assert_eq!(house.act("AROAOTHER:x", action.clone()).await, Err(ReasonCode::NotAllowed), "{action}");
        }
        // One's own job's report counts, and one's own job goes no further forward for that.
        let report = json!({"action": "ReportPriority", "jobId": job.id, "points": 50});
        assert_eq!(house.act("AROASEARCH:x", report).await, Ok("+50 points for what comes after it".to_owned()));
        let top = json!({"action": "TopJob", "jobId": job.id});
        assert_eq!(house.act("AROASEARCH:x", top).await, Err(ReasonCode::NotAllowed));
    });
}

#[test]
fn nobody_cancels_the_job_of_another_but_who_may() {
    let house = House::new();
    run(async {
        let job = house.submit("AROASEARCH:one", "train", json!({})).await;
        let cancel = json!({"action": "CancelJob", "jobId": job.id.to_string(), "reason": "mine now"});
        assert_eq!(house.act("AROASTRANGER:one", cancel.clone()).await, Err(ReasonCode::NotAllowed));
        // A session may be called like somebody else.
        assert_eq!(house.act("AROASTRANGER:AROASEARCH", cancel.clone()).await, Err(ReasonCode::NotAllowed));
        assert!(house.job(job.id).await.stop.is_none());
        assert_eq!(house.act("AROASEARCH:two", cancel.clone()).await, Ok("is being stopped".to_owned()));
        let other = house.submit("AROASEARCH:one", "train", json!({})).await;
        let cancel = json!({"action": "CancelJob", "jobId": other.id.to_string(), "reason": "on call"});
        assert_eq!(house.act("AROAOPS", cancel).await, Ok("is being stopped".to_owned()));
    });
}

#[test]
fn nobody_preempts_or_reports_for_the_job_of_another_but_who_may() {
    let house = House::new();
    run(async {
        let job = house.submit("AROASEARCH:x", "train", json!({"team": "search"})).await;
        let report = json!({"action": "ReportCheckpoint", "jobId": job.id, "uri": "s3://b/1", "progress": 99});
        let preempt = json!({"action": "PreemptJob", "jobId": job.id});
        for action in [&report, &preempt] {
            assert_eq!(house.act("AROAOTHER:x", action.clone()).await, Err(ReasonCode::NotAllowed), "{action}");
        }
        let untouched = house.job(job.id).await;
        assert_eq!((untouched.saved, untouched.evict), (None, None));
        assert_eq!(house.act("AROASEARCH:y", report).await, Ok("noted".to_owned()));
        let done = house.act("AROASEARCH:y", preempt).await.unwrap();
        assert!(done.starts_with("is being preempted: 0.0 GPU-minutes"), "{done}");
        let touched = house.job(job.id).await;
        assert!(touched.saved.is_some_and(|saved| saved.percent == Some(99)) && touched.evict.is_some());
    });
}

#[test]
fn a_policy_or_a_mode_is_not_for_everybody_to_set() {
    let house = House::new();
    run(async {
        for action in [
            json!({"action": "ApplyPolicy", "policy": osprey_policy::DEFAULT}),
            json!({"action": "SetMode", "pool": "main", "mode": "pass-through"}),
        ] {
            for who in ["AROASTRANGER", "AROASEARCH", "AROAOPS"] {
                assert_eq!(house.act(who, action.clone()).await, Err(ReasonCode::NotAllowed), "{who}");
            }
        }
    });
}

/// A dead letter that quotes another's message must not be sent through again by a stranger.
#[test]
fn a_dead_letter_is_redriven_by_its_owner_or_by_who_may() {
    let house = House::new();
    run(async {
        let id = house.send("AROASEARCH:one", &json!("no object")).await;
        let redrive = json!({"action": "RedriveDeadLetter", "deadLetterId": JobId::of_message(&id).to_string()});
        assert_eq!(house.act("AROASTRANGER", redrive.clone()).await, Err(ReasonCode::NotAllowed));
        assert_eq!(house.act("AROASEARCH:two", redrive).await, Ok("sent through again".to_owned()));
    });
}

/// An id is known to whoever reads a log: using it must not make one the owner of the job.
#[test]
fn an_id_that_is_taken_is_refused_to_others_and_a_duplicate_to_its_owner() {
    let house = House::new();
    run(async {
        let id = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
        let body = json!({"jobName": "j", "jobDefinition": "train", "tags": {"osprey:job-id": id}});
        house.send("AROAOPS:one", &body).await;
        let mine = house.job(JobId::parse(id).unwrap()).await;
        let squatter = house.send("AROASTRANGER:AROAOPS", &body).await;
        let refused = house.job(JobId::of_message(&squatter)).await;
        assert_eq!(refused.end.map(|end| end.code), Some(ReasonCode::IdReused));
        let again = house.send("AROAOPS:two", &body).await;
        assert!(repository::load(&house.ports, JobId::of_message(&again)).await.unwrap().is_none());
        assert_eq!(house.job(mine.id).await.message, mine.message);
    });
}

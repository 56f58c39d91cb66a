//! An urgent job comes to a full pool: who goes for it, in which order that happens, and what is left when it breaks off.

use osprey_model::end::EndClass;
use osprey_model::id::{JobId, MessageId};
use osprey_model::job::{Job, JobState, Needs, Run};
use osprey_pipeline::evict::{By, Planned, Receipt, Rule};
use osprey_pipeline::{dispatch, key, line, repository, view};
use osprey_ports::{Capacity, Expect, NodeCapacity, QueueKind};
use serde_json::json;

use crate::place::Place;
use crate::world::{Checked, block_on, message};

const MINUTE_MS: i64 = 60_000;

/// A pool of `nodes` nodes, each full with one job of eight GPUs that has run for so many minutes.
struct Full {
    place: Place,
    victims: Vec<JobId>,
}

impl Full {
    fn new(name: &str, nodes: u32, minutes: i64) -> Result<Self, Box<dyn std::error::Error>> {
        let place = Place::new(name, &["main"])?;
        let node =
            |number| NodeCapacity { id: format!("n-{number}"), gpus: 8, gpus_used: 8, ..NodeCapacity::default() };
        let capacity = Capacity { nodes: (0..nodes).map(node).collect(), obtainable: 0 };
        place.world.capacity.lock().unwrap().insert("main".to_owned(), capacity);
        let mut full = Self { place, victims: Vec::new() };
        for number in 0..nodes {
            full.victims.push(full.running(number, minutes)?);
        }
        Ok(full)
    }

    /// A job of the tier `experimental` that runs on a node.
    fn running(&self, number: u32, minutes: i64) -> Result<JobId, Box<dyn std::error::Error>> {
        let id = self.place.send(&format!("run-{number}"), "dev", "training", &[]);
        let job = self.place.job(id);
        let started_at = self.place.world.now_ms() - minutes * MINUTE_MS;
        let run = Run {
            id: format!("r-{number}").as_str().into(),
            queue: "q".into(),
            submitted_at: started_at,
            claimed_at: Some(started_at),
            started_at: Some(started_at),
            node: Some(format!("n-{number}")),
        };
        let needs = Needs { saves_every_seconds: Some(600), ..job.needs };
        let after = Job { state: JobState::Running, attempt: 1, run: Some(run), needs, ..job.clone() };
        let version = block_on(repository::load(&self.place.world, id))?.unwrap().version;
        let expect = Expect::Version(version);
        self.place.world.store.write(&repository::writes(Some(&job), &after, &self.place.settings, expect)?)?;
        let owner = osprey_pipeline::outgoing::Owner { job: id, attempt: 1 };
        let row = repository::create(key::batch(&format!("r-{number}").as_str().into()), repository::json(&owner));
        self.place.world.store.write(&[row])?;
        Ok(id)
    }

    fn urgent(&self, name: &str) -> JobId {
        self.place.send(name, "production", "inference", &[])
    }

    fn receipt(&self, job: JobId) -> Option<Receipt> {
        block_on(view::describe(&self.place.world, job)).unwrap().unwrap().evictions.pop()
    }

    fn planned(&self) -> Vec<Planned> {
        block_on(line::held(&self.place.world, &"main".into())).unwrap().planned
    }

    /// Batch says how a run ended.
    fn ended(&self, number: usize, status: &str, reason: &str) {
        let now = self.place.world.now_ms();
        let detail = json!({
            "jobId": format!("r-{number}"), "jobName": "run", "jobQueue": "q", "status": status,
            "statusReason": reason, "createdAt": now - 40 * MINUTE_MS, "startedAt": now - 35 * MINUTE_MS, "stoppedAt": now,
        });
        let event = json!({
            "id": "e", "detail-type": "Batch Job State Change", "source": "aws.batch", "time": "2026-11-30T09:00:00Z",
            "detail": detail,
        });
        let event = message(&self.place.world, "e", QueueKind::Events, event.to_string());
        assert_eq!(block_on(osprey_requeue::handle(&self.place.context(), &self.place.world, &[event])), []);
    }

    /// What Batch was asked for, in order.
    fn calls(&self) -> Vec<String> {
        self.place.world.calls.lock().unwrap().clone()
    }

    fn act(&self, body: &serde_json::Value) {
        let name = format!("act-{}", self.place.world.requests());
        let sent = message(&self.place.world, &name, QueueKind::Submissions, body.to_string());
        let (context, sent) = (self.place.context(), [sent]);
        let handled = osprey_submit::handle(&context, &self.place.world, QueueKind::Submissions, &sent);
        assert_eq!(block_on(handled), []);
    }
}

#[test]
fn who_takes_the_place_is_submitted_before_anybody_is_stopped_and_each_has_a_receipt() -> Checked {
    let full = Full::new("evict", 2, 35)?;
    let urgent = full.urgent("serve");
    full.place.cycle("main");
    let gone: Vec<JobId> = full.victims.iter().copied().filter(|id| full.place.job(*id).evict.is_some()).collect();
    assert_eq!(gone.len(), 1, "eight GPUs are wanted, and no more go");
    let number = full.victims.iter().position(|id| *id == gone[0]).unwrap();
    assert_eq!(
        full.calls(),
        ["submit serve".to_owned(), format!("terminate r-{number} OSPREY preempted for={urgent}")]
    );
    let receipt = full.receipt(gone[0]).unwrap();
    let by = By::Job { job: urgent, job_tier: "critical".into(), job_priority: 1150, rule: Rule::MayPreempt };
    assert_eq!((receipt.by, receipt.end), (by, None));
    // 35 minutes of run, a checkpoint every ten: five minutes on eight GPUs are lost.
    assert_eq!((receipt.lost_gpu_ms, receipt.kept_ms), (8 * 300_000, 1_800_000));
    assert_eq!(full.planned(), [], "Batch was asked for everybody who goes");
    // What the victim frees is kept: the next cycle evicts nobody for the same job, and starts nobody there.
    full.place.send("other", "dev", "training", &[]);
    full.place.cycle("main");
    assert_eq!(full.calls().len(), 2);
    full.ended(number, "FAILED", &format!("OSPREY preempted for={urgent}"));
    let back = full.place.job(gone[0]);
    assert_eq!((back.state, back.last_end, back.evict), (JobState::Queued, Some(EndClass::Preempted), None));
    assert_eq!((back.counts.preemptions, back.counts.failures, back.budget.interruptions), (1, 0, 0));
    assert_eq!((back.kept_ms, back.not_before <= full.place.world.now_ms()), (1_800_000, true));
    assert_eq!(full.receipt(gone[0]).unwrap().end, Some(EndClass::Preempted));
    Ok(())
}

/// What an eviction writes beyond what the start of the urgent job and the victim's own end cost: whom the plan stops, the
/// rows of the eviction with the victim's note, and the end of both. docs/cost.md has the figure.
#[test]
fn an_eviction_costs_so_many_write_units() -> Checked {
    let cost = |name: &str, is_full: bool| -> Result<(usize, usize, usize, usize), Box<dyn std::error::Error>> {
        let full = Full::new(name, 1, 35)?;
        if !is_full {
            full.place.world.has("main", 2, 0);
        }
        full.urgent("serve");
        let before = (full.place.world.write_requests(), full.place.world.write_units());
        full.place.cycle("main");
        let started = (full.place.world.write_requests(), full.place.world.write_units());
        full.ended(0, "FAILED", "OSPREY preempted for=serve");
        let ended = (full.place.world.write_requests(), full.place.world.write_units());
        Ok((started.0 - before.0, started.1 - before.1, ended.0 - started.0, ended.1 - started.1))
    };
    let (evicts, only_starts) = (cost("costs", true)?, cost("starts", false)?);
    assert_eq!((evicts, only_starts), ((5, 26, 2, 13), (3, 13, 2, 11)));
    Ok(())
}

#[test]
fn the_word_alone_or_the_row_alone_is_no_eviction() -> Checked {
    let full = Full::new("word", 2, 35)?;
    full.ended(0, "FAILED", "OSPREY preempted for=me");
    let job = full.place.job(full.victims[0]);
    assert_eq!((job.state, job.last_end), (JobState::Failed, Some(EndClass::Cancelled)), "no row: a person's words");
    full.act(&json!({ "action": "PreemptJob", "jobId": full.victims[1], "reason": "the demo is at ten" }));
    full.ended(1, "FAILED", "Host EC2 (instance i-1) terminated.");
    let job = full.place.job(full.victims[1]);
    assert_eq!((job.state, job.last_end), (JobState::Queued, Some(EndClass::HostLost)), "its host went first");
    assert_eq!((job.counts.preemptions, job.counts.host_losses), (0, 1));
    Ok(())
}

#[test]
fn a_victim_that_finished_meanwhile_has_succeeded_and_nothing_is_lost() -> Checked {
    let full = Full::new("finished", 1, 35)?;
    full.urgent("serve");
    full.place.cycle("main");
    full.ended(0, "SUCCEEDED", "Essential container in task exited");
    let job = full.place.job(full.victims[0]);
    assert_eq!((job.state, job.counts.preemptions), (JobState::Succeeded, 0));
    let receipt = full.receipt(job.id).unwrap();
    assert_eq!((receipt.end, receipt.lost_gpu_ms), (Some(EndClass::Succeeded), 0));
    Ok(())
}

#[test]
fn nobody_goes_for_a_job_that_batch_turned_away_and_everybody_once_it_has_it() -> Checked {
    let full = Full::new("unknown", 1, 35)?;
    let urgent = full.urgent("serve");
    full.place.world.refuse_submissions(osprey_ports::SubmitError::Throttled);
    full.place.cycle("main");
    assert_eq!((full.calls().as_slice(), full.planned().as_slice()), (&[][..], &[][..]), "withdrawn at once");
    assert_eq!(full.place.job(full.victims[0]).evict, None);
    // Nobody knows whether Batch has it: the plan stands, and nobody goes yet.
    full.place.world.pass(60);
    full.place.world.refuse_submissions(osprey_ports::SubmitError::Unknown("no answer".to_owned()));
    full.place.cycle("main");
    assert_eq!((full.calls().len(), full.planned().len()), (0, 1));
    full.place.cycle("main");
    assert_eq!((full.calls().len(), full.planned().len()), (0, 1), "and it isn't planned a second time");
    // Its job turns up.
    let settings = &full.place.settings;
    let owner = osprey_pipeline::outgoing::Owner { job: urgent, attempt: 1 };
    let (context, id) = (full.place.context(), "b-1".into());
    let taken = dispatch::take(&context, &full.place.world, owner, &id, None);
    assert!(block_on(taken)?.is_some());
    assert!(repository::due_at(&full.place.job(urgent), settings).is_some());
    full.place.cycle("main");
    assert_eq!(full.calls(), [format!("terminate r-0 OSPREY preempted for={urgent}")]);
    assert_eq!(full.planned(), []);
    Ok(())
}

#[test]
fn a_stop_that_batch_didnt_hear_is_asked_for_again() -> Checked {
    let full = Full::new("again", 1, 35)?;
    full.urgent("serve");
    full.place.world.deaf(true);
    let wake = crate::world::wake_up(&full.place.world, "main");
    let failed = block_on(osprey_schedule::handle(&full.place.context(), &full.place.world, &[wake]));
    assert_eq!((failed.len(), full.planned().len()), (1, 1), "the wake-up comes again, and the plan stands");
    let evict = full.place.job(full.victims[0]).evict;
    assert!(evict.is_some(), "the receipt is written before Batch is asked");
    full.place.world.deaf(false);
    full.place.cycle("main");
    assert_eq!((full.calls().len(), full.planned().len()), (2, 0));
    assert_eq!(full.place.job(full.victims[0]).evict, evict, "once");
    Ok(())
}

/// SPEC 4, modes: preemption on or off.
#[test]
fn a_pool_whose_preemption_is_off_evicts_nobody() -> Checked {
    let mut full = Full::new("off", 1, 35)?;
    full.place.pools[0].preemption = false;
    full.urgent("serve");
    full.place.cycle("main");
    assert_eq!((full.calls().as_slice(), full.planned().as_slice()), (&[][..], &[][..]));
    Ok(())
}

#[test]
fn a_person_has_a_job_preempted_and_it_comes_back() -> Checked {
    let full = Full::new("person", 1, 35)?;
    let body = json!({ "action": "PreemptJob", "jobId": full.victims[0], "reason": "the demo is at ten" });
    full.act(&body);
    assert_eq!(full.calls(), ["terminate r-0 OSPREY preempted by a person"]);
    let receipt = full.receipt(full.victims[0]).unwrap();
    assert!(receipt.to_string().starts_with("by a person: the demo is at ten; 40.0 GPU-minutes"), "{receipt}");
    full.act(&body);
    let acted = block_on(view::describe(&full.place.world, full.victims[0]))?.unwrap().actions;
    let refusals: Vec<String> = acted.iter().filter_map(|acted| Some(acted.refusal.as_ref()?.to_string())).collect();
    let refusal = refusals.concat();
    assert!(refusal.ends_with("which is being preempted already (WrongState)"), "{refusal}");
    full.ended(0, "FAILED", "OSPREY preempted by a person");
    let job = full.place.job(full.victims[0]);
    assert_eq!((job.state, job.counts.preemptions), (JobState::Queued, 1));
    Ok(())
}

#[test]
fn a_reported_checkpoint_says_what_is_lost_and_the_next_attempt_gets_its_address() -> Checked {
    let full = Full::new("reported", 1, 35)?;
    let report =
        |uri: &str| json!({ "action": "ReportCheckpoint", "jobId": full.victims[0], "uri": uri, "progress": 40 });
    full.act(&report("s3://b/step-7"));
    full.place.world.pass(60);
    full.act(&json!({ "action": "PreemptJob", "jobId": full.victims[0] }));
    let receipt = full.receipt(full.victims[0]).unwrap();
    assert_eq!((receipt.lost_gpu_ms, receipt.kept_ms), (8 * 60_000, 35 * 60_000));
    full.ended(0, "FAILED", "OSPREY preempted by a person");
    full.place.world.has("main", 1, 0);
    block_on(dispatch::dispatch(&full.place.context(), &full.place.world, full.victims[0]))?;
    full.place.cycle("main");
    let submitted = full.place.world.submitted.lock().unwrap();
    let environment = submitted[0].request.container_overrides.as_ref().unwrap().environment.clone().unwrap();
    let value = |name: &str| environment.iter().find(|pair| pair.name.as_deref() == Some(name))?.value.clone();
    assert_eq!(value("OSPREY_RESUME_URI").as_deref(), Some("s3://b/step-7"));
    assert_eq!(value("OSPREY_CHECKPOINT_URI").as_deref(), Some("s3://b/step-7"), "no other folder was named");
    Ok(())
}

/// D7: a job that is 99 % done is spared, whatever else a policy says.
#[test]
fn a_job_that_says_it_is_nearly_done_is_spared_d7() -> Checked {
    let full = Full::new("near", 1, 35)?;
    full.act(&json!({ "action": "ReportCheckpoint", "jobId": full.victims[0], "uri": "s3://b/1", "progress": 99 }));
    full.urgent("serve");
    full.place.cycle("main");
    assert_eq!(full.calls().len(), 0);
    Ok(())
}

#[test]
fn a_tiers_budget_counts_what_is_recorded() -> Checked {
    let mut full = Full::new("budget", 3, 35)?;
    let text = osprey_policy::DEFAULT.replace(
        "[[tier]]\nname = \"experimental\"\n",
        "[[tier]]\nname = \"experimental\"\nevictions_per_window = 1\neviction_window = \"1h\"\n",
    );
    full.place.policy = osprey_policy::Policy::load(&text).map_err(|errors| format!("{errors:?}"))?.policy;
    full.urgent("first");
    full.place.cycle("main");
    full.urgent("second");
    full.place.cycle("main");
    assert_eq!(full.calls().len(), 2, "the budget of an hour is spent: {:?}", full.calls());
    full.place.world.pass(3_700);
    full.place.cycle("main");
    assert_eq!(full.calls().len(), 4, "{:?}", full.calls());
    Ok(())
}

#[test]
fn a_job_is_evicted_no_more_often_than_its_tier_allows() -> Checked {
    let mut full = Full::new("cap", 1, 35)?;
    let text = osprey_policy::DEFAULT
        .replace("[[tier]]\nname = \"experimental\"\n", "[[tier]]\nname = \"experimental\"\nevictions_per_job = 1\n");
    full.place.policy = osprey_policy::Policy::load(&text).map_err(|errors| format!("{errors:?}"))?.policy;
    let loaded = block_on(repository::load(&full.place.world, full.victims[0]))?.unwrap();
    let mut after = loaded.job.clone();
    after.counts.preemptions = 1;
    let expect = Expect::Version(loaded.version);
    let writes = repository::writes(Some(&loaded.job), &after, &full.place.settings, expect)?;
    full.place.world.store.write(&writes)?;
    full.urgent("serve");
    full.place.cycle("main");
    assert_eq!(full.calls().len(), 0);
    Ok(())
}

#[test]
fn a_report_of_a_job_that_nobody_knows_is_refused_and_kept() -> Checked {
    let full = Full::new("nobody", 1, 35)?;
    let unknown = JobId::of_message(&MessageId::new("nobody"));
    full.act(&json!({ "action": "ReportCheckpoint", "jobId": unknown, "uri": "s3://b/1" }));
    Ok(())
}

//! What a scheduling cycle asks of the table: the same, however many jobs wait.

use osprey_model::id::{JobId, MessageId};
use osprey_model::job::Job;
use osprey_pipeline::context::{Context, Settings};
use osprey_pipeline::{line, repository};
use osprey_policy::Policy;
use osprey_ports::{Expect, QueueKind};

use crate::world::{Checked, World, block_on, message, pool, wake_up};

fn waiting(number: usize, tier: &str) -> Job {
    let message = MessageId::new(format!("{tier}-{number}"));
    let created_at = i64::try_from(number).unwrap_or(0);
    Job {
        payload: "0".repeat(16),
        name: "train".to_owned(),
        tier: tier.into(),
        priority: 500,
        pool: "main".into(),
        policy: "0123456789ab".into(),
        gpus: 8,
        scheduled: true,
        updated_at: 0,
        ..Job::new(JobId::of_message(&message), message, created_at)
    }
}

/// Requests of one cycle with so many jobs waiting in each of two tiers.
fn requests(jobs: usize) -> Result<u32, Box<dyn std::error::Error>> {
    let world = World::new(&jobs.to_string())?;
    let settings = Settings::default();
    for tier in ["production", "experimental"] {
        for number in 0..jobs {
            world.store.write(&repository::writes(None, &waiting(number, tier), &settings, Expect::Absent)?)?;
        }
    }
    let policy = Policy::load(osprey_policy::DEFAULT).map_err(|_| "the default policy")?.policy;
    let pools = [pool("main", &policy)];
    let context = Context { policy: &policy, pools: &pools, settings: &settings };
    let failed = block_on(osprey_schedule::handle(&context, &world, &[wake_up(&world, "main")]));
    assert_eq!(failed, [], "the cycle ran");
    Ok(world.requests())
}

#[test]
fn a_cycles_requests_dont_grow_with_the_backlog() -> Checked {
    let few = requests(3)?;
    let many = requests(osprey_schedule::load::WINDOW * 2)?;
    // The line, what is held, who waits for whom, and the plan twice; of tiers longer than a window more of the line, and
    // a piece of what is behind.
    let more = requests(osprey_schedule::load::WINDOW * 4)?;
    assert_eq!((few, many, more), (5, 8, 8));
    Ok(())
}

/// Write requests and write units.
type Cost = (usize, usize);

/// What a job of a team writes in a pool that holds its jobs, until it is recorded and until Batch has it.
fn cost(name: &str, policy: &str) -> Result<(Cost, Cost), Box<dyn std::error::Error>> {
    let world = World::new(name)?;
    let policy = Policy::load(policy).map_err(|errors| format!("{errors:?}"))?.policy;
    let pools = [pool("main", &policy)];
    world.has("main", 4, 0);
    let settings = Settings { definition_required: false, ..Settings::default() };
    let context = Context { policy: &policy, pools: &pools, settings: &settings };
    let body = r#"{"jobName":"resnet-50-fold-3","jobDefinition":"train:7","containerOverrides":{"command":["python","train.py","--config","PAD"],"resourceRequirements":[{"type":"GPU","value":"8"},{"type":"VCPU","value":"64"},{"type":"MEMORY","value":"245760"}]},"tags":{"team":"vision","environment":"production","workload":"training","expected-duration":"2h"}}"#;
    let body = body.replace("PAD", &"c".repeat(1024 - body.len() + 3));
    let sent = message(&world, "m", QueueKind::Submissions, body);
    assert_eq!(block_on(osprey_submit::handle(&context, &world, QueueKind::Submissions, &[sent])), []);
    let recorded = (world.write_requests(), world.write_units());
    assert_eq!(block_on(osprey_schedule::handle(&context, &world, &[wake_up(&world, "main")])), []);
    assert_eq!(world.submitted.lock().unwrap().len(), 1);
    Ok((recorded, (world.write_requests(), world.write_units())))
}

/// Its record, its place and its state; the plan that starts it; its claim with the plan's step, what it holds and its
/// place's end; Batch's id.
#[test]
fn a_held_job_costs_so_many_write_units() -> Checked {
    assert_eq!(cost("units", osprey_policy::DEFAULT)?, ((1, 8), (4, 21)));
    Ok(())
}

/// The counter of its team's GPUs and the row of what it holds, in the claim's transaction.
#[test]
fn a_held_job_of_a_team_with_quotas_costs_four_write_units_more() -> Checked {
    let quotas = std::fs::read_to_string(osprey_tests::root().join("tests/golden/quotas.toml"))?;
    assert_eq!(cost("quota-units", &quotas)?, ((1, 8), (4, 25)));
    Ok(())
}

#[test]
fn the_front_of_a_line_is_the_first_of_each_tier() -> Checked {
    let world = World::new("front")?;
    let settings = Settings::default();
    for (number, tier) in [(1, "a"), (2, "a"), (3, "a"), (4, "a-b"), (5, "b"), (6, "b")] {
        world.store.write(&repository::writes(None, &waiting(number, tier), &settings, Expect::Absent)?)?;
    }
    for (window, want, is_cut) in
        [(1, vec![1, 4, 5], true), (2, vec![1, 2, 4, 5, 6], true), (9, (1..=6).collect(), false)]
    {
        let (front, cut) = block_on(line::front(&world, &"main".into(), window))?;
        let found: Vec<i64> = front.iter().map(|job| job.enqueued_at).collect();
        assert_eq!((found, cut), (want, is_cut), "window {window}");
    }
    Ok(())
}

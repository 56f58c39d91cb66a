//! What past runs teach, from the events of one job to the line of the next, and how good it was.

use osprey_model::event::{BatchStatus, JobDetail};
use osprey_model::id::JobId;
use osprey_model::job::{EstimateSource, Needs};
use osprey_pipeline::apply::{self, Source};
use osprey_pipeline::context::{Context, Settings};
use osprey_pipeline::experience::{self, Judged};
use osprey_pipeline::repository;
use osprey_policy::Policy;
use osprey_ports::QueueKind;
use serde_json::{Value, json};

use crate::world::{Checked, World, block_on, message, pool, wake_up};

fn with_context<T>(world: &World, does: impl FnOnce(&Context<'_>) -> T) -> T {
    let policy = Policy::load(osprey_policy::DEFAULT).ok().map(|loaded| loaded.policy).unwrap();
    let settings = Settings { definition_required: false, ..Settings::default() };
    let pools = [pool("main", &policy)];
    world.has("main", 4, 0);
    does(&Context { policy: &policy, pools: &pools, settings: &settings })
}

/// Sends a job of eight GPUs with these tags.
fn send(world: &World, name: &str, definition: &str, tags: &Value) -> JobId {
    let gpus = json!([{ "type": "GPU", "value": "8" }]);
    let overrides = json!({ "command": ["train"], "resourceRequirements": gpus });
    let body = json!({ "jobName": name, "jobDefinition": definition, "containerOverrides": overrides, "tags": tags });
    let message = message(world, name, QueueKind::Submissions, body.to_string());
    let id = JobId::of_message(&message.id);
    let failed =
        with_context(world, |ctx| block_on(osprey_submit::handle(ctx, world, QueueKind::Submissions, &[message])));
    assert_eq!(failed, []);
    id
}

fn needs(world: &World, id: JobId) -> Needs {
    block_on(repository::load(world, id)).unwrap().unwrap().job.needs
}

/// Starts a job, and lets it run for so many seconds.
fn run(world: &World, id: JobId, seconds: i64) {
    with_context(world, |ctx| {
        assert_eq!(block_on(osprey_schedule::handle(ctx, world, &[wake_up(world, "main")])), []);
        let job = block_on(repository::load(world, id)).unwrap().unwrap().job;
        let batch_id = job.run.unwrap().id;
        let from = world.now_ms();
        world.pass(seconds);
        let detail = JobDetail {
            job_id: batch_id.to_string(),
            status: BatchStatus::Succeeded,
            started_at: Some(from),
            stopped_at: Some(world.now_ms()),
            ..JobDetail::default()
        };
        block_on(apply::apply(ctx, world, &detail, Source::Event)).unwrap();
    });
}

#[test]
fn runs_teach_what_the_next_jobs_of_a_kind_are_expected_to_take() -> Checked {
    let world = World::new("estimates")?;
    let search = json!({ "team": "search" });
    for (number, minutes) in [(1, 10), (2, 30), (3, 20)] {
        let id = send(&world, &format!("run-{number}"), "train:1", &search);
        assert_eq!(needs(&world, id).expected_by, None, "nobody knows before there are three runs");
        run(&world, id, minutes * 60);
    }
    let expected = |name: &str, definition: &str, tags: &Value| {
        let needs = needs(&world, send(&world, name, definition, tags));
        (needs.expected_seconds / 60, needs.expected_by)
    };
    // The median; of the team's own runs first, whatever the revision.
    assert_eq!(expected("own", "train:2", &search), (20, Some(EstimateSource::DefinitionOfTeam)));
    assert_eq!(expected("other", "train:1", &json!({ "team": "maps" })), (20, Some(EstimateSource::Definition)));
    assert_eq!(expected("elsewhere", "serve:1", &search), (20, Some(EstimateSource::Team)));
    assert_eq!(expected("unknown", "serve:1", &json!({ "team": "maps" })), (0, None));
    let declared = json!({ "team": "search", "expected-duration": "5m", "max-duration": "3m" });
    assert_eq!(expected("declared", "train:1", &declared), (3, Some(EstimateSource::Declared)));
    Ok(())
}

/// A13: how long its predecessor ran is what is expected of a job.
#[test]
fn one_run_of_the_job_that_it_comes_from_is_enough() -> Checked {
    let world = World::new("predecessor")?;
    let parent = send(&world, "parent", "train:1", &json!({ "team": "search" }));
    run(&world, parent, 700);
    let child = |name: &str, definition: &str| {
        let needs = needs(&world, send(&world, name, definition, &json!({ "parent-job-id": parent.to_string() })));
        (needs.expected_seconds, needs.expected_by)
    };
    assert_eq!(child("same", "train:3"), (700, Some(EstimateSource::Predecessors)));
    assert_eq!(child("another", "serve:1"), (0, None));
    Ok(())
}

#[test]
fn how_good_estimates_are_is_counted_by_how_they_were_known() -> Checked {
    let world = World::new("judged")?;
    for (name, seconds) in [("right", 100), ("long", 300), ("short", 20)] {
        let id = send(&world, name, "train:1", &json!({ "team": "search", "expected-duration": "100s" }));
        run(&world, id, seconds);
    }
    let guessed = send(&world, "guessed", "train:1", &json!({ "team": "search" }));
    run(&world, guessed, 150);
    let judged = |source, runs, within_factor_2, ran_longer| Judged { source, runs, within_factor_2, ran_longer };
    assert_eq!(
        block_on(experience::judged(&world))?,
        [judged(EstimateSource::Declared, 3, 1, 1), judged(EstimateSource::DefinitionOfTeam, 1, 1, 1)]
    );
    Ok(())
}

//! Pools with jobs in them, as the functions make them.

use osprey_model::id::JobId;
use osprey_model::job::Job;
use osprey_model::pool::Pool;
use osprey_pipeline::context::{Context, Settings};
use osprey_pipeline::repository;
use osprey_policy::Policy;
use osprey_ports::{Expect, QueueKind};
use osprey_schedule::why;
use serde_json::json;

use crate::world::{World, block_on, message, pool, wake_up};

const HOUR_MS: i64 = 3_600_000;

/// Pools that hold their jobs, under the default policy.
pub struct Place {
    pub policy: Policy,
    pub pools: Vec<Pool>,
    pub settings: Settings,
    pub world: World,
}

impl Place {
    /// Pools by name.
    pub fn new(name: &str, pools: &[&str]) -> Result<Self, Box<dyn std::error::Error>> {
        let policy = Policy::load(osprey_policy::DEFAULT).map_err(|_| "the default policy")?.policy;
        let settings = Settings { definition_required: false, ..Settings::default() };
        let pools = pools.iter().map(|name| pool(name, &policy)).collect();
        Ok(Self { policy, pools, settings, world: World::new(name)? })
    }

    /// The context of a handler.
    pub fn context(&self) -> Context<'_> {
        Context { policy: &self.policy, pools: &self.pools, settings: &self.settings }
    }

    /// Sends a job of eight GPUs; its id.
    pub fn send(&self, name: &str, environment: &str, workload: &str, depends_on: &[JobId]) -> JobId {
        let depends_on: Vec<_> = depends_on.iter().map(|id| json!({ "jobId": id })).collect();
        let gpus = json!([{ "type": "GPU", "value": "8" }]);
        let body = json!({
            "jobName": name, "jobDefinition": "train:1", "dependsOn": depends_on,
            "containerOverrides": { "command": ["train"], "resourceRequirements": gpus },
            "tags": { "environment": environment, "workload-type": workload, "team": "search" },
        });
        let message = message(&self.world, name, QueueKind::Submissions, body.to_string());
        let id = JobId::of_message(&message.id);
        let failed = block_on(osprey_submit::handle(&self.context(), &self.world, QueueKind::Submissions, &[message]));
        assert_eq!(failed, []);
        id
    }

    /// A job as it is.
    pub fn job(&self, id: JobId) -> Job {
        block_on(repository::load(&self.world, id)).unwrap().unwrap().job
    }

    /// What a cycle of the first pool would do.
    pub fn look(&self) -> why::Look {
        block_on(why::look(&self.context(), &self.world, &self.pools[0])).unwrap()
    }

    /// A cycle of a pool.
    pub fn cycle(&self, pool: &str) {
        let wake = wake_up(&self.world, pool);
        assert_eq!(block_on(osprey_schedule::handle(&self.context(), &self.world, &[wake])), []);
    }

    /// Puts jobs into the line, submitted so many hours ago.
    pub fn stand(&self, numbers: std::ops::Range<u32>, priority: u32, hours_ago: i64) -> Vec<JobId> {
        let now = self.world.now_ms();
        let job = |number: u32| {
            let id = osprey_model::id::MessageId::new(format!("line-{number}"));
            Job {
                payload: "0".repeat(16),
                tier: "experimental".into(),
                priority,
                pool: "main".into(),
                policy: "0123456789ab".into(),
                gpus: 8,
                scheduled: true,
                updated_at: now,
                ..Job::new(JobId::of_message(&id), id, now - hours_ago * HOUR_MS)
            }
        };
        let jobs: Vec<Job> = numbers.map(job).collect();
        for job in &jobs {
            self.world.store.write(&repository::writes(None, job, &self.settings, Expect::Absent).unwrap()).unwrap();
        }
        jobs.iter().map(|job| job.id).collect()
    }
}

//! C30: what a team pays for its crashes. Two teams run their jobs through the handlers for a day of which every second is
//! told; what `osprey usage` then says of them is compared with what was told.

use std::process::Command;

use osprey_model::id::{JobId, MessageId};
use osprey_model::job::JobState;
use osprey_model::pool::{Pool, PoolMode};
use osprey_pipeline::dispatch;
use osprey_policy::Policy;
use osprey_ports::QueueKind;
use serde_json::{Value, json};

use crate::place::Place;
use crate::world::{Checked, block_on, message, pool};

const DAY_MS: i64 = 86_400_000;
/// Seconds in which a job of eight GPUs uses an hour of one.
const GPU_HOUR_SECONDS: i64 = 3_600 / 8;

/// A pool that sends its jobs on as they come, under the policy of the quota sessions, on a day that begins now.
struct Day {
    place: Place,
    policy: String,
}

impl Day {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let mut place = Place::new("wasted", &["main"])?;
        let quotas = std::fs::read_to_string(osprey_tests::root().join("tests/golden/quotas.toml"))?;
        let policy = quotas + "\n[requeue]\nfailures_max = 20\n";
        place.policy = Policy::load(&policy).map_err(|errors| format!("{errors:?}"))?.policy;
        place.pools = vec![Pool { mode: PoolMode::Direct, ..pool("main", &place.policy) }];
        place.world.pass(-(place.world.now_ms().rem_euclid(DAY_MS) / 1_000));
        Ok(Self { place, policy })
    }

    /// Sends a job of a team, and gives its id.
    fn send(&self, team: &str) -> JobId {
        let gpus = json!([{ "type": "GPU", "value": "8" }]);
        let body = json!({
            "jobName": team, "jobDefinition": "train:1",
            "containerOverrides": { "command": ["train"], "resourceRequirements": gpus }, "tags": { "team": team },
        });
        self.told(QueueKind::Submissions, &format!("send-{team}"), &body);
        JobId::of_message(&MessageId::new(format!("send-{team}")))
    }

    fn told(&self, queue: QueueKind, id: &str, body: &Value) {
        let message = [message(&self.place.world, id, queue, body.to_string())];
        let (context, world) = (self.place.context(), &self.place.world);
        let failed = match queue {
            QueueKind::Events => block_on(osprey_requeue::handle(&context, world, &message)),
            _ => block_on(osprey_submit::handle(&context, world, queue, &message)),
        };
        assert_eq!(failed, []);
    }

    /// The job's run, which has been submitted, goes on for so many GPU-hours and ends with an exit code.
    fn runs(&self, job: JobId, gpu_hours: i64, exit_code: i32) {
        let run = self.place.job(job).run.expect("it is submitted");
        let started = self.place.world.now_ms();
        self.place.world.pass(gpu_hours * GPU_HOUR_SECONDS);
        let stopped = self.place.world.now_ms();
        let container = json!({ "exitCode": exit_code, "startedAt": started, "stoppedAt": stopped });
        let detail = json!({
            "jobId": run.id, "jobName": "run", "jobQueue": "q", "status": if exit_code == 0 { "SUCCEEDED" } else { "FAILED" },
            "statusReason": "Essential container in task exited", "createdAt": started, "startedAt": started,
            "stoppedAt": stopped, "container": container,
            "attempts": [{ "container": container, "startedAt": started, "stoppedAt": stopped }],
        });
        let event = json!({
            "id": "e", "detail-type": "Batch Job State Change", "source": "aws.batch", "time": "2026-11-30T09:00:00Z",
            "detail": detail,
        });
        self.told(QueueKind::Events, &format!("end-{}", run.id), &event);
    }

    /// Waits out the back-off of a job, and starts it again.
    fn comes_back(&self, job: JobId) {
        let waits = self.place.job(job).not_before - self.place.world.now_ms();
        self.place.world.pass(waits.max(0) / 1_000 + 1);
        block_on(dispatch::dispatch(&self.place.context(), &self.place.world, job)).expect("it starts again");
    }

    /// What `osprey usage` says, as JSON or for people.
    fn usage(&self, more: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
        let cluster = json!({ "nodes": 4, "gpus_per_node": 8, "spot_nodes": 0 });
        let run = json!({ "cluster": cluster, "policy": self.policy });
        std::fs::write(self.place.world.dir().join("run.json"), run.to_string())?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_osprey-under-test"));
        command.args(["usage", "--team", "x", "--team", "y"]).args(more).arg("--local").arg(self.place.world.dir());
        let output = command.env("NO_COLOR", "1").output()?;
        assert_eq!(String::from_utf8(output.stderr)?, "");
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// X crashes thirteen times after an hour of one GPU, and then runs for 36 GPU-hours; Y runs for 38 without a crash.
#[test]
fn a_team_that_crashes_thirteen_times_pays_and_a_clean_one_does_not_c30() -> Checked {
    let day = Day::new()?;
    let y = day.send("y");
    day.runs(y, 38, 0);
    let x = day.send("x");
    for crash in 0..13 {
        day.runs(x, 1, 1);
        assert_eq!(day.place.job(x).state, JobState::Queued, "crash {crash}");
        day.comes_back(x);
    }
    day.runs(x, 36, 0);
    assert_eq!((day.place.job(x).state, day.place.job(y).state), (JobState::Succeeded, JobState::Succeeded));

    let told: Vec<Value> = serde_json::from_str(&day.usage(&["--output", "json"])?)?;
    let number = |team: usize, member: &str| told[team].pointer(member).and_then(Value::as_f64);
    for (team, [used, crash, restarts, ratio, left, quota]) in
        [(0, [49.0, 13.0, 13.0, 0.265, 0.885, 44.25]), (1, [38.0, 0.0, 0.0, 0.0, 1.0, 50.0])]
    {
        assert_eq!(number(team, "/gpu_hours_day/used"), Some(used));
        assert_eq!(number(team, "/waste/crash_gpu_hours"), Some(crash));
        assert_eq!(number(team, "/waste/restarts"), Some(restarts));
        assert_eq!(number(team, "/waste/ratio"), Some(ratio));
        assert_eq!(number(team, "/waste/quota_left"), Some(left));
        assert_eq!(number(team, "/gpu_hours_day/quota"), Some(quota));
    }
    let text = day.usage(&[])?;
    for line in [
        "TEAM   DAY    OF  7 DAYS     OF  GPUS                       BORROWED   WASTE  QUOTA LEFT",
        "x     49.0  44.3    49.0  221.3  training-reserved 0 of 16         0  26.5 %      88.5 %",
        "y     38.0  50.0    38.0  250.0  training-reserved 0 of 16         0   0.0 %     100.0 %",
        "x: 36.0 GPU-hours useful, 13.0 lost to crashes with 13 restarts, 0.0 held idle: 26.5 % waste leaves 88.5 % of the quota;",
        "x: its team has used or promised 49.0 of its 44.3 GPU-hours of the day; it is within them again at ",
        "y: 38.0 GPU-hours useful, 0.0 lost to crashes with 0 restarts, 0.0 held idle: 0.0 % waste leaves 100.0 % of the quota;",
    ] {
        assert!(text.lines().any(|told| told.starts_with(line)), "`{line}` in\n{text}");
    }
    Ok(())
}

//! Crashes of the engine, the supervisor, and a whole process.

use std::process::{Command, Stdio};
use std::time::Duration;

use osprey_local_batch::LocalBatch;
use osprey_local_batch::files::{AttemptFiles, Claim};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Dir, SUPERVISOR, World, ending, open, options, shell, world};

fn supervisor_of(world: &World, id: &str) -> i32 {
    let files = AttemptFiles::new(&world.dir.0.join("batch/jobs"), id, 1);
    files.read_claim().and_then(|claim| claim.supervisor).unwrap().pid
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn jobs_that_end_while_no_engine_runs_keep_their_exit_codes_and_times() {
    let mut world = world("crash", 3, options(1.0));
    let codes = [0, 3, 4];
    let ids = codes.map(|code| world.submit(&shell(&format!("sleep 0.2; exit {code}"))));
    world.until("all run", |world| ids.iter().all(|id| world.status(id) == "RUNNING"));
    world.crash();
    std::thread::sleep(Duration::from_millis(500));
    assert!(ids.iter().all(|id| world.status(id) == "RUNNING"));
    world.restart(3, options(1.0));
    for (id, code) in ids.iter().zip(codes) {
        let job = world.end_of(id);
        assert_eq!(job["container"]["exitCode"], code);
        assert_eq!(job["attempts"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_job_that_still_runs_after_a_crash_is_watched_on() {
    let mut world = world("adopt", 1, options(1.0));
    let id = world.submit(&shell("echo once; sleep 0.5; exit 9"));
    world.until_status(&id, "RUNNING");
    world.crash();
    world.restart(1, options(1.0));
    assert_eq!(ending(&world.end_of(&id)), "FAILED | 9 | Essential container in task exited | -");
    assert_eq!(world.log(&id, 1), "once\n");
}

#[test]
fn a_job_whose_supervisor_is_killed_is_killed_and_has_lost_its_host() {
    let mut world = world("orphan", 1, options(1.0));
    let id = world.submit(&shell("sleep 30; true"));
    world.until_status(&id, "RUNNING");
    let command = AttemptFiles::new(&world.dir.0.join("batch/jobs"), &id, 1).read_started().unwrap().command;
    kill(supervisor_of(&world, &id));
    let job = world.end_of(&id);
    let reason = job["statusReason"].as_str().unwrap();
    assert!(reason.starts_with("Host EC2 (instance i-") && reason.ends_with(") terminated."), "{reason}");
    assert_eq!(job["container"]["exitCode"], serde_json::Value::Null);
    assert!(!command.is_alive());
}

#[test]
fn everything_that_died_with_the_machine_is_reported_as_lost_on_the_next_start() {
    let mut world = world("outage", 2, options(1.0));
    let id = world.submit(&shell("exec sleep 30"));
    world.until_status(&id, "RUNNING");
    world.crash();
    let command = AttemptFiles::new(&world.dir.0.join("batch/jobs"), &id, 1).read_started().unwrap().command;
    kill(supervisor_of(&world, &id));
    kill(command.pid);
    world.restart(2, options(1.0));
    let job = world.end_of(&id);
    assert!(job["statusReason"].as_str().unwrap().starts_with("Host EC2 (instance i-"));
}

#[test]
fn an_attempt_that_was_placed_but_never_launched_is_launched_once_after_a_restart() {
    let mut broken = options(1.0);
    broken.supervisor = vec!["sh".into(), "-c".into(), "sleep 5".into()];
    let mut world = world("unlaunched", 1, broken);
    let id = world.submit(&shell("echo ran"));
    world.until_status(&id, "STARTING");
    world.crash();
    world.restart(1, options(1.0));
    assert_eq!(world.end_of(&id)["status"], "SUCCEEDED");
    assert_eq!(world.log(&id, 1), "ran\n");
}

#[test]
fn two_supervisors_for_one_attempt_run_its_command_once() {
    let dir = Dir::new("twice");
    let start = || {
        let dir = dir.0.display().to_string();
        let words = [dir.as_str(), "1", "token", "--", "sh", "-c", "echo ran"];
        Command::new(SUPERVISOR).args(words).stdin(Stdio::null()).spawn().unwrap()
    };
    let mut all: Vec<_> = (0..8).map(|_| start()).collect();
    assert!(all.iter_mut().all(|child| child.wait().unwrap().success()));
    let files = AttemptFiles::in_dir(dir.0.clone(), 1);
    assert_eq!(std::fs::read_to_string(files.log()).unwrap(), "ran\n");
    assert!(!files.claim(&Claim { supervisor: None }).unwrap());
}

#[test]
fn a_supervisor_that_never_works_is_given_up_with_a_sentence() {
    let mut options = options(1.0);
    options.supervisor = vec!["false".into()];
    let mut world = world("hopeless", 1, options.clone());
    assert_eq!(
        ending(&world.run(&shell("true"))),
        "FAILED | - | Task failed to start | CannotStartContainerError: the supervisor ended before it started the \
         command"
    );
    world.crash();
    options.supervisor = vec!["/no/such/supervisor".into()];
    world.restart(1, options);
    assert_eq!(
        ending(&world.run(&shell("true"))),
        "FAILED | - | Task failed to start | CannotStartContainerError: supervisor can't be started: no such file or \
         directory"
    );
}

#[test]
fn a_second_engine_is_refused_and_calls_of_others_are_served() {
    let mut world = world("second", 1, options(1.0));
    let other = LocalBatch::open(&world.dir.0, options(1.0)).unwrap();
    let refusal = other.engine().map(|_| ()).unwrap_err().to_string();
    let dir = world.dir.0.canonicalize().unwrap();
    assert_eq!(refusal, format!("another process already runs the jobs of state directory `{}`", dir.display()));
    let id = other.submit_job(&shell("exec sleep 30")).unwrap().job_id;
    world.until_status(&id, "RUNNING");
    other.terminate_job(&id, "from elsewhere").unwrap();
    assert_eq!(ending(&world.end_of(&id)), "FAILED | 143 | from elsewhere | -");
    world.crash();
    other.engine().unwrap();
}

/// Not a test of its own: the process that the next test kills.
#[test]
fn engine_to_be_killed() {
    let Ok(dir) = std::env::var("LOCAL_BATCH_TEST_ENGINE") else { return };
    let batch = open(std::path::Path::new(&dir), 4, options(1.0));
    let mut engine = batch.engine().unwrap();
    engine.run(&std::sync::atomic::AtomicBool::new(false)).unwrap();
}

#[test]
fn an_engine_killed_again_and_again_loses_no_job_and_runs_none_twice() {
    // More rounds on demand: the suite itself stays short.
    let rounds: u64 = std::env::var("LOCAL_BATCH_TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let jobs = rounds * 10;
    let mut world = world("kill-9", 4, options(1.0));
    let runs = world.dir.0.join("runs");
    let script = format!("echo $AWS_BATCH_JOB_ID >> {}; sleep 0.02", runs.display());
    let ids: Vec<String> = (0..jobs).map(|_| world.submit(&shell(&script))).collect();
    world.crash();
    let own = std::env::current_exe().unwrap();
    for round in 0..rounds {
        let mut child = Command::new(&own)
            .args(["restarts::engine_to_be_killed", "--exact"])
            .env("LOCAL_BATCH_TEST_ENGINE", &world.dir.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(60 + 23 * (round % 6)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    world.restart(4, options(1.0));
    for id in &ids {
        assert_eq!(world.end_of(id)["status"], "SUCCEEDED");
        assert_eq!(world.job(id)["attempts"].as_array().unwrap().len(), 1);
    }
    let ran = std::fs::read_to_string(runs).unwrap();
    let mut ran: Vec<&str> = ran.lines().collect();
    ran.sort_unstable();
    let mut want: Vec<&str> = ids.iter().map(String::as_str).collect();
    want.sort_unstable();
    assert_eq!(ran, want);
}

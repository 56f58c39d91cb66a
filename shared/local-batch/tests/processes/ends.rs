//! How commands end by themselves.

use osprey_model::request::{
    EvaluateOnExit, JobTimeout, KeyValuePair, ResourceRequirement, RetryStrategy, SubmitJobRequest,
};

use crate::support::{ending, options, request, shell, world};

#[test]
fn a_command_ends_with_its_exit_code_and_its_output_is_in_the_log() {
    let mut world = world("exit", 2, options(1.0));
    let good = world.submit(&shell("echo out; echo err >&2"));
    let bad = world.submit(&shell("exit 7"));
    assert_eq!(ending(&world.end_of(&good)), "SUCCEEDED | 0 | Essential container in task exited | -");
    assert_eq!(ending(&world.end_of(&bad)), "FAILED | 7 | Essential container in task exited | -");
    assert_eq!(world.log(&good, 1), "out\nerr\n");
    let job = world.job(&good);
    assert_eq!(job["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(job["container"]["logStreamName"], format!("{good}/1"));
    assert!(job["startedAt"].as_i64() <= job["stoppedAt"].as_i64());
}

#[test]
fn a_command_that_cannot_start_says_so_in_the_words_of_a_container_runtime() {
    let mut world = world("start", 2, options(1.0));
    let missing = world.run(&request(&["no-such-program"]));
    assert_eq!(
        ending(&missing),
        "FAILED | - | Task failed to start | CannotStartContainerError: exec: \"no-such-program\": executable file \
         not found in $PATH"
    );
    assert_eq!(missing["startedAt"], serde_json::Value::Null);
    let denied = world.run(&request(&["/etc"]));
    assert_eq!(
        ending(&denied),
        "FAILED | - | Task failed to start | CannotStartContainerError: exec: \"/etc\": permission denied"
    );
    let empty = world.run(&request(&[]));
    assert_eq!(ending(&empty), "FAILED | - | Task failed to start | CannotStartContainerError: no command specified");
}

#[test]
fn the_environment_is_clean_and_holds_what_batch_sets() {
    let mut options = options(1.0);
    options.environment = vec![("FROM_OPTIONS".to_owned(), "1".to_owned())];
    let mut world = world("env", 2, options);
    let mut asked = request(&["env"]);
    let pair = |name: &str, value: &str| KeyValuePair { name: Some(name.to_owned()), value: Some(value.to_owned()) };
    asked.container_overrides.as_mut().unwrap().environment = Some(vec![pair("GREETING", "good day")]);
    let id = world.submit(&asked);
    world.end_of(&id);
    let log = world.log(&id, 1);
    let mut names: Vec<&str> = log.lines().filter_map(|line| line.split('=').next()).collect();
    names.retain(|name| !["HOME", "LANG", "TMPDIR", "TZ", "PATH"].contains(name));
    names.sort_unstable();
    let want = [
        "AWS_BATCH_CE_NAME",
        "AWS_BATCH_JOB_ATTEMPT",
        "AWS_BATCH_JOB_ID",
        "AWS_BATCH_JQ_NAME",
        "CUDA_VISIBLE_DEVICES",
        "FROM_OPTIONS",
        "GREETING",
        "LOCAL_BATCH_LAUNCH",
    ];
    assert_eq!(names, want);
    assert!(log.contains(&format!("AWS_BATCH_JOB_ID={id}\n")) && log.contains("GREETING=good day\n"), "{log}");
}

#[test]
fn parameters_fill_the_placeholders_of_the_command() {
    let mut world = world("parameters", 1, options(1.0));
    let mut asked = request(&["echo", "Ref::epochs", "Ref::nothing"]);
    asked.parameters = Some([("epochs".to_owned(), "12".to_owned())].into());
    let id = world.submit(&asked);
    world.end_of(&id);
    assert_eq!(world.log(&id, 1), "12 Ref::nothing\n");
}

#[test]
fn an_attempt_that_takes_too_long_is_ended_with_its_timeout() {
    let mut world = world("timeout", 1, options(300.0));
    let mut asked = request(&["sleep", "30"]);
    asked.timeout = Some(JobTimeout { attempt_duration_seconds: Some(60) });
    asked.retry_strategy = Some(RetryStrategy { attempts: Some(3), evaluate_on_exit: None });
    let job = world.run(&asked);
    assert_eq!(ending(&job), "FAILED | 143 | Job attempt duration exceeded timeout | -");
    assert_eq!(job["attempts"].as_array().unwrap().len(), 1, "timed-out jobs are never retried");
    let ran = job["stoppedAt"].as_i64().unwrap() - job["startedAt"].as_i64().unwrap();
    assert!((60_000..120_000).contains(&ran), "{ran}");
}

#[test]
fn a_command_that_somebody_kills_is_not_taken_for_one_out_of_memory() {
    let mut world = world("killed", 1, options(1.0));
    let want = "FAILED | 137 | Essential container in task exited | -";
    assert_eq!(ending(&world.run(&shell("kill -9 $$"))), want);
    assert_eq!(ending(&world.run(&shell("exit 137"))), want);
}

fn with_memory(mut request: SubmitJobRequest, mib: u32) -> SubmitJobRequest {
    let memory = ResourceRequirement { kind: "MEMORY".to_owned(), value: mib.to_string() };
    request.container_overrides.as_mut().unwrap().resource_requirements.as_mut().unwrap().push(memory);
    request
}

#[test]
fn a_command_over_its_memory_is_killed() {
    let mut world = world("memory", 1, options(1.0));
    let asked = with_memory(shell("x=$(head -c 60000000 /dev/zero | tr '\\0' x); sleep 20; echo $x"), 32);
    assert_eq!(
        ending(&world.run(&asked)),
        "FAILED | 137 | Essential container in task exited | OutOfMemoryError: Container killed due to memory usage"
    );
}

#[test]
fn memory_that_forked_workers_share_counts_once() {
    let mut world = world("shared-memory", 1, options(1.0));
    let workers = "x=$(head -c 20000000 /dev/zero | tr '\\0' x); for i in 1 2 3 4 5; do (sleep 0.4; true) & done; wait";
    assert_eq!(world.run(&with_memory(shell(workers), 64))["status"], "SUCCEEDED");
}

#[test]
fn batchs_own_retries_run_until_one_passes_or_a_rule_says_exit() {
    let mut world = world("retry", 1, options(1.0));
    let flaky = format!("test -e {0}/second || {{ touch {0}/second; exit 1; }}", world.dir.0.display());
    let mut asked = shell(&flaky);
    asked.retry_strategy = Some(RetryStrategy { attempts: Some(3), evaluate_on_exit: None });
    let job = world.run(&asked);
    assert_eq!(ending(&job), "SUCCEEDED | 0 | Essential container in task exited | -");
    let codes: Vec<_> =
        job["attempts"].as_array().unwrap().iter().map(|a| a["container"]["exitCode"].clone()).collect();
    assert_eq!(codes, [1, 0]);

    let mut asked = shell("exit 2");
    let rule = EvaluateOnExit { on_exit_code: Some("2".to_owned()), action: "exit".to_owned(), ..Default::default() };
    asked.retry_strategy = Some(RetryStrategy { attempts: Some(3), evaluate_on_exit: Some(vec![rule]) });
    assert_eq!(world.run(&asked)["attempts"].as_array().unwrap().len(), 1);
}

#[test]
fn what_a_command_leaves_running_ends_with_it() {
    let mut world = world("family", 1, options(1.0));
    let id = world.submit(&shell("setsid sleep 61.5 & sleep 62.5 & exit 0"));
    assert_eq!(world.end_of(&id)["status"], "SUCCEEDED");
    for left in ["61.5", "62.5"] {
        let found = std::process::Command::new("pgrep").args(["-f", &format!("^sleep {left}")]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    }
}

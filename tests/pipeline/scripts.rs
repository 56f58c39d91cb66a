//! The commands of the sample backlog do what `events/README.md` says of them.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use osprey_local_batch::process::{Measure, memory_by_group};

type Checked = Result<(), Box<dyn std::error::Error>>;

/// A script of the backlog, started as the local Batch starts it: by its path from the root.
fn script(line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(format!("events/scripts/{}", words.next().unwrap_or_default()));
    command.args(words).current_dir(osprey_tests::root()).stdout(Stdio::null()).stderr(Stdio::null());
    for variable in ["OSPREY_ATTEMPT", "OSPREY_MEMORY_MIB", "OSPREY_CHECKPOINT_URI", "OSPREY_JOB_ID"] {
        command.env_remove(variable);
    }
    command
}

/// A folder of its own for one test.
fn scratch(name: &str) -> PathBuf {
    env::temp_dir().join(format!("osprey-tests-{}-{name}", process::id()))
}

/// Sends SIGTERM, as Batch does when it stops a job.
fn terminate(pid: u32) -> std::io::Result<bool> {
    Ok(Command::new("sh").args(["-c", &format!("kill -TERM {pid}")]).status()?.success())
}

/// Waits until `done` holds, for ten seconds at most.
fn wait_until(done: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !done() {
        if started.elapsed() > Duration::from_secs(10) {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn training_saves_when_it_is_told_to_stop_and_resumes() -> Checked {
    let folder = scratch("stopped");
    let uri = format!("file://{}", folder.display());
    let mut first = script("train.sh 600 0.1").env("OSPREY_CHECKPOINT_URI", &uri).spawn()?;
    assert!(wait_until(|| folder.is_dir()));
    thread::sleep(Duration::from_millis(500));
    assert!(terminate(first.id())?);
    assert_eq!(first.wait()?.code(), Some(143));

    let step: u32 = fs::read_to_string(folder.join("step"))?.trim().parse()?;
    assert!((1..100).contains(&step), "saved step {step}");

    // Already past the last step, so it has nothing left to do unless it starts from the beginning.
    let again = script(&format!("train.sh {step} 60")).env("OSPREY_CHECKPOINT_URI", &uri).status()?;
    assert!(again.success());
    assert!(!folder.exists(), "a finished run leaves no checkpoint");
    Ok(())
}

#[test]
fn training_saves_on_a_timer_too() -> Checked {
    let scratch = scratch("timer");
    let checkpoint = scratch.join("osprey-checkpoints/job-1/step");
    let mut run =
        script("train.sh 600 0.1").env("OSPREY_LOCAL_SCRATCH", &scratch).env("OSPREY_JOB_ID", "job-1").spawn()?;
    let saved = wait_until(|| checkpoint.is_file());
    run.kill()?;
    run.wait()?;
    fs::remove_dir_all(&scratch)?;
    assert!(saved, "no checkpoint without a signal");
    Ok(())
}

#[test]
fn training_refuses_checkpoints_that_it_cannot_read() -> Checked {
    let run = script("train.sh 1 0").env("OSPREY_CHECKPOINT_URI", "s3://somewhere/else").status()?;
    assert_eq!(run.code(), Some(2));
    Ok(())
}

#[test]
fn the_flaky_one_passes_at_its_third_attempt() -> Checked {
    for (attempt, code) in [("1", 1), ("2", 1), ("3", 0), ("4", 0)] {
        let run = script("flaky.sh 0").env("OSPREY_ATTEMPT", attempt).status()?;
        assert_eq!(run.code(), Some(code), "attempt {attempt}");
    }
    assert_eq!(script("flaky.sh 0").status()?.code(), Some(1));
    Ok(())
}

#[test]
fn the_hungry_one_passes_once_its_memory_has_grown() -> Checked {
    let mut run = script("hungry.sh 96 0");
    assert_eq!(run.env("OSPREY_MEMORY_MIB", "96").status()?.code(), Some(0));

    let mut hungry = script("hungry.sh 96 0").env("OSPREY_MEMORY_MIB", "64").process_group(0).spawn()?;
    let group = i32::try_from(hungry.id())?;
    let kib = || memory_by_group(&[group], Measure::Proportional).get(&group).copied().unwrap_or(0);
    let takes_more = wait_until(|| kib() > 64 * 1024);
    let taken = kib();
    assert!(Command::new("sh").args(["-c", &format!("kill -KILL -{group}")]).status()?.success());
    assert_eq!(hungry.wait()?.signal(), Some(9), "it waits to be killed");
    assert!(takes_more && taken < 96 * 1024, "{taken} KiB");
    Ok(())
}

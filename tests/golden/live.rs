//! What a run says while it goes on: a line for each thing that a person cares for.

use std::fs::{self, File};
use std::process::Stdio;

use crate::Checked;
use crate::local::{Folder, Running, said, wait_for};

/// The lines of a run's progress, without the times at their starts.
fn news(output: &str) -> Vec<&str> {
    output.lines().filter_map(|line| line.split_once("s  ")).map(|(_, news)| news).collect()
}

#[test]
fn actions_duplicates_and_lines_that_are_no_job_are_told_with_their_line() -> Checked {
    let folder = Folder::new("live")?;
    let run = ["local", "run", "tests/golden/local/mixed.jsonl", "--nodes", "1", "--speed", "4"];
    let output = said(&[&run[..], &["--state", &folder.state()]].concat())?;
    let id = |n: u32| format!("00000000-0000-4000-8000-0000000000{n:02}");
    let told = news(&output);
    for want in [
        format!("line 4  CancelJob of job {}  done: cancelled before it was submitted", id(3)),
        format!("line 5  HoldJob of job {}  refused: there is no job `{}`;", id(98), id(98)),
        format!("line 6  duplicate of job {}", id(1)),
        "line 7  dead letter ".to_owned(),
    ] {
        let count = told.iter().filter(|line| line.starts_with(&want)).count();
        assert_eq!(count, 1, "`{want}` in\n{output}");
    }
    // Which states of a quick job are seen on its way is a matter of luck.
    for (name, gpus) in [("sweep  ", "  experimental  500  6 GPUs"), ("answers  ", "  experimental  500  1 GPU")] {
        assert!(told.iter().any(|line| line.starts_with(name) && line.contains(gpus)), "`{name}` in\n{output}");
    }
    let again = said(&[&run[..], &["--state", &folder.state()]].concat())?;
    assert_eq!(news(&again), [""; 0], "what was told before is no news");
    Ok(())
}

#[test]
fn a_refused_job_is_told_with_its_line() -> Checked {
    let folder = Folder::new("live-refused")?;
    let output = said(&["local", "run", "tests/golden/local/tiny.jsonl", "--speed", "20", "--state", &folder.state()])?;
    let want = "line 4  seven  refused  experimental  450  7 GPUs  GpuShape: ";
    assert_eq!(news(&output).iter().filter(|line| line.starts_with(want)).count(), 1, "{output}");
    Ok(())
}

#[test]
fn held_jobs_keep_a_run_going_and_it_says_so() -> Checked {
    let folder = Folder::new("held")?;
    let (out, err) = (folder.0.join("out"), folder.0.join("err"));
    let stdio = |path| File::create(path).map(Stdio::from);
    let mut running = Running::start_of("held.jsonl", &folder.state(), stdio(&out)?, stdio(&err)?)?;
    let held = "1 job is held, and nothing else is left to do: release or cancel it, or leave it with Ctrl-C";
    wait_for(|| fs::read_to_string(&out).is_ok_and(|text| text.contains(held)))?;
    assert_eq!(running.interrupt()?, Some(1));
    let state = folder.state();
    let want = format!(
        "stopped with 1 job open; those that run go on under their supervisors, and `osprey local run \
         tests/golden/local/held.jsonl --state {state}` takes them up\n"
    );
    assert_eq!(fs::read_to_string(&err)?, want);
    Ok(())
}

#[test]
fn local_alone_means_the_newest_run_wherever_its_state_is() -> Checked {
    let folder = Folder::new("latest")?;
    let program = |words: &[&str]| crate::Program::command(words).current_dir(&folder.0).output();
    let file = osprey_tests::root().join("tests/golden/local/tiny.jsonl").display().to_string();
    program(&["local", "run", &file, "--speed", "20", "--state", "here"])?;
    let jobs = String::from_utf8(program(&["jobs", "--local"])?.stdout)?;
    assert!(jobs.contains("answers"), "{jobs}");
    let unknown = String::from_utf8(program(&["describe", "zz", "--local"])?.stderr)?;
    assert!(unknown.starts_with("error: there is no job `zz` in `here`\n"), "{unknown}");
    Ok(())
}

#[test]
fn a_dry_run_says_what_would_become_of_a_job_and_sends_nothing() -> Checked {
    let folder = Folder::new("dry-run")?;
    let state = folder.state();
    let mut running = Running::start_of("slow.jsonl", &state, Stdio::null(), Stdio::null())?;
    let jobs = || said(&["jobs", "--local", &state, "--state", "running"]).unwrap_or_default();
    wait_for(|| jobs().contains("slow"))?;
    let overrides = "command=true,resourceRequirements=[{type=GPU,value=8}]";
    let submit = ["submit-job", "--job-name", "next", "--job-definition", "d", "--container-overrides", overrides];
    let told = said(&[&submit[..], &["--dry-run", "--local", &state]].concat())?;
    let want = "  now: waits at the front of the line: it needs 8 GPUs, 0 are free (NoRoom); it starts ";
    assert!(told.lines().any(|line| line.starts_with(want)), "{told}");
    assert!(!said(&["jobs", "--local", &state])?.contains("next"), "nothing was sent");
    // The same job sent: one change would start it.
    said(&[&submit[..], &["--local", &state]].concat())?;
    wait_for(|| said(&["jobs", "--local", &state]).is_ok_and(|jobs| jobs.contains("next")))?;
    let why = said(&["why", "next", "--local", &state])?;
    let want = "  it starts when job `slow` (00000000-0000-4000-8000-0000000000a1) ends";
    assert!(why.lines().any(|line| line.contains(want)), "{why}");
    running.interrupt()?;
    Ok(())
}

//! `osprey local run` on the sample backlog, ended by force one to three times.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;

use crate::moments::mixed;
use crate::said;

/// What comes out of `events/backlog.jsonl`, whatever happens in between.
const WANT: [(&str, u64); 6] =
    [("jobs", 60), ("succeeded", 52), ("failed", 1), ("refused", 4), ("dead_letters", 2), ("duplicates", 1)];
/// Divides the timers of the pipeline; the commands themselves are real.
const SPEED: &str = "4";
/// The latest moment of a stop, in milliseconds: about when an undisturbed run ends.
const STOP_AFTER_MS_MAX: u64 = 20_000;
/// How long the last run of a round may take.
const LAST_RUN_MAX: Duration = Duration::from_secs(180);

/// Runs a round in a folder of its own; says when it stopped, or what was wrong.
pub fn round(round: u64, osprey: &Path, folder: &Path) -> Result<String, String> {
    let moments = moments(round).iter().fold(String::new(), |mut text, ms| {
        let _ = write!(text, " {ms} ms");
        text
    });
    let story = format!("stopped after{moments}");
    interrupted(round, osprey, folder).map_err(|problem| format!("{story}; {problem}"))?;
    Ok(story)
}

/// The moments of a round's stops, each counted from the start of its run: one to three.
fn moments(round: u64) -> Vec<u64> {
    let draws = (0..4).map(|draw| mixed(round * 4 + draw)).collect::<Vec<_>>();
    let stops = draws.first().map_or(1, |draw| 1 + draw % 3);
    draws.iter().skip(1).zip(0..stops).map(|(draw, _)| draw % STOP_AFTER_MS_MAX).collect()
}

fn interrupted(round: u64, osprey: &Path, folder: &Path) -> Result<(), String> {
    let state = &folder.join("state");
    for moment in moments(round) {
        let mut child = start(osprey, folder)?;
        if wait(&mut child, Duration::from_millis(moment))? {
            break;
        }
        child.kill().and_then(|()| child.wait()).map_err(|error| format!("it can't be stopped: {error}"))?;
    }
    let mut child = start(osprey, folder)?;
    if !wait(&mut child, LAST_RUN_MAX)? {
        // The problem to tell is the time, not whether this stop works.
        let _ = child.kill();
        return Err(format!("the last run took more than {} s", LAST_RUN_MAX.as_secs()));
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("the last run ended with {status}: {}", said(folder, "err")));
    }
    verdict(&said(folder, "out"))?;
    succeeded_once(osprey, state)
}

fn start(osprey: &Path, folder: &Path) -> Result<Child, String> {
    let mut command = Command::new(osprey);
    command.args(["local", "run", "events/backlog.jsonl", "--output", "json", "--speed", SPEED, "--state"]);
    command.arg(folder.join("state")).current_dir(osprey_tests::root()).stdin(Stdio::null());
    // Files, since nobody reads a pipe while waiting for a moment, and a full pipe stops the writer.
    let file = |name: &str| fs::File::create(folder.join(name)).map_err(|error| error.to_string());
    let child = command.stdout(file("out")?).stderr(file("err")?).spawn();
    child.map_err(|error| format!("{} can't be started: {error}", osprey.display()))
}

/// Whether the child ended within `limit`.
fn wait(child: &mut Child, limit: Duration) -> Result<bool, String> {
    let started = Instant::now();
    loop {
        if child.try_wait().map_err(|error| error.to_string())?.is_some() {
            return Ok(true);
        }
        if started.elapsed() >= limit {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Compares the last line of a run with what must come out.
fn verdict(output: &str) -> Result<(), String> {
    let last = output.trim_end().lines().last().unwrap_or_default();
    let summary: Value = serde_json::from_str(last).map_err(|error| format!("no summary: {error}: {last}"))?;
    let wrong: Vec<String> = WANT
        .iter()
        .filter(|(member, want)| summary.get(member).and_then(Value::as_u64) != Some(*want))
        .map(|(member, want)| format!("{member} must be {want}"))
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("{}: {last}", wrong.join(", "))) }
}

/// Asks for every job, and counts the attempts of each that succeeded.
fn succeeded_once(osprey: &Path, state: &Path) -> Result<(), String> {
    let jobs = ask(osprey, state, &["jobs"])?;
    let ids = jobs.iter().filter_map(|job| job.get("id")?.as_str());
    for id in ids {
        for job in ask(osprey, state, &["describe", id])? {
            let attempts = job.get("attempts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let ended_well = |attempt: &&Value| attempt.get("end_class").and_then(Value::as_str) == Some("succeeded");
            let times = attempts.iter().filter(ended_well).count();
            if times > 1 {
                return Err(format!("job {id} succeeded {times} times"));
            }
        }
    }
    Ok(())
}

/// The answer of a command, as the list of its objects.
pub fn ask(osprey: &Path, state: &Path, words: &[&str]) -> Result<Vec<Value>, String> {
    let output = Command::new(osprey).args(words).args(["--output", "json", "--local"]).arg(state).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("`osprey {}` ended with {}", words.join(" "), output.status));
    }
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let answers = answers.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    Ok(answers
        .into_iter()
        .flat_map(|answer| match answer {
            Value::Array(list) => list,
            other => vec![other],
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_stops_one_to_three_times_and_always_at_the_same_moments() {
        let rounds: Vec<Vec<u64>> = (1..=200).map(moments).collect();
        assert_eq!(rounds, (1..=200).map(moments).collect::<Vec<_>>());
        for stops in 1..=3 {
            assert!(rounds.iter().filter(|moments| moments.len() == stops).count() > 30, "{stops} stops");
        }
        let latest = rounds.iter().flatten().max();
        assert!(latest.is_some_and(|ms| (STOP_AFTER_MS_MAX / 2..STOP_AFTER_MS_MAX).contains(ms)), "{latest:?}");
    }

    #[test]
    fn a_lost_job_is_found() {
        let summary = |succeeded: u64| {
            format!(
                "{{\"x\":1}}\n{{\"jobs\":60,\"succeeded\":{succeeded},\"failed\":1,\"refused\":4,\"dead_letters\":2,\
                 \"duplicates\":1}}\n"
            )
        };
        assert_eq!(verdict(&summary(52)), Ok(()));
        assert!(verdict(&summary(51)).is_err_and(|problem| problem.starts_with("succeeded must be 52: ")));
        assert!(verdict("").is_err_and(|problem| problem.starts_with("no summary: ")));
    }

    #[test]
    fn what_must_come_out_adds_up() {
        let [(_, jobs), ends @ ..] = WANT;
        assert_eq!(ends.iter().map(|(_, count)| count).sum::<u64>(), jobs);
    }
}

//! `osprey simulate` from outside: the members of its JSON, its schedule files, its refusals.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use serde_json::Value;

use crate::traces::{Checked, file};

/// Members that every strategy of the JSON has, in their order.
const MEMBERS: [&str; 21] = [
    "strategy",
    "jobs",
    "mean_wait_seconds",
    "median_wait_seconds",
    "p95_wait_seconds",
    "p99_wait_seconds",
    "max_wait_seconds",
    "mean_completion_seconds",
    "median_completion_seconds",
    "p95_completion_seconds",
    "p99_completion_seconds",
    "makespan_seconds",
    "utilisation",
    "utilisation_backlogged",
    "fragmentation",
    "preemptions",
    "preemptions_per_100_jobs",
    "lost_gpu_hours",
    "urgent_mean_wait_seconds",
    "wall_seconds",
    "jobs_per_second",
];

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> std::io::Result<Self> {
        let path = env::temp_dir().join(format!("osprey-simulate-{name}-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn simulate(arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_osprey-under-test"))
        .arg("simulate")
        .args(arguments)
        .current_dir(osprey_tests::root())
        .env("NO_COLOR", "1")
        .output()
}

fn json(output: &Output) -> Result<Value, Box<dyn std::error::Error>> {
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

const C10: &str = "tests/simulator/traces/itp_c10_meta.csv";

#[test]
fn the_json_has_the_members_that_are_promised() -> Checked {
    let arguments =
        ["--trace", C10, "--nodes", "2", "--strategy", "fifo,easy,backfill,batch-fairshare", "--output", "json"];
    let answer = json(&simulate(&arguments)?)?;
    for (member, want) in [("seed", "1"), ("nodes", "2"), ("gpus_per_node", "8"), ("placement", "\"count\"")] {
        assert_eq!(answer[member].to_string(), want, "{member}");
    }
    assert_eq!(answer["trace"], C10);
    let strategies = answer["strategies"].as_array().ok_or("no list")?;
    assert_eq!(strategies.len(), 4);
    for strategy in strategies {
        let names: Vec<&str> = strategy.as_object().ok_or("no object")?.keys().map(String::as_str).collect();
        assert_eq!(names.get(..MEMBERS.len()), Some(&MEMBERS[..]));
        assert!(strategy["tiers"].as_array().is_some_and(|tiers| !tiers.is_empty()));
    }
    // Every job runs, and the first strategy never preempts.
    assert_eq!((&strategies[0]["jobs"], &strategies[0]["preemptions"]), (&260.into(), &0.into()));
    Ok(())
}

#[test]
fn schedule_files_hold_the_expected_schedules() -> Checked {
    let folder = Folder::new("schedules")?;
    let path = folder.path("s.csv");
    let arguments = ["--trace", C10, "--nodes", "2", "--priority-column", "priority_python", "--schedule", &path];
    json(&simulate(&[&arguments[..], &["--strategy", "fifo,easy,srtf", "--output", "json"]].concat())?)?;
    for strategy in ["fifo", "easy", "srtf"] {
        let written = fs::read_to_string(folder.path(&format!("s-{strategy}.csv")))?;
        let want = file(&format!("expected/itp_c10-{strategy}-count.csv"))?;
        let without_preemptions: String =
            written.lines().map(|line| format!("{}\n", line.rsplit_once(',').map_or("", |(front, _)| front))).collect();
        assert!(without_preemptions == want, "{strategy}");
    }
    Ok(())
}

#[test]
fn the_standard_workload_format_gives_the_same_schedule() -> Checked {
    let folder = Folder::new("swf")?;
    let rows = file("itp_c10_meta.csv")?;
    let lines = rows.lines().skip(1).filter_map(|row| match row.split(',').collect::<Vec<_>>().as_slice() {
        [id, submit, run, gpus, ..] => {
            Some(format!("{id} {submit} -1 {run} {gpus} -1 -1 {gpus} {run} -1 1 1 1 -1 0 -1 -1 -1\n"))
        }
        _ => None,
    });
    fs::write(folder.path("t.swf"), format!("; MaxProcs: 16\n{}", lines.collect::<String>()))?;
    let (trace, schedule) = (folder.path("t.swf"), folder.path("s.csv"));
    json(&simulate(&[
        "--trace",
        &trace,
        "--nodes",
        "2",
        "--strategy",
        "easy",
        "--schedule",
        &schedule,
        "--output",
        "json",
    ])?)?;
    let want = file("expected/itp_c10-easy-count.csv")?;
    let got = fs::read_to_string(schedule)?;
    assert_eq!(got.lines().nth(100), want.lines().nth(100).map(|line| format!("{line},0")).as_deref());
    assert_eq!(got.lines().count(), want.lines().count());
    Ok(())
}

#[test]
fn equal_seeds_give_equal_bytes() -> Checked {
    let folder = Folder::new("seeds")?;
    let run = |name: &str, seed: &str| -> Result<String, Box<dyn std::error::Error>> {
        let path = folder.path(name);
        let size = ["--nodes", "10", "--jobs", "100", "--ospreys", "50", "--rounds", "100", "--seed", seed];
        let output = simulate(&[&size[..], &["--strategy", "backfill", "--schedule", &path]].concat())?;
        let advice = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && advice.contains("comes in a later version"), "{advice}");
        Ok(fs::read_to_string(Path::new(&path))? + &String::from_utf8(output.stdout)?)
    };
    assert_eq!(run("a.csv", "1")?, run("b.csv", "1")?);
    assert_ne!(run("a.csv", "1")?, run("c.csv", "2")?);
    Ok(())
}

#[test]
fn several_seeds_have_confidence_intervals() -> Checked {
    let arguments = ["--jobs", "60", "--seeds", "4", "--strategy", "fifo", "--output", "json"];
    let answer = json(&simulate(&arguments)?)?;
    let strategy = &answer["strategies"][0];
    let [low, high] = [0, 1].map(|end| strategy["confidence_95"]["mean_completion_seconds"][end].as_f64());
    let mean = strategy["mean_completion_seconds"].as_f64();
    assert_eq!(answer["seeds"], 4);
    assert!(low < mean && mean < high, "{low:?} {mean:?} {high:?}");
    Ok(())
}

#[test]
fn bad_lines_are_told_and_counted() -> Checked {
    let folder = Folder::new("bad")?;
    let path = folder.path("t.csv");
    fs::write(&path, "id,submit,duration,gpus\n1,0,60,1\n2,x,60,1\n3,0,60,999\n")?;
    let output = simulate(&["--trace", &path, "--strategy", "fifo", "--output", "json"])?;
    let answer = json(&output)?;
    assert_eq!(answer["bad_lines"]["count"], 2);
    assert_eq!(answer["bad_lines"]["lines"][0]["line"], 3);
    let told = String::from_utf8(output.stderr)?;
    assert!(told.contains("line 4: it needs 999 GPUs, the cluster has 10 nodes of 8"), "{told}");
    Ok(())
}

#[test]
fn mistakes_are_usage_errors_with_a_way_out() -> Checked {
    let output = simulate(&["--strategy", "esay"])?;
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr)?.contains("did you mean `easy`?"));
    let output = simulate(&["--trace", C10, "--priority-column", "nonsense"])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr)?.contains("there is no column `nonsense`"));
    Ok(())
}

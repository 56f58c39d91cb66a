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
fn b22_b23_the_command_of_the_briefs_gives_equal_bytes_for_equal_seeds() -> Checked {
    let folder = Folder::new("seeds")?;
    let run = |name: &str, seed: &str| -> Result<String, Box<dyn std::error::Error>> {
        let path = folder.path(name);
        let size = ["--nodes", "10", "--jobs", "100", "--ospreys", "50", "--rounds", "100", "--seed", seed];
        let output = simulate(&[&size[..], &["--strategy", "backfill", "--schedule", &path]].concat())?;
        let advice = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{advice}");
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

/// A trace whose rows say numbers, on which one job has to wait for another.
const NUMBERED: &str = "id,submit,duration,gpus,environment,priority\na,0,60,8,dev,1\nb,1,60,8,production,100\n\
                        c,2,60,8,dev,900\nseven,3,60,7,dev,5\n";

#[test]
fn references_order_by_the_rows_own_number_and_run_every_valid_row() -> Checked {
    let folder = Folder::new("numbers")?;
    let (trace, schedule) = (folder.path("t.csv"), folder.path("s.csv"));
    fs::write(&trace, NUMBERED)?;
    let arguments = ["--trace", &trace, "--nodes", "1", "--strategy", "priority,backfill", "--schedule", &schedule];
    let answer = json(&simulate(&[&arguments[..], &["--output", "json"]].concat())?)?;
    assert_eq!((&answer["strategies"][0]["jobs"], &answer["strategies"][1]["jobs"]), (&4.into(), &3.into()));
    // By its own numbers the row `c` is first; by the derived ones the production job is, and 7 GPUs aren't admitted.
    let starts = |strategy: &str| -> Result<Vec<String>, Box<dyn std::error::Error>> {
        let rows = fs::read_to_string(folder.path(&format!("s-{strategy}.csv")))?;
        Ok(rows.lines().skip(1).map(|row| row.split(',').take(2).collect::<Vec<_>>().join(" ")).collect())
    };
    assert_eq!(starts("priority")?, ["a 0", "b 120", "c 60", "seven 180"]);
    assert_eq!(starts("backfill")?, ["a 0", "b 60", "c 120"]);
    Ok(())
}

#[test]
fn what_happens_is_in_the_json_and_the_same_for_equal_seeds() -> Checked {
    let run = |seed: &str| -> Result<Value, Box<dyn std::error::Error>> {
        let world = ["--nodes", "6", "--spot-nodes", "3", "--reclaims-per-day", "8", "--failure-rate", "0.1"];
        let jobs = ["--jobs", "80", "--load", "1.5", "--seed", seed, "--strategy", "fifo,backfill", "--output", "json"];
        let mut answer = json(&simulate(&[&world[..], &jobs[..]].concat())?)?;
        for strategy in answer["strategies"].as_array_mut().ok_or("no list")? {
            let members = strategy.as_object_mut().ok_or("no object")?;
            members.retain(|name, _| !["wall_seconds", "jobs_per_second"].contains(&name.as_str()));
        }
        Ok(answer)
    };
    let answer = run("2")?;
    assert_eq!(answer["pools"][1]["capacity"], "spot");
    assert_eq!(answer["pools"][1]["nodes"], 3);
    for strategy in answer["strategies"].as_array().ok_or("no list")? {
        let number = |name: &str| strategy[name].as_f64().unwrap_or(-1.0);
        assert!(number("host_losses") + number("failures") > 0.0, "{strategy}");
        assert!(number("lost_gpu_hours") > 0.0, "{strategy}");
    }
    assert_eq!(run("2")?, answer);
    assert_ne!(run("3")?, answer);
    Ok(())
}

#[test]
fn an_export_of_the_local_pipeline_can_be_replayed() -> Checked {
    let folder = Folder::new("export")?;
    let (state, history) = (folder.path("state"), folder.path("history.jsonl"));
    let program = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_osprey-under-test"))
            .args(words)
            .current_dir(osprey_tests::root())
            .env("NO_COLOR", "1")
            .output()
    };
    program(&["local", "run", "tests/golden/local/tiny.jsonl", "--nodes", "1", "--speed", "20", "--state", &state])?;
    let exported = program(&["export", "--local", &state])?.stdout;
    fs::write(&history, &exported)?;
    let lines = String::from_utf8(exported)?.lines().count();
    let answer = json(&simulate(&["--trace", &history, "--strategy", "fifo,backfill", "--output", "json"])?)?;
    let jobs = answer["strategies"][0]["jobs"].as_u64().unwrap_or(0);
    let bad = answer["bad_lines"]["count"].as_u64().unwrap_or(0);
    assert_eq!(usize::try_from(jobs + bad)?, lines);
    assert!(jobs > 0 && bad > 0, "{answer}");
    Ok(())
}

#[test]
fn the_page_is_complete_in_itself_small_and_holds_foreign_text_as_text() -> Checked {
    let folder = Folder::new("page")?;
    let (trace, page) = (folder.path("t.csv"), folder.path("p.html"));
    fs::write(&trace, "id,submit,duration,gpus,team\n\"<script>alert(1)</script>\",0,60,1,\"</script><img src=x>\"\n")?;
    let output = simulate(&["--trace", &trace, "--placement", "node", "--strategy", "fifo,easy", "--html", &page])?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(&page)?;
    assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !text.contains("<script>alert"), "foreign text");
    for outside in ["http://", "https://", "//cdn", "@import", " src=", "url("] {
        assert!(!text.contains(outside), "{outside}");
    }
    let many = ["--jobs", "60000", "--nodes", "64", "--strategy", "fifo,easy,dive", "--html", &page];
    assert!(simulate(&many)?.status.success());
    let bytes = fs::metadata(&page)?.len();
    assert!(bytes < 3_000_000, "{bytes}");
    Ok(())
}

#[test]
fn progress_is_for_terminals_only() -> Checked {
    let arguments = ["--jobs", "30000", "--nodes", "40", "--load", "0.9", "--strategy", "backfill"];
    for output in [simulate(&arguments)?, simulate(&[&arguments[..], &["--output", "json"]].concat())?] {
        let told = String::from_utf8(output.stderr)?;
        assert!(output.status.success() && !told.contains('\r') && !told.contains('\u{1b}'), "{told}");
    }
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

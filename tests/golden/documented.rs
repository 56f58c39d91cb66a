//! `docs/json.md` names exactly the members that come out, each with its type.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::local::{Folder, Running, wait_for};
use crate::{Checked, Program};

/// Members that no sample of this test has: they take a fault that can't be brought about at will, or a message that jobs
/// send.
const UNSAMPLED: [&str; 13] = [
    // A quota of a day that is used up.
    "[].over.limit",
    "[].over.passes_at",
    "[].over.sentence",
    // Held only while a job runs.
    "[].gpus.NAME",
    "checkpoint.at",
    "checkpoint.attempt",
    "checkpoint.percent",
    "checkpoint.uri",
    "second_runs[]",
    "second_runs[].attempt",
    "second_runs[].batch_job_id",
    "second_runs[].found_at",
    "second_runs[].stopped",
];

/// A policy with a rule that is never tried and a test that fails.
const ODD_POLICY: &str = r#"
name = "odd"

[[rule]]
id = "all"
when = "true"
set = 100
final = true

[[rule]]
id = "behind"
when = "job.gpus > 4"
add = 1

[[tier]]
name = "only"
at_least = 0

[[test]]
name = "it is not so"
given = { gpus = 8 }
want = { priority = 7 }
"#;

/// A job whose tag and variable differ, of which its sender is warned.
const TWO_TEAMS: &str = r#"{"jobName":"two-teams","jobDefinition":"d","containerOverrides":{"command":["true"],"environment":[{"name":"OSPREY_TEAM","value":"a"}]},"tags":{"team":"b","expected-duration":"1m"}}"#;

/// The members of a section: path and type.
type Members = BTreeMap<String, String>;

/// Jobs that wait in the files of `waiting/`, which have a change of nearly every kind.
const WAITING: [(&str, &str); 8] = [
    ("not-yet", "flaky"),
    ("larger-than-pool", "giant"),
    ("no-such-node", "wide"),
    ("foreign-work", "train"),
    ("no-capacity", "serve"),
    ("no-room", "train"),
    ("headroom", "train"),
    ("would-delay", "long"),
];

/// Sections of the document, each with the members of its table.
fn sections(document: &str) -> BTreeMap<String, Members> {
    let mut sections = BTreeMap::<String, Members>::new();
    let mut heading = String::new();
    for line in document.lines() {
        if let Some(text) = line.strip_prefix("## ") {
            text.replace('`', "").clone_into(&mut heading);
        }
        let mut cells = line.strip_prefix("| `").unwrap_or_default().split(" | ");
        if let (Some(path), Some(kind), Some(_)) = (cells.next(), cells.next(), cells.next()) {
            let members = sections.entry(heading.clone()).or_default();
            members.insert(path.trim_end_matches('`').to_owned(), kind.to_owned());
        }
    }
    sections
}

/// Compares samples with the members that are documented.
struct Comparison<'m> {
    members: &'m Members,
    seen: BTreeSet<String>,
    faults: BTreeSet<String>,
}

impl Comparison<'_> {
    fn value(&mut self, path: &str, value: &Value) {
        let Some(kind) = self.members.get(path) else {
            self.faults.insert(format!("`{path}` is not documented"));
            return;
        };
        self.seen.insert(path.to_owned());
        if !is_of(kind, value) {
            self.faults.insert(format!("`{path}` is documented as {kind} and is {value}"));
        }
        if kind.trim_end_matches(" or null") != "any" {
            self.inside(path, value);
        }
    }

    fn inside(&mut self, path: &str, value: &Value) {
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    let any = format!("{path}.NAME");
                    let own = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.value(if self.members.contains_key(&any) { &any } else { &own }, value);
                }
            }
            Value::Array(list) => {
                for element in list {
                    let of = format!("{path}[]");
                    // The elements of a list of objects need no row of their own.
                    if self.members.contains_key(&of) { self.value(&of, element) } else { self.inside(&of, element) }
                }
            }
            _ => {}
        }
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    let (kind, may_be_null) = kind.strip_suffix(" or null").map_or((kind, false), |kind| (kind, true));
    match (kind, value) {
        (_, Value::Null) => may_be_null,
        ("any", _) | ("text", Value::String(_)) | ("number", Value::Number(_)) | ("flag", Value::Bool(_)) => true,
        ("list", Value::Array(_)) | ("object", Value::Object(_)) => true,
        ("whole", Value::Number(number)) => number.is_i64() || number.is_u64(),
        ("time", Value::String(text)) => text.len() == 24 && text.parse::<jiff::Timestamp>().is_ok(),
        _ => false,
    }
}

/// What is wrong with a section, by these samples.
fn faults(members: &Members, samples: &[Value]) -> BTreeSet<String> {
    let mut comparison = Comparison { members, seen: BTreeSet::new(), faults: BTreeSet::new() };
    samples.iter().for_each(|sample| comparison.inside("", sample));
    let Comparison { seen, mut faults, .. } = comparison;
    let missing = members.keys().filter(|path| !seen.contains(*path) && !UNSAMPLED.contains(&path.as_str()));
    faults.extend(missing.map(|path| format!("`{path}` is documented and never came out")));
    faults
}

/// The JSON that a command writes to standard output, a value a line.
pub(crate) fn out(words: &[&str]) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    let output = Program::command(words.iter().chain(&["--output", "json"])).output()?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Sections of what is on record about one job.
const SECTIONS_OF_A_JOB: [&str; 3] = ["osprey describe", "osprey history", "osprey lineage"];

pub(crate) type Samples = BTreeMap<&'static str, Vec<Value>>;

/// Samples of what needs no pipeline.
fn of_files(folder: &Folder, samples: &mut Samples) -> Checked {
    let odd = folder.0.join("odd.toml");
    fs::write(&odd, ODD_POLICY)?;
    let odd = odd.display().to_string();
    let files = ["tests/golden/refused.jsonl", "tests/golden/admitted.jsonl"];
    samples.entry("osprey priority").or_default().extend(out(&["priority", files[0], files[1]])?);
    samples.entry("osprey priority").or_default().extend(out(&["priority", files[1], "--policy", &odd])?);
    let check = ["policy", "check"];
    let mut checked = out(&[&check[..], &["shared/policy/fixtures/mistakes.toml"]].concat())?;
    checked.extend(out(&[&check[..], &[&odd]].concat())?);
    samples.insert("osprey policy check", checked);
    let mut tested = out(&["policy", "test"])?;
    tested.extend(out(&["policy", "test", &odd])?);
    samples.insert("osprey policy test", tested);
    of_comparisons(&odd, samples)?;
    let instance = "tests/placement/instances/n10_j100_occ.json";
    for strategy in ["greedy", "osprey", "exact"] {
        samples.entry("osprey place").or_default().extend(out(&["place", instance, "--strategy", strategy])?);
    }
    samples.insert("osprey bench cycle", out(&["bench", "cycle", "--pending", "20", "--gpus", "8", "--runs", "2"])?);
    samples.insert("osprey bench pipeline", out(&["bench", "pipeline", "--queued", "20", "--runs", "2"])?);
    samples.insert("osprey bench watch", out(&["bench", "watch", "--jobs", "20", "--runs", "2"])?);
    for (file, job) in WAITING {
        let snapshot = format!("tests/golden/waiting/{file}.json");
        samples.entry("osprey why").or_default().extend(out(&["why", job, "--snapshot", &snapshot])?);
    }
    let failed = Program::command(["jobs", "--output", "json"]).output()?;
    samples.insert("Errors", vec![serde_json::from_slice(&failed.stderr)?]);
    Ok(())
}

/// Samples of policies side by side.
fn of_comparisons(odd: &str, samples: &mut Samples) -> Checked {
    let strict = "shared/policy/policies/strict-metadata.toml";
    samples.insert("osprey policy explain", out(&["policy", "explain", odd])?);
    samples.insert("osprey policy diff", out(&["policy", "diff", strict, odd])?);
    let jobs = ["--nodes", "2", "--jobs", "60", "--load", "2", "--limits", "docs/plan-limits.toml"];
    let plan = |old: &str, new: &str| out(&[&["policy", "plan", old, new][..], &jobs].concat());
    let mut planned = plan("default", "shared/policy/policies/strict-order.toml")?;
    planned.extend(plan(strict, odd)?);
    planned.extend(plan(odd, strict)?);
    samples.insert("osprey policy plan", planned);
    Ok(())
}

/// Samples of runs that have ended.
fn of_ended_runs(folder: &Folder, samples: &mut Samples) -> Checked {
    let state = folder.0.join("ended").display().to_string();
    let at = |words: &[&str]| out(&[words, &["--local", &state]].concat());
    // The second time nothing is left to be started, so that there are no waits.
    for _ in 0..2 {
        let run = ["local", "run", "tests/golden/local/mixed.jsonl", "--nodes", "1", "--speed", "4"];
        samples.entry("osprey local run").or_default().extend(out(&[&run[..], &["--state", &state]].concat())?);
    }
    let submit = ["submit-job", "--job-name", "next", "--job-definition", "d", "--container-overrides", "command=true"];
    samples.insert("osprey submit-job", at(&submit)?);
    samples.insert("osprey jobs", at(&["jobs"])?);
    samples.insert("osprey export", at(&["export"])?);
    samples.insert("osprey wait", at(&["wait", "later"])?.into_iter().chain(at(&["wait", "answers"])?).collect());
    samples.insert("osprey logs", at(&["logs", "answers"])?);
    samples.entry("osprey cancel").or_default().extend(at(&["cancel", "answers", "--reason", "late"])?);
    samples.insert("osprey dead-letters list", at(&["dead-letters", "list", "--all"])?);
    for job in ["sweep", "later", "answers"] {
        samples.entry("osprey describe").or_default().extend(at(&["describe", job])?);
        samples.entry("osprey history").or_default().extend(at(&["history", job])?);
        samples.entry("osprey lineage").or_default().extend(at(&["lineage", job])?);
    }
    Ok(())
}

/// Samples of a run that goes on.
fn of_a_run(folder: &Folder, samples: &mut Samples) -> Checked {
    let state = folder.0.join("running").display().to_string();
    let at = |words: &[&str]| out(&[words, &["--local", &state]].concat());
    let _running = Running::start_of("slow.jsonl", &state, Stdio::null(), Stdio::null())?;
    wait_for(|| at(&["jobs", "--state", "running"]).is_ok_and(|jobs| jobs.iter().any(|list| list.get(0).is_some())))?;
    let hold = ["hold", "slow", "--reason", "new data"];
    samples.entry("osprey cancel").or_default().extend(at(&hold)?);
    let next = ["submit-job", "--job-name", "next", "--job-definition", "d", "--container-overrides"];
    let overrides = "command=true,resourceRequirements=[{type=GPU,value=8}]";
    at(&[&next[..], &[overrides, "--tags", "expected-duration=1m"]].concat())?;
    wait_for(|| at(&["priority"]).is_ok_and(|waiting| !waiting.is_empty()))?;
    samples.entry("osprey priority").or_default().extend(at(&["priority"])?);
    samples.entry("osprey queue").or_default().extend(at(&["queue"])?);
    samples.entry("osprey priority").or_default().extend(at(&["priority", "tests/golden/admitted.jsonl"])?);
    samples.entry("osprey describe").or_default().extend(at(&["describe", "slow"])?);
    for job in ["slow", "next"] {
        samples.entry("osprey why").or_default().extend(at(&["why", job])?);
    }
    samples.entry("osprey cancel").or_default().extend(at(&["preempt", "slow", "--reason", "a demo"])?);
    samples.entry("osprey describe").or_default().extend(at(&["describe", "slow"])?);
    samples.entry("osprey why").or_default().extend(at(&["why", "slow"])?);
    samples.entry("osprey cancel").or_default().extend(at(&["cancel", "slow", "--reason", "enough"])?);
    Ok(())
}

/// What jobs say of themselves that were refused, depend on others, or say two things at once, by the odd policy.
fn of_odd_jobs(folder: &Folder, samples: &mut Samples) -> Checked {
    let (state, policy) = (folder.0.join("odd").display().to_string(), folder.0.join("odd.toml").display().to_string());
    let file = folder.0.join("odd.jsonl");
    let tiny = fs::read_to_string(osprey_tests::root().join("tests/golden/local/tiny.jsonl"))?;
    fs::write(&file, format!("{tiny}\n{TWO_TEAMS}\n"))?;
    let file = file.display().to_string();
    out(&["local", "run", &file, "--policy", &policy, "--nodes", "1", "--speed", "20", "--state", &state])?;
    samples.entry("osprey priority").or_default().extend(out(&["priority", &file])?);
    samples.insert("osprey priority --estimates", out(&["priority", "--estimates", "--local", &state])?);
    for job in ["broken", "after", "seven", "two-teams"] {
        for of in ["describe", "history", "lineage"] {
            let section = SECTIONS_OF_A_JOB.into_iter().find(|section| section.ends_with(of)).unwrap_or_default();
            samples.entry(section).or_default().extend(out(&[of, job, "--local", &state])?);
        }
    }
    Ok(())
}

/// What teams use by a policy with quotas.
fn of_quotas(folder: &Folder, samples: &mut Samples) -> Checked {
    let state = folder.0.join("quotas").display().to_string();
    let run = ["local", "run", "tests/golden/local/quotas.jsonl", "--policy", "tests/golden/quotas.toml"];
    out(&[&run[..], &["--nodes", "2", "--speed", "20", "--state", &state]].concat())?;
    samples.insert("osprey usage", out(&["usage", "--local", &state])?);
    Ok(())
}

fn of_serving(folder: &Folder, samples: &mut Samples) -> Checked {
    let state = folder.0.join("served").display().to_string();
    let words = ["local", "serve", "--port", "0", "--state", &state, "--output", "json"];
    let mut child = Program::command(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut line = String::new();
    let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
    Running::from_child(child).interrupt()?;
    read.ok_or("no standard output")??;
    samples.insert("osprey local serve", vec![serde_json::from_str(&line)?]);
    Ok(())
}

#[test]
fn the_document_has_exactly_the_members_that_come_out() -> Checked {
    let folder = Folder::new("documented")?;
    let mut samples = Samples::new();
    of_files(&folder, &mut samples)?;
    of_ended_runs(&folder, &mut samples)?;
    of_odd_jobs(&folder, &mut samples)?;
    of_a_run(&folder, &mut samples)?;
    of_quotas(&folder, &mut samples)?;
    of_serving(&folder, &mut samples)?;
    let mut sections = sections(&fs::read_to_string(osprey_tests::root().join("docs/json.md"))?);
    // The record of a job begins with what a list says of it.
    let listed: Members = sections
        .get("osprey jobs")
        .into_iter()
        .flatten()
        .filter_map(|(path, kind)| Some((path.strip_prefix("[].")?.to_owned(), kind.clone())))
        .collect();
    for record in ["osprey describe", "osprey export"] {
        sections.entry(record.to_owned()).or_default().extend(listed.clone());
    }
    let kin = listed.into_iter().map(|(path, kind)| (format!("jobs[].{path}"), kind));
    sections.entry("osprey lineage".to_owned()).or_default().extend(kin);
    let names: BTreeSet<&str> = sections.keys().map(String::as_str).collect();
    assert_eq!(names, samples.keys().copied().collect(), "every section has samples");
    let mut found = Vec::new();
    for (section, members) in &sections {
        let faults = faults(members, samples.get(section.as_str()).map_or(&[][..], Vec::as_slice));
        found.extend(faults.into_iter().map(|fault| format!("{section}: {fault}")));
    }
    found.extend(crate::schema::faults_of_samples(&samples)?);
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

#[test]
fn a_difference_between_document_and_output_is_found() {
    let document = "## `osprey x`\n\n| member | type | means |\n|---|---|---|\n| `a` | whole | one |\n| `b` | list | two |\n| `b[].c` | text or null | three |\n";
    let sections = sections(document);
    let members = sections.get("osprey x").cloned().unwrap_or_default();
    let check = |sample: &str| {
        let sample = serde_json::from_str::<Value>(sample).unwrap_or_default();
        faults(&members, &[sample]).into_iter().collect::<Vec<_>>().join("; ")
    };
    for (sample, want) in [
        (r#"{"a":1,"b":[{"c":null},{"c":"d"}]}"#, ""),
        (r#"{"a":1.5,"b":[{"c":"d"}]}"#, "`a` is documented as whole and is 1.5"),
        (r#"{"a":null,"b":[{"c":"d"}]}"#, "`a` is documented as whole and is null"),
        (r#"{"a":1,"b":[]}"#, "`b[].c` is documented and never came out"),
        (r#"{"a":1,"b":[{"c":"d","e":1}]}"#, "`b[].e` is not documented"),
    ] {
        assert_eq!(check(sample), want, "{sample}");
    }
}

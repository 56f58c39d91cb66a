//! The sample backlog: `events/backlog.jsonl` is made from `events/backlog.csv`, a sample of real jobs, by the rules
//! in `events/README.md`. Equal text in, equal text out.

use serde_json::{Map, Value, json};

/// GPUs of one node; a job with more is cut to so many.
const GPUS_MAX: u32 = 8;
/// vCPUs that come with a GPU.
const VCPUS_PER_GPU: u32 = 2;
/// MiB that come with a GPU.
const MEMORY_MIB_PER_GPU: u32 = 4096;
/// What the hungry one asks for: little, since it really takes half as much again.
const HUNGRY_MIB: u32 = 64;
/// Seconds that the longest job of the file takes.
const SECONDS_MAX: f64 = 4.0;
/// Seconds that every job takes at least.
const SECONDS_MIN: f64 = 0.2;
/// Seconds of one step of a training run.
const STEP_SECONDS: f64 = 0.1;
/// The teams that the trace numbers from 0.
const TEAMS: [&str; 8] = ["ads", "maps", "nlp", "robotics", "search", "speech", "video", "vision"];

/// One job of the sample.
struct Row<'a> {
    id: u64,
    duration_seconds: f64,
    gpus: u32,
    environment: &'a str,
    workload: &'a str,
    preemptible: bool,
    team: &'a str,
    role: &'a str,
}

/// Makes the backlog from the sample.
///
/// # Errors
/// Names the line of the sample that can't be read.
pub fn from_csv(csv: &str) -> Result<String, String> {
    let rows = csv
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|(index, line)| read_row(line).ok_or_else(|| format!("line {} can't be read: {line}", index + 1)))
        .collect::<Result<Vec<_>, _>>()?;
    let longest = rows.iter().map(|row| row.duration_seconds).fold(1.0, f64::max);
    Ok(rows.iter().map(|row| line_of(row, &rows, longest) + "\n").collect())
}

fn read_row(line: &str) -> Option<Row<'_>> {
    let mut fields = line.split(',');
    let id = fields.next()?.parse().ok()?;
    let _submit_seconds = fields.next()?;
    let duration_seconds = fields.next()?.parse().ok()?;
    let gpus = fields.next()?.parse().ok()?;
    let environment = fields.next()?;
    let workload = fields.next()?;
    let preemptible = fields.next()? == "1";
    let team = TEAMS.get(fields.next()?.parse::<usize>().ok()?)?;
    let role = fields.next()?;
    fields.next().is_none().then_some(Row {
        id,
        duration_seconds,
        gpus,
        environment,
        workload,
        preemptible,
        team,
        role,
    })
}

fn line_of(row: &Row<'_>, rows: &[Row<'_>], longest: f64) -> String {
    // A job sent again is the line of the first time, to the letter.
    let first = rows.iter().find(|other| other.id == row.id).unwrap_or(row);
    let line = request(first, rows, longest).to_string();
    match row.role {
        "cut-off" => line.chars().take(line.len() / 2).collect(),
        _ => line,
    }
}

fn request(row: &Row<'_>, rows: &[Row<'_>], longest: f64) -> Value {
    let mut request = Map::new();
    let mut set = |member: &str, value: Value| request.insert(member.to_owned(), value);
    set("jobName", name(row).into());
    set("jobDefinition", "train:1".into());
    let overrides = if row.role == "unknown-member" { "containerOverride" } else { "containerOverrides" };
    set(overrides, container(row, longest));
    if row.role == "array" {
        set("arrayProperties", json!({ "size": 4 }));
    }
    if let Some(parent) = waits_for(row.role).and_then(|role| rows.iter().find(|other| other.role == role)) {
        set("dependsOn", json!([{ "jobId": job_id(parent.id) }]));
    }
    if matches!(row.role, "flaky" | "hungry" | "never") {
        set("retryStrategy", json!({ "attempts": 3 }));
    }
    set("tags", Value::Object(tags(row, rows, longest)));
    Value::Object(request)
}

fn name(row: &Row<'_>) -> String {
    match row.role {
        "bad-name" => format!("{} run {}", row.workload, row.id),
        "" => format!("{}-{}", row.workload, row.id),
        role => format!("{}-{}-{role}", row.workload, row.id),
    }
}

/// The role of the job that this one waits for.
fn waits_for(role: &str) -> Option<&'static str> {
    match role {
        "chain-2" => Some("chain-1"),
        "chain-3" => Some("chain-2"),
        "chain-4" => Some("chain-3"),
        "after-never" => Some("never"),
        _ => None,
    }
}

fn container(row: &Row<'_>, longest: f64) -> Value {
    let mut container = json!({ "command": command(row, longest), "resourceRequirements": resources(row) });
    let variables = if row.role == "variables" { metadata(row, longest) } else { Vec::new() };
    if let (false, Some(members)) = (variables.is_empty(), container.as_object_mut()) {
        let variables = variables.into_iter().map(|(key, value)| {
            let name = format!("OSPREY_{}", key.to_uppercase().replace('-', "_"));
            json!({ "name": name, "value": value })
        });
        members.insert("environment".to_owned(), variables.collect());
    }
    container
}

/// How long a job takes.
fn seconds(row: &Row<'_>, longest: f64) -> f64 {
    (SECONDS_MAX * (row.duration_seconds / longest).sqrt()).max(SECONDS_MIN)
}

fn command(row: &Row<'_>, longest: f64) -> Vec<String> {
    let seconds = seconds(row, longest);
    let slept = format!("{seconds:.2}");
    let needed_mib = HUNGRY_MIB * 3 / 2;
    let steps = (seconds / STEP_SECONDS).ceil();
    let shell = |script: String| vec!["sh".to_owned(), "-c".to_owned(), script];
    let words = |line: String| line.split(' ').map(str::to_owned).collect();
    match row.role {
        "flaky" => words(format!("events/scripts/flaky.sh {slept}")),
        "hungry" => words(format!("events/scripts/hungry.sh {needed_mib} {slept}")),
        "never" => shell(format!("sleep {slept}; echo 'it never passes' >&2; exit 3")),
        "array" => shell(format!("echo \"shard $AWS_BATCH_JOB_ARRAY_INDEX\"; sleep {slept}")),
        _ if row.preemptible && row.workload == "training" => {
            words(format!("events/scripts/train.sh {steps:.0} {STEP_SECONDS}"))
        }
        _ => words(format!("sleep {slept}")),
    }
}

fn gpus(row: &Row<'_>) -> u32 {
    match row.role {
        "seven-gpus" => 7,
        "cpu" => 0,
        _ => row.gpus.min(GPUS_MAX),
    }
}

fn resources(row: &Row<'_>) -> Value {
    let gpus = gpus(row);
    let share = gpus.max(1);
    let memory_mib = if row.role == "hungry" { HUNGRY_MIB } else { MEMORY_MIB_PER_GPU * share };
    let amounts = [("GPU", gpus), ("VCPU", VCPUS_PER_GPU * share), ("MEMORY", memory_mib)];
    let asked = amounts.iter().filter(|(_, amount)| *amount > 0);
    asked.map(|(kind, amount)| json!({ "type": kind, "value": amount.to_string() })).collect()
}

fn metadata(row: &Row<'_>, longest: f64) -> Vec<(&'static str, String)> {
    let mut metadata = vec![
        ("team", row.team.to_owned()),
        ("environment", row.environment.to_owned()),
        ("workload-type", row.workload.to_owned()),
        // What lets it pass a larger job without delaying it.
        ("expected-duration", format!("{:.0}s", seconds(row, longest).ceil())),
    ];
    if row.preemptible {
        metadata.push(("preemptible", "true".to_owned()));
        let interval = if row.role == "rare-checkpoint" { "1h" } else { "1m" };
        metadata.push(("checkpoint-interval", interval.to_owned()));
    }
    metadata
}

fn tags(row: &Row<'_>, rows: &[Row<'_>], longest: f64) -> Map<String, Value> {
    let mut tags = Map::new();
    let sent_again = rows.iter().filter(|other| other.id == row.id).count() > 1;
    let waited_for = rows.iter().any(|other| waits_for(other.role) == Some(row.role));
    if sent_again || waited_for {
        tags.insert("osprey:job-id".to_owned(), job_id(row.id).into());
    }
    if row.role != "variables" {
        tags.extend(metadata(row, longest).into_iter().map(|(key, value)| (key.to_owned(), value.into())));
    }
    if let Some(after) = row.role.strip_prefix("host-lost-after-") {
        tags.insert("osprey:local-reclaim-after".to_owned(), after.into());
    }
    tags.insert("trace-job".to_owned(), format!("itp_c06/{}", row.id).into());
    tags
}

/// The job id that a client would choose, from the number of the job in the trace.
fn job_id(id: u64) -> String {
    format!("1e5a11f0-c06c-4a7e-8b0a-{id:012}")
}

//! What has to hold at the end of a round, seen from outside: by the ledger that the jobs wrote, by the records of both
//! Osprey and Batch, and by the processes of this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};

use super::client::Client;
use super::ledger::{Ledger, Runs};
use super::senders::{Place, Sent};
use super::work::{Piece, QUEUE, Want, Way};
use crate::runs::ask;

/// How long all jobs may take to end once nobody disturbs them any more.
const SETTLED_MAX: Duration = Duration::from_secs(120);
/// How long a process may outlive its round.
const GONE_MAX: Duration = Duration::from_secs(5);
/// How often a job may be started whose host is taken away each time, until it gets one that stays.
const RECLAIMED_MAX: usize = 5;
/// States in which nothing more happens by itself.
const FINAL: [&str; 4] = ["succeeded", "failed", "refused", "dead"];

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Waits until every job has ended, in Osprey's records and in Batch's.
pub fn settled(place: Place<'_>, pieces: &[Piece], sent: &Sent) -> Result<(), String> {
    let client = Client::new(place.state);
    let known = pieces.iter().filter(|piece| piece.way != Way::Batch && piece.want != Want::DeadLetter).count();
    let until = Instant::now() + SETTLED_MAX;
    loop {
        let jobs = ask(place.osprey, place.state, &["jobs"])?;
        let open: Vec<&Value> = jobs.iter().filter(|job| !FINAL.contains(&text(job, "state"))).collect();
        let ids: Vec<&String> = sent.batch.values().collect();
        let seen = client.batch("describejobs", &json!({ "jobs": ids }))?;
        let ended = |job: &&Value| ["SUCCEEDED", "FAILED"].contains(&text(job, "status"));
        let in_batch = list(&seen, "jobs").iter().filter(ended).count();
        if jobs.len() >= known && open.is_empty() && in_batch == sent.batch.len() {
            return Ok(());
        }
        if Instant::now() > until {
            let open: Vec<&str> = open.iter().map(|job| text(job, "name")).collect();
            return Err(format!(
                "not settled: {} of {known} jobs known, open: {open:?}, {in_batch} of {} ended in Batch",
                jobs.len(),
                sent.batch.len()
            ));
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Everything but the processes; the server has to be up.
pub fn places(place: Place<'_>, pieces: &[Piece], sent: &Sent, ledger: &Ledger) -> Result<(), String> {
    ledger.one_at_a_time()?;
    pieces.iter().try_for_each(|piece| ran(piece, ledger))?;
    ledger.nothing_else(pieces)?;
    let attempts = records(place, pieces)?;
    dead_letters(place, pieces, sent)?;
    in_batch(place, pieces, sent, attempts)
}

/// How often the command of a piece was started and succeeded.
fn ran(piece: &Piece, ledger: &Ledger) -> Result<(), String> {
    let name = piece.name.as_str();
    let once = Runs { starts: 1, failures: 0, ends: 1 };
    let exactly = |name: &str, want: &Runs| match ledger.runs(name) {
        got if got == *want => Ok(()),
        got => Err(format!("{name} ({:?}) ran {got}, and not {want}", piece.want)),
    };
    match &piece.want {
        Want::Once => exactly(name, &once),
        Want::Children(count) => (0..*count).try_for_each(|index| exactly(&format!("{name}.{index}"), &once)),
        Want::Nodes => {
            exactly(&format!("{name}@0"), &once)?;
            let other = ledger.runs(&format!("{name}@1"));
            // It is stopped when the main node ends, and may not even have started by then.
            let fits = other.starts <= 1 && other.failures == 0;
            if fits { Ok(()) } else { Err(format!("{name}@1 ran {other}, and not once at most")) }
        }
        Want::Reclaimed => {
            let got = ledger.runs(name);
            // The host may go between the command's last write and its end; the record tells which run counts.
            let fits = (1..=RECLAIMED_MAX).contains(&got.starts) && got.ends >= 1 && got.failures == 0;
            if fits { Ok(()) } else { Err(format!("{name} ran {got}, and was to end")) }
        }
        Want::Dead => exactly(name, &Runs { starts: 2, failures: 2, ends: 0 }),
        Want::After(parent) => {
            exactly(name, &once)?;
            if ledger.is_before(parent, name) { Ok(()) } else { Err(format!("{name} did not wait for {parent}")) }
        }
        Want::Stopped => {
            let got = ledger.runs(name);
            let fits = got.starts <= 1 && got.ends == 0;
            if fits { Ok(()) } else { Err(format!("{name} ran {got}, though it was terminated")) }
        }
        Want::Refused | Want::DeadLetter => exactly(name, &Runs::default()),
    }
}

/// The state and the ends of its attempts that the record of a piece has to show.
fn record_of(piece: &Piece) -> Option<(&'static str, Vec<&'static str>)> {
    match piece.want {
        Want::Once | Want::Children(_) | Want::Nodes | Want::After(_) | Want::Reclaimed => {
            Some(("succeeded", vec!["succeeded"]))
        }
        Want::Dead => Some(("dead", vec!["exit_code", "exit_code"])),
        Want::Refused => Some(("refused", vec![])),
        Want::Stopped | Want::DeadLetter => None,
    }
}

/// Each job has one record with the attempts that it should have. Answers the attempts' ids in Batch.
fn records(place: Place<'_>, pieces: &[Piece]) -> Result<Vec<String>, String> {
    let jobs = ask(place.osprey, place.state, &["jobs"])?;
    let own: Vec<&Piece> = pieces.iter().filter(|piece| piece.way != Way::Batch).collect();
    let known = own.iter().filter(|piece| record_of(piece).is_some()).count();
    if jobs.len() != known {
        let names: Vec<&str> = jobs.iter().map(|job| text(job, "name")).collect();
        return Err(format!("{} jobs are on record, and not {known}: {names:?}", jobs.len()));
    }
    let mut attempts = Vec::new();
    for piece in own {
        let Some((state, ends)) = record_of(piece) else { continue };
        let record = ask(place.osprey, place.state, &["describe", &piece.id])?.pop().unwrap_or_default();
        let mut got: Vec<&str> = list(&record, "attempts").iter().map(|attempt| text(attempt, "end_class")).collect();
        attempts.extend(list(&record, "attempts").iter().map(|attempt| text(attempt, "batch_job_id").to_owned()));
        if piece.want == Want::Reclaimed {
            got.retain(|end| *end != "host_lost");
        }
        if text(&record, "state") != state || got != ends {
            let state = text(&record, "state");
            return Err(format!("{} ({:?}) is {state} after {got:?}", piece.name, piece.want));
        }
        if !list(&record, "second_runs").is_empty() {
            return Err(format!("{} had a second run", piece.name));
        }
    }
    Ok(attempts)
}

/// A body that is no job became a dead letter each time that it arrived, and nothing else did.
fn dead_letters(place: Place<'_>, pieces: &[Piece], sent: &Sent) -> Result<(), String> {
    let letters = ask(place.osprey, place.state, &["dead-letters", "list"])?;
    let jobs = pieces.iter().filter(|piece| piece.want == Want::Dead).count();
    let bodies = pieces.iter().filter(|piece| piece.want == Want::DeadLetter);
    let (least, most) = bodies.fold((jobs, jobs), |(least, most), piece| {
        let times = sent.times.get(&piece.name).and_then(|times| usize::try_from(*times).ok()).unwrap_or(1);
        (least + 1, most + times)
    });
    let got = letters.len();
    if (least..=most).contains(&got) { Ok(()) } else { Err(format!("{got} dead letters, and not {least} to {most}")) }
}

/// Batch has the attempts of Osprey's records and the jobs that were submitted past it, each once, and no others.
fn in_batch(place: Place<'_>, pieces: &[Piece], sent: &Sent, attempts: Vec<String>) -> Result<(), String> {
    let client = Client::new(place.state);
    for piece in pieces.iter().filter(|piece| piece.way == Way::Batch) {
        let want = if piece.want == Want::Stopped { "FAILED" } else { "SUCCEEDED" };
        let found = client.named(QUEUE, &piece.name)?;
        let states: Vec<&str> = found.iter().map(|job| text(job, "status")).collect();
        if states != [want] {
            return Err(format!("{} is {states:?} in Batch, and not {want} once", piece.name));
        }
    }
    let mut want: BTreeMap<String, u32> = BTreeMap::new();
    for id in attempts.into_iter().chain(sent.batch.values().cloned()) {
        *want.entry(id).or_default() += 1;
    }
    let mut got: BTreeMap<String, u32> = BTreeMap::new();
    let queues = client.batch("describejobqueues", &json!({}))?;
    for queue in list(&queues, "jobQueues") {
        let filters = json!([{ "name": "AFTER_CREATED_AT", "values": ["1"] }]);
        let request = json!({ "jobQueue": text(queue, "jobQueueName"), "filters": filters });
        for job in list(&client.batch("listjobs", &request)?, "jobSummaryList") {
            *got.entry(text(job, "jobId").to_owned()).or_default() += 1;
        }
    }
    if got == want { Ok(()) } else { Err(format!("Batch has {got:?}, and the records say {want:?}")) }
}

/// No process of a round is left: neither its servers nor its jobs, which all know its folder.
pub fn nobody_left(folder: &Path) -> Result<(), String> {
    let until = Instant::now() + GONE_MAX;
    loop {
        let left = knowing(&folder.display().to_string());
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("processes are left: {}", left.join("; ")));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The command lines of processes that have a text in their command line or their environment.
fn knowing(text: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let ids = ids.filter(|id| *id != own && id.bytes().all(|byte| byte.is_ascii_digit()));
    let read = |id: &str, file: &str| {
        let bytes = fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let line = |id: String| {
        let line = read(&id, "cmdline");
        (line.contains(text) || read(&id, "environ").contains(text)).then(|| format!("{id} {line}"))
    };
    ids.filter_map(line).collect()
}

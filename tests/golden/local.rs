//! Sessions with a local run in them: `local/*.session`, with what differs each time written as a mark.
//!
//! `{STATE}` in a command stands for a state directory of the session's own. In the output, times, durations, ids that
//! nobody chose, senders and revisions are marks, and the lines of a run's progress are left out: their order is the
//! jobs' own.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::session::Session;
use crate::{Checked, Program};

/// Ids that a session chose begin so.
const CHOSEN: &str = "00000000-";
/// Longest wait for something that a run should do.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder that is gone when the test is over.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let path = env::temp_dir().join(format!("osprey-golden-{name}-{}", std::process::id()));
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(&path)?,
        }
        Ok(Self(path))
    }

    pub(crate) fn state(&self) -> String {
        self.0.join("state").display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Output with marks for what differs each time.
fn marked(output: &str, state: &str) -> String {
    let output = output.replace(state, "{STATE}");
    output.lines().filter(|line| !is_progress(line)).map(|line| format!("{}\n", marked_line(line))).collect()
}

/// `12.3s  train-7  running  …`
pub(crate) fn is_progress(line: &str) -> bool {
    line.split_once("s  ").is_some_and(|(seconds, _)| seconds.contains('.') && seconds.parse::<f64>().is_ok())
}

/// Marks words, and draws columns together where a word has become another length.
pub(crate) fn marked_line(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let after_word = text.ends_with(|c: char| c.is_alphanumeric() || c == '-');
        let mark = (!after_word).then(|| mark(rest)).flatten();
        let (put, length) = mark.unwrap_or((first.to_string(), first.len_utf8()));
        text.push_str(&put);
        rest = rest.get(length..).unwrap_or_default();
    }
    // Whether somebody was told of a dead letter by the end of a run is a matter of luck.
    let text = text.replace("  not yet  ", "  yes  ");
    if text == line && !is_heading(line) { text } else { drawn_together(&text) }
}

/// The headings of a table, which are as wide as what stands below them.
fn is_heading(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    first.len() > 1 && first.chars().all(|c| c.is_ascii_uppercase())
}

/// A mark for what the text begins with, and how long that is.
fn mark(text: &str) -> Option<(String, usize)> {
    let word_end = text.find([' ', ',', '"', '`', '}', ')', '/']).unwrap_or(text.len());
    let word = text.get(..word_end)?;
    let is_id = |word: &str| word.len() == 36 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    // A child of an array is its parent's id, a colon and its index.
    if let Some((_, index)) = word.split_once(':').filter(|(parent, _)| is_id(parent)) {
        return Some((format!("<id>:{index}"), word_end));
    }
    let mark = match word {
        _ if is_id(word) && !word.starts_with(CHOSEN) => "<id>",
        _ if word.len() == 24 && word.ends_with('Z') && word.get(10..11) == Some("T") => "<time>",
        _ if is_seconds(word) => "<s>",
        _ if word.len() == 12 && word.chars().all(|c| c.is_ascii_hexdigit()) => "<revision>",
        _ if is_sender(word) => "<sender>",
        _ => return None,
    };
    Some((mark.to_owned(), word_end))
}

fn is_seconds(word: &str) -> bool {
    let number = word.strip_suffix('s').unwrap_or(word);
    number.contains('.') && number.parse::<f64>().is_ok() || word != number && number.parse::<u32>().is_ok()
}

/// `1000:ada`
fn is_sender(word: &str) -> bool {
    word.split_once(':').is_some_and(|(uid, name)| uid.parse::<u32>().is_ok() && name.starts_with(char::is_alphabetic))
}

fn drawn_together(text: &str) -> String {
    let (indent, rest) = text.split_at(text.len() - text.trim_start().len());
    let columns: Vec<&str> = rest.split("  ").map(str::trim).filter(|column| !column.is_empty()).collect();
    format!("{indent}{}", columns.join("  "))
}

#[test]
fn every_local_session_says_what_it_said() -> Checked {
    let bless = env::var_os("OSPREY_BLESS").is_some();
    let mut different = Vec::new();
    for file in crate::session_files("tests/golden/local")? {
        let text = fs::read_to_string(&file)?;
        let session = Session::read(&text);
        let mut now = session.clone();
        let folder = Folder::new(&file.file_stem().unwrap_or_default().to_string_lossy())?;
        let state = folder.state();
        for step in &mut now.steps {
            let words: Vec<String> = step.words().iter().map(|word| word.replace("{STATE}", &state)).collect();
            step.answer(&marked(&crate::run(&words)?, &state));
        }
        if bless {
            fs::write(&file, now.to_string())?;
        } else if now != session {
            different.push(format!("{}:\n{}", file.display(), session.difference(&now)));
        }
    }
    assert!(different.is_empty(), "{}\nOSPREY_BLESS=1 accepts what is said now", different.join("\n"));
    Ok(())
}

/// A run of one node in the background, stopped when the test is over.
pub(crate) struct Running(Child);

impl Running {
    fn start(state: &str) -> io::Result<Self> {
        Self::start_of("slow.jsonl", state, Stdio::null(), Stdio::null())
    }

    /// A run of a file beside the sessions.
    pub(crate) fn start_of(file: &str, state: &str, out: Stdio, err: Stdio) -> io::Result<Self> {
        let file = format!("tests/golden/local/{file}");
        let words = ["local", "run", &file, "--nodes", "1", "--state", state];
        let mut program = Program::command(words);
        let child = program.stdout(out).stderr(err).spawn()?;
        let running = Self(child);
        wait_for(|| Path::new(state).join("run.json").exists())?;
        Ok(running)
    }

    /// Takes over a process.
    pub(crate) fn from_child(child: Child) -> Self {
        Self(child)
    }

    /// Sends Ctrl-C's signal and waits for the end.
    pub(crate) fn interrupt(&mut self) -> io::Result<Option<i32>> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
        kill_process(pid, Signal::INT)?;
        Ok(self.0.wait()?.code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn wait_for(mut holds: impl FnMut() -> bool) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not happen"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

pub(crate) fn said(words: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
    let words: Vec<String> = ["osprey"].iter().chain(words).map(|word| (*word).to_owned()).collect();
    crate::run(&words)
}

#[test]
fn a_second_run_on_one_state_is_turned_away_in_one_sentence() -> Checked {
    let folder = Folder::new("two-runs")?;
    let state = folder.state();
    let mut running = Running::start(&state)?;
    let second = said(&["local", "run", "tests/golden/local/slow.jsonl", "--state", &state])?;
    let pid = running.0.id();
    assert_eq!(
        second,
        format!(
            "error: process {pid} runs a pipeline in the state directory `{state}`: stop it, or choose another directory\n? 1\n"
        )
    );
    // No job outlives the test.
    wait_for(|| said(&["jobs", "--local", &state]).is_ok_and(|jobs| jobs.contains("slow")))?;
    said(&["cancel", "00000000-0000-4000-8000-0000000000a1", "--reason", "enough", "--local", &state])?;
    assert_eq!(running.0.wait()?.code(), Some(0));
    Ok(())
}

#[test]
fn people_and_their_jobs_reach_a_run_from_another_terminal() -> Checked {
    let folder = Folder::new("operator")?;
    let state = folder.state();
    let mut running = Running::start(&state)?;
    let id = "00000000-0000-4000-8000-0000000000b1";
    let tag = format!("osprey:job-id={id}");
    let submit = ["submit-job", "--local", &state, "--job-name", "next", "--job-definition", "next", "--tags", &tag];
    let resources = "command=true,resourceRequirements=[{type=GPU,value=8}]";
    assert_eq!(said(&[&submit[..], &["--container-overrides", resources]].concat())?, format!("{id}  next\n"));
    // A job that is only sent is named too, in a sentence of its own.
    let is_listed = |jobs: String| jobs.lines().any(|line| line.starts_with(id));
    wait_for(|| said(&["jobs", "--local", &state, "--state", "queued"]).is_ok_and(is_listed))?;
    let why = said(&["why", id, "--local", &state])?;
    assert!(why.contains("  reason    it needs 8 GPUs, 0 are free (NoRoom)\n  ahead     nobody\n"), "{why}");
    let hold = said(&["hold", id, "--local", &state])?;
    assert_eq!(hold, format!("HoldJob asked for job {id}\ndone: held\n"));
    wait_for(|| said(&["jobs", "--local", &state, "--state", "held"]).is_ok_and(is_listed))?;
    let cancel = said(&["cancel", id, "--reason", "superseded", "--local", &state])?;
    assert_eq!(cancel, format!("CancelJob asked for job {id}\ndone: cancelled before it was submitted\n"));
    let again = said(&["release", id, "--local", &state])?;
    assert_eq!(
        again,
        format!(
            "ReleaseJob asked for job {id}\nrefused: can't release job `{id}`, which is failed; only held jobs can be released (WrongState)\n? 3\n"
        )
    );
    let slow = "00000000-0000-4000-8000-0000000000a1";
    said(&["cancel", slow, "--reason", "enough", "--local", &state])?;
    wait_for(|| running.0.try_wait().is_ok_and(|ended| ended.is_some()))?;
    assert_eq!(running.0.wait()?.code(), Some(0));
    Ok(())
}

#[test]
fn an_interrupted_run_says_how_to_go_on_and_goes_on() -> Checked {
    let folder = Folder::new("interrupted")?;
    let state = folder.state();
    let mut running = Running::start(&state)?;
    wait_for(|| said(&["jobs", "--local", &state, "--state", "running"]).is_ok_and(|jobs| jobs.contains("slow")))?;
    assert_eq!(running.interrupt()?, Some(1));
    let slow = "00000000-0000-4000-8000-0000000000a1";
    said(&["cancel", slow, "--reason", "enough", "--local", &state])?;
    let on = said(&["local", "run", "tests/golden/local/slow.jsonl", "--state", &state, "--output", "json"])?;
    assert!(on.contains(r#"{"jobs":1,"succeeded":0,"failed":1,"#), "{on}");
    Ok(())
}

#[test]
fn what_differs_each_time_becomes_a_mark() {
    let line = "  1  0f8fad5b-d9cb-469f-a165-70867728950e  2026-11-29T18:03:52.986Z    1.2s  exit_code";
    assert_eq!(marked_line(line), "  1  <id>  <time>  <s>  exit_code");
    assert_eq!(marked_line("id 00000000-0000-4000-8000-000000000001"), "id 00000000-0000-4000-8000-000000000001");
    assert_eq!(marked_line("sent by 1000:ada, policy 413173c70542"), "sent by <sender>, policy <revision>");
    assert_eq!(marked("0.3s  a  running\nx /s/state", "/s/state"), "x {STATE}\n");
}

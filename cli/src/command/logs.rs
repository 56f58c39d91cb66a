//! `osprey logs`: what a job's commands wrote, across its attempts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use osprey_local_batch::LocalBatch;
use osprey_model::id::BatchJobId;
use osprey_pipeline::view::JobView;
use serde_json::json;

use super::{Exit, Place};
use crate::error::{CliError, ErrorCode, cause};
use crate::joined::Joined;
use crate::render::job::Story;
use crate::ui::Ui;

/// How often files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Most bytes read at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// Show what a job wrote, in all its attempts; a job of several has a line before each.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey logs training-231-flaky --local
  osprey logs -f training-231-flaky --local    go on until the job has ended
  osprey logs training-231-flaky --attempt 2 --local")]
pub struct LogsArgs {
    /// The job: its id, its name, or a beginning that only one job has
    #[arg(value_name = "JOB")]
    job: String,
    /// Go on until the job has ended
    #[arg(short, long)]
    follow: bool,
    /// Only this attempt
    #[arg(long, value_name = "NUMBER")]
    attempt: Option<u32>,
    #[command(flatten)]
    place: Place,
}

/// A log file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    attempt: u32,
    index: Option<i64>,
    /// Batch's own attempt.
    inner: u32,
    path: PathBuf,
}

/// Shows.
pub fn logs(args: &LogsArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let id = joined.find(&args.job)?;
    let Some(local) = joined.local() else { return Err(on_aws(&joined.story(id)?)) };
    let mut reader = Reader::default();
    loop {
        // The state first: what is written until it is final is read below.
        let view = joined.view(id)?;
        let is_over = view.job.state.is_final() || !args.follow;
        let sources = sources(&joined, local.world.batch(), &view, args.attempt)?;
        reader.show(&sources, is_over, ui)?;
        if is_over {
            return reader.conclude(args, ui);
        }
        ui.flush()?;
        std::thread::sleep(LOOK_EVERY);
    }
}

/// AWS Batch's containers write to CloudWatch; which stream is told, and the AWS command line shows it.
fn on_aws(story: &Story) -> CliError {
    let Some((_, log)) = story.logs.last() else {
        let message = "no attempt of the job has a log that AWS Batch still knows of";
        return CliError::new(ErrorCode::NotAvailable, message).help("`osprey describe` shows the attempts");
    };
    let (group, stream) = log.split_once(' ').unwrap_or((log, ""));
    CliError::new(ErrorCode::NotAvailable, format!("the log is in CloudWatch: group `{group}`, stream `{stream}`"))
        .help(format!("`aws logs tail {group} --log-stream-names {stream} --follow` shows it"))
}

fn sources(joined: &Joined, batch: &LocalBatch, view: &JobView, only: Option<u32>) -> Result<Vec<Source>, CliError> {
    let ended = view.attempts.iter().map(|attempt| (attempt.number, attempt.batch_job_id.as_str()));
    let running = view.job.run.as_ref().map(|run| (view.job.attempt, run.id.as_str()));
    let mut sources = Vec::new();
    for (attempt, id) in ended.chain(running).filter(|(number, _)| only.is_none_or(|only| only == *number)) {
        match array_size(joined, id)? {
            None => sources.extend(files(batch, attempt, id, None)),
            Some(size) => {
                sources
                    .extend((0..size).flat_map(|index| files(batch, attempt, &format!("{id}:{index}"), Some(index))));
            }
        }
    }
    Ok(sources)
}

fn array_size(joined: &Joined, id: &str) -> Result<Option<i64>, CliError> {
    let found = joined.described(&[BatchJobId::new(id)])?;
    Ok(found.first().and_then(|job| job.array_properties.as_ref()?.size))
}

/// The files that a Batch job has.
fn files(batch: &LocalBatch, attempt: u32, id: &str, index: Option<i64>) -> Vec<Source> {
    let file = |inner| Source { attempt, index, inner, path: batch.log_path(id, inner) };
    (1..).map(file).take_while(|source| source.path.exists()).collect()
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    offsets: BTreeMap<Source, u64>,
    /// Whose output was shown last.
    last: Option<Source>,
}

impl Reader {
    /// Shows what is new: whole lines, and at the end also what has no line end.
    fn show(&mut self, sources: &[Source], is_over: bool, ui: &mut Ui) -> Result<(), CliError> {
        for source in sources {
            loop {
                let offset = self.offsets.get(source).copied().unwrap_or(0);
                let bytes = read(&source.path, offset).map_err(|error| unreadable(&source.path, &error))?;
                let length = if is_over { bytes.len() } else { whole_lines(&bytes) };
                let Some(new) = bytes.get(..length).filter(|new| !new.is_empty()) else { break };
                self.print(source, &String::from_utf8_lossy(new), sources.len() > 1, ui)?;
                self.offsets.insert(source.clone(), offset.saturating_add(u64::try_from(length).unwrap_or(0)));
            }
        }
        Ok(())
    }

    fn print(&mut self, source: &Source, text: &str, several: bool, ui: &mut Ui) -> Result<(), CliError> {
        if ui.is_json() {
            let Source { attempt, index, .. } = source;
            return text
                .lines()
                .try_for_each(|line| ui.json(&json!({ "attempt": attempt, "index": index, "text": line })));
        }
        let is_other = self.last.as_ref() != Some(source);
        if is_other && (several || self.last.is_some()) {
            ui.text(&source.heading())?;
        }
        self.last = Some(source.clone());
        ui.text(text.strip_suffix('\n').unwrap_or(text))
    }

    fn conclude(&self, args: &LogsArgs, ui: &mut Ui) -> Result<Exit, CliError> {
        if self.offsets.is_empty() {
            match args.attempt {
                Some(number) => ui.note(&format!("attempt {number} has written nothing")),
                None => ui.note("the job has written nothing yet"),
            }
        }
        Ok(Exit::Ok)
    }
}

impl Source {
    fn heading(&self) -> String {
        let child = self.index.map(|index| format!(", child {index}")).unwrap_or_default();
        let inner = if self.inner > 1 { format!(", run {}", self.inner) } else { String::new() };
        format!("==> attempt {}{child}{inner} <==", self.attempt)
    }
}

fn read(path: &Path, offset: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(CHUNK_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn unreadable(path: &Path, error: &io::Error) -> CliError {
    CliError::new(ErrorCode::FileUnreadable, format!("`{}` can't be read: {}", path.display(), cause(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_waits_for_its_end() {
        assert_eq!((whole_lines(b""), whole_lines(b"ab"), whole_lines(b"a\nb"), whole_lines(b"a\nb\n")), (0, 0, 2, 4));
    }

    #[test]
    fn a_heading_says_which_attempt_child_and_run() {
        let source = Source { attempt: 2, index: None, inner: 1, path: PathBuf::new() };
        assert_eq!(source.heading(), "==> attempt 2 <==");
        let child = Source { index: Some(3), inner: 2, ..source };
        assert_eq!(child.heading(), "==> attempt 2, child 3, run 2 <==");
    }
}

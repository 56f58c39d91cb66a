//! What was asked for.

/// The command line.
pub struct Options {
    /// Jobs that are checked.
    pub jobs: usize,
    /// The seed.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// The one job that is checked: its world, and its number within it.
    pub only: Option<(u64, u32)>,
}

/// Jobs that are checked when nobody says how many.
const JOBS: usize = 2_000;

impl Options {
    /// Reads a command line.
    ///
    /// # Errors
    /// For what it doesn't have.
    pub fn read(arguments: &[String]) -> Result<Self, String> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Self { jobs: JOBS, seed: 1, threads, only: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--jobs" => options.jobs = usize::try_from(number(value()?)?).unwrap_or(usize::MAX),
                "--seed" => options.seed = number(value()?)?,
                "--threads" => options.threads = usize::try_from(number(value()?)?).unwrap_or(1).max(1),
                "--only" => options.only = Some(case(value()?)?),
                other => return Err(format!("unknown argument `{other}`")),
            }
        }
        Ok(options)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number"))
}

fn case(text: &str) -> Result<(u64, u32), String> {
    let parts = text.split_once('.').and_then(|(world, number)| Some((world.parse().ok()?, number.parse().ok()?)));
    parts.ok_or_else(|| format!("`{text}` is no number of a job, such as 3.14"))
}

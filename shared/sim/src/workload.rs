//! What is to be run: jobs in the order of their submission.

/// One job of a workload. Times are milliseconds since the first submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Its name in the trace.
    pub id: String,
    /// When it is submitted.
    pub submit_ms: u64,
    /// How long it runs when nothing interrupts it.
    pub duration_ms: u64,
    /// How long it was believed to run, where its trace says so.
    pub estimate_ms: Option<u64>,
    /// GPUs that it holds while it runs; at least 1.
    pub gpus: u32,
    /// Its derived priority, 0 to 9999.
    pub priority: u32,
    /// The number that its row says, 0 to 9999, which the reference strategies order by: they derive nothing.
    pub row_priority: u32,
    /// The priorities derived after its first failure, its second, and so on; the last one stays. Empty where failures
    /// change nothing.
    pub after_failures: Vec<u32>,
    /// How often it saves, in milliseconds of a run; `None` for a job that doesn't say.
    pub checkpoint_ms: Option<u64>,
    /// The pool that it goes to: an index into the scenario's pools.
    pub pool: u16,
    /// Its tier: an index into [`Workload::tiers`].
    pub tier: u16,
    /// Its team: an index into [`Workload::teams`]; `None` for a job that names none.
    pub team: Option<u16>,
    /// The reserve of the policy that it may take from, by its place there.
    pub reserve: Option<u16>,
    /// Whether it asked to be evicted before others.
    pub is_preemptible: bool,
    /// Whether it isn't admitted. The reference strategies admit everybody; the production strategies leave it out.
    pub is_refused: bool,
}

/// Jobs, ordered by submission and then by id. A job's place in the list stands for it everywhere, so comparing
/// places breaks ties by submission and id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Names of the tiers, the most urgent first.
    pub tiers: Vec<String>,
    /// Names of the teams, in the order in which they appear.
    pub teams: Vec<String>,
}

impl Workload {
    /// Orders the jobs and moves the first submission to 0.
    #[must_use]
    pub fn new(mut jobs: Vec<Job>, tiers: Vec<String>, teams: Vec<String>) -> Self {
        let first = jobs.iter().map(|job| job.submit_ms).min().unwrap_or(0);
        for job in &mut jobs {
            job.submit_ms -= first;
        }
        // Ids that are numbers come first and in the order of the numbers; a stable sort keeps equal ids as they came.
        jobs.sort_by(|a, b| (a.submit_ms, id_key(&a.id), &a.id).cmp(&(b.submit_ms, id_key(&b.id), &b.id)));
        Self { jobs, tiers, teams }
    }

    /// The workload with only the jobs that `keep` says.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&Job) -> bool) -> Self {
        let jobs = self.jobs.iter().filter(|job| keep(job)).cloned().collect();
        Self { jobs, tiers: self.tiers.clone(), teams: self.teams.clone() }
    }

    /// Work of all jobs in GPU-milliseconds.
    #[must_use]
    pub fn gpu_ms(&self) -> u128 {
        self.jobs.iter().map(|job| u128::from(job.duration_ms) * u128::from(job.gpus)).sum()
    }
}

/// The number that an id is; ids that are none come behind all numbers.
fn id_key(id: &str) -> u64 {
    id.parse().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, submit_ms: u64) -> Job {
        Job { id: id.to_owned(), submit_ms, gpus: 1, ..Job::default() }
    }

    #[test]
    fn jobs_are_ordered_by_submission_and_then_by_id_as_a_number() {
        let jobs = vec![job("10", 7), job("b", 7), job("9", 7), job("a", 7), job("11", 5)];
        let workload = Workload::new(jobs, Vec::new(), Vec::new());
        let ids: Vec<&str> = workload.jobs.iter().map(|job| job.id.as_str()).collect();
        assert_eq!(ids, ["11", "9", "10", "a", "b"]);
    }

    #[test]
    fn the_first_submission_is_at_zero() {
        let workload = Workload::new(vec![job("1", 500), job("2", 700)], Vec::new(), Vec::new());
        assert_eq!(workload.jobs.iter().map(|job| job.submit_ms).collect::<Vec<_>>(), [0, 200]);
    }
}

//! SubmitJob and TerminateJob of the fake Batch: requests whose answers are lost, that act late or not at all.

use osprey_model::id::BatchJobId;
use osprey_model::request::SubmitJobRequest;
use osprey_ports::{CallError, SubmitError};

use super::batch::Wanted;
use super::breakage::Breakage;
use super::faults::{ACT_BOUND_MS, LIST_LAG_BOUND_MS, ListLag};
use super::world::{Happening, World};

/// So much later than it says Batch has a job, where a breakage wants it.
const LATE_MS: i64 = 120_000;

impl World {
    /// Takes a request that was signed now.
    pub(super) fn submit(&mut self, request: &SubmitJobRequest) -> Result<BatchJobId, SubmitError> {
        let random = &mut self.streams.batch;
        if random.chance(self.faults.submit_throttled) {
            self.tell(|| "  SubmitJob is throttled".to_owned());
            return Err(SubmitError::Throttled);
        }
        if let Some(refusal) = self.refusal(request) {
            self.tell(|| format!("  Batch refuses {}: {refusal}", request.job_name));
            return Err(SubmitError::Refused(refusal));
        }
        let wanted = self.wanted(request);
        let random = &mut self.streams.batch;
        if !random.chance(self.faults.submit_lost) {
            let is_late = self.is_broken(Breakage::EvictBeforeSubmitting) && self.evictions.is_for(&wanted);
            let id = self.create(wanted);
            if let Some(job) = self.batch.jobs.last_mut().filter(|_| is_late) {
                job.created_at += LATE_MS;
            }
            return Ok(BatchJobId::new(id));
        }
        self.lost(wanted);
        Err(SubmitError::Unknown("no answer came".to_owned()))
    }

    /// The answer is lost: the request acts now, later, or never.
    fn lost(&mut self, wanted: Wanted) {
        let random = &mut self.streams.batch;
        if random.chance(150_000) {
            self.tell(|| "  SubmitJob never arrives".to_owned());
        } else if random.chance(self.faults.submit_late) {
            let beyond = random.chance(self.faults.submit_beyond);
            let most = if beyond { 3 * ACT_BOUND_MS } else { ACT_BOUND_MS };
            let at = self.now + random.between(0, most);
            self.tell(|| "  SubmitJob is on its way, and nobody will hear the answer".to_owned());
            self.later(at, Happening::Create(Box::new(wanted)));
        } else {
            self.tell(|| "  the answer to SubmitJob is lost".to_owned());
            self.create(wanted);
        }
    }

    fn script_of(&self, request: &SubmitJobRequest) -> Option<&super::script::Script> {
        let number: usize = request.tags.as_ref()?.get("script")?.parse().ok()?;
        self.scripts.get(number)
    }

    fn refusal(&self, request: &SubmitJobRequest) -> Option<String> {
        let queue = request.job_queue.as_deref().unwrap_or_default();
        let is_fair = super::wiring::is_spot(queue);
        if is_fair != request.share_identifier.is_some() {
            return Some("shareIdentifier must be specified exactly for fair-share queues.".to_owned());
        }
        if !queue.starts_with("osprey-") {
            return Some(format!("JobQueue {queue} not found."));
        }
        let refused = self.script_of(request).is_none_or(|script| script.refused_by_batch);
        refused.then(|| "JobDefinition is not active.".to_owned())
    }

    fn wanted(&mut self, request: &SubmitJobRequest) -> Wanted {
        let mut tags = request.tags.clone().unwrap_or_default();
        let attempt: u32 = tags.get("osprey:attempt").and_then(|text| text.parse().ok()).unwrap_or(1);
        let fallback = super::script::Step { outcome: super::script::Outcome::Success, run_ms: 1_000 };
        let step = self.script_of(request).map_or(fallback, |script| script.step(attempt));
        if self.is_broken(Breakage::ForgetTags) {
            tags.retain(|name, _| !name.starts_with("osprey:"));
        }
        let size = request.array_properties.as_ref().and_then(|array| array.size).unwrap_or(0);
        let random = &mut self.streams.batch;
        let hidden_ms = match self.faults.list_lag {
            ListLag::None => 0,
            ListLag::Bounded => random.between(0, LIST_LAG_BOUND_MS),
            ListLag::Unbounded => random.pick(&[0, LIST_LAG_BOUND_MS, 600_000, i64::MAX / 4]).copied().unwrap_or(0),
        };
        Wanted {
            name: request.job_name.clone(),
            queue: request.job_queue.clone().unwrap_or_default(),
            tags,
            children: usize::try_from(size).unwrap_or(0),
            step,
            signed_at: self.now,
            hidden_ms,
        }
    }

    /// Takes a stop: it shows at the earliest after 30 s on a job that runs, and a job that ends before that has ended
    /// by itself.
    pub(super) fn terminate(&mut self, id: &str, reason: &str) -> Result<(), CallError> {
        let Some((at, _)) = self.batch.find(id) else {
            return Err(CallError::Refused(format!("Job {id} does not exist.")));
        };
        if self.is_broken(Breakage::StopNothing) {
            return Ok(());
        }
        let now = self.now;
        let lost = self.streams.batch.chance(self.faults.terminate_lost);
        let wait = self.streams.batch.between(30_000, 90_000);
        if reason.starts_with(super::evictions::TOKEN) {
            let broken = self.evictions.asked(id);
            self.observer.violation = self.observer.violation.take().or(broken);
        }
        if let Some(job) = self.batch.jobs.get_mut(at) {
            job.stops.push((now, reason.to_owned()));
        }
        self.tell(|| format!("  Batch is asked to stop {id}{}", if lost { ", and forgets it" } else { "" }));
        if !lost {
            self.later(now + wait, Happening::Stop(at, reason.to_owned()));
        }
        Ok(())
    }
}

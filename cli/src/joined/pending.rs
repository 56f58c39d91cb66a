//! What would become of a request that were sent now: the decision of its pool with the job in line, acted on by nobody.

use osprey_model::id::{JobId, MessageId};
use osprey_model::pool::{Pool, PoolMode};
use osprey_model::request::SubmitJobRequest;
use osprey_pipeline::context::Context;
use osprey_pipeline::derive::Evaluation;
use osprey_schedule::outlook;
use osprey_schedule::why::{Fate, Look, look_beside};
use osprey_scheduler::plan::Start;

use super::Joined;
use super::why::eta;
use crate::error::CliError;
use crate::render::pending::{Evicted, Pending, Verdict};
use crate::render::why::Reason;

impl Joined {
    /// What would become of a request that was admitted.
    ///
    /// # Errors
    /// When the pool can't be read.
    pub fn pending(
        &self,
        context: &Context<'_>,
        request: &SubmitJobRequest,
        evaluation: &Evaluation,
    ) -> Result<Option<Pending>, CliError> {
        let Some(pool) = context.pool(&evaluation.decision.pool) else { return Ok(None) };
        let waits_for = request.depends_on.as_ref().map_or(0, Vec::len);
        if waits_for > 0 {
            return Ok(Some(Pending { waits_for, ..Pending::of(Verdict::WaitsForJobs) }));
        }
        if pool.mode != PoolMode::Held {
            return Ok(Some(Pending::of(Verdict::Submitted)));
        }
        // No job has it: ids are made of messages that were sent.
        let id = JobId::of_message(&MessageId::new("dry run"));
        let stands = outlook::stands(id, evaluation, self.now_ms());
        let look = self.run(look_beside(context, &self.home, pool, stands, None))?;
        Ok(Some(self.told(id, pool, &look)))
    }

    fn told(&self, id: JobId, pool: &Pool, look: &Look) -> Pending {
        let ahead = look.ahead(id);
        match look.fate(id) {
            Fate::Starts => {
                let start = look.plan.starts.iter().find(|start| start.job == id);
                Pending { ahead, nodes: nodes(start, pool, look), ..Pending::of(Verdict::Starts) }
            }
            Fate::Preempts { .. } => {
                let evictions = look.plan.evictions.iter().filter(|eviction| eviction.start.job == id);
                let start = evictions.clone().map(|eviction| &eviction.start).next();
                let victims = evictions.flat_map(|eviction| &eviction.victims);
                let evicts = victims.map(|victim| {
                    let name = self.job(victim.job).ok().flatten().map(|job| job.name);
                    let lost_gpu_seconds = victim.lost_gpu_ms / 1_000;
                    Evicted { job: victim.job.to_string(), name: name.unwrap_or_default(), lost_gpu_seconds }
                });
                let evicts = evicts.collect();
                Pending { ahead, nodes: nodes(start, pool, look), evicts, ..Pending::of(Verdict::Preempts) }
            }
            Fate::Waits(reason) => {
                let reason = Reason { code: reason.code().to_owned(), sentence: reason.to_string() };
                Pending { ahead, reason: Some(reason), eta_seconds: Some(eta(look, id)), ..Pending::of(Verdict::Waits) }
            }
            Fate::FarBehind { .. } => Pending { ahead, ..Pending::of(Verdict::Waits) },
        }
    }
}

/// The nodes that it would go to, by their ids, as far as that is known; one that isn't there yet is told as the pool's.
fn nodes(start: Option<&Start>, pool: &Pool, look: &Look) -> Vec<String> {
    let id = |node: u32| {
        let known = usize::try_from(node).ok().and_then(|node| look.loaded.capacity.nodes.get(node));
        known.map_or_else(|| format!("a new node of {}", pool.name), |node| node.id.clone())
    };
    start.map(|start| start.holds.iter().map(|hold| id(hold.node)).collect()).unwrap_or_default()
}

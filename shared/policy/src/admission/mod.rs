//! Admission: whether a job may enter at all, and which pool it goes to.
//!
//! Everything that Batch would refuse, that no pool could ever run, or that the policy forbids is told at the door,
//! all of it at once. The order of the refusals is fixed: the definition, Batch's limits in the order of the
//! request's members, the pools, the policy.

mod batch_limits;
mod definition;
mod metadata_rules;
mod placement;
#[cfg(test)]
mod tests;

use osprey_model::decision::Derivation;
use osprey_model::definition::JobDefinition;
use osprey_model::id::PoolName;
use osprey_model::metadata::Metadata;
use osprey_model::pool::Pool;
use osprey_model::reason::Refusal;
use osprey_model::request::SubmitJobRequest;
use osprey_model::resources::Demand;

use crate::policy::Policy;
use placement::Placing;

/// Everything that admission looks at.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionInput<'a> {
    /// The request as it came.
    pub request: &'a SubmitJobRequest,
    /// The job definition that it names; `None` when it isn't registered.
    pub definition: Option<&'a JobDefinition>,
    /// Whether an unregistered definition is refused. Where it isn't, the request's own command is run.
    pub definition_required: bool,
    /// What tags and variables say.
    pub metadata: &'a Metadata,
    /// What the job needs.
    pub demand: &'a Demand,
    /// Number and tier.
    pub derivation: &'a Derivation,
    /// Every pool, in the order of the wiring.
    pub pools: &'a [Pool],
    /// The policy in force.
    pub policy: &'a Policy,
    /// Tags that Osprey adds to the job.
    pub our_tags: usize,
}

/// What admission found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Why the job may not enter; empty when it may.
    pub refusals: Vec<Refusal>,
    /// What its sender should know.
    pub warnings: Vec<String>,
    /// The pool it goes to; given whenever there is one, even if the job is refused for another reason.
    pub pool: Option<PoolName>,
}

/// Decides whether a job may enter, and where it goes.
#[must_use]
pub fn admit(input: &AdmissionInput<'_>) -> Admission {
    let mut findings = Findings::default();
    // 1. There is something to run.
    findings.refuse(definition::check(input.request, input.definition, input.definition_required));
    // 2. Batch will take it.
    batch_limits::check(input.request, input.definition, input.our_tags, &mut findings);
    // 3. A pool can run it.
    let pool = match route(input.request, input.demand, input.derivation, input.pools, input.policy, false) {
        Ok(pool) => Some(pool),
        Err(refusals) => {
            refusals.into_iter().for_each(|refusal| findings.refuse(Some(refusal)));
            None
        }
    };
    findings.warn_all(placement::warning(input.request, input.derivation, input.pools));
    // 4. The policy allows it.
    metadata_rules::check(input, &mut findings);
    Admission { refusals: findings.refusals, warnings: findings.warnings, pool }
}

/// Chooses the pool of an attempt: among those open to the job's tier the first that can run it, the tier's preferred
/// kind of capacity first. With `avoid_spot`, Spot only serves when no On-Demand pool can.
///
/// # Errors
/// Why no pool can run it: an unknown queue, no pool open to the tier, a shape that fits no node, or more than there is.
pub fn route(
    request: &SubmitJobRequest,
    demand: &Demand,
    derivation: &Derivation,
    pools: &[Pool],
    policy: &Policy,
    avoid_spot: bool,
) -> Result<PoolName, Vec<Refusal>> {
    let tier = policy.tier(&derivation.tier);
    placement::choose(&Placing {
        request,
        demand,
        tier: &derivation.tier,
        capacity: tier.map(|tier| tier.capacity.as_slice()),
        pools,
        avoid_spot,
    })
}

/// Refusals and warnings, in the order in which they were found, none twice.
#[derive(Debug, Default)]
struct Findings {
    refusals: Vec<Refusal>,
    warnings: Vec<String>,
}

impl Findings {
    fn refuse(&mut self, refusal: Option<Refusal>) {
        self.refusals.extend(refusal.filter(|refusal| !self.refusals.contains(refusal)));
    }

    fn warn(&mut self, warning: String) {
        self.warn_all(Some(warning));
    }

    fn warn_all(&mut self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}

//! The policy and the pools as they are in force, read from the table again every half minute.

use std::sync::Arc;
use std::time::{Duration, Instant};

use osprey_model::id::QueueName;
use osprey_model::pool::Pool;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::in_force::{self, Found};
use osprey_policy::Policy;
use osprey_ports::{Clock, QueryItems, WriteItems};

use crate::config::Config;

/// How long what was read is good for: a change takes effect within it, and the time of an invocation.
const LIFETIME: Duration = Duration::from_secs(30);

/// What an invocation works with.
#[derive(Clone, Debug)]
pub struct InForce {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The pools.
    pub pools: Vec<Pool>,
}

/// Keeps what is in force.
#[derive(Debug)]
pub struct Live {
    deployed: Arc<Policy>,
    policy_text: String,
    pools: Vec<Pool>,
    submits: bool,
    now: Option<(Instant, InForce)>,
    /// The text of the policy in force.
    text: Option<String>,
    /// The text that was last found bad, so that it is told once.
    bad: Option<String>,
}

/// Whether the queues of pools are fair-share, as Batch says.
pub trait FairShare {
    /// Sets each pool's flag to what its queues are; leaves it alone where that can't be said.
    fn settle_fair_share(&self, pools: &mut [Pool]) -> impl Future<Output = ()> + Send;
}

impl Live {
    /// Starts with what was deployed. Only a function that submits asks Batch what its queues are.
    #[must_use]
    pub fn new(config: &Config, submits: bool) -> Self {
        Self {
            deployed: Arc::new(config.policy.clone()),
            policy_text: config.policy_text.clone(),
            pools: config.pools.clone(),
            submits,
            now: None,
            text: None,
            bad: None,
        }
    }

    /// What is in force.
    ///
    /// # Errors
    /// When the table can't be read and never was, or another version of Osprey arranges it.
    pub async fn get<P>(&mut self, ports: &P) -> Result<InForce, String>
    where
        P: QueryItems + WriteItems + FairShare + Clock + Sync,
    {
        if let Some((since, now)) = &self.now
            && since.elapsed() < LIFETIME
        {
            return Ok(now.clone());
        }
        match self.read(ports).await {
            Ok(read) => {
                self.now = Some((Instant::now(), read.clone()));
                Ok(read)
            }
            Err(why) => self.stay(why),
        }
    }

    fn stay(&mut self, why: String) -> Result<InForce, String> {
        tracing::error!(error = why, "what is in force could not be read.");
        let Some((since, now)) = &mut self.now else { return Err(why) };
        *since = Instant::now();
        Ok(now.clone())
    }

    async fn read<P>(&mut self, ports: &P) -> Result<InForce, String>
    where
        P: QueryItems + WriteItems + FairShare + Clock + Sync,
    {
        let told = |failure: Failure| failure.story();
        let found = in_force::read(ports).await.map_err(told)?;
        found.check_layout()?;
        if found.policy.is_none() && found.faults.is_empty() {
            in_force::seed(ports, &self.policy_text).await.map_err(told)?;
        }
        let policy = self.policy(ports, &found).await.map_err(told)?;
        let mut pools = found.pools(&self.pools);
        if self.submits {
            ports.settle_fair_share(&mut pools).await;
        }
        Ok(InForce { policy, pools })
    }

    /// The live policy; the last good one while the live one is bad.
    async fn policy<P: QueryItems + Sync>(&mut self, ports: &P, found: &Found) -> Result<Arc<Policy>, Failure> {
        let Some(stored) = &found.policy else {
            for fault in &found.faults {
                self.reject(fault, fault);
            }
            return self.last_good(ports).await;
        };
        if let Some((_, now)) = &self.now
            && self.text.as_ref() == Some(&stored.text)
        {
            return Ok(now.policy.clone());
        }
        match Policy::load(&stored.text) {
            Ok(loaded) => {
                self.bad = None;
                self.text = Some(stored.text.clone());
                tracing::info!(revision = %loaded.policy.revision(), by = stored.by, "a policy is in force.");
                Ok(Arc::new(loaded.policy))
            }
            Err(errors) => {
                let faults: Vec<String> = errors.iter().map(ToString::to_string).collect();
                self.reject(&stored.text, &faults.join("; "));
                self.last_good(ports).await
            }
        }
    }

    async fn last_good<P: QueryItems + Sync>(&self, ports: &P) -> Result<Arc<Policy>, Failure> {
        if let Some((_, now)) = &self.now {
            return Ok(now.policy.clone());
        }
        Ok(in_force::last_good(ports).await?.map_or_else(|| self.deployed.clone(), Arc::new))
    }

    /// Tells of a bad policy. The metric is emitted at every look, so that an alarm stays while it is bad.
    fn reject(&mut self, text: &str, fault: &str) {
        if self.bad.as_deref() == Some(text) {
            tracing::info!(metric = "PolicyRejected", "the policy in the table is still bad.");
            return;
        }
        self.bad = Some(text.to_owned());
        tracing::error!(metric = "PolicyRejected", fault, "the policy in the table is bad; the last good one stays.");
    }
}

impl FairShare for osprey_aws::World {
    async fn settle_fair_share(&self, pools: &mut [Pool]) {
        let queues: Vec<QueueName> = pools.iter().flat_map(|pool| pool.queues.values().cloned()).collect();
        if let Err(error) = self.batch().learn_queues(&queues).await {
            tracing::warn!(%error, "the job queues could not be described; the pools' own word stands.");
            return;
        }
        for pool in pools {
            let facts = pool.queues.values().filter_map(|queue| self.batch().known_queue(queue));
            let kinds: Vec<bool> = facts.map(|facts| facts.is_fair_share()).collect();
            if !kinds.is_empty() {
                // Where kinds are mixed, share and priority are left out on the way to a FIFO queue.
                pool.fair_share = kinds.contains(&true);
            }
        }
    }
}

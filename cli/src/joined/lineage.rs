//! Where a job comes from and what comes of it: the jobs that it needs, the one that it names as its parent, those that
//! need it, and what these lend.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use osprey_model::id::JobId;
use osprey_model::job::{Attempt, Job};
use osprey_model::message::{self, Message};
use osprey_model::metadata::Metadata;
use osprey_pipeline::{dependents, derive, key, record, repository};
use osprey_schedule::load;
use osprey_scheduler::Rules;
use osprey_scheduler::lending::Lent;

use super::Joined;
use crate::error::{CliError, ErrorCode};

/// Most jobs of one answer.
pub const KIN_MAX: usize = 200;

/// A job and its kin.
#[derive(Clone, Debug)]
pub struct Lineage {
    /// The job that was asked after.
    pub asked: JobId,
    /// It, its ancestors and its descendants.
    pub jobs: BTreeMap<JobId, Kin>,
    /// Who needs whom, each edge once.
    pub edges: Vec<Edge>,
    /// Whether there are more jobs than are shown.
    pub is_cut: bool,
    /// Now, by the pipeline's clock: milliseconds since 1970.
    pub now_ms: i64,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Kin {
    /// Its record.
    pub job: Job,
    /// Its attempts that ended, oldest first.
    pub attempts: Vec<Attempt>,
    /// What those that wait for it lend it.
    pub lent: Option<Lent>,
}

/// That one job comes from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The earlier one: its id, or what was given in its place where it isn't on record.
    pub parent: End,
    /// The later one.
    pub child: JobId,
    /// How.
    pub by: Link,
}

/// An end of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A job on record, or one that was announced.
    Job(JobId),
    /// A Batch job that isn't ours, or an id that nobody knows.
    Other(String),
}

/// How one job comes from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// `dependsOn`: it waits for it.
    DependsOn,
    /// The tag `parent-job-id`: it says that it comes from it.
    ParentJobId,
}

impl Link {
    /// The word in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DependsOn => "depends_on",
            Self::ParentJobId => "parent_job_id",
        }
    }
}

impl Joined {
    /// A job with its ancestors and its descendants, [`KIN_MAX`] in all. At most six requests a job, and one for what is
    /// lent.
    ///
    /// # Errors
    /// When the store fails, or the job has gone.
    pub fn lineage(&self, asked: JobId) -> Result<Lineage, CliError> {
        let mut walk = Walk { joined: self, jobs: BTreeMap::new(), edges: Vec::new(), is_cut: false };
        walk.go(asked, Walk::ancestors)?;
        walk.go(asked, Walk::descendants)?;
        let Walk { mut jobs, edges, is_cut, .. } = walk;
        if !jobs.contains_key(&asked) {
            return Err(CliError::new(ErrorCode::UnknownJob, format!("there is no job `{asked}`")));
        }
        for (id, lent) in self.lent()? {
            if let Some(kin) = jobs.get_mut(&id) {
                kin.lent = Some(lent);
            }
        }
        Ok(Lineage { asked, jobs, edges, is_cut, now_ms: self.now_ms() })
    }

    /// What waiting jobs lend, as a cycle counts it; nothing where the policy isn't known.
    fn lent(&self) -> Result<BTreeMap<JobId, Lent>, CliError> {
        if !self.knows_pools() {
            return Ok(BTreeMap::new());
        }
        let (policy, _, _) = self.deciding(None)?;
        let rules = Rules::of(&policy, &osprey_model::id::PoolName::default());
        Ok(self.run(load::lent(&self.home, &rules))?)
    }

    /// The jobs that depend on this one.
    fn children(&self, id: JobId) -> Result<Vec<JobId>, CliError> {
        let edges = self.run(repository::all(&self.home, key::job_partition(id), key::CHILD))?;
        Ok(edges.iter().filter_map(|edge| key::child_of(&edge.key)).collect())
    }

    /// The job that it names as its parent, as it was given and as it is known.
    fn named_parent(&self, job: &Job) -> Result<Option<End>, CliError> {
        // Who names one that is known has a depth.
        if job.depth == 0 {
            return Ok(None);
        }
        let Some(record) = self.run(record::read(&self.home, key::job_partition(job.id)))? else { return Ok(None) };
        let Ok(Message::Submit(request)) = message::parse(&record.body) else { return Ok(None) };
        let metadata = Metadata::read(&request, None).map(|(metadata, _)| metadata).unwrap_or_default();
        let Some(given) = metadata.parent_job_id else { return Ok(None) };
        let known = self.run(derive::find(&self.home, &given))?;
        Ok(Some(known.map_or(End::Other(given), |loaded| End::Job(loaded.job.id))))
    }

    fn attempts(&self, id: JobId) -> Result<Vec<Attempt>, CliError> {
        let items = self.run(repository::all(&self.home, key::job_partition(id), key::ATTEMPT))?;
        Ok(items.iter().map(repository::read).collect::<Result<_, _>>()?)
    }
}

/// A walk through the graph, breadth first, so that what is cut off is what is furthest away.
struct Walk<'j> {
    joined: &'j Joined,
    jobs: BTreeMap<JobId, Kin>,
    edges: Vec<Edge>,
    is_cut: bool,
}

impl Walk<'_> {
    /// Visits a job and all that `next` leads to.
    fn go(
        &mut self,
        from: JobId,
        next: impl Fn(&mut Self, JobId) -> Result<Vec<JobId>, CliError>,
    ) -> Result<(), CliError> {
        let mut seen = BTreeSet::from([from]);
        let mut open = VecDeque::from([from]);
        while let Some(id) = open.pop_front() {
            if !self.knows(id)? {
                continue;
            }
            for other in next(self, id)? {
                if seen.insert(other) {
                    open.push_back(other);
                }
            }
        }
        Ok(())
    }

    /// Whether a job is on record and there is room for it.
    fn knows(&mut self, id: JobId) -> Result<bool, CliError> {
        if self.jobs.contains_key(&id) {
            return Ok(true);
        }
        if self.jobs.len() >= KIN_MAX {
            self.is_cut = true;
            return Ok(false);
        }
        let Some(job) = self.joined.job(id)? else { return Ok(false) };
        let attempts = if job.attempt > 0 { self.joined.attempts(id)? } else { Vec::new() };
        self.jobs.insert(id, Kin { job, attempts, lent: None });
        Ok(true)
    }

    fn ancestors(&mut self, id: JobId) -> Result<Vec<JobId>, CliError> {
        let Some(job) = self.jobs.get(&id).map(|kin| kin.job.clone()) else { return Ok(Vec::new()) };
        let dependencies =
            if job.depends { self.joined.run(dependents::dependencies(&self.joined.home, id))? } else { Vec::new() };
        let depends = dependencies.iter().map(|dependency| match dependency.job() {
            Some(parent) => (End::Job(parent), Link::DependsOn),
            None => (End::Other(dependency.given.clone()), Link::DependsOn),
        });
        let named = self.joined.named_parent(&job)?.map(|parent| (parent, Link::ParentJobId));
        let mut parents = Vec::new();
        for (parent, by) in depends.chain(named) {
            if let End::Job(parent) = &parent {
                parents.push(*parent);
            }
            self.note(Edge { parent, child: id, by });
        }
        Ok(parents)
    }

    fn descendants(&mut self, id: JobId) -> Result<Vec<JobId>, CliError> {
        let children = self.joined.children(id)?;
        for child in &children {
            self.note(Edge { parent: End::Job(id), child: *child, by: Link::DependsOn });
        }
        Ok(children)
    }

    fn note(&mut self, edge: Edge) {
        if !self.edges.contains(&edge) {
            self.edges.push(edge);
        }
    }
}

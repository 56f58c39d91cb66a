//! What is known of every job on record, kept up to date by reading only what may have changed.

use std::collections::BTreeMap;

use osprey_local::LocalWorld;
use osprey_model::id::JobId;
use osprey_model::job::Job;
use osprey_pipeline::{key, repository};
use osprey_ports::{Index, IndexQuery};

use super::block_on;
use crate::error::CliError;

/// Every job on record, as last read.
#[derive(Default)]
pub struct Board {
    jobs: BTreeMap<JobId, Job>,
    /// Where the listing is read on: jobs of the same millisecond come in any order, so it is a time and no key.
    from: String,
}

/// A job that isn't what it was.
#[derive(Clone, Debug)]
pub struct Moved {
    /// As it was; `None` for a new one.
    pub before: Option<Job>,
    /// As it is.
    pub after: Job,
}

impl Board {
    /// Reads new jobs and those that have not ended; with `everything` also those that have, which a person may have
    /// put back. Answers what has changed, in the order of the jobs' numbers.
    ///
    /// # Errors
    /// When the store fails.
    pub fn refresh(&mut self, world: &LocalWorld, everything: bool) -> Result<Vec<Moved>, CliError> {
        let mut ids: Vec<JobId> =
            self.jobs.values().filter(|job| everything || !job.state.is_final()).map(|job| job.id).collect();
        ids.extend(self.new_ids(world)?);
        let mut moved = Vec::new();
        for id in ids {
            let Some(loaded) = block_on(repository::load(world, id))? else { continue };
            let after = loaded.job;
            let before = self.jobs.insert(id, after.clone());
            if before.as_ref() != Some(&after) {
                moved.push(Moved { before, after });
            }
        }
        moved.sort_by_key(|moved| (moved.after.updated_at, moved.after.id));
        Ok(moved)
    }

    fn new_ids(&mut self, world: &LocalWorld) -> Result<Vec<JobId>, CliError> {
        let mut ids = Vec::new();
        let mut after = None;
        loop {
            let page = world.store().query_index(&IndexQuery {
                index: Index::Listing,
                partition: key::JOBS.to_owned(),
                from: Some(self.from.clone()).filter(|from| !from.is_empty()),
                to: None,
                newest_first: false,
                after: after.take(),
                limit: osprey_ports::store::PAGE_ITEMS_MAX,
            })?;
            let found = page.entries.iter().filter_map(|(sort, _)| JobId::parse(sort.split_once('#')?.1));
            ids.extend(found.filter(|id| !self.jobs.contains_key(id)));
            after = page.entries.last().cloned();
            if let Some((time, _)) = after.as_ref().and_then(|(sort, _)| sort.split_once('#')) {
                self.from = time.to_owned();
            }
            if !page.more || after.is_none() {
                return Ok(ids);
            }
        }
    }

    /// Every job.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values()
    }

    /// Jobs that have not ended.
    pub fn open(&self) -> usize {
        self.jobs().filter(|job| !job.state.is_final()).count()
    }
}

//! The lines of the file of a run, until it is known what became of each.

use std::collections::{BTreeMap, VecDeque};

use osprey_local::LocalWorld;
use osprey_model::id::MessageId;

use super::account::{self, Fate, What};
use super::ingest::TakenLine;
use crate::error::CliError;

/// Lines that are looked up in one go: messages are handled in the order of the file, so the first ones are known
/// first.
const LOOKED_UP_MAX: usize = 64;

/// Lines that were taken in.
pub struct Lines {
    taken: Vec<TakenLine>,
    numbers: BTreeMap<MessageId, u64>,
    unknown: VecDeque<TakenLine>,
}

impl Lines {
    /// Lines of which nothing is known.
    #[must_use]
    pub fn new(taken: Vec<TakenLine>) -> Self {
        let numbers = taken.iter().map(|line| (line.message.clone(), line.line)).collect();
        Self { unknown: taken.iter().cloned().collect(), numbers, taken }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.taken.len()
    }

    /// The line that a message was.
    #[must_use]
    pub fn number(&self, message: &MessageId) -> Option<u64> {
        self.numbers.get(message).copied()
    }

    /// Forgets what is known already: an earlier run has told of it.
    ///
    /// # Errors
    /// When the store fails.
    pub fn pass_over_known(&mut self, world: &LocalWorld) -> Result<(), CliError> {
        let lines = std::mem::take(&mut self.unknown);
        for line in lines {
            if matches!(account::fate(world, &line)?.what, What::Nothing) {
                self.unknown.push_back(line);
            }
        }
        Ok(())
    }

    /// Lines that are no job of their own, as far as that is news: duplicates and dead letters. Jobs and actions tell
    /// of themselves.
    ///
    /// # Errors
    /// When the store fails.
    pub fn news(&mut self, world: &LocalWorld) -> Result<Vec<Fate>, CliError> {
        let mut news = Vec::new();
        let mut still_unknown = Vec::new();
        for line in self.unknown.drain(..self.unknown.len().min(LOOKED_UP_MAX)) {
            let fate = account::fate(world, &line)?;
            match fate.what {
                What::Nothing => still_unknown.push(line),
                What::Duplicate(_) | What::Letter(_) => news.push(fate),
                What::Job(_) | What::Action(_) => {}
            }
        }
        still_unknown.into_iter().rev().for_each(|line| self.unknown.push_front(line));
        Ok(news)
    }

    /// What became of every line.
    ///
    /// # Errors
    /// When the store fails.
    pub fn fates(&self, world: &LocalWorld) -> Result<Vec<Fate>, CliError> {
        self.taken.iter().map(|line| account::fate(world, line)).collect()
    }
}

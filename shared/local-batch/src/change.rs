//! A mutation in progress: an open transaction, the time it happens at, and the settings it needs.

use rusqlite::Connection;

use crate::arn::Arns;
use crate::options::Options;

/// Handed to everything that changes the store. `now_ms` is read once, so one transaction has one time.
#[derive(Clone, Copy)]
pub(crate) struct Change<'a> {
    pub db: &'a Connection,
    pub now_ms: i64,
    pub options: &'a Options,
}

impl<'a> Change<'a> {
    pub fn arns(&self) -> Arns<'a> {
        Arns { region: &self.options.region, account: &self.options.account }
    }
}

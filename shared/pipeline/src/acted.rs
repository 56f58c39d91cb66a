//! Actions as they are recorded: what a person asked for, and what became of it.

use osprey_model::id::{JobId, MessageId};
use osprey_model::message::Action;
use osprey_model::reason::Refusal;
use osprey_ports::Write;
use serde::{Deserialize, Serialize};

use crate::{key, repository};

/// An action that was carried out or refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// What was asked for.
    pub action: Action,
    /// By whom.
    pub sender: String,
    /// When it was looked at, milliseconds since 1970.
    pub at: i64,
    /// One sentence, when it was done.
    #[serde(default)]
    pub done: Option<String>,
    /// Why it wasn't.
    #[serde(default)]
    pub refusal: Option<Refusal>,
}

impl Acted {
    /// The writes that keep it: once by its message, so that it is done once, and once with the job that it is about.
    #[must_use]
    pub fn writes(&self, message: &MessageId, job: Option<JobId>) -> Vec<Write> {
        let keys = [Some(key::action(message)), job.map(|job| key::acted(job, message))];
        keys.into_iter().flatten().map(|key| repository::create(key, repository::json(self))).collect()
    }
}

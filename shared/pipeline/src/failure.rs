//! Steps that could not be finished, and what the caller should do with the message.

use osprey_model::job::Broken;
use osprey_ports::{CallError, StoreError};

/// A step that could not be finished.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// Another call failed.
    #[error("{what} failed")]
    Call {
        /// The call.
        what: &'static str,
        /// How.
        #[source]
        source: CallError,
    },
    /// A record breaks a rule: a fault of Osprey.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// An item that can't be read.
    #[error("item `{item}` can't be read: {fault}")]
    Corrupt {
        /// Its keys.
        item: String,
        /// What is wrong.
        fault: String,
    },
    /// Answers of Batch that contradict each other, since one of them lags behind.
    #[error("Batch's answers lag behind: {0}")]
    Behind(&'static str),
    /// Others changed the record at every try.
    #[error("job {0} changed under each of several tries")]
    Contended(osprey_model::id::JobId),
}

/// What becomes of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It comes again.
    Retry,
    /// It is a dead letter: coming again can't help.
    DeadLetter,
}

impl Failure {
    /// What becomes of the message.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Store(StoreError::TooLarge { .. }) | Self::Broken(_) | Self::Corrupt { .. } => {
                Disposition::DeadLetter
            }
            Self::Call { source: CallError::Refused(_), .. } => Disposition::DeadLetter,
            Self::Store(_) | Self::Call { .. } | Self::Behind(_) | Self::Contended(_) => Disposition::Retry,
        }
    }

    /// Names the call that failed.
    pub fn call(what: &'static str) -> impl Fn(CallError) -> Self {
        move |source| Self::Call { what, source }
    }

    /// The whole story on one line: this failure and its causes.
    #[must_use]
    pub fn story(&self) -> String {
        let mut story = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            story.push_str(": ");
            story.push_str(&cause.to_string());
            source = cause.source();
        }
        story
    }
}

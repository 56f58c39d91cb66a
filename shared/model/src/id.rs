//! Ids and names: one newtype each, so that a queue can't be passed where a job is meant.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

text_id! {
    /// A message of a queue, as the queue service numbers it.
    MessageId
}
text_id! {
    /// A job of Batch; a new one for each attempt.
    BatchJobId
}
text_id! {
    /// A job queue of Batch.
    QueueName
}
text_id! {
    /// A pool: one compute environment and its tier queues.
    PoolName
}
text_id! {
    /// A tier of the policy.
    TierName
}
text_id! {
    /// Content hash of a policy file, twelve hexadecimal digits.
    PolicyRevision
}

/// Namespace of the ids derived from message ids.
const JOB_NAMESPACE: uuid::Uuid = uuid::Uuid::from_u128(0x6f73_7072_6579_4a6f_8262_0000_0000_0001);

/// The stable job, the same across all its attempts: a UUID in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(uuid::Uuid);

impl JobId {
    /// Reads a UUID with hyphens, in any letter case; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 36).then(|| uuid::Uuid::try_parse(text).ok()).flatten().map(Self)
    }

    /// The id of a job whose client chose none: the same message gives the same id, however often it comes.
    #[must_use]
    pub fn of_message(message: &MessageId) -> Self {
        Self(uuid::Uuid::new_v5(&JOB_NAMESPACE, message.as_str().as_bytes()))
    }

    /// A number made of the id and `salt`, the same every time: what keeps jobs apart without chance.
    #[must_use]
    pub fn draw(self, salt: u32) -> u64 {
        let (_, low) = self.0.as_u64_pair();
        (low ^ u64::from(salt)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
    }

    /// Puts the id behind what `text` holds. Every key of the table has one, and formatting takes longer.
    pub fn push_to(self, text: &mut String) {
        let mut room = [0; uuid::fmt::Hyphenated::LENGTH];
        text.push_str(self.0.hyphenated().encode_lower(&mut room));
    }

    /// Wraps a UUID that the caller made.
    #[must_use]
    pub const fn from_uuid(id: uuid::Uuid) -> Self {
        Self(id)
    }

    /// The UUID.
    #[must_use]
    pub const fn as_uuid(self) -> uuid::Uuid {
        self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

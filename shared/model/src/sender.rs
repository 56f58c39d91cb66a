//! Who sent a message, as far as anybody but the sender vouches for it.

use serde::{Deserialize, Serialize};

/// A queue and whom its service authenticated on it. Tags are claims; this isn't one.
///
/// On AWS the principal is SQS's `SenderId`: the id of a user (`AIDA…`), or `AROA…:SESSION` for a role, whose session
/// name is chosen by whoever assumes the role. On this machine it is `UID:NAME` of the operating system's user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sender {
    /// The queue's name.
    pub queue: String,
    /// The authenticated id.
    pub principal: String,
}

impl Sender {
    /// A sender.
    pub fn new(queue: impl Into<String>, principal: impl Into<String>) -> Self {
        Self { queue: queue.into(), principal: principal.into() }
    }

    /// The part of the id that its owner can't choose: what stands before the first `:`.
    #[must_use]
    pub fn account(&self) -> &str {
        self.principal.split_once(':').map_or(self.principal.as_str(), |(account, _)| account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_role_calls_its_session_is_no_part_of_who_it_is() {
        for (principal, account) in [
            ("AROAEXAMPLE:i-0123456789", "AROAEXAMPLE"),
            ("AROAEXAMPLE:a:b", "AROAEXAMPLE"),
            ("AIDAEXAMPLE", "AIDAEXAMPLE"),
            ("1000:ada", "1000"),
            ("", ""),
        ] {
            assert_eq!(Sender::new("q", principal).account(), account, "{principal}");
        }
    }
}

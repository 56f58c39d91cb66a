//! Telling a person.

use crate::CallError;

/// What a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Job and cause: one notice for each.
    pub key: String,
    /// One line, at most 100 characters (a limit of SNS).
    pub subject: String,
    /// The whole story.
    pub text: String,
}

/// Publishes to the operators' topic (`sns:Publish`).
pub trait Notify {
    /// Publishes a notice.
    fn notify(&self, notice: &Notice) -> impl Future<Output = Result<(), CallError>> + Send;
}

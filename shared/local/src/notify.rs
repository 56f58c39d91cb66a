//! Notices for people, kept in a table instead of being sent.

use std::sync::Arc;

use jiff::Timestamp;
use osprey_ports::{CallError, Clock, Notice, Notify};
use rusqlite::params;

use crate::database::{Database, Fault, Statements};

/// Longest subject in characters; SNS's limit.
pub const SUBJECT_CHARACTERS_MAX: usize = 100;
/// Longest notice in bytes; SNS's limit.
pub const NOTICE_BYTES_MAX: usize = 256 * 1024;

/// The embedded topic. Of several notices with one key the first is kept.
#[derive(Clone)]
pub struct LocalNotify {
    database: Arc<Database>,
    clock: Arc<dyn Clock + Send + Sync>,
}

/// A notice and when it was first given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptNotice {
    /// The notice.
    pub notice: Notice,
    /// When.
    pub at: Timestamp,
}

impl LocalNotify {
    /// Notices in `database`.
    #[must_use]
    pub fn new(database: Arc<Database>, clock: Arc<dyn Clock + Send + Sync>) -> Self {
        Self { database, clock }
    }

    /// Keeps a notice, unless there is one with its key.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] for a subject or text that SNS wouldn't take.
    pub fn keep(&self, notice: &Notice) -> Result<(), CallError> {
        check(notice)?;
        let Notice { key, subject, text } = notice;
        let at = self.clock.now().as_millisecond();
        let sql = "INSERT INTO notices (key, subject, text, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key) DO NOTHING";
        Ok(self.database.write(|transaction| -> Result<_, Fault<CallError>> {
            transaction.run(sql, params![key, subject, text, at])?;
            Ok(())
        })?)
    }

    /// All notices, oldest first.
    ///
    /// # Errors
    ///
    /// When the database can't be read.
    pub fn notices(&self) -> Result<Vec<KeptNotice>, CallError> {
        let sql = "SELECT key, subject, text, at FROM notices ORDER BY seq";
        Ok(self.database.read(|connection| -> Result<_, Fault<CallError>> {
            Ok(connection.all(sql, [], |row| {
                let notice = Notice { key: row.get(0)?, subject: row.get(1)?, text: row.get(2)? };
                Ok(KeptNotice { notice, at: Timestamp::from_millisecond(row.get(3)?).unwrap_or(Timestamp::MAX) })
            })?)
        })?)
    }
}

impl Notify for LocalNotify {
    async fn notify(&self, notice: &Notice) -> Result<(), CallError> {
        self.keep(notice)
    }
}

fn check(notice: &Notice) -> Result<(), CallError> {
    let length = notice.subject.chars().count();
    let refused = |sentence| Err(CallError::Refused(sentence));
    if length == 0 || length > SUBJECT_CHARACTERS_MAX {
        return refused(format!("a subject of {length} characters is not from 1 to {SUBJECT_CHARACTERS_MAX}"));
    }
    if notice.subject.chars().any(char::is_control) {
        return refused("the subject holds a control character or a line break".to_owned());
    }
    if notice.text.is_empty() || notice.text.len() > NOTICE_BYTES_MAX {
        let bytes = notice.text.len();
        return refused(format!("a notice of {bytes} bytes is not from 1 to {NOTICE_BYTES_MAX}"));
    }
    Ok(())
}

//! The submissions ledger: which line of which job file became which message.
//!
//! The messages of a file and their ledger rows are one transaction, so whoever is killed while a file is taken in
//! and starts again with the same file sends each line exactly once. A line is known by its text and by how many
//! equal lines stand before it, so lines may be added, moved or removed between two runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::SignedDuration;
use osprey_model::id::MessageId;
use osprey_ports::{CallError, QueueKind};
use rusqlite::{Connection, Row, params};
use sha2::{Digest, Sha256};

use super::{LocalQueues, NewMessage, Outcome, check_body};
use crate::database::Statements;

/// A line of a job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: u64,
    /// Its text, without the line break.
    pub text: String,
}

/// What became of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineOutcome {
    /// It was sent as this message.
    Sent(MessageId),
    /// No queue takes it, and this sentence says why.
    Refused(String),
}

/// A line that is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// SHA-256 of the text, hexadecimal.
    pub hash: String,
    /// How many equal lines stand before it in the file, and it: from 1.
    pub occurrence: u32,
    /// Its number in the file when it was taken in.
    pub line: u64,
    /// What became of it.
    pub outcome: LineOutcome,
}

impl LocalQueues {
    /// Sends all lines of a job file to the submission queue, except those that the ledger of `source` has already,
    /// and gives the rows of all of them in the order of `lines`. One transaction.
    ///
    /// `lines` has to be the whole file: equal lines are told apart by counting them. A line that no queue takes is
    /// recorded as refused.
    ///
    /// # Errors
    ///
    /// When the database can't be written; then no line was sent.
    pub fn enqueue_lines(&self, source: &str, lines: &[Line]) -> Result<Vec<LedgerRow>, CallError> {
        Ok(self.database.write(|transaction| -> Outcome<_> {
            let mut seen = BTreeMap::<String, u32>::new();
            let row = |line: &Line| {
                let hash = hash(&line.text);
                let occurrence = seen.entry(hash.clone()).and_modify(|n| *n += 1).or_insert(1);
                self.take_in(transaction, source, line, hash, *occurrence)
            };
            Ok(lines.iter().map(row).collect::<rusqlite::Result<Vec<_>>>()?)
        })?)
    }

    /// The lines of `source` that are on record, in the order of their numbers.
    ///
    /// # Errors
    ///
    /// When the database can't be read.
    pub fn ledger(&self, source: &str) -> Result<Vec<LedgerRow>, CallError> {
        let sql = "SELECT hash, occurrence, line, message, refusal FROM ledger WHERE source = ?1
                   ORDER BY line, hash, occurrence";
        Ok(self.database.read(|connection| -> Outcome<_> { Ok(connection.all(sql, [source], row)?) })?)
    }

    /// Sends one line and records it, unless it is on record.
    fn take_in(
        &self,
        connection: &Connection,
        source: &str,
        line: &Line,
        hash: String,
        occurrence: u32,
    ) -> rusqlite::Result<LedgerRow> {
        let known = "SELECT hash, occurrence, line, message, refusal FROM ledger
                     WHERE source = ?1 AND hash = ?2 AND occurrence = ?3";
        if let Some(row) = connection.first(known, params![source, hash, occurrence], row)? {
            return Ok(row);
        }
        let outcome = self.send_line(connection, &line.text)?;
        let (message, refusal) = match &outcome {
            LineOutcome::Sent(id) => (Some(id.as_str()), None),
            LineOutcome::Refused(sentence) => (None, Some(sentence)),
        };
        connection.run(
            "INSERT INTO ledger (source, hash, occurrence, line, message, refusal) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![source, hash, occurrence, line.number.cast_signed(), message, refusal],
        )?;
        Ok(LedgerRow { hash, occurrence, line: line.number, outcome })
    }

    fn send_line(&self, connection: &Connection, text: &str) -> rusqlite::Result<LineOutcome> {
        match check_body(text) {
            Err(CallError::Refused(sentence)) => Ok(LineOutcome::Refused(sentence)),
            Err(other) => Ok(LineOutcome::Refused(other.to_string())),
            Ok(()) => self.submission(text).insert(connection).map(LineOutcome::Sent),
        }
    }

    fn submission<'a>(&'a self, body: &'a str) -> NewMessage<'a> {
        NewMessage {
            queue: QueueKind::Submissions.name(),
            body,
            sender: &self.sender,
            now: self.clock.now(),
            delay: SignedDuration::ZERO,
            extras: None,
        }
    }
}

fn row(row: &Row<'_>) -> rusqlite::Result<LedgerRow> {
    let refusal: Option<String> = row.get(4)?;
    let outcome = match row.get::<_, Option<String>>(3)? {
        Some(id) => LineOutcome::Sent(MessageId::new(id)),
        None => LineOutcome::Refused(refusal.unwrap_or_default()),
    };
    let line = row.get::<_, i64>(2)?.cast_unsigned();
    Ok(LedgerRow { hash: row.get(0)?, occurrence: row.get(1)?, line, outcome })
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

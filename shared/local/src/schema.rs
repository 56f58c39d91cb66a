//! The tables and their version.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::database::Fault;

/// Version of the tables below. A change that older programs can't read raises it.
pub const SCHEMA_VERSION: i64 = 2;

/// Row of `meta`: latest virtual time on record, in microseconds.
pub(crate) const CLOCK_TOLD: &str = "clock_told";
/// Row of `meta`: anchor of the virtual time, JSON.
pub(crate) const CLOCK_ANCHOR: &str = "clock_anchor";
const VERSION: &str = "schema_version";

/// `pk` and `sk` are the item's keys, `ipk` and `isk` the keys in an index. Texts compare by their UTF-8 bytes, as
/// DynamoDB's do. An index entry is current while `until` is null; it keeps its past only for a store that lags.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS items (
    pk TEXT NOT NULL, sk TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL,
    entries TEXT NOT NULL, expires_at INTEGER, PRIMARY KEY (pk, sk));
CREATE INDEX IF NOT EXISTS items_by_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS entries (
    which INTEGER NOT NULL, ipk TEXT NOT NULL, isk TEXT NOT NULL, pk TEXT NOT NULL, sk TEXT NOT NULL,
    since INTEGER NOT NULL, until INTEGER, PRIMARY KEY (which, ipk, isk, pk, sk, since)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, id TEXT NOT NULL UNIQUE, body TEXT NOT NULL,
    sender TEXT NOT NULL, sent_at INTEGER NOT NULL, visible_at INTEGER NOT NULL,
    receives INTEGER NOT NULL DEFAULT 0, first_received_at INTEGER, receipt TEXT, source TEXT);
CREATE INDEX IF NOT EXISTS messages_by_time ON messages (queue, visible_at, seq);
CREATE TABLE IF NOT EXISTS ledger (
    source TEXT NOT NULL, hash TEXT NOT NULL, occurrence INTEGER NOT NULL, line INTEGER NOT NULL,
    message TEXT, refusal TEXT, PRIMARY KEY (source, hash, occurrence)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notices (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, subject TEXT NOT NULL, text TEXT NOT NULL,
    at INTEGER NOT NULL);
";

/// What version 2 added: what a message has beside its text, and documents.
const SECOND: &str = "
ALTER TABLE messages ADD COLUMN extras TEXT;
CREATE TABLE documents (kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, name))
    WITHOUT ROWID;
";

/// The file was written by a newer program.
#[derive(Debug)]
pub(crate) struct Newer {
    found: i64,
}

impl Newer {
    pub(crate) fn sentence(&self, path: &Path) -> String {
        let (path, found) = (path.display(), self.found);
        format!(
            "`{path}` has schema version {found} and this osprey knows {SCHEMA_VERSION} at most: use a newer osprey"
        )
    }
}

/// Makes the tables when they are absent, and refuses those of a newer program.
pub(crate) fn prepare(connection: &mut Connection) -> Result<(), Fault<Newer>> {
    if version(connection)? == Some(SCHEMA_VERSION) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match version(&transaction)? {
        Some(found) if found > SCHEMA_VERSION => return Err(Fault::Refused(Newer { found })),
        Some(SCHEMA_VERSION) => {}
        Some(_) => transaction.execute_batch(SECOND)?,
        None => {
            transaction.execute_batch(TABLES)?;
            transaction.execute_batch(SECOND)?;
        }
    }
    set_meta(&transaction, VERSION, SCHEMA_VERSION)?;
    transaction.commit()?;
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'meta'", [], |row| row.get(0))?;
    if tables == 0 { Ok(None) } else { meta(connection, VERSION) }
}

/// Reads a row of `meta`.
pub(crate) fn meta<T: rusqlite::types::FromSql>(connection: &Connection, name: &str) -> rusqlite::Result<Option<T>> {
    connection.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0)).optional()
}

/// Writes a row of `meta`.
pub(crate) fn set_meta(connection: &Connection, name: &str, value: impl rusqlite::ToSql) -> rusqlite::Result<()> {
    connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)", params![name, value]).map(drop)
}

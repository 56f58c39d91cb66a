//! The SQLite file: opening, one transaction a mutation, and nothing about what the rows mean.

pub mod schema;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::OpenError;
use schema::{SCHEMA, SCHEMA_2, SCHEMA_VERSION};

/// Other processes hold the write lock for milliseconds; a wait this long means that one of them is stuck.
const BUSY_TIMEOUT: Duration = Duration::from_secs(15);

/// The database of one state directory. Calls of this process take turns on one connection.
pub struct Store {
    connection: Mutex<Connection>,
}

impl Store {
    /// Opens `file`, creating and filling it when it is new.
    ///
    /// # Errors
    /// One sentence each for a read-only directory, a full disk, a newer schema, and a file that is no database.
    pub fn open(dir: &Path, file: &Path) -> Result<Self, OpenError> {
        let failed = |error: rusqlite::Error| OpenError::store(dir, file, &error);
        let mut connection = Connection::open(file).map_err(failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
        connection.pragma_update(None, "foreign_keys", "ON").map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(128);
        let found = migrate(&mut connection).map_err(failed)?;
        if found > SCHEMA_VERSION {
            return Err(OpenError::Newer { file: file.to_owned(), found, known: SCHEMA_VERSION });
        }
        Ok(Self { connection: Mutex::new(connection) })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic inside a transaction rolled it back, so the connection is sound.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads.
    ///
    /// # Errors
    /// Whatever `f` fails with.
    pub fn read<T, E>(&self, f: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E> {
        f(&self.lock())
    }

    /// Runs `f` in one transaction that holds the write lock from its start, and commits when `f` succeeds.
    ///
    /// # Errors
    /// Whatever `f` fails with, and failures of SQLite; then nothing is changed.
    pub fn write<T, E: From<rusqlite::Error>>(&self, f: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E> {
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = f(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }

    /// A number that changes when another process has changed the file.
    ///
    /// # Errors
    /// Failures of SQLite.
    pub fn data_version(&self) -> rusqlite::Result<i64> {
        self.lock().prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
    }
}

/// Creates the tables in a new file and brings those of an older one up to date; answers the version of the file.
fn migrate(connection: &mut Connection) -> rusqlite::Result<i64> {
    let version = |c: &Connection| c.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    if version(connection)? < SCHEMA_VERSION {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been first.
        let found = version(&transaction)?;
        for (number, step) in [(1, SCHEMA), (2, SCHEMA_2)] {
            if found < number {
                transaction.execute_batch(step)?;
                transaction.pragma_update(None, "user_version", number)?;
            }
        }
        transaction.commit()?;
    }
    version(connection)
}

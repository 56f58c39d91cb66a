//! JSON documents by kind and name, for what a front door keeps beside the store of the local Batch and the queues.

use std::sync::Arc;

use osprey_ports::CallError;
use rusqlite::params;

use crate::database::{Database, Fault, Statements};

/// The documents of a state directory. Clones share the database.
#[derive(Clone, Debug)]
pub struct LocalDocuments {
    database: Arc<Database>,
}

type Outcome<T> = Result<T, Fault<CallError>>;

impl LocalDocuments {
    /// Documents in `database`.
    #[must_use]
    pub fn new(database: Arc<Database>) -> Self {
        Self { database }
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// When the database can't be read.
    pub fn get(&self, kind: &str, name: &str) -> Result<Option<String>, CallError> {
        let sql = "SELECT body FROM documents WHERE kind = ?1 AND name = ?2";
        Ok(self
            .database
            .read(|connection| -> Outcome<_> { Ok(connection.first(sql, params![kind, name], |row| row.get(0))?) })?)
    }

    /// All of a kind with their names, by name.
    ///
    /// # Errors
    ///
    /// When the database can't be read.
    pub fn list(&self, kind: &str) -> Result<Vec<(String, String)>, CallError> {
        let sql = "SELECT name, body FROM documents WHERE kind = ?1 ORDER BY name";
        Ok(self.database.read(|connection| -> Outcome<_> {
            Ok(connection.all(sql, [kind], |row| Ok((row.get(0)?, row.get(1)?)))?)
        })?)
    }

    /// Writes one in place of what there was.
    ///
    /// # Errors
    ///
    /// When the database can't be written.
    pub fn put(&self, kind: &str, name: &str, body: &str) -> Result<(), CallError> {
        let sql = "INSERT OR REPLACE INTO documents (kind, name, body) VALUES (?1, ?2, ?3)";
        Ok(self.database.write(|transaction| -> Outcome<_> {
            transaction.run(sql, params![kind, name, body])?;
            Ok(())
        })?)
    }

    /// Drops one, if it is there.
    ///
    /// # Errors
    ///
    /// When the database can't be written.
    pub fn delete(&self, kind: &str, name: &str) -> Result<(), CallError> {
        let sql = "DELETE FROM documents WHERE kind = ?1 AND name = ?2";
        Ok(self.database.write(|transaction| -> Outcome<_> {
            transaction.run(sql, params![kind, name])?;
            Ok(())
        })?)
    }
}

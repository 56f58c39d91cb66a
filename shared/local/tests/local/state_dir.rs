//! The state directory: who may use it, and what is said when nobody can.

use std::path::Path;

use osprey_local::{Database, DatabaseOptions, SCHEMA_VERSION, StateDir};

use crate::scratch::{Bench, Scratch};

fn sentence<T>(result: Result<T, impl std::error::Error>) -> String {
    match result {
        Ok(_) => panic!("no error"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_directory_is_created_with_its_parents() {
    let scratch = Scratch::new();
    let path = scratch.path().join("a/b");
    let state = StateDir::open(&path).unwrap();
    assert_eq!((state.path(), state.database_path()), (path.as_path(), path.join("osprey.db")));
    assert!(path.is_dir());
}

#[test]
fn a_directory_with_other_files_is_used_and_they_are_left_alone() {
    let scratch = Scratch::new();
    let other = scratch.path().join("notes.txt");
    std::fs::write(&other, "mine").unwrap();
    let state = StateDir::open(scratch.path()).unwrap();
    Database::open(&state.database_path()).unwrap();
    assert_eq!(std::fs::read_to_string(other).unwrap(), "mine");
}

#[test]
fn a_directory_that_is_only_looked_at_must_hold_a_database() {
    let scratch = Scratch::new();
    let want = format!("`{}` is no state directory: there is no file `osprey.db` in it", scratch.path().display());
    assert_eq!(sentence(StateDir::existing(scratch.path())), want);
    Database::open(&StateDir::open(scratch.path()).unwrap().database_path()).unwrap();
    StateDir::existing(scratch.path()).unwrap();
}

#[test]
fn a_path_that_is_a_file_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.path().join("file");
    std::fs::write(&path, "").unwrap();
    let want = format!("the state directory `{}` is not a directory", path.display());
    assert_eq!(sentence(StateDir::open(&path)), want);
}

#[test]
fn a_path_under_a_file_is_refused() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("file"), "").unwrap();
    let path = scratch.path().join("file/state");
    let want = format!("the state directory `{}` can't be created: a part of it is a file", path.display());
    assert_eq!(sentence(StateDir::open(&path)), want);
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    // Nobody may create files in `/proc`, not even root.
    let said = sentence(StateDir::open(Path::new("/proc")));
    assert!(said.starts_with("the state directory `/proc` can't be written to: "), "{said}");
    assert!(!said.contains("os error"), "{said}");
    let said = sentence(Database::open(Path::new("/proc/osprey.db")));
    assert_eq!(said, "`/proc/osprey.db` can't be opened or created");
}

#[test]
fn a_second_pipeline_on_one_directory_is_told_who_has_it() {
    let scratch = Scratch::new();
    let state = StateDir::open(scratch.path()).unwrap();
    assert_eq!(state.holder(), Ok(None));
    let lock = state.lock().unwrap();
    let (pid, path) = (std::process::id(), scratch.path().display());
    let want =
        format!("process {pid} runs a pipeline in the state directory `{path}`: stop it, or choose another directory");
    assert_eq!(sentence(StateDir::open(scratch.path()).unwrap().lock()), want);
    assert_eq!(state.holder(), Ok(Some(pid)));
    drop(lock);
    assert_eq!(state.holder(), Ok(None));
    state.lock().unwrap();
}

#[test]
fn a_lock_whose_holder_is_not_written_yet_is_still_a_lock() {
    let scratch = Scratch::new();
    let state = StateDir::open(scratch.path()).unwrap();
    let _lock = state.lock().unwrap();
    std::fs::write(scratch.path().join("osprey.lock"), "").unwrap();
    assert!(sentence(state.lock()).starts_with("another process runs a pipeline in the state directory"));
}

#[test]
fn a_database_of_a_newer_version_is_refused() {
    let scratch = Scratch::new();
    drop(Database::open(&scratch.file()).unwrap());
    let connection = rusqlite::Connection::open(scratch.file()).unwrap();
    let newer = SCHEMA_VERSION + 1;
    connection.execute("UPDATE meta SET value = ?1 WHERE name = 'schema_version'", [newer]).unwrap();
    let path = scratch.file();
    let want = format!(
        "`{}` has schema version {newer} and this osprey knows {SCHEMA_VERSION} at most: use a newer osprey",
        path.display()
    );
    assert_eq!(sentence(Database::open(&path)), want);
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let scratch = Scratch::new();
    std::fs::write(scratch.file(), "a text that is longer than the head of a database".repeat(9)).unwrap();
    let want = format!("`{}` is no database", scratch.file().display());
    assert_eq!(sentence(Database::open(&scratch.file())), want);
}

#[test]
fn a_disk_that_is_full_from_the_start_is_said_in_one_sentence() {
    let scratch = Scratch::new();
    let options = DatabaseOptions { pages_max: Some(2), ..DatabaseOptions::default() };
    let want = format!("the disk that holds `{}` is full", scratch.file().display());
    assert_eq!(sentence(Database::open_with(&scratch.file(), &options)), want);
    Database::open(&scratch.file()).unwrap();
}

#[test]
fn a_file_that_another_process_is_writing_to_can_be_opened() {
    let scratch = Scratch::new();
    let bench = Bench::on(Database::open(&scratch.file()).unwrap());
    let other = rusqlite::Connection::open(scratch.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    Database::open(&scratch.file()).unwrap();
    drop(bench);
}

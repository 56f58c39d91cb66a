//! Opening: each trouble has one clear sentence.

use std::path::{Path, PathBuf};

use super::LocalBatch;
use crate::{OpenError, Options};

fn dir(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("local-batch-open-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn refusal(dir: &Path) -> String {
    LocalBatch::open(dir, Options::default()).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_directory_with_other_files_is_opened_and_they_are_left_alone() {
    let dir = dir("others");
    std::fs::write(dir.join("notes.txt"), "mine").unwrap();
    LocalBatch::open(&dir, Options::default()).unwrap();
    LocalBatch::open(&dir, Options::default()).unwrap();
    assert_eq!(std::fs::read_to_string(dir.join("notes.txt")).unwrap(), "mine");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_not_touched() {
    let dir = dir("newer");
    drop(LocalBatch::open(&dir, Options::default()).unwrap());
    let file = dir.canonicalize().unwrap().join("batch.db");
    let db = rusqlite::Connection::open(&file).unwrap();
    db.pragma_update(None, "user_version", 7).unwrap();
    drop(db);
    assert_eq!(
        refusal(&dir),
        format!(
            "`{}` was written by a newer version (schema 7, this one knows up to 2): use that version or another \
             directory",
            file.display()
        )
    );
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let dir = dir("text");
    std::fs::write(dir.join("batch.db"), "this is a text and not a database at all\n".repeat(50)).unwrap();
    let file = dir.canonicalize().unwrap().join("batch.db");
    assert_eq!(
        refusal(&dir),
        format!("`{}` can't be used as the database of the local Batch: file is not a database", file.display())
    );
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_path_that_is_a_file_or_that_nobody_may_write_is_refused() {
    let dir = dir("file");
    let file = dir.join("plain");
    std::fs::write(&file, "").unwrap();
    assert_eq!(refusal(&file), format!("state directory `{}` can't be used: file exists", file.display()));
    // Even root can't make directories in /sys.
    assert_eq!(
        refusal(Path::new("/sys/kernel/local-batch")),
        "state directory `/sys/kernel/local-batch` can't be written: it is read-only for this user"
    );
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_full_disk_is_named_as_such_by_file_system_and_database() {
    let dir = Path::new("/state");
    let want = "state directory `/state` can't be written: its disk is full";
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    assert_eq!(OpenError::io(dir, &full).to_string(), want);
    let code = rusqlite::ffi::Error { code: rusqlite::ErrorCode::DiskFull, extended_code: 13 };
    let full = rusqlite::Error::SqliteFailure(code, None);
    assert_eq!(OpenError::store(dir, Path::new("/state/batch.db"), &full).to_string(), want);
}

#[test]
fn a_database_of_the_first_version_is_brought_up_to_date_with_what_is_in_it() {
    let dir = dir("older");
    let file = dir.join("batch.db");
    let db = rusqlite::Connection::open(&file).unwrap();
    db.execute_batch(crate::store::schema::SCHEMA).unwrap();
    db.execute_batch(
        "INSERT INTO compute_environment VALUES ('main', 'EC2', 'ENABLED', 1, 0, 1000, 1024, '{}');
         INSERT INTO node VALUES ('main', 0, 0, 0, 'i-0', 1, 0, NULL, 0, 0);
         INSERT INTO job_queue VALUES ('q', 'ENABLED', 1, NULL, '{}');
         PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(db);
    let batch = LocalBatch::open(&dir, Options::default()).unwrap();
    let environment = batch.describe_compute_environments(&[]).unwrap().pop().unwrap();
    assert_eq!((environment.min_nodes, environment.desired_nodes), (1, 1));
    assert!(batch.describe_nodes().unwrap()[0].open);
    assert_eq!(batch.describe_job_queues(&[]).unwrap()[0].job_state_time_limit_actions, []);
    std::fs::remove_dir_all(dir).unwrap();
}

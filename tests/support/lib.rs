//! What the suites share: where the repository is, its files, Rust source taken apart, the sample backlog.

use std::path::{Path, PathBuf};
use std::{fs, io};

pub mod backlog;
pub mod chaos;
pub mod source;

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct TextFile {
    /// Path from the root, with `/`.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// Every text file of the repository whose path ends in one of `endings`, in the order of their paths.
///
/// Build output, hidden folders other than `.ci` and files that aren't UTF-8 are left out.
///
/// # Errors
/// When a folder can't be read.
pub fn text_files(endings: &[&str]) -> io::Result<Vec<TextFile>> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                if name != "target" && (!name.starts_with('.') || name == ".ci") {
                    folders.push(entry.path());
                }
                continue;
            }
            let path = entry.path().strip_prefix(&root).unwrap_or(&entry.path()).to_string_lossy().replace('\\', "/");
            if !endings.iter().any(|ending| path.ends_with(ending)) {
                continue;
            }
            if let Ok(text) = fs::read_to_string(entry.path()) {
                found.push(TextFile { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

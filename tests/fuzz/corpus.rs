//! The samples that inputs are made of: what the project has for other purposes, and a few of their own.

use std::path::Path;

/// The samples of a target, in the order of their names.
pub fn of(target: &str) -> Result<Vec<Vec<u8>>, String> {
    let root = osprey_tests::root();
    let mut samples = folder(&root.join("tests/fuzz/corpus").join(target))?;
    match target {
        "messages" => samples.extend(lines(&root.join("events/backlog.jsonl"))?),
        "events" => samples.extend(folder(&root.join("events"))?),
        "policies" => samples.extend(folder(&root.join("shared/policy/policies"))?),
        _ => {}
    }
    if samples.is_empty() { Err(format!("there is no sample of `{target}`")) } else { Ok(samples) }
}

fn folder(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let told = |error: std::io::Error| format!("`{}` can't be read: {error}", path.display());
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(told)? {
        let file = entry.map_err(told)?.path();
        if file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    files.iter().map(|file| std::fs::read(file).map_err(told)).collect()
}

fn lines(path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("`{}` can't be read: {error}", path.display()))?;
    Ok(bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
}

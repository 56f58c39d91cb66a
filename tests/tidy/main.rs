//! The house rules, as tests. Each rule is a function from text to offences, tried on bad samples and then on the
//! repository.

mod attacks;
mod backlog;
mod changelog;
mod decisions;
mod dependencies;
mod features;
mod forgotten;
mod licences;
mod links;
mod readme;
mod reasons;
mod scanner;
mod size;
mod template;
mod words;

/// What a test that reads files gives back.
type Checked = Result<(), Box<dyn std::error::Error>>;

/// Fails with every offence, one a line.
#[track_caller]
fn assert_none(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}

/// A file of the repository.
fn read(path: &str) -> std::io::Result<String> {
    std::fs::read_to_string(osprey_tests::root().join(path))
}

/// Everything `cargo metadata` says, asked with `arguments`.
fn cargo_metadata(arguments: &[&str]) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args(["metadata", "--offline", "--format-version", "1"])
        .args(arguments)
        .current_dir(osprey_tests::root())
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The text of a member.
fn text<'a>(value: &'a serde_json::Value, member: &str) -> &'a str {
    value.get(member).and_then(serde_json::Value::as_str).unwrap_or_default()
}

/// The elements of a member.
fn list<'a>(value: &'a serde_json::Value, member: &str) -> &'a [serde_json::Value] {
    value.get(member).and_then(serde_json::Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

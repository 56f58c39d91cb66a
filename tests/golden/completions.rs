//! The completions of a shell work in that shell, where it is there.

use std::fs;
use std::process::Command;

use crate::local::Folder;
use crate::{Checked, Program};

#[test]
fn bash_completes_commands_options_and_their_values() -> Checked {
    if Command::new("bash").arg("--version").output().is_err() {
        return Ok(());
    }
    let folder = Folder::new("completions")?;
    let file = folder.0.join("osprey.bash");
    fs::write(&file, Program::command(["completions", "bash"]).output()?.stdout)?;
    let completed = |words: &[&str]| -> Result<Vec<String>, Box<dyn std::error::Error>> {
        let [.., before, last] = words else { return Err("at least two words".into()) };
        let place = words.len() - 1;
        // What readline does: the words, the place of the last, and the function with that and the one before it.
        let code = format!(
            "source '{}'; COMP_WORDS=({}); COMP_CWORD={place}; _osprey osprey '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            file.display(),
            words.join(" ")
        );
        let output = Command::new("bash").args(["--norc", "-c", &code]).output()?;
        Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
    };
    assert_eq!(completed(&["osprey", "que"])?, ["queue"]);
    assert_eq!(completed(&["osprey", "dead-letters", "list", "--st"])?, ["--status", "--stack"]);
    assert_eq!(completed(&["osprey", "dead-letters", "list", "--status", "o"])?, ["open"]);
    Ok(())
}

#[test]
fn every_shell_has_completions_of_every_command() -> Checked {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = Program::command(["completions", shell]).output()?;
        let script = String::from_utf8(output.stdout)?;
        for word in ["dead-letters", "lineage", "watch"] {
            assert!(script.contains(word), "{shell} doesn't know {word}");
        }
    }
    Ok(())
}

//! The README's set-up is two commands, and CI runs both.

use crate::{Checked, assert_none, read};

/// The commands of the first code block behind the heading `## Set up`.
fn set_up(readme: &str) -> Vec<&str> {
    let section = readme.lines().skip_while(|line| *line != "## Set up").skip(1);
    let block = section.take_while(|line| !line.starts_with("## ")).skip_while(|line| !line.starts_with("```")).skip(1);
    block.take_while(|line| !line.starts_with("```")).filter(|line| !line.trim().is_empty()).collect()
}

fn offences(readme: &str, ci: &str) -> Vec<String> {
    let commands = set_up(readme);
    let [run, test] = *commands else {
        return vec![format!("the set-up block has {} commands and must have 2", commands.len())];
    };
    let called = |command: &str| ci.lines().any(|line| line.trim().ends_with(&format!(" {command}")));
    let mut found = Vec::new();
    if run != "cargo run --release -- local run events/backlog.jsonl" {
        found.push(format!("the first command runs the sample and isn't `{run}`"));
    }
    for command in [run, test].into_iter().filter(|command| !called(command)) {
        found.push(format!(".ci/run doesn't call `{command}`"));
    }
    found
}

#[test]
fn ci_runs_what_the_readme_says() -> Checked {
    assert_none("README.md and .ci/run", &offences(&read("README.md")?, &read(".ci/run")?));
    Ok(())
}

#[test]
fn a_difference_is_found() {
    let run = "cargo run --release -- local run events/backlog.jsonl";
    let readme =
        |commands: &str| format!("# X\n\n## Set up\n\n```sh\n{commands}\n```\n\n## Next\n\n```sh\nother\n```\n");
    let ci = format!("stage run {run}\nstage tests cargo test --workspace\n");
    for (commands, count) in [
        (format!("{run}\ncargo test --workspace"), 0),
        (run.to_owned(), 1),
        (format!("{run}\ncargo test"), 1),
        (format!("{run}\ncargo test --workspace\nmore"), 1),
        ("cargo run\ncargo test --workspace".to_owned(), 2),
    ] {
        assert_eq!(offences(&readme(&commands), &ci).len(), count, "{commands}");
    }
}

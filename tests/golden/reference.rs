//! `docs/reference` is made of code: the commands of the command line with their help, the metrics, the reason codes.
//! `OSPREY_BLESS=1` writes it anew.

use std::{env, fs};

use clap::CommandFactory as _;

use crate::{Checked, Program};

/// Compares a page with what it should be, or writes it.
fn check(page: &str, now: &str) -> Checked {
    let path = osprey_tests::root().join("docs/reference").join(page);
    if env::var_os("OSPREY_BLESS").is_some() {
        fs::create_dir_all(osprey_tests::root().join("docs/reference"))?;
        fs::write(&path, now)?;
    }
    let was = fs::read_to_string(&path).unwrap_or_default();
    let line = was.lines().zip(now.lines()).position(|(was, now)| was != now).unwrap_or(0) + 1;
    assert!(
        was == now,
        "docs/reference/{page} isn't what the code says, from line {line} on; OSPREY_BLESS=1 writes it"
    );
    Ok(())
}

/// Every command that isn't a group, as its words.
fn commands(command: &clap::Command, words: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let mut subcommands = command.get_subcommands().filter(|sub| sub.get_name() != "help").peekable();
    if subcommands.peek().is_none() {
        found.push((words.to_vec(), command.get_about().map(ToString::to_string).unwrap_or_default()));
    }
    for subcommand in subcommands {
        let words: Vec<String> = words.iter().cloned().chain([subcommand.get_name().to_owned()]).collect();
        commands(subcommand, &words, found);
    }
}

fn all_commands() -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    commands(&osprey::command::Cli::command(), &[], &mut found);
    found
}

fn help(words: &[String]) -> Result<String, Box<dyn std::error::Error>> {
    let output = Program::command(words.iter().map(String::as_str).chain(["--help"])).output()?;
    assert_eq!(output.status.code(), Some(0), "{words:?}");
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(|line| format!("{}\n", line.trim_end())).collect())
}

#[test]
fn the_page_of_commands_is_their_help() -> Checked {
    let mut page = "\
# Commands

What `osprey COMMAND --help` says, on a terminal of 120 columns. This page is made of the code: a test holds it and the
help together. [json.md](../json.md) describes what comes out with `--output json`.

| command | does |
|---|---|
"
    .to_owned();
    let commands = all_commands();
    for (words, about) in &commands {
        let name = words.join(" ");
        let anchor = format!("osprey-{}", words.join("-"));
        let about = about.replace('|', "\\|");
        page.push_str(&format!("| [`osprey {name}`](#{anchor}) | {} |\n", about.trim_end_matches('.')));
    }
    for (words, _) in &commands {
        page.push_str(&format!("\n## osprey {}\n\n```text\n{}```\n", words.join(" "), help(words)?));
    }
    check("commands.md", &page)
}

#[test]
fn the_help_of_every_command_has_examples_of_it() -> Checked {
    for (words, about) in all_commands() {
        let name = words.join(" ");
        let help = help(&words)?;
        let examples: Vec<&str> = help
            .lines()
            .skip_while(|line| *line != "Examples:")
            .skip(1)
            .take_while(|line| line.starts_with("  "))
            .collect();
        assert!(
            examples.iter().any(|line| line.contains(&format!("osprey {name}"))),
            "`osprey {name} --help` has no example"
        );
        assert!(!about.is_empty(), "`osprey {name}` says nothing of what it does");
    }
    Ok(())
}

#[test]
fn the_page_of_metrics_is_the_list_of_the_code() -> Checked {
    let mut page = format!(
        "\
# Metrics

What the functions emit, in the namespace `{}`, each also with the dimension `Stack`. This page is made of
[metrics.rs](../../shared/lambda/src/metrics.rs); a test holds both together.

| metric | unit | told apart by | several in one invocation |
|---|---|---|---|
",
        osprey_lambda::metrics::NAMESPACE
    );
    for metric in osprey_lambda::metrics::METRICS {
        let by = metric.dimensions.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let several = if metric.adds { "are added" } else { "the newest counts" };
        page.push_str(&format!("| `{}` | {} | {by} | {several} |\n", metric.name, metric.unit));
    }
    check("metrics.md", &page)
}

/// The variants of an enum, each with the first sentence of what is said of it.
fn variants<'s>(source: &'s str, name: &str) -> Vec<(&'s str, String)> {
    let head = format!("pub enum {name} {{");
    let body = source.lines().skip_while(|line| *line != head).skip(1).take_while(|line| *line != "}");
    let (mut found, mut said) = (Vec::new(), String::new());
    for line in body {
        if let Some(text) = line.strip_prefix("    /// ") {
            said = if said.is_empty() { text.to_owned() } else { format!("{said} {text}") };
        } else if let Some(variant) = line.strip_prefix("    ").filter(|line| line.starts_with(char::is_uppercase)) {
            let end = variant.find(|c: char| !c.is_alphanumeric()).unwrap_or(variant.len());
            let first = said.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned();
            found.push((variant.get(..end).unwrap_or_default(), first));
            said.clear();
        }
    }
    found
}

#[test]
fn the_page_of_reasons_is_the_lists_of_the_code() -> Checked {
    let read = |path: &str| fs::read_to_string(osprey_tests::root().join(path));
    let (ends, waits) = (read("shared/model/src/reason.rs")?, read("shared/scheduler/src/reason.rs")?);
    let (ends, waits) = (variants(&ends, "ReasonCode"), variants(&waits, "WaitReason"));
    assert!(ends.len() > 40 && waits.len() > 10, "the codes can't be read any more");
    let mut page = "\
# Reason codes

The codes, as the code has them; [REASONS.md](../REASONS.md) says of each what to do about it. This page is made of
[reason.rs](../../shared/model/src/reason.rs) of the model and [reason.rs](../../shared/scheduler/src/reason.rs) of the
scheduler; a test holds all of them together.
"
    .to_owned();
    for (heading, codes) in [("Refusals, dead letters and ends", ends), ("Jobs that wait for a start", waits)] {
        page.push_str(&format!("\n## {heading}\n\n| code | means |\n|---|---|\n"));
        for (code, means) in codes {
            let anchor = code.to_lowercase();
            page.push_str(&format!("| [`{code}`](../REASONS.md#{anchor}) | {means} |\n"));
        }
    }
    check("reasons.md", &page)
}

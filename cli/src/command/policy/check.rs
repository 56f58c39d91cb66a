//! `osprey policy check` and `osprey policy test`.

use std::path::PathBuf;

use clap::Args;
use osprey_policy::problem::{PolicyError, Warning};
use osprey_policy::waits::{TierWait, WaitBound};
use osprey_policy::{Loaded, Policy};
use serde_json::{Value, json};

use crate::command::Exit;
use crate::error::CliError;
use crate::policy_file;
use crate::render::policy as render;
use crate::ui::Ui;

/// Find every mistake in a policy, each with its place and a way out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey policy check policy.toml
  osprey policy check policy.toml --output json

Says for each tier how long jobs that come later can pass a waiting one. A policy that lets them for ever is refused
unless it says `unbounded_wait = true` in `[order]`.

Exit code 4 when the policy can't be used or is refused. Warnings don't count.")]
pub struct CheckArgs {
    /// The policy
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Run the tests that a policy carries.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey policy test policy.toml
  osprey policy test                       the tests of the built-in default policy

Exit code 3 when a test fails, 4 when the policy can't be used.")]
pub struct TestArgs {
    /// The policy; the built-in default without it
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Shows what is wrong with a policy.
pub fn check(args: &CheckArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let text = policy_file::read(&args.file)?;
    let name = args.file.display().to_string();
    match Policy::load(&text) {
        Ok(Loaded { policy, warnings }) => {
            let starving = starving(&policy);
            if ui.is_json() {
                ui.json(&verdict(Some(&policy), &[], &warnings))?;
            } else {
                let source = render::Source { name: &name, text: &text, paint: ui.paint() };
                ui.text(&source.sound(&policy, &warnings, &starving))?;
            }
            Ok(if starving.is_empty() { Exit::Ok } else { Exit::Invalid })
        }
        Err(errors) => {
            if ui.is_json() {
                ui.json(&verdict(None, &errors, &[]))?;
            } else {
                let source = render::Source { name: &name, text: &text, paint: ui.paint() };
                ui.text(&source.broken(&errors))?;
            }
            Ok(Exit::Invalid)
        }
    }
}

/// The tiers whose jobs may be passed for ever without the policy saying that it means it.
fn starving(policy: &Policy) -> Vec<TierWait> {
    let is_unbounded = |wait: &TierWait| matches!(wait.bound, WaitBound::Never(_));
    if policy.order().unbounded_wait { Vec::new() } else { policy.waits().into_iter().filter(is_unbounded).collect() }
}

fn waits(policy: &Policy) -> Vec<Value> {
    let wait = |wait: TierWait| {
        let (seconds, why) = match &wait.bound {
            WaitBound::Within(ms) => (Some(ms.div_ceil(1000)), None),
            WaitBound::Never(why) => (None, Some(render::unbounded(why))),
        };
        json!({ "tier": wait.tier, "priority": wait.number, "passed_within_seconds": seconds, "unbounded": why })
    };
    policy.waits().into_iter().map(wait).collect()
}

fn verdict(policy: Option<&Policy>, errors: &[PolicyError], warnings: &[Warning]) -> Value {
    let errors: Vec<Value> = errors
        .iter()
        .map(|PolicyError { path, line, column, code, message, help }| {
            let code = code.to_string();
            json!({ "path": path, "line": line, "column": column, "code": code, "message": message, "help": help })
        })
        .collect();
    let warnings: Vec<Value> = warnings
        .iter()
        .map(|Warning { path, line, column, message, .. }| {
            json!({ "path": path, "line": line, "column": column, "message": message })
        })
        .collect();
    json!({
        "valid": policy.is_some_and(|policy| starving(policy).is_empty()),
        "revision": policy.map(|policy| policy.revision().as_str()),
        "errors": errors,
        "warnings": warnings,
        "waits": policy.map(waits).unwrap_or_default(),
    })
}

/// Runs a policy's tests.
pub fn test(args: &TestArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let policy = policy_file::load(args.file.as_deref())?;
    let outcomes = policy.run_tests();
    let failed = outcomes.iter().filter(|outcome| !outcome.passed()).count();
    if ui.is_json() {
        let tests: Vec<Value> = outcomes
            .iter()
            .map(|outcome| {
                json!({
                    "name": outcome.name,
                    "line": outcome.line,
                    "passed": outcome.passed(),
                    "failures": outcome.failures,
                    "priority": outcome.derivation.priority,
                    "tier": outcome.derivation.tier,
                    "steps": outcome.derivation.steps,
                    "refusals": outcome.refusals,
                })
            })
            .collect();
        ui.json(&json!({ "passed": outcomes.len() - failed, "failed": failed, "tests": tests }))?;
    } else {
        ui.text(&render::tests(&outcomes, ui.paint()))?;
    }
    Ok(if failed == 0 { Exit::Ok } else { Exit::Negative })
}

//! Every crate that is built with ours has a licence that goes with Apache-2.0, comes from crates.io, and isn't one that
//! we do without. What is allowed stands in `deny.toml`, which cargo-deny reads too.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Checked, assert_none, cargo_metadata, list, read, text};

/// The first quoted text of each line of a list in `deny.toml`.
fn listed(deny: &str, list: &str) -> BTreeSet<String> {
    let opening = format!("{list} = [");
    let lines = deny.lines().skip_while(|line| *line != opening).skip(1).take_while(|line| *line != "]");
    lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}

/// Whether an SPDX expression can be met with allowed licences only; an expression that can't be read cannot.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    // `MIT/Apache-2.0` is how older crates wrote OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest, allowed) == Some(true) && rest.is_empty()
}

/// `A OR B`: one of them is enough. AND binds closer.
fn any_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut met = all_of(rest, allowed)?;
    while let [word, after @ ..] = *rest
        && *word == "OR"
    {
        *rest = after;
        met |= all_of(rest, allowed)?;
    }
    Some(met)
}

fn all_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let mut met = one(rest, allowed)?;
    while let [word, after @ ..] = *rest
        && *word == "AND"
    {
        *rest = after;
        met &= one(rest, allowed)?;
    }
    Some(met)
}

fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> Option<bool> {
    let (word, after) = rest.split_first()?;
    *rest = after;
    if *word == "(" {
        let met = any_of(rest, allowed)?;
        let (close, after) = rest.split_first()?;
        *rest = after;
        return (*close == ")").then_some(met);
    }
    let mut licence = (*word).to_owned();
    if let ["WITH", exception, after @ ..] = *rest {
        licence = format!("{licence} WITH {exception}");
        *rest = after;
    }
    Some(allowed.contains(&licence))
}

fn offences(metadata: &Value, allowed: &BTreeSet<String>) -> Vec<String> {
    let refused = list(metadata, "packages").iter().filter(|package| !is_allowed(text(package, "license"), allowed));
    refused
        .map(|package| {
            let licence = Some(text(package, "license")).filter(|licence| !licence.is_empty()).unwrap_or("no licence");
            format!("{} {}: {licence}", text(package, "name"), text(package, "version"))
        })
        .collect()
}

/// Crates that we do without, and crates that come from elsewhere than crates.io.
fn banned(metadata: &Value, deny: &str) -> Vec<String> {
    let (bans, sources) = (listed(deny, "deny"), listed(deny, "allow-registry"));
    let is_foreign = |package: &Value| {
        let source = text(package, "source");
        !source.is_empty() && !source.strip_prefix("registry+").is_some_and(|source| sources.contains(source))
    };
    let packages = list(metadata, "packages").iter();
    let found = packages.filter(|package| bans.contains(text(package, "name")) || is_foreign(package));
    found.map(|package| format!("{} {}", text(package, "name"), text(package, "version"))).collect()
}

/// The platform this is built for, as rustc names it.
fn host() -> Result<String, Box<dyn std::error::Error>> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(rustc).arg("-vV").output()?;
    let said = String::from_utf8(output.stdout)?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc names no host")?.to_owned())
}

#[test]
fn every_licence_and_every_source_is_allowed_and_no_banned_crate_is_built() -> Checked {
    let deny = read("deny.toml")?;
    // Only this platform: crates of others were never fetched.
    let metadata = cargo_metadata(&["--filter-platform", &host()?])?;
    assert_none("licences", &offences(&metadata, &listed(&deny, "allow")));
    assert_none("bans and sources", &banned(&metadata, &deny));
    Ok(())
}

#[test]
fn a_banned_crate_and_one_from_elsewhere_are_named() {
    let deny = "deny = [\n    { crate = \"x\", reason = \"y\" },\n]\nallow-registry = [\n    \"https://a\",\n]\n";
    let package = |name: &str, source: Value| serde_json::json!({ "name": name, "version": "1.0.0", "source": source });
    let metadata = serde_json::json!({ "packages": [
        package("x", "registry+https://a".into()),
        package("y", "registry+https://a".into()),
        package("z", "git+https://b".into()),
        package("ours", Value::Null),
    ] });
    assert_eq!(banned(&metadata, deny), ["x 1.0.0", "z 1.0.0"]);
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    let allowed = ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into();
    for (expression, want) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0-only OR MIT", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
        ("GPL-3.0-only", false),
        ("MIT AND GPL-3.0-only", false),
        ("MIT OR Apache-2.0 AND GPL-3.0-only", true),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", false),
        ("GPL-2.0 WITH Classpath-exception-2.0", false),
        ("(MIT", false),
        ("MIT MIT", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), want, "{expression}");
    }
}

#[test]
fn a_crate_without_a_licence_is_named() {
    let metadata = serde_json::json!({ "packages": [{ "name": "x", "version": "1.0.0", "license": null }] });
    assert_eq!(offences(&metadata, &BTreeSet::new()), ["x 1.0.0: no licence"]);
}

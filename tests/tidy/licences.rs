//! Every crate that is built with ours has a licence that goes with Apache-2.0.

use serde_json::Value;

use crate::{Checked, assert_none, cargo_metadata, list, text};

/// Licences that may be linked in. `deny.toml` has the same list.
const ALLOWED: [&str; 12] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
    "MPL-2.0",
    "0BSD",
    "CC0-1.0",
];
/// The public domain, said in a licence's form.
const UNLICENSE: &str = "Unlicense";

/// Whether an SPDX expression can be met with allowed licences only; an expression that can't be read cannot.
fn is_allowed(expression: &str) -> bool {
    // `MIT/Apache-2.0` is how older crates wrote OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) == Some(true) && rest.is_empty()
}

/// `A OR B`: one of them is enough. AND binds closer.
fn any_of(rest: &mut &[&str]) -> Option<bool> {
    let mut met = all_of(rest)?;
    while let [word, after @ ..] = *rest
        && *word == "OR"
    {
        *rest = after;
        met |= all_of(rest)?;
    }
    Some(met)
}

fn all_of(rest: &mut &[&str]) -> Option<bool> {
    let mut met = one(rest)?;
    while let [word, after @ ..] = *rest
        && *word == "AND"
    {
        *rest = after;
        met &= one(rest)?;
    }
    Some(met)
}

fn one(rest: &mut &[&str]) -> Option<bool> {
    let (word, after) = rest.split_first()?;
    *rest = after;
    if *word == "(" {
        let met = any_of(rest)?;
        let (close, after) = rest.split_first()?;
        *rest = after;
        return (*close == ")").then_some(met);
    }
    let mut licence = (*word).to_owned();
    if let ["WITH", exception, after @ ..] = *rest {
        licence = format!("{licence} WITH {exception}");
        *rest = after;
    }
    Some(ALLOWED.contains(&licence.as_str()) || licence == UNLICENSE)
}

fn offences(metadata: &Value) -> Vec<String> {
    let refused = list(metadata, "packages").iter().filter(|package| !is_allowed(text(package, "license")));
    refused
        .map(|package| {
            let licence = Some(text(package, "license")).filter(|licence| !licence.is_empty()).unwrap_or("no licence");
            format!("{} {}: {licence}", text(package, "name"), text(package, "version"))
        })
        .collect()
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
fn every_licence_is_allowed() -> Checked {
    // Only this platform: crates of others were never fetched.
    assert_none("licences", &offences(&cargo_metadata(&["--filter-platform", &host()?])?));
    Ok(())
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
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
        assert_eq!(is_allowed(expression), want, "{expression}");
    }
}

#[test]
fn a_crate_without_a_licence_is_named() {
    let metadata = serde_json::json!({ "packages": [{ "name": "x", "version": "1.0.0", "license": null }] });
    assert_eq!(offences(&metadata), ["x 1.0.0: no licence"]);
}

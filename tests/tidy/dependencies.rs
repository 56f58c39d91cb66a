//! Who may depend on whom (`docs/ARCHITECTURE.md`).

use serde_json::{Value, json};

use crate::{Checked, assert_none, cargo_metadata, list, text};

/// What a crate may use of ours, and what it must not use of others.
struct Wall {
    package: &'static str,
    may_use: &'static [&'static str],
    must_not: &'static [&'static str],
}

/// Everything that reaches outside the process.
const IO: &[&str] = &["tokio", "aws-", "aws_", "lambda_runtime", "rusqlite", "rustix", "rand", "tracing-subscriber"];
/// The same without `rand`: the chance of the simulator and of the placement search is made of a seed.
const IO_BUT_CHANCE: &[&str] =
    &["tokio", "aws-", "aws_", "lambda_runtime", "rusqlite", "rustix", "rand_distr", "tracing-subscriber"];
/// What a handler must not reach but through a port.
const STORES: &[&str] = &["aws-", "rusqlite", "rustix"];
/// The crates that a function is made of.
const FUNCTION: &[&str] = &["osprey-model", "osprey-policy", "osprey-ports", "osprey-pipeline", "osprey-lambda"];
/// The function that decides what starts.
const SCHEDULE: &[&str] =
    &["osprey-model", "osprey-policy", "osprey-ports", "osprey-pipeline", "osprey-lambda", "osprey-scheduler"];

/// One row a crate. A crate without a row is an offence: its wall has to be decided first.
const WALLS: &[Wall] = &[
    Wall { package: "osprey-model", may_use: &[], must_not: IO },
    Wall { package: "osprey-policy", may_use: &["osprey-model"], must_not: IO },
    Wall { package: "osprey-ports", may_use: &["osprey-model"], must_not: IO },
    Wall { package: "osprey-pipeline", may_use: &["osprey-model", "osprey-policy", "osprey-ports"], must_not: IO },
    Wall { package: "osprey-local-batch", may_use: &["osprey-model"], must_not: &["aws-", "aws_", "lambda_runtime"] },
    Wall {
        package: "osprey-local",
        may_use: &["osprey-model", "osprey-ports", "osprey-local-batch"],
        must_not: &["aws-", "aws_", "lambda_runtime"],
    },
    Wall { package: "osprey-scheduler", may_use: &["osprey-model", "osprey-policy"], must_not: IO_BUT_CHANCE },
    Wall {
        package: "osprey-sim",
        may_use: &["osprey-model", "osprey-policy", "osprey-scheduler"],
        must_not: IO_BUT_CHANCE,
    },
    Wall {
        package: "osprey-local-server",
        may_use: &["osprey-model", "osprey-ports", "osprey-local", "osprey-local-batch"],
        must_not: &["aws-", "aws_", "lambda_runtime", "rusqlite"],
    },
    Wall {
        package: "osprey-aws",
        may_use: &["osprey-model", "osprey-ports"],
        must_not: &["rusqlite", "rustix", "lambda_runtime"],
    },
    Wall {
        package: "osprey-lambda",
        may_use: &["osprey-model", "osprey-policy", "osprey-ports", "osprey-pipeline", "osprey-aws"],
        must_not: STORES,
    },
    Wall { package: "osprey-schedule", may_use: SCHEDULE, must_not: STORES },
    Wall { package: "osprey-submit", may_use: FUNCTION, must_not: STORES },
    Wall { package: "osprey-requeue", may_use: FUNCTION, must_not: STORES },
    Wall { package: "osprey-dead-letter", may_use: FUNCTION, must_not: STORES },
    Wall { package: "osprey-watch", may_use: FUNCTION, must_not: STORES },
];

/// The crates that put everything together: they may use everything.
const ASSEMBLIES: [&str; 2] = ["osprey", "osprey-tests"];

fn offences(metadata: &Value) -> Vec<String> {
    let packages = list(metadata, "packages").iter().filter(|package| !ASSEMBLIES.contains(&text(package, "name")));
    packages.flat_map(offences_of).collect()
}

fn offences_of(package: &Value) -> Vec<String> {
    let name = text(package, "name");
    let Some(wall) = WALLS.iter().find(|wall| wall.package == name) else {
        return vec![format!("`{name}` has no row in WALLS: decide what it may use")];
    };
    let used = list(package, "dependencies").iter().filter(|dependency| text(dependency, "kind") != "dev");
    used.map(|dependency| text(dependency, "name")).filter_map(|used| wall.offence(used)).collect()
}

impl Wall {
    fn offence(&self, used: &str) -> Option<String> {
        let ours = used == "osprey" || used.starts_with("osprey-");
        let forbidden = if ours {
            !self.may_use.contains(&used)
        } else {
            self.must_not.iter().any(|not| if not.ends_with(['-', '_']) { used.starts_with(not) } else { used == *not })
        };
        forbidden.then(|| format!("`{}` must not use `{used}`", self.package))
    }
}

#[test]
fn no_crate_looks_over_its_wall() -> Checked {
    assert_none("forbidden dependencies", &offences(&cargo_metadata(&["--no-deps"])?));
    Ok(())
}

#[test]
fn forbidden_edges_are_found() {
    let package = |name: &str, used: &[&str]| {
        let used: Vec<Value> = used.iter().map(|used| json!({ "name": used, "kind": null })).collect();
        json!({ "packages": [{ "name": name, "dependencies": used }] })
    };
    for (name, used, want) in [
        ("osprey-policy", "tokio", true),
        ("osprey-policy", "aws-sdk-batch", true),
        ("osprey-policy", "osprey-ports", true),
        ("osprey-policy", "osprey-model", false),
        ("osprey-policy", "cel", false),
        ("osprey-local-batch", "osprey-ports", true),
        ("osprey-submit", "osprey-local", true),
        ("osprey-submit", "osprey", true),
        ("osprey", "osprey-local", false),
        ("osprey-novelty", "serde", true),
    ] {
        assert_eq!(!offences(&package(name, &[used])).is_empty(), want, "{name} uses {used}");
    }
}

#[test]
fn what_only_tests_use_is_free() {
    let package =
        json!({ "packages": [{ "name": "osprey-model", "dependencies": [{ "name": "rand", "kind": "dev" }] }] });
    assert_eq!(offences(&package), [""; 0]);
}

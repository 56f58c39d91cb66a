//! `osprey place`.

use std::process::{Command, Output};

use serde_json::Value;

use crate::Checked;
use crate::checker::{FilePlan, Instance};
use crate::given::GIVEN;

fn place(words: &[&str]) -> std::io::Result<Output> {
    let program = env!("CARGO_BIN_EXE_osprey-under-test");
    let words = [&["place"], words, &["--output", "json"]].concat();
    Command::new(program).args(words).current_dir(osprey_tests::root()).output()
}

fn answer(words: &[&str]) -> Result<Value, Box<dyn std::error::Error>> {
    let output = place(words)?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn file(name: &str) -> String {
    format!("tests/placement/instances/{name}.json")
}

#[test]
fn every_strategy_prints_a_plan_that_is_worth_what_it_says() -> Checked {
    for (name, ..) in GIVEN {
        for strategy in ["greedy", "osprey", "exact"] {
            let answer = answer(&[&file(name), "--strategy", strategy, "--seed", "7"])?;
            let plan: FilePlan = serde_json::from_value(answer["plan"].clone())?;
            let worth = Instance::load(name)?.worth(&plan)?;
            assert!((answer["objective"].as_f64().unwrap_or(f64::NAN) - worth).abs() < 1e-9, "{name}: {answer}");
            assert_eq!((&answer["strategy"], &answer["seed"]), (&strategy.into(), &7.into()));
            assert!(answer["milliseconds"].is_number());
        }
    }
    Ok(())
}

#[test]
fn the_number_of_threads_changes_nothing() -> Checked {
    let plan = |threads| {
        let mut answer = answer(&[&file("n32_j100_occ"), "--threads", threads])?;
        answer.as_object_mut().ok_or("no object")?.remove("milliseconds");
        Ok::<Value, Box<dyn std::error::Error>>(answer)
    };
    assert_eq!(plan("1")?, plan("2")?);
    assert_eq!(plan("1")?, plan("7")?);
    Ok(())
}

// B20
#[test]
fn vcpus_are_placed_like_gpus() -> Checked {
    let text = std::fs::read_to_string(osprey_tests::root().join(file("n10_j100_occ")))?;
    let folder = std::env::temp_dir().join(format!("osprey-place-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("vcpus.json");
    std::fs::write(&path, text.replace("gpus_per_node", "vcpus_per_node").replace("\"gpus\"", "\"vcpus\""))?;
    let (vcpus, gpus) = (answer(&[&path.display().to_string()])?, answer(&[&file("n10_j100_occ")])?);
    std::fs::remove_dir_all(&folder)?;
    assert_eq!(vcpus["plan"], gpus["plan"]);
    Ok(())
}

#[test]
fn an_instance_with_a_mistake_is_one_error() -> Checked {
    let output = place(&["tests/placement/instances/n10_j100_occ.plan.json"])?;
    assert_eq!(output.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&output.stderr)?;
    assert_eq!(error["error"]["code"], "InvalidInput");
    assert!(output.stdout.is_empty());
    Ok(())
}

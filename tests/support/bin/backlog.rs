//! Writes `events/backlog.jsonl` from `events/backlog.csv`.

use std::fs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let events = osprey_tests::root().join("events");
    let backlog = osprey_tests::backlog::from_csv(&fs::read_to_string(events.join("backlog.csv"))?)?;
    fs::write(events.join("backlog.jsonl"), backlog)?;
    Ok(())
}

//! The ledger: a file that every job of a round appends to, in the order in which things happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use super::work::Piece;

/// A line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    what: String,
    /// Name of the piece, of its child or its node.
    name: String,
    /// Id in Batch, and the attempt.
    run: String,
    devices: Vec<String>,
}

/// How often a command was started, and how it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    pub starts: usize,
    pub failures: usize,
    pub ends: usize,
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { starts, failures, ends } = self;
        write!(f, "({starts} started, {failures} failed, {ends} succeeded)")
    }
}

/// The whole file.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    lines: Vec<Line>,
}

impl Ledger {
    /// Reads it. A line that isn't whole would be a fault of the script.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { lines: text.lines().map(line).collect::<Result<_, _>>()? })
    }

    pub fn runs(&self, name: &str) -> Runs {
        let count = |what: &str| self.lines.iter().filter(|line| line.name == name && line.what == what).count();
        Runs { starts: count("start"), failures: count("fail"), ends: count("done") }
    }

    /// Whether `first` had succeeded before `second` was started.
    pub fn is_before(&self, first: &str, second: &str) -> bool {
        let position =
            |what: &str, name: &str| self.lines.iter().position(|line| line.what == what && line.name == name);
        position("done", first).zip(position("start", second)).is_some_and(|(first, second)| first < second)
    }

    /// No run was written twice, and no two that ran at once saw one device. A run that wrote no end is left out once
    /// somebody else has its devices: it was stopped from outside.
    pub fn one_at_a_time(&self) -> Result<(), String> {
        let mut runs = BTreeSet::new();
        let mut holders: BTreeMap<&str, &Line> = BTreeMap::new();
        let ends: BTreeSet<&str> =
            self.lines.iter().filter(|line| line.what != "start").map(|line| line.run.as_str()).collect();
        for line in &self.lines {
            if line.what != "start" {
                holders.retain(|_, holder| holder.run != line.run);
                continue;
            }
            if !runs.insert(&line.run) {
                return Err(format!("{} was started twice as {}", line.name, line.run));
            }
            for device in &line.devices {
                let before = holders.insert(device, line);
                if let Some(before) = before.filter(|before| ends.contains(before.run.as_str())) {
                    return Err(format!("{} and {} had device {device} at once", before.name, line.name));
                }
            }
        }
        Ok(())
    }

    /// Every line is of one of the pieces.
    pub fn nothing_else(&self, pieces: &[Piece]) -> Result<(), String> {
        let known = |name: &str| {
            let whole = name.split(['.', '@']).next().unwrap_or_default();
            pieces.iter().any(|piece| piece.name == whole)
        };
        match self.lines.iter().find(|line| !known(&line.name)) {
            None => Ok(()),
            Some(line) => Err(format!("{} ran, and nobody sent it", line.name)),
        }
    }
}

fn line(text: &str) -> Result<Line, String> {
    match text.split(' ').collect::<Vec<_>>().as_slice() {
        [what @ ("start" | "fail" | "done"), name, run, devices] => Ok(Line {
            what: (*what).to_owned(),
            name: (*name).to_owned(),
            run: (*run).to_owned(),
            devices: devices.split(',').filter(|device| !device.is_empty()).map(str::to_owned).collect(),
        }),
        _ => Err(format!("the ledger has a line that isn't whole: `{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(text: &str) -> Ledger {
        Ledger { lines: text.lines().map(|text| line(text).unwrap()).collect() }
    }

    #[test]
    fn runs_are_counted_by_name() {
        let ledger = ledger("start a 1/1 0\nfail a 1/1 0\nstart a 2/1 0\ndone a 2/1 0\nstart b 3/1 1\n");
        assert_eq!(ledger.runs("a"), Runs { starts: 2, failures: 1, ends: 1 });
        assert_eq!(ledger.runs("b").to_string(), "(1 started, 0 failed, 0 succeeded)");
        assert!(ledger.is_before("a", "b"));
        assert!(!ledger.is_before("b", "a"));
    }

    #[test]
    fn a_device_that_two_see_at_once_is_found() {
        let wrong = ledger("start a 1/1 0,1\nstart b 2/1 1\ndone b 2/1 1\ndone a 1/1 0,1\n");
        assert_eq!(wrong.one_at_a_time().unwrap_err(), "a and b had device 1 at once");
        ledger("start a 1/1 0,1\ndone a 1/1 0,1\nstart b 2/1 1\ndone b 2/1 1\n").one_at_a_time().unwrap();
        ledger("start stopped 1/1 0\nstart b 2/1 0\ndone b 2/1 0\n").one_at_a_time().unwrap();
    }

    #[test]
    fn a_run_that_is_started_twice_is_found() {
        let wrong = ledger("start a 1/1 \nstart a 1/1 \n");
        assert_eq!(wrong.one_at_a_time().unwrap_err(), "a was started twice as 1/1");
    }

    #[test]
    fn half_a_line_is_found() {
        assert!(line("start a 1/").is_err());
        assert!(line("begin a 1/1 0").is_err());
    }
}

//! Processes as `/proc` shows them: who is who, who belongs to an attempt, and who uses how much memory.

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

/// A process, told apart from any later one with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Process id.
    pub pid: i32,
    /// Start time in clock ticks since the machine started (`/proc/PID/stat`, field 22).
    pub start_ticks: u64,
    /// Which start of the machine that was.
    pub boot_id: String,
}

/// What `/proc/PID/stat` says, as far as it matters here.
struct Stat {
    state: char,
    group: i32,
    start_ticks: u64,
}

impl Identity {
    /// The identity of a process that runs now.
    #[must_use]
    pub fn of(pid: i32) -> Option<Self> {
        Some(Self { pid, start_ticks: stat(pid)?.start_ticks, boot_id: boot_id().to_owned() })
    }

    /// The identity of this process.
    #[must_use]
    pub fn own() -> Option<Self> {
        Self::of(i32::try_from(std::process::id()).ok()?)
    }

    /// Whether this very process still runs; one that has ended and only waits to be collected doesn't.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id()
            && stat(self.pid).is_some_and(|s| s.start_ticks == self.start_ticks && !matches!(s.state, 'Z' | 'X'))
    }

    /// Sends a signal to the process group that this process leads, if it still is this process. A group is also
    /// signalled when its leader has ended but hasn't been collected, since its number is then still taken.
    pub fn signal_group(&self, signal: Signal) {
        let same = self.boot_id == boot_id() && stat(self.pid).is_some_and(|s| s.start_ticks == self.start_ticks);
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| same) {
            // It may end at this moment, and then nothing is left to signal.
            let _ = kill_process_group(pid, signal);
        }
    }
}

fn boot_id() -> &'static str {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| {
        fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
    })
}

fn stat(pid: i32) -> Option<Stat> {
    // The second field is the program's name in parentheses and may itself hold spaces and parentheses.
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let group = fields.nth(1)?.parse().ok()?;
    let start_ticks = fields.nth(16)?.parse().ok()?;
    Some(Stat { state, group, start_ticks })
}

fn all_pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Processes, other than this one and `except`, whose environment holds `NAME=value`, and that still run.
#[must_use]
pub fn marked(name: &str, value: &str, except: Option<i32>) -> Vec<i32> {
    let wanted = format!("{name}={value}");
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let has_mark = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let runs = |pid: &i32| stat(*pid).is_some_and(|s| !matches!(s.state, 'Z' | 'X'));
    all_pids().filter(|pid| *pid != own && Some(*pid) != except).filter(has_mark).filter(runs).collect()
}

/// Kills processes at once.
pub fn kill_all(pids: &[i32]) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// How memory is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Resident pages; cheap, but pages that processes share count in each of them.
    Resident,
    /// Each page divided by the processes that share it; some hundred times dearer.
    Proportional,
}

/// Memory of each of the process groups asked for, in KiB.
#[must_use]
pub fn memory_by_group(groups: &[i32], measure: Measure) -> BTreeMap<i32, u64> {
    let mut memory = BTreeMap::new();
    for pid in all_pids() {
        if let Some(group) = stat(pid).map(|s| s.group).filter(|group| groups.contains(group)) {
            let kib = match measure {
                Measure::Resident => kib_in(pid, "status", "VmRSS:"),
                // Not every kernel has the file.
                Measure::Proportional => {
                    kib_in(pid, "smaps_rollup", "Pss:").or_else(|| kib_in(pid, "status", "VmRSS:"))
                }
            };
            *memory.entry(group).or_insert(0) += kib.unwrap_or(0);
        }
    }
    memory
}

fn kib_in(pid: i32, file: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key))?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_and_not_a_later_one_with_its_number() {
        let own = Identity::own().unwrap();
        assert!(own.is_alive());
        assert!(!Identity { start_ticks: own.start_ticks + 1, ..own.clone() }.is_alive());
        assert!(!Identity { boot_id: "another".to_owned(), ..own }.is_alive());
    }
}

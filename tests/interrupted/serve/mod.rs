//! `osprey local serve`, ended by force while clients submit to it.
//!
//! A round has one to four servers' lives on one state directory, in some of which two servers want it at once, and
//! clients that submit by SQS, by Batch's REST and from other terminals all the while. When everything is sent, the last
//! server is left alone until every job has ended. Then nothing may be lost, doubled or left behind: `check.rs`.

mod check;
mod client;
mod ledger;
mod senders;
mod server;
mod work;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use crate::moments::Draws;
use ledger::Ledger;
use senders::{Place, Sent};
use work::Piece;

/// The longest life of a server that is ended by force, in milliseconds.
const LIFE_MS_MAX: u64 = 2_500;
/// How long nobody serves after one was ended, in milliseconds.
const GAP_MS_MAX: u64 = 300;

/// Runs a round in a folder of its own; says how the servers lived, or what was wrong.
pub fn round(round: u64, osprey: &Path, folder: &Path) -> Result<String, String> {
    let lives = lives(round);
    let told: Vec<String> = lives.iter().map(|life| life.told()).collect();
    let story = format!("servers killed after {}", told.join(", "));
    whole(round, &lives, osprey, folder).map_err(|problem| format!("{story}; {problem}"))?;
    Ok(story)
}

/// A life that ends by force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Life {
    ms: u64,
    /// Servers that want the directory.
    servers: usize,
    /// How long nobody serves after it.
    gap_ms: u64,
}

impl Life {
    fn told(self) -> String {
        let of = if self.servers > 1 { " (of two)" } else { "" };
        format!("{} ms{of}", self.ms)
    }
}

/// The lives of a round that end by force: one to three.
fn lives(round: u64) -> Vec<Life> {
    let mut draws = Draws::new(round, "lives");
    let count = draws.between(1, 4);
    let mut life = || Life {
        ms: draws.below(LIFE_MS_MAX),
        servers: if draws.percent(30) { 2 } else { 1 },
        gap_ms: draws.below(GAP_MS_MAX),
    };
    (0..count).map(|_| life()).collect()
}

fn whole(round: u64, lives: &[Life], osprey: &Path, folder: &Path) -> Result<(), String> {
    let (state, ledger) = (folder.join("state"), folder.join("ledger"));
    let pieces = work::pieces(round, &ledger.display().to_string());
    let place = Place { round, osprey, state: &state };
    let (last, sent) = while_sending(place, &pieces, || killed(lives, osprey, folder))?;
    check::settled(place, &pieces, &sent)?;
    check::places(place, &pieces, &sent, &Ledger::read(&ledger)?)?;
    last.stop()?;
    check::nobody_left(folder)
}

/// Lets servers live and die; the last one goes on.
fn killed(lives: &[Life], osprey: &Path, folder: &Path) -> Result<server::Servers, String> {
    for (number, life) in lives.iter().enumerate() {
        let servers = server::start(osprey, folder, number, life.servers)?;
        thread::sleep(Duration::from_millis(life.ms));
        servers.end_by_force()?;
        thread::sleep(Duration::from_millis(life.gap_ms));
    }
    let mut last = server::start(osprey, folder, lives.len(), 2)?;
    last.one_serves()?;
    Ok(last)
}

/// Runs `servers` beside the clients, and answers when both have done.
fn while_sending<T>(
    place: Place<'_>,
    pieces: &[Piece],
    servers: impl FnOnce() -> Result<T, String>,
) -> Result<(T, Sent), String> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients = [
            scope.spawn(move || senders::over_sqs(place, pieces)),
            scope.spawn(move || senders::over_rest(place, pieces)),
            scope.spawn(move || senders::at_a_terminal(place, pieces)),
        ];
        let looking = scope.spawn(|| senders::looking(place, &is_over));
        let last = servers();
        let sent = clients.into_iter().map(joined).collect::<Result<Vec<_>, _>>();
        is_over.store(true, Ordering::Release);
        let looked = joined(looking);
        let last = last?;
        looked?;
        let mut all = Sent::default();
        for sent in sent? {
            all.times.extend(sent.times);
            all.batch.extend(sent.batch);
        }
        Ok((last, all))
    })
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|_| Err("a client of the round panicked".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_differ_in_how_often_and_when_servers_are_killed() {
        let rounds: Vec<Vec<Life>> = (1..=200).map(lives).collect();
        assert_eq!(rounds, (1..=200).map(lives).collect::<Vec<_>>());
        for count in 1..=3 {
            assert!(rounds.iter().filter(|lives| lives.len() == count).count() > 30, "{count} lives");
        }
        let all: Vec<Life> = rounds.concat();
        assert!(all.iter().any(|life| life.ms < 60) && all.iter().any(|life| life.ms > 2_000));
        assert!(all.iter().filter(|life| life.servers == 2).count() > 50);
    }
}

//! Spot hosts: when they are reclaimed, and what a reclaim does.

use crate::attempt::{AttemptRow, StopCause};
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::error::BatchError;
use crate::event::{drawn, fraction};
use crate::node::NodeRow;
use crate::options::Options;

/// The tag of a job whose Spot host is reclaimed so long after the job started, once in the job's life. Its value is
/// a number with `ms`, `s`, `m` or `h`, such as `3s`; a bare number counts seconds.
pub const RECLAIM_AFTER_TAG: &str = "osprey:local-reclaim-after";

const HOUR_MS: f64 = 3_600_000.0;

/// Reads the value of the tag, in milliseconds; `None` when it is no duration, and then the tag does nothing.
#[must_use]
pub fn duration_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = match unit.trim() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(factor)
}

/// How long an instance lives before it is reclaimed: exponential with the settings' rate, drawn from the seed, the
/// node, and how many instances it has had. `None` when the rate is no positive number.
pub(crate) fn lifetime_ms(options: &Options, environment: &str, node: i64, generation: i64) -> Option<i64> {
    let rate = options.reclaims_per_node_hour;
    if !(rate.is_finite() && rate > 0.0) {
        return None;
    }
    let name = environment.bytes().fold(0i64, |sum, byte| sum.wrapping_mul(31).wrapping_add(i64::from(byte)));
    let uniform = fraction(drawn(options.events.seed, [name, node, generation]));
    Some(rounded(-(1.0 - uniform).ln() / rate * HOUR_MS))
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, and a saturated lifetime never ends")]
fn rounded(ms: f64) -> i64 {
    ms.round() as i64
}

/// An id as EC2 makes them: `i-` and 17 hexadecimal digits.
pub(crate) fn new_instance_id() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("i-{}", random.get(..17).unwrap_or(&random))
}

/// The status reason of a job whose host is gone.
pub(crate) fn lost_reason(instance_id: &str) -> String {
    format!("Host EC2 (instance {instance_id}) terminated.")
}

impl LocalBatch {
    /// Reclaims a Spot node now: its jobs get SIGTERM, SIGKILL after the grace, and end as lost with their host; then
    /// the node comes back as a new instance after the start-up delay. A node that is being reclaimed stays so.
    ///
    /// # Errors
    /// A ClientException when there is no such node, or its environment isn't of type SPOT.
    pub fn reclaim_node(&self, environment: &str, node: u32) -> Result<(), BatchError> {
        self.change(|change| {
            let nodes = change.nodes()?;
            let found = nodes.iter().find(|n| n.environment == environment && n.index == i64::from(node));
            let found =
                found.ok_or_else(|| BatchError::client(format!("Node {node} of {environment} does not exist")))?;
            if !found.spot {
                return Err(BatchError::client(format!("Compute environment {environment} is not of type SPOT")));
            }
            Ok(change.reclaim(found)?)
        })
    }
}

impl Change<'_> {
    /// Brings times in the store into reach of this engine's clock. A scaled clock that starts anew may be behind the
    /// one before, and what was due in minutes must not become due in hours; and the rate of reclaims may be another.
    pub fn take_over(&self) -> rusqlite::Result<()> {
        let (now, options) = (self.now_ms, self.options);
        let latest_event = now.saturating_add(*options.events.delay_ms.end()).max(now);
        let limits = [
            ("UPDATE node SET ready_at = ?1 WHERE ready_at > ?1", now.saturating_add(options.start_up_delay_ms)),
            ("UPDATE attempt SET kill_at = ?1 WHERE kill_at > ?1", now.saturating_add(options.grace_ms)),
            ("UPDATE queue_head SET since = ?1 WHERE since > ?1", now),
            ("UPDATE node SET idle_since = ?1 WHERE idle_since > ?1", now),
            ("UPDATE event SET due_at = ?1 WHERE due_at > ?1", latest_event),
        ];
        for (sql, limit) in limits {
            self.db.execute(sql, [limit])?;
        }
        for node in self.nodes()?.iter().filter(|node| node.spot && node.up && !node.draining) {
            let lifetime = lifetime_ms(options, &node.environment, node.index, node.generation);
            self.db.execute(
                "UPDATE node SET reclaim_at = ?3 WHERE environment = ?1 AND idx = ?2",
                rusqlite::params![node.environment, node.index, lifetime.map(|ms| now.saturating_add(ms))],
            )?;
        }
        Ok(())
    }

    /// Marks a node as draining and all its attempts as lost with their host.
    pub fn reclaim(&self, node: &NodeRow) -> rusqlite::Result<()> {
        self.db
            .prepare_cached("UPDATE node SET draining = 1, reclaim_at = NULL WHERE environment = ?1 AND idx = ?2")?
            .execute(rusqlite::params![node.environment, node.index])?;
        for attempt in AttemptRow::live_on(self.db, &node.environment, node.index)? {
            self.ask_to_stop(attempt.job, StopCause::HostLost, &lost_reason(&node.instance_id))?;
        }
        Ok(())
    }

    /// Reclaims the nodes whose time has come, and replaces those that have drained.
    pub fn tend_spot(&self, live: &[AttemptRow]) -> rusqlite::Result<()> {
        for node in self.nodes()? {
            let on_it = |a: &&AttemptRow| a.environment == node.environment && a.node == node.index;
            if node.draining {
                match live.iter().any(|a| on_it(&a)) {
                    true => {}
                    false if node.may_stop() || !node.is_obtainable() => self.stop_node(&node)?,
                    false => self.replace_instance(&node)?,
                }
                continue;
            }
            let of_jobs = live.iter().filter(on_it).filter_map(|a| a.reclaim_at);
            let due = of_jobs.chain(node.reclaim_at).any(|at| at <= self.now_ms);
            if node.spot && node.up && due {
                self.reclaim(&node)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_values_are_read_with_their_units() {
        let cases = [("3s", Some(3_000)), ("250ms", Some(250)), ("2m", Some(120_000)), ("7", Some(7_000))];
        for (text, want) in cases {
            assert_eq!(duration_ms(text), want, "{text}");
        }
        for text in ["", "s", "3 weeks", "-3s", "99999999999999999999s"] {
            assert_eq!(duration_ms(text), None, "{text}");
        }
    }

    #[test]
    fn instance_lives_have_the_mean_that_the_rate_asks_for() {
        let options = Options { reclaims_per_node_hour: 4.0, ..Options::default() };
        let lives: Vec<i64> = (0..4_000).filter_map(|n| lifetime_ms(&options, "spot", n, 1)).collect();
        let mean = lives.iter().sum::<i64>() / 4_000;
        assert!((850_000..950_000).contains(&mean), "a quarter of an hour, not {mean} ms");
        assert_eq!(lifetime_ms(&options, "spot", 7, 1), lives.get(7).copied());
    }
}

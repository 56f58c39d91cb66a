//! What a new policy changes, for people and for programs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::change::{Change, moves};
use super::limits::Held;
use super::numbers::Numbers;
use super::waits::{self, SAME_SECONDS, Tally, Wait};
use crate::command::simulate::answer::Outcome;
use crate::command::simulate::source::Source;
use crate::render::policy::counted;
use crate::render::table::Columns;
use crate::render::time;
use crate::ui::Paint;

/// Most jobs listed one by one in the JSON.
const LISTED: usize = 100;
/// Most jobs listed for people.
const SHOWN: usize = 10;

/// Numbers that are shown for people, with what they are called.
const NUMBERS: [(&str, &str); 10] = [
    ("jobs", "jobs that ran"),
    ("mean_wait_seconds", "mean wait"),
    ("median_wait_seconds", "median wait"),
    ("p95_wait_seconds", "95th percentile of waits"),
    ("max_wait_seconds", "longest wait"),
    ("urgent_mean_wait_seconds", "mean wait of urgent jobs"),
    ("mean_completion_seconds", "mean completion"),
    ("utilisation", "utilisation"),
    ("preemptions_per_100_jobs", "preemptions per 100 jobs"),
    ("lost_gpu_hours", "GPU-hours lost"),
];

/// What a comparison found.
pub(super) struct Answer {
    jobs: usize,
    changes: Vec<Change>,
    refused: [Refused; 2],
    /// Tiers of both policies.
    tier_names: Vec<String>,
    tiers: BTreeMap<String, Tally>,
    teams: BTreeMap<String, Tally>,
    waits: Vec<Wait>,
    pub before: Numbers,
    pub after: Numbers,
    pub limits: Vec<Held>,
}

/// Jobs that a policy doesn't admit.
pub(super) struct Refused {
    jobs: usize,
    of: usize,
    /// The first of them, with why.
    first: Option<String>,
}

impl Refused {
    pub(super) fn of(source: &Source) -> Self {
        let first = source.refused.first().map(|bad| format!("{} {}: {}", source.noun, bad.line, bad.message));
        Self { jobs: source.refused.len(), of: source.workload.jobs.len(), first }
    }

    fn share(&self) -> f64 {
        self.jobs as f64 / self.of.max(1) as f64
    }

    fn json(&self) -> Value {
        json!({ "jobs": self.jobs, "first": self.first })
    }
}

impl Answer {
    pub(super) fn new(
        tier_names: Vec<String>,
        changes: Vec<Change>,
        refused: [Refused; 2],
        [old, new]: &[Outcome; 2],
        [old_dive, new_dive]: [u32; 2],
    ) -> Self {
        let waits = waits::waits((&old.workload, &old.schedule), (&new.workload, &new.schedule));
        let jobs = refused.iter().map(|refused| refused.of).max().unwrap_or(0);
        let (tiers, teams) = (waits::tally(&waits, |wait| &wait.tier), waits::tally(&waits, |wait| &wait.team));
        let (before, after) = (Numbers::of(old, old_dive), Numbers::of(new, new_dive));
        let mut answer =
            Self { jobs, changes, refused, tier_names, tiers, teams, waits, before, after, limits: Vec::new() };
        answer.add_shares();
        answer
    }

    /// Adds what only a comparison knows.
    fn add_shares(&mut self) {
        let share = |count: usize| count as f64 / self.jobs.max(1) as f64;
        let moved = self.changes.iter().filter(|change| change.moves()).count();
        let [was_refused, is_refused] = &self.refused;
        self.before.all.insert("refused_share".to_owned(), json!(was_refused.share()));
        let shares = [
            ("changed_share", share(self.changes.len())),
            ("moved_share", share(moved)),
            ("refused_share", is_refused.share()),
            ("longer_share", waits::total(&self.waits).longer_share()),
        ];
        self.after.all.extend(shares.map(|(name, share)| (name.to_owned(), json!(share))));
        for (tallies, groups) in [(&self.tiers, &mut self.after.tiers), (&self.teams, &mut self.after.teams)] {
            for (name, members) in groups {
                let tally = tallies.get(name).copied().unwrap_or_default();
                members.insert("longer_share".to_owned(), json!(tally.longer_share()));
            }
        }
    }

    pub(super) fn is_within_limits(&self) -> bool {
        self.limits.iter().all(|held| held.is_held)
    }

    /// Names of the teams under either policy.
    fn team_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.before.teams.keys().chain(self.after.teams.keys()).cloned().collect();
        names.sort_by_key(|name| (name.parse::<u64>().unwrap_or(u64::MAX), name.clone()));
        names.dedup();
        names
    }

    pub(super) fn json(&self) -> Value {
        let [was_refused, is_refused] = &self.refused;
        let moves = moves(&self.changes).into_iter();
        let moves = moves.map(|(from, to, jobs)| json!({ "from": from, "to": to, "jobs": jobs }));
        let longer = waits::longer(&self.waits);
        let listed = longer.iter().take(LISTED).map(|Wait { job, tier, team, before, after }| {
            json!({ "job": job, "tier": tier, "team": team, "before_seconds": before, "after_seconds": after })
        });
        let limits = self.limits.iter().map(|Held { limit, before, value, is_held, sentence }| {
            json!({ "limit": limit, "before": before, "value": value, "held": is_held, "sentence": sentence })
        });
        let (tiers, teams) = (&self.tier_names, &self.team_names());
        json!({
            "jobs": self.jobs,
            "changed": self.changes.len(),
            "moves": moves.collect::<Vec<_>>(),
            "changes": self.changes.iter().take(LISTED).map(Change::json).collect::<Vec<_>>(),
            "refused": { "before": was_refused.json(), "after": is_refused.json() },
            "tiers": groups(tiers, [&self.before.tiers, &self.after.tiers], &self.tiers),
            "teams": groups(teams, [&self.before.teams, &self.after.teams], &self.teams),
            "before": self.before.all,
            "after": self.after.all,
            "waiting_longer": longer.len(),
            "longer": listed.collect::<Vec<_>>(),
            "limits": limits.collect::<Vec<_>>(),
        })
    }

    pub(super) fn text(&self, paint: Paint) -> String {
        let parts = [
            self.heading(),
            self.moved(),
            self.numbers(),
            self.groups("TIER", &self.tier_names, [&self.before.tiers, &self.after.tiers], &self.tiers),
            self.groups("TEAM", &self.team_names(), [&self.before.teams, &self.after.teams], &self.teams),
            self.longer(),
            self.limits(paint),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    fn heading(&self) -> String {
        let moved = self.changes.iter().filter(|change| change.moves()).count();
        let changed = self.changes.len();
        let mut lines = vec![format!(
            "{}: {changed} with another number or tier, {moved} of them in another tier",
            counted(self.jobs, "job")
        )];
        for (whose, Refused { jobs, first, .. }) in ["old", "new"].iter().zip(&self.refused) {
            if let Some(first) = first {
                lines.push(format!("the {whose} policy refuses {}; {first}", counted(*jobs, "job")));
            }
        }
        lines.join("\n")
    }

    fn moved(&self) -> String {
        let moves = moves(&self.changes);
        if moves.is_empty() {
            return String::new();
        }
        let mut columns = Columns::new(&["FROM", "TO", ">JOBS"]);
        moves.into_iter().for_each(|(from, to, jobs)| columns.row([from, to, jobs.to_string()]));
        columns.render()
    }

    fn numbers(&self) -> String {
        let mut columns = Columns::new(&["NUMBER", ">OLD", ">NEW", ">CHANGE"]);
        for (name, label) in NUMBERS {
            let [before, after] = [&self.before, &self.after].map(|numbers| number(&numbers.all, name));
            let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| shown(name, value));
            let by = before.zip(after).map_or_else(|| "-".to_owned(), |(before, after)| change(before, after));
            columns.row([label.to_owned(), cell(before), cell(after), by]);
        }
        columns.render()
    }

    /// A table of groups; the counts are of the jobs that ended under both policies.
    fn groups(
        &self,
        heading: &str,
        names: &[String],
        sides: [&BTreeMap<String, Map<String, Value>>; 2],
        tallies: &BTreeMap<String, Tally>,
    ) -> String {
        let mut columns =
            Columns::new(&[heading, ">JOBS", ">NEW", ">MEAN WAIT", ">NEW", ">P95", ">NEW", ">LONGER", ">SHORTER"]);
        for group in names {
            let mut cells = vec![group.clone()];
            for name in ["jobs", "mean_wait_seconds", "p95_wait_seconds"] {
                let cell = |side: &BTreeMap<String, Map<String, Value>>| {
                    let value = side.get(group).and_then(|members| number(members, name));
                    value.map_or_else(|| "-".to_owned(), |value| shown(name, value))
                };
                cells.extend(sides.map(cell));
            }
            let Tally { longer, shorter, .. } = tallies.get(group).copied().unwrap_or_default();
            cells.extend([longer.to_string(), shorter.to_string()]);
            columns.row(cells);
        }
        columns.render()
    }

    fn longer(&self) -> String {
        let longer = waits::longer(&self.waits);
        if longer.is_empty() {
            return String::new();
        }
        let mut columns = Columns::new(&["WAITS LONGER", "TIER", "TEAM", ">OLD", ">NEW"]);
        for Wait { job, tier, team, before, after } in longer.iter().take(SHOWN) {
            columns.row([job.clone(), tier.clone(), team.clone(), seconds(*before), seconds(*after)]);
        }
        let rest = longer.len().saturating_sub(SHOWN);
        let more = if rest > 0 { format!("\nand {rest} more by over {SAME_SECONDS} seconds") } else { String::new() };
        columns.render() + &more
    }

    fn limits(&self, paint: Paint) -> String {
        let line = |Held { is_held, sentence, .. }: &Held| {
            let verdict = if *is_held { "held  ".to_owned() } else { paint.wrong("BROKEN") };
            format!("{verdict}  {sentence}")
        };
        self.limits.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn groups(
    names: &[String],
    [before, after]: [&BTreeMap<String, Map<String, Value>>; 2],
    tallies: &BTreeMap<String, Tally>,
) -> Value {
    let group = |name: &String| {
        let Tally { longer, shorter, .. } = tallies.get(name).copied().unwrap_or_default();
        let both =
            json!({ "before": before.get(name), "after": after.get(name), "longer": longer, "shorter": shorter });
        (name.clone(), both)
    };
    Value::Object(names.iter().map(group).collect())
}

fn number(members: &Map<String, Value>, name: &str) -> Option<f64> {
    members.get(name).and_then(Value::as_f64)
}

fn shown(name: &str, value: f64) -> String {
    match name {
        "jobs" => format!("{value:.0}"),
        "utilisation" => format!("{:.1}%", value * 100.0),
        name if name.ends_with("_seconds") => seconds(value),
        _ => format!("{value:.1}"),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seconds of a simulation")]
fn seconds(seconds: f64) -> String {
    time::short((seconds * 1000.0).round() as i64)
}

/// How much a number changes; `-` where it doesn't.
fn change(before: f64, after: f64) -> String {
    let by = after - before;
    if by.abs() < 1e-9 {
        "-".to_owned()
    } else if before > 0.0 {
        format!("{:+.1}%", by / before * 100.0)
    } else {
        "new".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_in_percent_of_what_was() {
        assert_eq!(
            [change(100.0, 123.0), change(100.0, 99.5), change(0.0, 1.0), change(3.0, 3.0)],
            ["+23.0%", "-0.5%", "new", "-"]
        );
    }
}

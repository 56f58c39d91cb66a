//! `osprey policy explain`: what a policy does, in words, with what it leaves to the defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use osprey_model::message::words::{all_of, counted, times};
use osprey_model::metadata::format_duration;
use osprey_model::pool::CapacityType;
use osprey_policy::outline;
use osprey_policy::rules::{Headroom, Takes, Tier, TierOrder, Victims};
use serde_json::{Value, json};

use super::{BUILT_IN, Named};
use crate::command::Exit;
use crate::error::CliError;
use crate::ui::Ui;

/// Say in words what a policy does, with every default that it leaves as it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey policy explain policy.toml
  osprey policy explain                    the built-in default policy

Exit code 4 when the policy can't be used.")]
pub struct ExplainArgs {
    /// The policy; the built-in default without it
    #[arg(value_name = "FILE", default_value = BUILT_IN, hide_default_value = true)]
    file: PathBuf,
}

/// Says what a policy does.
pub fn explain(args: &ExplainArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let named = super::named(&args.file)?;
    let sections = sections(&named);
    if ui.is_json() {
        let section = |Section { title, lines }: &Section| json!({ "section": title, "lines": lines });
        let sections: Vec<Value> = sections.iter().map(section).collect();
        ui.json(&json!({ "policy": named.name, "revision": named.policy.revision(), "sections": sections }))?;
    } else {
        let section = |Section { title, lines }: &Section| format!("{title}\n  {}", lines.join("\n  "));
        let parts: Vec<String> = sections.iter().map(section).collect();
        let head = format!("`{}`, revision {}", named.name, named.policy.revision());
        ui.text(&format!("{head}\n\n{}", parts.join("\n\n")))?;
    }
    Ok(Exit::Ok)
}

/// Some sentences about one thing.
struct Section {
    title: String,
    lines: Vec<String>,
}

/// Sections of a file that are told in sentences.
const TOLD: [&str; 11] = [
    "name",
    "derive",
    "rule",
    "tier",
    "requeue",
    "admission",
    "order",
    "preemption",
    "feedback",
    "estimates",
    "identity",
];

fn sections(named: &Named) -> Vec<Section> {
    let said = outline::said(&named.text);
    let mut sections = vec![number(named, &said)];
    sections.extend(named.policy.tiers().iter().map(tier));
    sections.extend([
        queue(named),
        preemption(named),
        door(named),
        ends(named),
        reports(named),
        run_times(named),
        senders(named),
    ]);
    // What this command has no words for is told as it is written.
    let rest = said.iter().filter(|(path, _)| !TOLD.contains(&path.split('.').next().unwrap_or_default()));
    let lines: Vec<String> = rest.map(|(path, value)| format!("{path} = {value}")).collect();
    if !lines.is_empty() {
        sections.push(Section { title: "besides".to_owned(), lines });
    }
    sections
}

fn number(Named { policy, .. }: &Named, said: &BTreeMap<String, String>) -> Section {
    let derive = policy.derive_rules();
    let mut lines = vec![format!("it begins at {}; then rule by rule, each that matches:", derive.base)];
    for rule in policy.rules() {
        let of = |key: &str| said.get(&format!("rule.{}.{key}", rule.id)).map(|text| bare(text));
        let effect = of("amount").map_or_else(|| rule.effect(), |amount| format!("+ ({amount})"));
        let last = if rule.is_final { ", and no later rule is tried" } else { "" };
        let why = rule.why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        lines.push(format!("  {}: {effect} if {}{last}{why}", rule.id, of("when").unwrap_or("?")));
    }
    lines.push(format!(
        "it ends between {} and {}, and is {} when a rule can't be evaluated",
        derive.floor, derive.ceiling, derive.fallback
    ));
    Section { title: "a job's number".to_owned(), lines }
}

/// A text without the quotes around it.
fn bare(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

fn tier(tier: &Tier) -> Section {
    let takes = match tier.takes {
        Takes::AtLeast(number) => format!("jobs from {number} on that no tier above takes"),
        Takes::Preemptible => "every preemptible job".to_owned(),
    };
    let order = match tier.order {
        TierOrder::Strict => "the highest number first",
        TierOrder::WeightedShortest => "short and small work first, the number as its weight",
    };
    let kinds: Vec<&str> = tier.capacity.iter().map(|kind| capacity(*kind)).collect();
    let mut lines = vec![format!("{takes}; {order}; on {} capacity", kinds.join(", else "))];
    lines.push(match tier.aging {
        Some(aging) => {
            let points = f64::from(aging.millipoints_per_hour) / 1000.0;
            format!("an hour of waiting is worth {points} points, up to {}", aging.cap)
        }
        None => "waiting raises nobody".to_owned(),
    });
    lines.extend(evicts(tier));
    lines.push(yields(tier));
    let caps = [
        tier.duration_max_seconds.map(|seconds| format!("runs of {} at most", format_duration(seconds))),
        tier.team_gpus_max.map(|gpus| format!("{} of one team at most", counted(gpus.into(), "GPU"))),
    ];
    let caps: Vec<String> = caps.into_iter().flatten().collect();
    lines.extend((!caps.is_empty()).then(|| caps.join(", ")));
    Section { title: format!("tier {}", tier.name), lines }
}

fn capacity(kind: CapacityType) -> &'static str {
    match kind {
        CapacityType::OnDemand => "On-Demand",
        CapacityType::Spot => "Spot",
    }
}

/// Whom its jobs may evict.
fn evicts(tier: &Tier) -> Option<String> {
    let names =
        |names: &[osprey_model::id::TierName]| all_of(names.iter().map(|name| name.as_str()).collect::<Vec<_>>());
    match (tier.may_preempt.as_slice(), tier.may_preempt_when_full.as_slice()) {
        ([], []) => None,
        (always, []) => Some(format!("may have jobs of {} evicted", names(always))),
        ([], full) => Some(format!("may have jobs of {} evicted, only when the pool is full", names(full))),
        (always, full) => Some(format!(
            "may have jobs of {} evicted, and of {} only when those aren't enough",
            names(always),
            names(full)
        )),
    }
}

/// When its own jobs may be evicted.
fn yields(tier: &Tier) -> String {
    let mut line = format!(
        "evicted after {} of a run at the earliest, with {} to save; a preemptible one must save every {}",
        format_duration(tier.minimum_run_seconds),
        format_duration(tier.grace_seconds),
        format_duration(tier.checkpoint_window_seconds)
    );
    if let Some(most) = tier.evictions_per_job {
        line += &format!("; {} a job at most", times(most.into()));
    }
    if let Some(most) = tier.evictions_per_window {
        let window = format_duration(tier.eviction_window_seconds);
        line += &format!("; {} in {window} at most", counted(most.into(), "job"));
    }
    line
}

fn queue(Named { policy, .. }: &Named) -> Section {
    let order = policy.order();
    let headroom = |headroom: Headroom| match headroom {
        Headroom::Gpus(gpus) => counted(gpus.into(), "GPU"),
        Headroom::Percent(percent) => format!("{percent} % of its GPUs"),
    };
    let mut lines = vec![
        format!("a job above {} is urgent: a cycle at once, a reservation, and the headroom", order.dive_above),
        format!("each pool keeps {} free for urgent jobs", headroom(order.headroom)),
    ];
    let own = order.pool_headroom.iter();
    lines.extend(own.map(|(pool, of)| format!("pool {pool} keeps {} free", headroom(*of))));
    lines.push(match order.starving_after_ms {
        Some(ms) => {
            format!("who has waited for {} goes before everybody who isn't urgent", format_duration(ms / 1_000))
        }
        None => "no wait, however long, puts a job before all others".to_owned(),
    });
    lines.push(format!(
        "in tiers of short work first, run x sqrt(GPUs) is divided by the number + {}",
        order.weight_base
    ));
    Section { title: "the queue".to_owned(), lines }
}

fn preemption(Named { policy, .. }: &Named) -> Section {
    let rules = policy.preemption();
    let duration = |ms: u64| format_duration(ms / 1_000);
    let which = match rules.victims {
        Victims::Cheapest => "the set that loses the least work, then the fewest jobs".to_owned(),
        Victims::LongestLeft => "the fewest jobs, then those that would go on the longest".to_owned(),
    };
    let tiers = if rules.tier_by_tier { ", a later tier only when those before it aren't enough" } else { "" };
    let lines = vec![
        format!(
            "only for a job that would wait over {}, and {} more for each victim",
            duration(rules.wait_ms),
            duration(rules.wait_per_victim_ms)
        ),
        format!("a job that is {} % done is spared", rules.near_done_percent),
        format!("who goes: {which}{tiers}"),
        format!(
            "an eviction costs the work since the last save, {} to restart, and {} GPU-hours besides",
            duration(rules.restart_ms),
            rules.eviction_gpu_ms as f64 / 3_600_000.0
        ),
    ];
    Section { title: "evictions".to_owned(), lines }
}

fn door(Named { policy, .. }: &Named) -> Section {
    let admission = policy.admission();
    let keys: Vec<&str> = admission.require.iter().map(|key| key.name()).collect();
    let asked = if keys.is_empty() { "needn't say anything".to_owned() } else { format!("must say {}", all_of(keys)) };
    let longest = admission
        .duration_max_seconds
        .map_or_else(|| "any length".to_owned(), |seconds| format!("{} at most", format_duration(seconds)));
    let lines = vec![
        format!("a job {asked}"),
        format!("runs of {longest}; arrays of up to {} children", admission.array_width_max),
    ];
    Section { title: "at the door".to_owned(), lines }
}

fn ends(Named { policy, .. }: &Named) -> Section {
    let rules = policy.requeue();
    let duration = |ms: u64| format_duration(ms / 1_000);
    let lines = vec![
        format!(
            "requeued {} after failures and {} after interruptions",
            times(rules.failures_max.into()),
            times(rules.interruptions_max.into())
        ),
        format!(
            "the first wait is {}, doubled each time up to {}, {} % of it left to chance",
            duration(rules.base_ms),
            duration(rules.cap_ms),
            rules.jitter_percent
        ),
        format!("after {} on Spot it goes to On-Demand", counted(rules.on_demand_after.into(), "lost host")),
        format!(
            "out of memory: {} % of the memory next time{}",
            rules.memory_growth_percent,
            rules.memory_cap_mib.map_or_else(String::new, |cap| format!(", {cap} MiB at most"))
        ),
        format!("dependents of a dead job wait {} for somebody to requeue it", duration(rules.dependency_grace_ms)),
    ];
    Section { title: "after an end".to_owned(), lines }
}

fn reports(Named { policy, .. }: &Named) -> Section {
    let rules = policy.feedback();
    let line = if rules.most == 0 {
        "move nothing".to_owned()
    } else {
        format!(
            "move what comes after the step by at most {} points at a time and {} in all, once in {}; less than {} moves nothing",
            rules.step,
            rules.most,
            format_duration(rules.pause_ms / 1_000),
            rules.least
        )
    };
    Section { title: "what running steps report".to_owned(), lines: vec![line] }
}

fn run_times(Named { policy, .. }: &Named) -> Section {
    let rules = policy.estimates();
    let classes: Vec<String> = rules.classes_ms.iter().map(|ms| format_duration(ms / 1_000)).collect();
    let declared = if classes.is_empty() {
        "what a job declares is taken as it is".to_owned()
    } else {
        format!("what a job declares is rounded up to {}", classes.join(", "))
    };
    let lines = vec![
        declared,
        format!(
            "else what covers {} % of past runs of its kind, once there are {}; else {}",
            rules.quantile_percent,
            rules.runs_min,
            format_duration(rules.unknown_ms / 1_000)
        ),
    ];
    Section { title: "how long a job runs".to_owned(), lines }
}

fn senders(Named { policy, .. }: &Named) -> Section {
    let identity = |identity: &osprey_policy::identity::Identity| {
        let list = |noun: &str, names: &Option<Vec<String>>| {
            names.as_ref().map(|names| format!("{noun} {}", names.join(", ")))
        };
        let bounds = [
            list("teams", &identity.teams),
            list("environments", &identity.environments),
            identity.tier_at_most.as_ref().map(|tier| format!("up to tier {tier}")),
        ];
        let bounds: Vec<String> = bounds.into_iter().flatten().collect();
        let bounds = if bounds.is_empty() { "may claim everything".to_owned() } else { bounds.join("; ") };
        format!("{}: {bounds}", identity.name)
    };
    let mut lines: Vec<String> = policy.identities().iter().map(identity).collect();
    if lines.is_empty() {
        lines.push("everybody may claim and do everything".to_owned());
    }
    Section { title: "who sends".to_owned(), lines }
}

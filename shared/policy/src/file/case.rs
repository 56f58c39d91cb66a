//! `[[test]]`.

use std::collections::BTreeMap;

use osprey_model::facts::{Facts, JobFacts, LineageFacts, TeamFacts};
use osprey_model::id::TierName;
use osprey_model::message::words::{either, quote};
use osprey_model::metadata::Metadata;
use osprey_model::reason::ReasonCode;
use osprey_model::request::SubmitJobRequest;

use super::rule::Entry;
use super::section::priority;
use super::tier::tier_help;
use crate::case::{Case, Want};
use crate::document::{Item, Reader, Table};
use crate::door::CODES;
use crate::key::MetadataKey;
use crate::problem::{PolicyErrorCode as Code, did_you_mean};
use crate::rules::{DeriveRules, Tier};

/// What a test may name, and what it is judged against.
pub(super) struct Known<'a> {
    pub rules: &'a [Entry],
    pub tiers: &'a [Tier],
    pub derive: &'a DeriveRules,
}

/// Keys of `given` besides metadata.
pub(super) const GIVEN: [&str; 10] =
    ["gpus", "vcpus", "memory_mib", "nodes", "array_size", "name", "definition", "tags", "lineage", "now"];

/// Keys of `want`.
pub(super) const WANTED: [&str; 5] = ["priority", "tier", "rules", "refused", "admitted"];

/// The time of a test that gives none: a Thursday, 00:00 UTC. Tests come out the same on any day.
const NOW: &str = "2026-01-01T00:00:00Z";

pub(super) fn cases<'t>(reader: &mut Reader<'t>, root: &Table<'t>, known: &Known<'_>) -> Vec<Case> {
    let tables = reader.tables(root, "test");
    let mut cases: Vec<Case> = Vec::new();
    for table in &tables {
        reader.known_keys(table, &["name", "given", "want"]);
        let name = reader.required(table, "name", "every test needs a name, a sentence");
        let named = name.and_then(|item| reader.name(&item).map(|name| (item, name.to_owned())));
        if let Some((item, name)) = named.as_ref().filter(|(_, name)| cases.iter().any(|case| case.name == *name)) {
            let message = format!("a test {} stands above already", quote(name));
            reader.error(item, Code::Duplicate, message, Some("give it another name".to_owned()));
        }
        let given = table.item("given").and_then(|item| reader.table(&item)).map(|given| facts(reader, &given));
        let want = want(reader, table, known);
        let name = named.map_or_else(String::new, |(_, name)| name);
        cases.push(Case {
            name,
            line: reader.place(table.span.start).line,
            given: given.unwrap_or_else(plain_job),
            want,
        });
    }
    cases
}

/// What a test gives when it gives nothing: one GPU, one node, no metadata.
fn plain_job() -> Facts {
    let job = JobFacts { gpus: 1, vcpus: 1, nodes: 1, array_size: 1, ..JobFacts::default() };
    Facts { job, now: NOW.parse().unwrap_or_default(), ..Facts::default() }
}

fn facts<'t>(reader: &mut Reader<'t>, given: &Table<'t>) -> Facts {
    let mut facts = plain_job();
    let mut metadata = BTreeMap::new();
    for (key, item) in given.items() {
        if key == "team" && item.as_table().is_some() {
            facts.team = team(reader, &item, &mut metadata);
        } else if MetadataKey::of(key).is_some() {
            claim(reader, key, &item, &mut metadata);
        } else {
            fact(reader, given, key, &item, &mut facts);
        }
    }
    let request = SubmitJobRequest { tags: Some(metadata), ..SubmitJobRequest::default() };
    match Metadata::read(&request, None) {
        Ok((metadata, _)) => facts.job.metadata = metadata,
        // What can't be read was refused claim by claim; what is left is one key in two spellings.
        Err(refusals) => {
            for refusal in refusals.iter().filter(|refusal| refusal.code == ReasonCode::AmbiguousMetadata) {
                reader.error_at(given.span.start, &given.path, Code::Duplicate, refusal.message.clone(), None);
            }
        }
    }
    facts
}

/// Metadata is read as a job's tag would be, so that a test can't mean something else than a job.
fn claim<'t>(reader: &mut Reader<'t>, key: &str, item: &Item<'t>, metadata: &mut BTreeMap<String, String>) {
    let number = item.as_integer().map(|number| number.to_string());
    let bool = item.as_bool().map(|value| value.to_string());
    let Some(value) =
        number.or(bool).or_else(|| item.as_datetime()).or_else(|| reader.text(item).map(ToOwned::to_owned))
    else {
        return;
    };
    let tags = BTreeMap::from([(key.to_owned(), value.clone())]);
    let request = SubmitJobRequest { tags: Some(tags), ..SubmitJobRequest::default() };
    match Metadata::read(&request, None) {
        Ok(_) => drop(metadata.insert(key.to_owned(), value)),
        Err(refusals) => {
            for refusal in refusals {
                reader.error(item, Code::InvalidValue, refusal.message, None);
            }
        }
    }
}

fn fact<'t>(reader: &mut Reader<'t>, given: &Table<'t>, key: &str, item: &Item<'t>, facts: &mut Facts) {
    let job = &mut facts.job;
    match key {
        "gpus" => set(&mut job.gpus, reader.count(item)),
        "vcpus" => set(&mut job.vcpus, reader.count(item)),
        "memory_mib" => set(&mut job.memory_mib, reader.count(item).map(u64::from)),
        "nodes" => set(&mut job.nodes, reader.positive(item)),
        "array_size" => set(&mut job.array_size, reader.positive(item)),
        "name" => set(&mut job.name, reader.text(item).map(ToOwned::to_owned)),
        "definition" => set(&mut job.definition, reader.text(item).map(ToOwned::to_owned)),
        "tags" => set(&mut job.tags, reader.table(item).map(|table| tags(reader, &table))),
        "lineage" => set(&mut facts.lineage, reader.table(item).map(|table| lineage(reader, &table))),
        "now" => now(reader, item, facts),
        _ => unknown(reader, given, key),
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn unknown<'t>(reader: &mut Reader<'t>, given: &Table<'t>, key: &str) {
    let offset = given.keys().find(|(known, _)| *known == key).map_or(given.span.start, |(_, span)| span.start);
    let known: Vec<_> = MetadataKey::all().map(MetadataKey::name).chain(GIVEN).collect();
    let help = did_you_mean(&key.replace('_', "-"), known.iter().copied()).or_else(|| did_you_mean(key, known));
    let message = format!("{} is neither metadata nor a fact", quote(key));
    reader.error_at(offset, &given.path_of(key), Code::UnknownKey, message, help);
}

fn tags<'t>(reader: &mut Reader<'t>, table: &Table<'t>) -> BTreeMap<String, String> {
    table.items().filter_map(|(key, item)| Some((key.to_owned(), reader.text(&item)?.to_owned()))).collect()
}

fn now<'t>(reader: &mut Reader<'t>, item: &Item<'t>, facts: &mut Facts) {
    let Some(text) = item.as_datetime().or_else(|| reader.text(item).map(ToOwned::to_owned)) else { return };
    match text.parse() {
        Ok(now) => facts.now = now,
        Err(_) => {
            let help = Some("write it as `2026-12-01T08:00:00Z`".to_owned());
            reader.error(item, Code::InvalidValue, format!("{} is no time", quote(&text)), help);
        }
    }
}

fn lineage<'t>(reader: &mut Reader<'t>, table: &Table<'t>) -> LineageFacts {
    const KEYS: [&str; 8] = [
        "attempts",
        "failures",
        "preemptions",
        "host_losses",
        "depth",
        "parent_runtime_seconds",
        "retry_of_preempted",
        "wasted_gpu_hours",
    ];
    reader.known_keys(table, &KEYS);
    let mut facts = LineageFacts::default();
    for (key, item) in table.items() {
        match key {
            "attempts" => set(&mut facts.attempts, reader.count(&item)),
            "failures" => set(&mut facts.failures, reader.count(&item)),
            "preemptions" => set(&mut facts.preemptions, reader.count(&item)),
            "host_losses" => set(&mut facts.host_losses, reader.count(&item)),
            "depth" => set(&mut facts.depth, reader.count(&item)),
            "parent_runtime_seconds" => set(&mut facts.parent_runtime_seconds, reader.count(&item).map(u64::from)),
            "retry_of_preempted" => set(&mut facts.retry_of_preempted, reader.boolean(&item)),
            "wasted_gpu_hours" => set(&mut facts.wasted_gpu_hours, reader.amount(&item)),
            _ => {}
        }
    }
    facts
}

/// The team's facts; its own name stands among them, since `team` is taken by the table.
fn team<'t>(reader: &mut Reader<'t>, item: &Item<'t>, metadata: &mut BTreeMap<String, String>) -> TeamFacts {
    let mut facts = TeamFacts::default();
    let Some(table) = item.as_table() else { return facts };
    reader.known_keys(&table, &["name", "gpus_running", "gpu_hours_day", "gpu_hours_week", "waste_ratio"]);
    for (key, item) in table.items() {
        match key {
            "name" => claim(reader, "team", &item, metadata),
            "gpus_running" => set(&mut facts.gpus_running, reader.count(&item)),
            "gpu_hours_day" => set(&mut facts.gpu_hours_day, reader.amount(&item)),
            "gpu_hours_week" => set(&mut facts.gpu_hours_week, reader.amount(&item)),
            "waste_ratio" => set(&mut facts.waste_ratio, reader.amount(&item)),
            _ => {}
        }
    }
    facts
}

fn want<'t>(reader: &mut Reader<'t>, table: &Table<'t>, known: &Known<'_>) -> Want {
    let mut want = Want::default();
    let item = table.item("want");
    let Some(wanted) = item.as_ref().and_then(|item| reader.table(item)) else {
        if item.is_none() {
            vacuous(reader, table, "the test wants nothing");
        }
        return want;
    };
    reader.known_keys(&wanted, &WANTED);
    want.priority = wanted.item("priority").and_then(|item| priority(reader, &item));
    want.tier = wanted.item("tier").and_then(|item| tier(reader, &item, known));
    want.rules = wanted.item("rules").map(|item| rule_ids(reader, &item, known)).unwrap_or_default();
    want.refused = wanted.item("refused").and_then(|item| refused(reader, &item));
    want.admitted = wanted.item("admitted").and_then(|item| reader.boolean(&item));
    can_fail(reader, &wanted, &want, known);
    want
}

/// A test that every outcome passes says nothing, and worse, it looks as if it did.
fn can_fail<'t>(reader: &mut Reader<'t>, wanted: &Table<'t>, want: &Want, known: &Known<'_>) {
    let keys: Vec<_> = wanted.keys().map(|(key, _)| key).collect();
    if keys.is_empty()
        || (keys == ["rules"]
            && wanted.item("rules").and_then(|item| item.as_list()).is_some_and(|list| list.is_empty()))
    {
        return vacuous(reader, wanted, "the test wants nothing");
    }
    let always = |id: &String| {
        let open = known
            .rules
            .iter()
            .take_while(|entry| entry.rule.as_ref().is_some_and(|rule| !rule.is_final || rule.id == *id));
        open.into_iter()
            .any(|entry| entry.id == *id && entry.rule.as_ref().is_some_and(crate::rule::Rule::always_matches))
    };
    let vain = |key: &&str| match *key {
        "priority" => known.derive.floor == known.derive.ceiling,
        "tier" => known.tiers.len() == 1,
        "rules" => want.rules.iter().all(always),
        _ => false,
    };
    if keys.iter().all(vain) && known.rules.iter().all(|entry| entry.rule.is_some()) {
        vacuous(reader, wanted, "every job passes the test");
    }
}

fn vacuous<'t>(reader: &mut Reader<'t>, table: &Table<'t>, message: &str) {
    let help = Some("want a `priority`, a `tier`, `rules`, `refused` or `admitted` that could be otherwise".to_owned());
    reader.error_at(table.span.start, &table.path, Code::VacuousTest, message.to_owned(), help);
}

fn tier<'t>(reader: &mut Reader<'t>, item: &Item<'t>, known: &Known<'_>) -> Option<TierName> {
    let name = reader.text(item)?;
    if !known.tiers.iter().any(|tier| tier.name.as_str() == name) {
        let help = tier_help(name, known.tiers);
        reader.error(item, Code::UnknownTier, format!("unknown tier {}", quote(name)), Some(help));
    }
    Some(TierName::new(name))
}

fn rule_ids<'t>(reader: &mut Reader<'t>, item: &Item<'t>, known: &Known<'_>) -> Vec<String> {
    let ids = reader.texts(item);
    for (item, id) in ids.iter().filter(|(_, id)| !known.rules.iter().any(|entry| entry.id == *id)) {
        let help = did_you_mean(id, known.rules.iter().map(|entry| entry.id.as_str()));
        reader.error(item, Code::UnknownRule, format!("unknown rule {}", quote(id)), help);
    }
    ids.into_iter().map(|(_, id)| id.to_owned()).collect()
}

fn refused<'t>(reader: &mut Reader<'t>, item: &Item<'t>) -> Option<ReasonCode> {
    let text = reader.text(item)?;
    let code = CODES.into_iter().find(|code| code.to_string() == text);
    if code.is_none() {
        let names = CODES.map(|code| code.to_string());
        let help = format!("a policy refuses with {}", either(names.iter().map(String::as_str)));
        let message = format!("{} is no refusal that a policy decides", quote(text));
        reader.error(item, Code::InvalidValue, message, Some(help));
    }
    code
}

//! `[[identity]]`.

use std::collections::BTreeMap;

use osprey_model::id::TierName;
use osprey_model::message::words::{either, quote};

use super::tier::tier_help;
use crate::document::{Item, Reader, Table};
use crate::identity::{Beyond, DEFAULT_NAME, Identity, Pattern, Scope, Verb};
use crate::problem::{PolicyErrorCode, did_you_mean};
use crate::rules::Tier;

pub(super) const KEYS: [&str; 13] = [
    "name",
    "who",
    "from",
    "sessions",
    "teams",
    "environments",
    "tier_at_most",
    "definitions",
    "job_roles",
    "pools",
    "beyond",
    "jobs_per_minute",
    "may",
];

pub(super) fn identities<'t>(reader: &mut Reader<'t>, root: &Table<'t>, tiers: &[Tier]) -> Vec<Identity> {
    let tables = reader.tables(root, "identity");
    let mut identities: Vec<Identity> = Vec::new();
    for table in &tables {
        reader.known_keys(table, &KEYS);
        let identity = identity(reader, table, tiers);
        named_twice(reader, table, &identity, &identities);
        identities.push(identity);
    }
    let has_default = identities.iter().any(|identity| identity.name == DEFAULT_NAME);
    if let Some(first) = tables.first().filter(|_| !has_default) {
        let message = "no identity is named `default`".to_owned();
        let help = Some("say what senders may do whom no other identity matches".to_owned());
        reader.error_at(first.span.start, "identity", PolicyErrorCode::MissingKey, message, help);
    }
    identities
}

fn identity<'t>(reader: &mut Reader<'t>, table: &Table<'t>, tiers: &[Tier]) -> Identity {
    let name = reader.required(table, "name", "every identity needs a name, which explanations show");
    let name = name.and_then(|item| reader.name(&item)).unwrap_or_default();
    let mut identity = Identity::new(name);
    identity.place = reader.place(table.span.start);
    identity.sessions = table.item("sessions").and_then(|item| reader.boolean(&item)).unwrap_or(false);
    who(reader, table, &mut identity);
    identity.from = patterns(reader, table, "from").unwrap_or_default();
    identity.teams = words(reader, table, "teams");
    identity.environments = words(reader, table, "environments");
    identity.tier_at_most = tier(reader, table, tiers);
    identity.definitions = patterns(reader, table, "definitions");
    identity.job_roles = patterns(reader, table, "job_roles");
    identity.pools = patterns(reader, table, "pools");
    identity.beyond = beyond(reader, table);
    identity.jobs_per_minute = table.item("jobs_per_minute").and_then(|item| reader.positive(&item));
    identity.may = may(reader, table);
    identity
}

/// Who is meant: nobody for the default, which is there for those whom no other matches.
fn who<'t>(reader: &mut Reader<'t>, table: &Table<'t>, identity: &mut Identity) {
    let is_default = identity.name == DEFAULT_NAME;
    match table.item("who") {
        Some(item) if is_default => {
            let message = "`default` is everybody whom no other identity matches".to_owned();
            let help = Some("leave `who` out, or give the identity another name".to_owned());
            reader.error(&item, PolicyErrorCode::ConflictingKeys, message, help);
        }
        Some(item) => {
            for (item, text) in reader.texts(&item) {
                if text.contains(':') && !identity.sessions {
                    session(reader, &item, text);
                }
                identity.who.push(Pattern::new(text));
            }
        }
        None if is_default || table.item("from").is_some() => {}
        None => {
            let message = "the identity matches everybody".to_owned();
            let help =
                Some("give `who` with ids of senders, or `from` with names of queues, or name it `default`".to_owned());
            reader.error_at(table.span.start, &table.path_of("who"), PolicyErrorCode::MissingKey, message, help);
        }
    }
}

fn session<'t>(reader: &mut Reader<'t>, item: &Item<'t>, text: &str) {
    let message = format!("{} names a session, which is chosen by whoever assumes the role", quote(text));
    let help = "leave out what follows the `:`, or write `sessions = true` if the role is a permission set of IAM \
                Identity Center, which names sessions itself"
        .to_owned();
    reader.error(item, PolicyErrorCode::InvalidValue, message, Some(help));
}

fn patterns<'t>(reader: &mut Reader<'t>, table: &Table<'t>, key: &str) -> Option<Vec<Pattern>> {
    let item = table.item(key)?;
    Some(reader.texts(&item).into_iter().map(|(_, text)| Pattern::new(text)).collect())
}

/// Words as metadata has them: lower case.
fn words<'t>(reader: &mut Reader<'t>, table: &Table<'t>, key: &str) -> Option<Vec<String>> {
    let item = table.item(key)?;
    Some(reader.texts(&item).into_iter().map(|(_, text)| text.trim().to_lowercase()).collect())
}

fn tier<'t>(reader: &mut Reader<'t>, table: &Table<'t>, tiers: &[Tier]) -> Option<TierName> {
    let item = table.item("tier_at_most")?;
    let name = reader.text(&item)?;
    if !tiers.iter().any(|tier| tier.name.as_str() == name) {
        let message = format!("unknown tier {}", quote(name));
        reader.error(&item, PolicyErrorCode::UnknownTier, message, Some(tier_help(name, tiers)));
    }
    Some(TierName::new(name))
}

fn beyond<'t>(reader: &mut Reader<'t>, table: &Table<'t>) -> Beyond {
    let Some(item) = table.item("beyond") else { return Beyond::default() };
    match reader.text(&item) {
        Some("lower") => Beyond::Lower,
        Some("refuse") | None => Beyond::Refuse,
        Some(other) => {
            let message = format!("{} is nothing that can become of a claim", quote(other));
            let help = did_you_mean(other, ["refuse", "lower"]).unwrap_or("write `refuse` or `lower`".to_owned());
            reader.error(&item, PolicyErrorCode::InvalidValue, message, Some(help));
            Beyond::Refuse
        }
    }
}

fn may<'t>(reader: &mut Reader<'t>, table: &Table<'t>) -> BTreeMap<Verb, Scope> {
    let Some(may) = table.item("may").and_then(|item| reader.table(&item)) else { return BTreeMap::new() };
    reader.known_keys(&may, &Verb::ALL.map(Verb::name));
    let verbs = Verb::ALL.into_iter();
    verbs.filter_map(|verb| Some((verb, scope(reader, &may.item(verb.name())?, verb)?))).collect()
}

fn scope<'t>(reader: &mut Reader<'t>, item: &Item<'t>, verb: Verb) -> Option<Scope> {
    let text = reader.text(item)?;
    let known = Scope::ALL.into_iter().filter(|scope| verb.has_owner() || matches!(scope, Scope::Nobody | Scope::All));
    let known: Vec<Scope> = known.collect();
    let found = known.iter().copied().find(|scope| scope.name() == text);
    if found.is_none() {
        let names = || known.iter().copied().map(Scope::name);
        let message = format!("{} is no scope of `{}`", quote(text), verb.name());
        let help = did_you_mean(text, names()).unwrap_or_else(|| format!("write {}", either(names())));
        reader.error(item, PolicyErrorCode::InvalidValue, message, Some(help));
    }
    found
}

fn named_twice<'t>(reader: &mut Reader<'t>, table: &Table<'t>, identity: &Identity, before: &[Identity]) {
    if let Some(item) = table.item("name").filter(|_| before.iter().any(|other| other.name == identity.name)) {
        let message = format!("an identity {} stands above already", quote(&identity.name));
        reader.error(&item, PolicyErrorCode::Duplicate, message, Some("give it another name".to_owned()));
    }
}

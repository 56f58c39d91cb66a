//! From text to validated data: every mistake of a file, in the order of the file.

mod case;
mod identity;
mod preemption;
mod quota;
mod rule;
mod section;
mod tier;

use toml::de::DeTable;

use crate::case::Case;
use crate::document::{Reader, Table};
use crate::identity::Identity;
use crate::problem::{PolicyError, PolicyErrorCode};
use crate::rule::Rule;
use crate::rules::{
    AdmissionRules, DeriveRules, EstimateRules, FeedbackRules, OrderRules, PreemptionRules, QuotaRules, RequeueRules,
    Tier,
};

/// Longest policy in bytes. The live policy is one item of the table, which takes 400 KB with everything around it;
/// a policy near this limit has long stopped being readable.
pub const POLICY_BYTES_MAX: usize = 256 * 1024;

const KEYS: [&str; 13] = [
    "name",
    "derive",
    "rule",
    "tier",
    "requeue",
    "admission",
    "order",
    "quota",
    "preemption",
    "feedback",
    "estimates",
    "identity",
    "test",
];

/// What a file says, once nothing is wrong with it.
pub(crate) struct File {
    pub name: String,
    pub derive: DeriveRules,
    pub rules: Vec<Rule>,
    pub tiers: Vec<Tier>,
    pub requeue: RequeueRules,
    pub admission: AdmissionRules,
    pub order: OrderRules,
    pub quota: QuotaRules,
    pub preemption: PreemptionRules,
    pub feedback: FeedbackRules,
    pub estimates: EstimateRules,
    pub identities: Vec<Identity>,
    pub tests: Vec<Case>,
}

/// Reads a file, or finds everything that is wrong with it.
pub(crate) fn read(text: &str) -> Result<File, Vec<PolicyError>> {
    let mut reader = Reader::new(text);
    if text.len() > POLICY_BYTES_MAX {
        let message = format!("the policy has {} bytes, more than {POLICY_BYTES_MAX}", text.len());
        reader.error_at(0, "", PolicyErrorCode::TooLarge, message, None);
        return Err(reader.errors);
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(syntax(reader, &errors));
    }
    let file = sections(&mut reader, &Table::root(&document));
    // Sections are read one after another, and a test may complain about a rule above it: the reader of the list
    // goes through the file from top to bottom.
    reader.errors.sort_by_key(|error| (error.line, error.column));
    if reader.errors.is_empty() { Ok(file) } else { Err(reader.errors) }
}

fn sections<'t>(reader: &mut Reader<'t>, root: &Table<'t>) -> File {
    reader.known_keys(root, &KEYS);
    let name = reader.required(root, "name", "write `name = \"…\"` at the top");
    let name = name.and_then(|item| reader.name(&item)).unwrap_or_default().to_owned();
    let derive = section::derive(reader, root);
    let rules = rule::rules(reader, root);
    let tiers = tier::tiers(reader, root, &derive);
    let requeue = section::requeue(reader, root);
    let admission = section::admission(reader, root);
    let order = section::order(reader, root);
    let quota = quota::quota(reader, root, &tiers);
    let preemption = preemption::preemption(reader, root);
    let feedback = section::feedback(reader, root);
    let estimates = section::estimates(reader, root);
    let identities = identity::identities(reader, root, &tiers);
    let tests = case::cases(reader, root, &case::Known { rules: &rules, tiers: &tiers, derive: &derive });
    let rules = rules.into_iter().filter_map(|entry| entry.rule).collect();
    File {
        name,
        derive,
        rules,
        tiers,
        requeue,
        admission,
        order,
        quota,
        preemption,
        feedback,
        estimates,
        identities,
        tests,
    }
}

/// Mistakes of TOML itself. Nothing else is checked: a table cut short would have a tail of false mistakes.
fn syntax(mut reader: Reader<'_>, errors: &[toml::de::Error]) -> Vec<PolicyError> {
    for error in errors {
        let message = format!("not TOML: {}", error.message().to_lowercase().replace('\n', ", "));
        let help = Some("the rest is checked once the file is TOML".to_owned());
        reader.error_at(error.span().map_or(0, |span| span.start), "", PolicyErrorCode::TomlSyntax, message, help);
    }
    reader.errors.sort_by_key(|error| (error.line, error.column));
    // One slip often echoes on its line.
    reader.errors.dedup_by_key(|error| error.line);
    reader.errors
}

/// Every key of every table, for the documentation's test.
#[cfg(test)]
pub(crate) fn keys() -> Vec<&'static str> {
    use section::{ADMISSION_KEYS, DERIVE_KEYS, ESTIMATES_KEYS, FEEDBACK_KEYS, ORDER_KEYS, REQUEUE_KEYS};
    let verbs = crate::identity::Verb::ALL.map(crate::identity::Verb::name);
    let tables: [&[&str]; 16] = [
        &DERIVE_KEYS,
        &rule::KEYS,
        &tier::KEYS,
        &REQUEUE_KEYS,
        &ADMISSION_KEYS,
        &ORDER_KEYS,
        &quota::KEYS,
        &quota::TEAM_KEYS,
        &quota::RESERVE_KEYS,
        &preemption::KEYS,
        &FEEDBACK_KEYS,
        &ESTIMATES_KEYS,
        &identity::KEYS,
        &verbs,
        &case::GIVEN,
        &case::WANTED,
    ];
    tables.concat()
}

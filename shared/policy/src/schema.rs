//! The facts that rules may read: one table for the checker, the binder and the documentation.

use std::fmt;

use jiff::tz::Offset;
use osprey_model::decision::FactValue;
use osprey_model::facts::Facts;
use osprey_model::metadata::Sla;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// True or false.
    Bool,
    /// A whole number, signed, 64 bits.
    Int,
    /// A number with a fraction.
    Number,
    /// Text.
    Text,
}

impl fmt::Display for FactKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "true or false",
            Self::Int => "a whole number",
            Self::Number => "a number with a fraction",
            Self::Text => "text",
        })
    }
}

/// What a rule sees when the job doesn't say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAbsent {
    /// Never absent.
    Never,
    /// `""`, so that a comparison is simply false.
    EmptyText,
    /// `false`.
    False,
    /// Nothing: it must be guarded with `has`.
    Guarded,
}

impl fmt::Display for WhenAbsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "never",
            Self::EmptyText => "`\"\"`",
            Self::False => "`false`",
            Self::Guarded => "guard with `has`",
        })
    }
}

/// A fact: its name, what it is, what it means, and how it is read.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// Its name in a rule.
    pub name: &'static str,
    /// What its value is.
    pub kind: FactKind,
    /// What a rule sees when the job doesn't say.
    pub when_absent: WhenAbsent,
    /// Its unit, or a blank.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
    read: fn(&Facts) -> FactValue,
}

impl Fact {
    /// Its value; [`FactValue::Absent`] when the job doesn't say.
    #[must_use]
    pub fn read(&self, facts: &Facts) -> FactValue {
        (self.read)(facts)
    }

    /// What a rule sees in place of an absent value; nothing for a fact that must be guarded.
    #[must_use]
    pub fn substitute(&self) -> Option<FactValue> {
        match self.when_absent {
            WhenAbsent::EmptyText => Some(FactValue::Text(String::new())),
            WhenAbsent::False => Some(FactValue::Bool(false)),
            WhenAbsent::Never | WhenAbsent::Guarded => None,
        }
    }
}

/// The fact of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Fact> {
    FACTS.iter().find(|fact| fact.name == name)
}

/// What every tag's name begins with.
pub const TAGS: &str = "job.tags";

/// The first words of fact names.
pub const ROOTS: [&str; 4] = ["job", "lineage", "team", "now"];

/// The table of facts in Markdown, one line a fact, as the documentation shows it.
#[must_use]
pub fn markdown() -> Vec<String> {
    let mut lines = vec!["| fact | is | unit | when absent | means |".to_owned(), "|---|---|---|---|---|".to_owned()];
    lines.extend(FACTS.iter().map(|fact| {
        let Fact { name, kind, when_absent, unit, meaning, .. } = fact;
        format!("| `{name}` | {kind} | {unit} | {when_absent} | {meaning} |")
    }));
    lines.push(format!(
        "| `{TAGS}.x`, `{TAGS}[\"x\"]` | text |  | guard with `has` or `\"x\" in {TAGS}` | the tag `x` as given |"
    ));
    lines
}

const fn fact(
    name: &'static str,
    kind: FactKind,
    when_absent: WhenAbsent,
    unit: &'static str,
    meaning: &'static str,
    read: fn(&Facts) -> FactValue,
) -> Fact {
    Fact { name, kind, when_absent, unit, meaning, read }
}

const fn text(name: &'static str, meaning: &'static str, read: fn(&Facts) -> FactValue) -> Fact {
    fact(name, FactKind::Text, WhenAbsent::EmptyText, "", meaning, read)
}

const fn guarded(name: &'static str, unit: &'static str, meaning: &'static str, read: fn(&Facts) -> FactValue) -> Fact {
    fact(name, FactKind::Int, WhenAbsent::Guarded, unit, meaning, read)
}

const fn int(name: &'static str, unit: &'static str, meaning: &'static str, read: fn(&Facts) -> FactValue) -> Fact {
    fact(name, FactKind::Int, WhenAbsent::Never, unit, meaning, read)
}

const fn number(name: &'static str, unit: &'static str, meaning: &'static str, read: fn(&Facts) -> FactValue) -> Fact {
    fact(name, FactKind::Number, WhenAbsent::Never, unit, meaning, read)
}

/// Every fact, in the order of the documentation.
pub const FACTS: &[Fact] = &[
    text("job.team", "team, lower case", |f| word(f.job.metadata.team.as_ref())),
    text("job.project", "project as given", |f| word(f.job.metadata.project.as_ref())),
    text("job.user", "user as given", |f| word(f.job.metadata.user.as_ref())),
    text("job.environment", "environment, lower case", |f| word(f.job.metadata.environment.as_ref())),
    text("job.workload", "workload, lower case: `inference`, `training`, …", |f| {
        word(f.job.metadata.workload.as_ref())
    }),
    fact("job.preemptible", FactKind::Bool, WhenAbsent::False, "", "whether it may be evicted", |f| {
        f.job.metadata.preemptible.map_or(FactValue::Absent, FactValue::Bool)
    }),
    guarded("job.max_duration", "seconds", "longest run of an attempt", |f| amount(f.job.metadata.max_duration)),
    guarded("job.expected_duration", "seconds", "expected run", |f| amount(f.job.metadata.expected_duration)),
    guarded("job.checkpoint_interval", "seconds", "time between two checkpoints", |f| {
        amount(f.job.metadata.checkpoint_interval)
    }),
    guarded("job.dataset_size", "bytes", "size of its data", |f| amount(f.job.metadata.dataset_size)),
    guarded(
        "job.sla",
        "seconds",
        "time it has: from submission if given as a duration, else from now, negative when late",
        sla,
    ),
    text("job.parent_job_id", "the job it comes from", |f| word(f.job.metadata.parent_job_id.as_ref())),
    text("job.priority_class", "the tier it asks for at most, lower case", |f| {
        word(f.job.metadata.priority_class.as_ref())
    }),
    int("job.gpus", "GPUs", "GPUs of the whole job, all nodes; of one child for an array", |f| whole(f.job.gpus)),
    int("job.vcpus", "vCPUs", "vCPUs of the whole job, rounded up", |f| whole(f.job.vcpus)),
    int("job.memory_mib", "MiB", "memory of the whole job", |f| long(f.job.memory_mib)),
    int("job.nodes", "nodes", "nodes, 1 unless multi-node", |f| whole(f.job.nodes)),
    int("job.array_size", "children", "children of an array, 1 for a job that is none", |f| whole(f.job.array_size)),
    text("job.name", "`jobName`", |f| given(&f.job.name)),
    text("job.definition", "`jobDefinition` as requested", |f| given(&f.job.definition)),
    int("lineage.attempts", "attempts", "attempts started before", |f| whole(f.lineage.attempts)),
    int("lineage.failures", "attempts", "attempts that count as failures", |f| whole(f.lineage.failures)),
    int("lineage.preemptions", "attempts", "attempts that were preempted", |f| whole(f.lineage.preemptions)),
    int("lineage.host_losses", "attempts", "attempts that lost their host", |f| whole(f.lineage.host_losses)),
    int("lineage.depth", "ancestors", "ancestors by `parent-job-id`", |f| whole(f.lineage.depth)),
    int("lineage.parent_runtime_seconds", "seconds", "run of the parent's last attempt, 0 without one", |f| {
        long(f.lineage.parent_runtime_seconds)
    }),
    fact(
        "lineage.retry_of_preempted",
        FactKind::Bool,
        WhenAbsent::Never,
        "",
        "whether the attempt before was preempted",
        |f| FactValue::Bool(f.lineage.retry_of_preempted),
    ),
    number("lineage.wasted_gpu_hours", "GPU-hours", "lost to failures of this job", |f| {
        FactValue::Number(f.lineage.wasted_gpu_hours)
    }),
    int("team.gpus_running", "GPUs", "GPUs that the team's jobs hold now", |f| whole(f.team.gpus_running)),
    number("team.gpu_hours_day", "GPU-hours", "used since midnight UTC", |f| FactValue::Number(f.team.gpu_hours_day)),
    number("team.gpu_hours_week", "GPU-hours", "used in the last seven days", |f| {
        FactValue::Number(f.team.gpu_hours_week)
    }),
    number("team.waste_ratio", "0 to 1", "share lost to failures over seven days", |f| {
        FactValue::Number(f.team.waste_ratio)
    }),
    int("now.hour", "0 to 23", "hour of the day, UTC", |f| {
        FactValue::Int(Offset::UTC.to_datetime(f.now).hour().into())
    }),
    fact("now.weekday", FactKind::Text, WhenAbsent::Never, "", "`monday` to `sunday`, UTC", weekday),
];

fn word(text: Option<&String>) -> FactValue {
    text.map_or(FactValue::Absent, |text| FactValue::Text(text.clone()))
}

fn given(text: &str) -> FactValue {
    if text.is_empty() { FactValue::Absent } else { FactValue::Text(text.to_owned()) }
}

fn whole(number: u32) -> FactValue {
    FactValue::Int(number.into())
}

/// A number beyond 63 bits is as good as the greatest one: rules compare, they don't count bytes.
fn long(number: u64) -> FactValue {
    FactValue::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn amount(number: Option<u64>) -> FactValue {
    number.map_or(FactValue::Absent, long)
}

fn sla(facts: &Facts) -> FactValue {
    match facts.job.metadata.sla {
        None => FactValue::Absent,
        Some(Sla::Within(seconds)) => long(seconds),
        Some(Sla::At(ms)) => FactValue::Int(ms.saturating_sub(facts.now.as_millisecond()).div_euclid(1000)),
    }
}

fn weekday(facts: &Facts) -> FactValue {
    use jiff::civil::Weekday;
    let name = match Offset::UTC.to_datetime(facts.now).weekday() {
        Weekday::Monday => "monday",
        Weekday::Tuesday => "tuesday",
        Weekday::Wednesday => "wednesday",
        Weekday::Thursday => "thursday",
        Weekday::Friday => "friday",
        Weekday::Saturday => "saturday",
        Weekday::Sunday => "sunday",
    };
    FactValue::Text(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, facts: &Facts) -> FactValue {
        find(name).expect("a fact").read(facts)
    }

    #[test]
    fn names_are_unique_and_begin_with_a_root() {
        let names: std::collections::BTreeSet<_> = FACTS.iter().map(|fact| fact.name).collect();
        assert_eq!(names.len(), FACTS.len());
        assert!(names.iter().all(|name| ROOTS.iter().any(|root| name.starts_with(&format!("{root}.")))));
    }

    #[test]
    fn values_have_the_kind_that_the_table_says() {
        let mut facts = Facts::default();
        facts.job.metadata = serde_json::from_str(
            r#"{"team":"a","project":"b","user":"c","environment":"d","workload":"e","preemptible":true,"max_duration":1,
            "expected_duration":1,"checkpoint_interval":1,"dataset_size":1,"sla":{"within":1},"parent_job_id":"p","priority_class":"x"}"#,
        )
        .expect("metadata");
        (facts.job.name, facts.job.definition) = ("n".to_owned(), "d".to_owned());
        for fact in FACTS {
            let fits = matches!(
                (fact.kind, fact.read(&facts)),
                (FactKind::Bool, FactValue::Bool(_))
                    | (FactKind::Int, FactValue::Int(_))
                    | (FactKind::Number, FactValue::Number(_))
                    | (FactKind::Text, FactValue::Text(_))
            );
            assert!(fits, "{}", fact.name);
        }
    }

    #[test]
    fn what_is_never_absent_is_there_in_empty_facts() {
        let absent = |fact: &Fact| fact.read(&Facts::default()) == FactValue::Absent;
        for fact in FACTS {
            assert_eq!(absent(fact), fact.when_absent != WhenAbsent::Never, "{}", fact.name);
        }
    }

    #[test]
    fn time_is_utc() {
        let facts = Facts { now: "2026-11-29T23:30:00Z".parse().expect("a time"), ..Facts::default() };
        assert_eq!(of("now.hour", &facts), FactValue::Int(23));
        assert_eq!(of("now.weekday", &facts), FactValue::Text("sunday".to_owned()));
    }

    #[test]
    fn an_sla_at_a_fixed_time_is_the_time_left_and_negative_when_late() {
        let mut facts = Facts { now: "2026-11-29T12:00:00Z".parse().expect("a time"), ..Facts::default() };
        for (at, want) in [("2026-11-29T13:00:00Z", 3600), ("2026-11-29T11:59:59.5Z", -1)] {
            let at: jiff::Timestamp = at.parse().expect("a time");
            facts.job.metadata.sla = Some(Sla::At(at.as_millisecond()));
            assert_eq!(of("job.sla", &facts), FactValue::Int(want));
        }
    }

    #[test]
    fn huge_sizes_are_the_greatest_number_and_not_negative() {
        let mut facts = Facts::default();
        facts.job.metadata.dataset_size = Some(u64::MAX);
        assert_eq!(of("job.dataset_size", &facts), FactValue::Int(i64::MAX));
    }
}

//! Limits: how far a new policy may move the numbers.

use std::path::Path;

use osprey_model::message::words::{either, nearest};
use toml::{Spanned, Table, Value};

use super::numbers::{Names, Numbers};
use crate::error::{CliError, ErrorCode};
use crate::input;

/// One limit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Limit {
    /// The line where it begins, from 1.
    line: usize,
    /// The number, by the name that it has in the JSON.
    metric: String,
    /// Whose number it is.
    of: Of,
    bound: Bound,
}

/// Whose number is limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Of all jobs.
    All,
    /// Of a tier's jobs.
    Tier(String),
    /// Of a team's jobs.
    Team(String),
}

/// How far a number may go under the new policy.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    Max(f64),
    Min(f64),
    /// At most so many percent above what it is under the old policy.
    RisePercentMax(f64),
    /// At most so many percent below it.
    FallPercentMax(f64),
}

/// A limit with what came out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Held {
    /// The limit as it was written.
    pub limit: String,
    /// The number under the old policy; `None` where no job has it.
    pub before: Option<f64>,
    /// The number under the new policy; `None` where no job has it.
    pub value: Option<f64>,
    /// Whether it holds.
    pub is_held: bool,
    /// What came out and what is allowed, as a sentence.
    pub sentence: String,
}

const KEYS: [&str; 7] = ["metric", "tier", "team", "max", "min", "rise_percent_max", "fall_percent_max"];
const BOUNDS: [&str; 4] = ["max", "min", "rise_percent_max", "fall_percent_max"];

/// Reads a limits file.
///
/// # Errors
/// One sentence about the first mistake, with its line.
pub(super) fn read(path: &Path) -> Result<Vec<Limit>, CliError> {
    let text = input::read_text(path)?;
    parse(&text).map_err(|Mistake { line, message }| {
        let at = line.map_or_else(String::new, |line| format!(", line {line}"));
        CliError::new(ErrorCode::InvalidPolicy, format!("limits `{}`{at}: {message}", path.display()))
            .help("docs/policy.md says what a limit is made of, under `What a change would do`")
    })
}

/// What is wrong with a file.
#[derive(Debug, PartialEq, Eq)]
struct Mistake {
    line: Option<usize>,
    message: String,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    limit: Vec<Spanned<Table>>,
}

fn parse(text: &str) -> Result<Vec<Limit>, Mistake> {
    let line_of = |offset: usize| text.get(..offset).map(|before| before.matches('\n').count() + 1);
    let file: File = toml::from_str(text).map_err(|fault| Mistake {
        line: fault.span().and_then(|span| line_of(span.start)),
        message: fault.message().to_owned(),
    })?;
    if file.limit.is_empty() {
        return Err(Mistake { line: None, message: "it has no `[[limit]]`, so nothing could fail".to_owned() });
    }
    let limit = |entry: &Spanned<Table>| {
        let line = line_of(entry.span().start).unwrap_or(1);
        limit(entry.get_ref(), line).map_err(|message| Mistake { line: Some(line), message })
    };
    file.limit.iter().map(limit).collect()
}

fn limit(table: &Table, line: usize) -> Result<Limit, String> {
    if let Some(unknown) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let near = nearest(unknown, KEYS).map_or_else(|| either(KEYS), |near| format!("`{near}`"));
        return Err(format!("a limit has no `{unknown}`; did you mean {near}?"));
    }
    let metric = text(table, "metric")?.ok_or("the limit has no `metric`, the name of a number")?;
    let of = match (text(table, "tier")?, text(table, "team")?) {
        (None, None) => Of::All,
        (Some(tier), None) => Of::Tier(tier),
        (None, Some(team)) => Of::Team(team),
        (Some(_), Some(_)) => return Err(format!("the limit of `{metric}` names a tier and a team; write two limits")),
    };
    let given: Vec<&str> = BOUNDS.into_iter().filter(|key| table.contains_key(*key)).collect();
    let [key] = given.as_slice() else {
        let count = if given.is_empty() { "none" } else { "several" };
        return Err(format!("the limit of `{metric}` says {count} of {}, and one is wanted", either(BOUNDS)));
    };
    let number = number(table, key)?;
    let bound = match *key {
        "max" => Bound::Max(number),
        "min" => Bound::Min(number),
        "rise_percent_max" => Bound::RisePercentMax(number),
        _ => Bound::FallPercentMax(number),
    };
    match bound {
        Bound::Min(number) if number <= 0.0 => {
            Err(format!("`min = {number}` of `{metric}` can't fail: no number is below 0"))
        }
        Bound::FallPercentMax(percent) if percent >= 100.0 => {
            Err(format!("`fall_percent_max = {percent}` of `{metric}` can't fail: no number is below 0"))
        }
        Bound::Max(number) if number < 0.0 => {
            Err(format!("`max = {number}` of `{metric}` can't hold: no number is below 0"))
        }
        _ => Ok(Limit { line, metric, of, bound }),
    }
}

fn text(table: &Table, key: &str) -> Result<Option<String>, String> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("`{key}` is {}, and a text is wanted", kind(other))),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a limit needs no 53 bits")]
fn number(table: &Table, key: &str) -> Result<f64, String> {
    match table.get(key) {
        Some(Value::Integer(number)) => Ok(*number as f64),
        Some(Value::Float(number)) if number.is_finite() => Ok(*number),
        Some(Value::Float(number)) => Err(format!("`{key}` is {number}, and a finite number is wanted")),
        Some(other) => Err(format!("`{key}` is {}, and a number is wanted", kind(other))),
        None => Err(format!("`{key}` is missing")),
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text `{text}`"),
        Value::Integer(number) => format!("the number {number}"),
        Value::Float(number) => format!("the number {number}"),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(_) => "a time".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}

impl Limit {
    /// Checks that the number, the tier and the team are known, before anything is simulated.
    ///
    /// # Errors
    /// For one that isn't: a limit on nothing would always hold.
    pub(super) fn check(&self, file: &Path, names: &Names) -> Result<(), CliError> {
        let invalid = |message: String, near: Option<&str>, known: &[String]| {
            let help = near
                .map_or_else(|| format!("known are {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
            let message = format!("limits `{}`, line {}: it names {message}", file.display(), self.line);
            Err(CliError::new(ErrorCode::InvalidPolicy, message).help(help))
        };
        let (whose, known) = match &self.of {
            Of::All => (None, &names.all),
            Of::Tier(tier) => (Some(("tier", tier, &names.tiers)), &names.of_a_group),
            Of::Team(team) => (Some(("team", team, &names.teams)), &names.of_a_group),
        };
        if let Some((noun, name, known)) = whose.filter(|(_, name, known)| !known.contains(name)) {
            let near = nearest(name, known.iter().map(String::as_str));
            let who = if noun == "tier" { "neither policy has it" } else { "no job is of it" };
            return invalid(format!("the {noun} `{name}`, and {who}"), near, known);
        }
        if known.contains(&self.metric) {
            return Ok(());
        }
        let near = nearest(&self.metric, known.iter().map(String::as_str));
        let of = if self.of == Of::All { "a schedule" } else { "a tier or a team" };
        invalid(format!("`{}`, which is no number of {of}", self.metric), near, known)
    }

    /// Compares with what came out. A number that no job has under the new policy breaks its limit: nobody could say that
    /// it holds.
    pub(super) fn held(&self, before: &Numbers, after: &Numbers) -> Held {
        let [before, value] = [before, after].map(|numbers| numbers.get(&self.of, &self.metric));
        let (is_held, sentence) = match value {
            Some(value) => (self.holds(before, value), self.sentence(before, value)),
            None => (false, format!("{} has no value under the new policy: no such job ended", self.name())),
        };
        Held { limit: self.written(), before, value, is_held, sentence }
    }

    fn holds(&self, before: Option<f64>, value: f64) -> bool {
        let old = before.unwrap_or(0.0);
        // Rounding of a product is no step over a limit.
        let slack = 1e-9 * old.abs();
        match self.bound {
            Bound::Max(max) => value <= max,
            Bound::Min(min) => value >= min,
            Bound::RisePercentMax(percent) => value <= old * (1.0 + percent / 100.0) + slack,
            Bound::FallPercentMax(percent) => value >= old * (1.0 - percent / 100.0) - slack,
        }
    }

    /// The number in words.
    fn name(&self) -> String {
        match &self.of {
            Of::All => self.metric.clone(),
            Of::Tier(tier) => format!("{} of tier `{tier}`", self.metric),
            Of::Team(team) => format!("{} of team `{team}`", self.metric),
        }
    }

    fn written(&self) -> String {
        let (key, number) = match self.bound {
            Bound::Max(number) => ("max", number),
            Bound::Min(number) => ("min", number),
            Bound::RisePercentMax(number) => ("rise_percent_max", number),
            Bound::FallPercentMax(number) => ("fall_percent_max", number),
        };
        format!("{}, {key} = {number}", self.name())
    }

    fn sentence(&self, before: Option<f64>, value: f64) -> String {
        let name = self.name();
        let moved = || match before {
            Some(before) => format!("goes from {} to {}{}", rounded(before), rounded(value), percent(before, value)),
            None => format!("goes from nothing to {}", rounded(value)),
        };
        match self.bound {
            Bound::Max(max) => format!("{name} is {}, and at most {max} is allowed", rounded(value)),
            Bound::Min(min) => format!("{name} is {}, and at least {min} is wanted", rounded(value)),
            Bound::RisePercentMax(most) => format!("{name} {}, and at most {most:+} % is allowed", moved()),
            Bound::FallPercentMax(most) => format!("{name} {}, and at most {:+} % is allowed", moved(), -most),
        }
    }
}

fn percent(before: f64, value: f64) -> String {
    if before > 0.0 { format!(" ({:+.1} %)", (value / before - 1.0) * 100.0) } else { String::new() }
}

/// Seconds to the tenth, shares and other small numbers to the thousandth.
fn rounded(value: f64) -> String {
    if value.abs() >= 10.0 { format!("{value:.1}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn numbers(mean: f64) -> Numbers {
        let mut numbers = Numbers::default();
        numbers.all.insert("mean_wait_seconds".to_owned(), json!(mean));
        numbers.all.insert("utilisation".to_owned(), json!(mean / 200.0));
        let members = serde_json::Map::from_iter([("mean_wait_seconds".to_owned(), json!(mean / 2.0))]);
        numbers.tiers.insert("critical".to_owned(), members.clone());
        numbers.teams.insert("vision".to_owned(), members);
        numbers
    }

    fn names() -> Names {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names {
            all: list(&["mean_wait_seconds", "utilisation"]),
            of_a_group: list(&["mean_wait_seconds"]),
            tiers: list(&["critical", "low"]),
            teams: list(&["vision"]),
        }
    }

    fn one(text: &str) -> Limit {
        parse(text).unwrap().remove(0)
    }

    #[test]
    fn a_limit_is_absolute_or_against_the_old_policy_and_of_all_a_tier_or_a_team() {
        for (text, before, after, is_held, sentence) in [
            ("max = 110", 100.0, 110.0, true, "mean_wait_seconds is 110.0, and at most 110 is allowed"),
            ("max = 110", 100.0, 110.1, false, "mean_wait_seconds is 110.1, and at most 110 is allowed"),
            (
                "rise_percent_max = 10",
                100.0,
                110.0,
                true,
                "mean_wait_seconds goes from 100.0 to 110.0 (+10.0 %), and at most +10 % is allowed",
            ),
            (
                "rise_percent_max = 10",
                0.0,
                1.0,
                false,
                "mean_wait_seconds goes from 0.000 to 1.000, and at most +10 % is allowed",
            ),
            (
                "rise_percent_max = -5",
                100.0,
                96.0,
                false,
                "mean_wait_seconds goes from 100.0 to 96.0 (-4.0 %), and at most -5 % is allowed",
            ),
            (
                "tier = \"critical\"\nmax = 52.5",
                100.0,
                110.0,
                false,
                "mean_wait_seconds of tier `critical` is 55.0, and at most 52.5 is allowed",
            ),
            (
                "team = \"vision\"\nmin = 52.5",
                100.0,
                110.0,
                true,
                "mean_wait_seconds of team `vision` is 55.0, and at least 52.5 is wanted",
            ),
        ] {
            let limit = one(&format!("[[limit]]\nmetric = \"mean_wait_seconds\"\n{text}"));
            let held = limit.held(&numbers(before), &numbers(after));
            assert_eq!((held.is_held, held.sentence.as_str()), (is_held, sentence), "{text}");
        }
        let fall = one("[[limit]]\nmetric = \"utilisation\"\nfall_percent_max = 5");
        let held = fall.held(&numbers(100.0), &numbers(94.0));
        let sentence = "utilisation goes from 0.500 to 0.470 (-6.0 %), and at most -5 % is allowed";
        assert_eq!((held.is_held, held.sentence.as_str()), (false, sentence));
        assert_eq!(held.limit, "utilisation, fall_percent_max = 5");
    }

    #[test]
    fn a_file_with_a_mistake_is_told_with_its_line() {
        for (text, line, message) in [
            ("", None, "it has no `[[limit]]`, so nothing could fail"),
            ("# none\n[[limits]]\n", Some(2), "unknown field `limits`, expected `limit`"),
            ("[[limit]]\nmax = 1", Some(1), "the limit has no `metric`, the name of a number"),
            (
                "[[limit]]\nmetric = \"a\"\n\n[[limit]]\nmetric = \"b\"\nmaxx = 1",
                Some(1),
                "the limit of `a` says none of `max`, `min`, `rise_percent_max` or `fall_percent_max`, and one is wanted",
            ),
            (
                "[[limit]]\nmetric = \"a\"\nmax = 1\n\n[[limit]]\nmetric = \"b\"\nmaxx = 1",
                Some(5),
                "a limit has no `maxx`; did you mean `max`?",
            ),
            (
                "[[limit]]\nmetric = \"a\"\nmax = 1\nmin = 2",
                Some(1),
                "the limit of `a` says several of `max`, `min`, `rise_percent_max` or `fall_percent_max`, and one is wanted",
            ),
            ("[[limit]]\nmetric = \"a\"\nmax = \"ten\"", Some(1), "`max` is the text `ten`, and a number is wanted"),
            ("[[limit]]\nmetric = \"a\"\nmax = nan", Some(1), "`max` is NaN, and a finite number is wanted"),
            ("[[limit]]\nmetric = 7\nmax = 1", Some(1), "`metric` is the number 7, and a text is wanted"),
            ("[[limit]]\nmetric = \"a\"\nmin = 0", Some(1), "`min = 0` of `a` can't fail: no number is below 0"),
            ("[[limit]]\nmetric = \"a\"\nmax = -1", Some(1), "`max = -1` of `a` can't hold: no number is below 0"),
            (
                "[[limit]]\nmetric = \"a\"\nmax = 1\ntier = \"t\"\nteam = \"t\"",
                Some(1),
                "the limit of `a` names a tier and a team; write two limits",
            ),
        ] {
            assert_eq!(parse(text), Err(Mistake { line, message: message.to_owned() }), "{text}");
        }
        assert!(parse("[[limit]\n").is_err());
    }

    #[test]
    fn a_limit_on_nothing_is_a_mistake_before_anything_is_simulated() {
        for (text, message, help) in [
            (
                "metric = \"mean_wait_second\"\nmax = 1",
                "limits `l.toml`, line 1: it names `mean_wait_second`, which is no number of a schedule",
                "did you mean `mean_wait_seconds`?",
            ),
            (
                "metric = \"utilisation\"\ntier = \"low\"\nmax = 1",
                "limits `l.toml`, line 1: it names `utilisation`, which is no number of a tier or a team",
                "known are mean_wait_seconds",
            ),
            (
                "metric = \"mean_wait_seconds\"\ntier = \"crtical\"\nmax = 1",
                "limits `l.toml`, line 1: it names the tier `crtical`, and neither policy has it",
                "did you mean `critical`?",
            ),
            (
                "metric = \"mean_wait_seconds\"\nteam = \"ads\"\nmax = 1",
                "limits `l.toml`, line 1: it names the team `ads`, and no job is of it",
                "known are vision",
            ),
        ] {
            let error = one(&format!("[[limit]]\n{text}")).check(Path::new("l.toml"), &names()).unwrap_err();
            assert_eq!((error.message.as_str(), error.help.as_deref()), (message, Some(help)));
        }
        let of_nobody = one("[[limit]]\nmetric = \"mean_wait_seconds\"\ntier = \"low\"\nmax = 1");
        assert_eq!(of_nobody.check(Path::new("l.toml"), &names()), Ok(()));
        let held = of_nobody.held(&numbers(1.0), &numbers(1.0));
        let sentence = "mean_wait_seconds of tier `low` has no value under the new policy: no such job ended";
        assert_eq!((held.is_held, held.value, held.sentence.as_str()), (false, None, sentence));
    }
}

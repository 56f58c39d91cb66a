//! Mistakes of a policy with the line they are on, and how its tests went.

use std::fmt::Write as _;

use osprey_model::id::TierName;
use osprey_policy::Policy;
use osprey_policy::case::TestOutcome;
use osprey_policy::problem::{PolicyError, Warning};
use osprey_policy::rules::Over;
use osprey_policy::share::{Amount, Limit};
use osprey_policy::waits::{TierWait, Unbounded, WaitBound};

use super::decision;
use super::table::Columns;
use crate::ui::Paint;

/// Most characters of a source line that are shown.
const LINE_CHARACTERS_MAX: usize = 120;

/// A policy file as its reader sees it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its path.
    pub name: &'a str,
    /// What it says.
    pub text: &'a str,
    /// Colours.
    pub paint: Paint,
}

/// Where something is.
struct Spot<'a> {
    path: &'a str,
    line: usize,
    column: usize,
}

impl Source<'_> {
    /// Every mistake, and how many there are.
    #[must_use]
    pub fn broken(&self, errors: &[PolicyError]) -> String {
        let mut text = String::new();
        for PolicyError { path, line, column, code, message, help } in errors {
            let head = self.paint.wrong(&format!("error[{code}]"));
            let spot = Spot { path, line: *line, column: *column };
            let _ = writeln!(text, "{head}: {message}\n{}\n", self.excerpt(&spot, help.as_deref()));
        }
        let _ = write!(text, "{} in `{}`", counted(errors.len(), "mistake"), self.name);
        text
    }

    /// That a policy can be used, with what is odd about it and how long its tiers can be passed; or that it is refused
    /// for tiers that starve.
    #[must_use]
    pub fn sound(&self, policy: &Policy, warnings: &[Warning], starving: &[TierWait]) -> String {
        let mut text = String::new();
        for Warning { path, line, column, message, .. } in warnings {
            let spot = Spot { path, line: *line, column: *column };
            let _ = writeln!(text, "{}: {message}\n{}\n", self.paint.strong("warning"), self.excerpt(&spot, None));
        }
        let tests = counted(policy.tests().len(), "test");
        let tiers = policy.tiers().iter().map(|tier| tier.name.as_str()).collect::<Vec<_>>().join(", ");
        let verdict = if starving.is_empty() { "is sound" } else { "lets jobs starve" };
        let _ = write!(text, "`{}` {verdict}: revision {}, tiers {tiers}, {tests}", self.name, policy.revision());
        if !warnings.is_empty() {
            let _ = write!(text, ", {}", counted(warnings.len(), "warning"));
        }
        let _ = write!(text, "\n\nlater jobs pass a waiting one\n{}", waits(&policy.waits()));
        text.push_str(&quotas(policy));
        if let [first, ..] = starving {
            let _ = write!(
                text,
                "\n\n{} give tier `{}` an `aging` rate and an `aging_cap` above every number and no lower than that of \
                 others, or say `unbounded_wait = true` in `[order]`",
                self.paint.advice("help:"),
                first.tier
            );
        }
        text
    }

    /// Place, source line and caret, path in the structure, and advice.
    fn excerpt(&self, spot: &Spot<'_>, help: Option<&str>) -> String {
        let number = spot.line.to_string();
        let gutter = " ".repeat(number.len());
        let (line, start) = self.line(spot);
        let caret = " ".repeat(start) + &"^".repeat(word_length(&line, start));
        let mut text = format!("{gutter}--> {}:{}:{}\n", self.name, spot.line, spot.column);
        let _ = write!(text, "{gutter} |\n{number} | {line}\n{gutter} | {}", self.paint.wrong(&caret));
        if !spot.path.is_empty() {
            let _ = write!(text, "\n{gutter} = at {}", spot.path);
        }
        if let Some(help) = help {
            let _ = write!(text, "\n{gutter} = {} {help}", self.paint.advice("help:"));
        }
        text
    }

    /// The line, cut to what fits, and where in it the spot is.
    fn line(&self, spot: &Spot<'_>) -> (String, usize) {
        let line = self.text.lines().nth(spot.line.saturating_sub(1)).unwrap_or_default();
        let column = spot.column.saturating_sub(1);
        let skipped = column.saturating_sub(LINE_CHARACTERS_MAX / 2);
        let skipped = if line.chars().count() > LINE_CHARACTERS_MAX { skipped } else { 0 };
        let shown = line.chars().skip(skipped).take(LINE_CHARACTERS_MAX);
        // A tab takes one column here, so that the caret stands under its character.
        (shown.map(|c| if c.is_control() { ' ' } else { c }).collect(), column - skipped)
    }
}

/// What teams may use, a line each, and what is reserved; nothing for a policy without either.
fn quotas(policy: &Policy) -> String {
    let quota = policy.quota();
    let mut text = String::new();
    if policy.asks_of_teams() {
        let mut columns = Columns::new(&["  TEAM", ">GPU-HOURS A DAY", ">A WEEK", "GPUS AT ONCE"]);
        // No team is called by a blank.
        let named = quota.teams.keys().map(|team| (team.as_str(), team.as_str()));
        for (name, team) in std::iter::once(("every other", " ")).chain(named) {
            let gpus = policy
                .tiers()
                .iter()
                .filter_map(|tier| policy.team_gpus_max(team, &tier.name).map(|most| format!("{} {most}", tier.name)));
            let gpus = gpus.collect::<Vec<_>>().join(", ");
            let (day, week) = (hours(quota.day_gpu_ms(team)), hours(quota.week_gpu_ms(team)));
            columns.row([format!("  {name}"), day, week, or_dash(gpus)]);
        }
        let beyond = match (quota.borrowing, quota.over) {
            (true, _) => "borrow what nobody within his own wants",
            (false, Over::Hold) => "wait",
            (false, Over::Demote) => "go to the tier of preemptible jobs",
            (false, Over::Reject) => "are refused at the door",
        };
        let _ = write!(text, "\n\nteams may use; beyond their GPU-hours jobs {beyond}\n{}", columns.render());
    }
    if !quota.reserves.is_empty() {
        let mut columns = Columns::new(&["  RESERVE", "FOR", ">SHARE OF A POOL", ">FOR ONE USER"]);
        for reserve in &quota.reserves {
            let tiers = reserve.tiers.iter().map(TierName::as_str);
            let whom = reserve.workloads.iter().map(String::as_str).chain(tiers).collect::<Vec<_>>().join(", ");
            let user = reserve.user_percent.map_or("-".to_owned(), |percent| format!("{percent} % of it"));
            columns.row([format!("  {}", reserve.name), whom, format!("{} %", reserve.share_percent), user]);
        }
        let _ = write!(text, "\n\nreserved\n{}", columns.render());
    }
    text
}

fn hours(gpu_ms: Option<u64>) -> String {
    gpu_ms.map_or_else(|| "-".to_owned(), |gpu_ms| Amount(Limit::GpuHoursDay, gpu_ms).to_string())
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

/// How long each tier's jobs can be passed, a line each.
fn waits(waits: &[TierWait]) -> String {
    let mut columns = Columns::new(&["  TIER", ">FROM", "AT MOST"]);
    for TierWait { tier, number, bound } in waits {
        let told = match bound {
            WaitBound::Within(ms) => format!("for {}", span(*ms)),
            WaitBound::Never(why) => format!("for ever: {}", unbounded(why)),
        };
        columns.row([format!("  {tier}"), number.to_string(), told]);
    }
    columns.render()
}

/// Why jobs of a tier can be passed for ever.
#[must_use]
pub fn unbounded(why: &Unbounded) -> String {
    match why {
        Unbounded::NoAging => "a wait raises nobody".to_owned(),
        Unbounded::CapTooLow { cap, highest } => {
            format!("a wait raises to {cap}, and other jobs may have {highest}")
        }
        Unbounded::CapBelow { cap, other, other_cap } => {
            format!("a wait raises to {cap}, and jobs of `{other}` to {other_cap}")
        }
    }
}

/// A time in days and hours, rounded up.
fn span(ms: u64) -> String {
    let hours = ms.div_ceil(3_600_000);
    match (hours / 24, hours % 24) {
        (0, hours) => format!("{hours} h"),
        (days, 0) => format!("{days} d"),
        (days, hours) => format!("{days} d {hours} h"),
    }
}

/// Characters of the word or the quoted text that begins at `start`, at least one.
fn word_length(line: &str, start: usize) -> usize {
    let rest = || line.chars().skip(start);
    let quoted = rest().next().filter(|c| matches!(c, '"' | '\'')).and_then(|quote| {
        let inner = rest().skip(1).position(|c| c == quote)?;
        Some(inner + 2)
    });
    let word = || rest().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-')).count();
    quoted.unwrap_or_else(word).max(1)
}

/// How each test went, and how many passed.
#[must_use]
pub fn tests(outcomes: &[TestOutcome], paint: Paint) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        if outcome.passed() {
            let _ = writeln!(text, "ok      {}", outcome.name);
        } else {
            let _ = writeln!(text, "{}  {} (line {})", paint.wrong("FAILED"), outcome.name, outcome.line);
            for failure in &outcome.failures {
                let _ = writeln!(text, "        {failure}");
            }
            let _ =
                writeln!(text, "{}", decision::indent(&decision::indent(&decision::steps(&outcome.derivation.steps))));
        }
    }
    let passed = outcomes.iter().filter(|outcome| outcome.passed()).count();
    let _ = write!(text, "{} passed, {} failed", passed, outcomes.len() - passed);
    text
}

/// A number of things.
#[must_use]
pub fn size(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A number and its noun: `1 test`, `2 tests`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    osprey_model::message::words::counted(size(count), noun)
}

#[cfg(test)]
mod tests {
    use osprey_policy::problem::PolicyErrorCode;

    use super::*;

    #[test]
    fn a_mistake_is_shown_on_its_line_with_the_way_out() {
        let source = Source { name: "p.toml", text: "a = 1\nwhen = \"job.gpuz > 4\"\n", paint: Paint::OFF };
        let errors = [PolicyError {
            path: "rule[0].when".to_owned(),
            line: 2,
            column: 9,
            code: PolicyErrorCode::UnknownFact,
            message: "there is no fact `job.gpuz`".to_owned(),
            help: Some("did you mean `job.gpus`?".to_owned()),
        }];
        let want = "\
error[UnknownFact]: there is no fact `job.gpuz`
 --> p.toml:2:9
  |
2 | when = \"job.gpuz > 4\"
  |         ^^^^^^^^
  = at rule[0].when
  = help: did you mean `job.gpus`?

1 mistake in `p.toml`";
        assert_eq!(source.broken(&errors), want);
    }

    const DOCUMENT: &str = include_str!("../../../docs/policy.md");

    /// The first fenced block of a language in `docs/policy.md`.
    fn block(language: &str) -> &'static str {
        DOCUMENT.split(&format!("```{language}\n")).nth(1).and_then(|rest| rest.split("```").next()).unwrap()
    }

    #[test]
    fn the_mistakes_of_the_document_are_shown_as_they_are() {
        let text = block("toml")
            .replace(r#"when = 'job.environment == "production"'"#, r#"when = 'job.enviroment = "production"'"#)
            .replace("-10 * lineage.failures", "-10 * lineage.failure")
            .replace(r#"may_preempt = ["spare"]"#, r#"may_preempt = ["spaer"]"#);
        let errors = Policy::load(&text).err().unwrap();
        let told = Source { name: "small.toml", text: &text, paint: Paint::OFF }.broken(&errors);
        assert!(DOCUMENT.contains(&format!("```text\n{told}\n```")), "{told}");
    }

    #[test]
    fn a_word_or_a_quoted_text_is_underlined_whole() {
        for (line, start, want) in
            [("a = job.gpuz > 4", 4, 8), ("t = \"gold\" # x", 4, 6), ("t = \"go", 4, 1), ("[[x]]", 0, 1)]
        {
            assert_eq!(word_length(line, start), want, "{line}");
        }
    }

    #[test]
    fn of_a_long_line_the_part_around_the_mistake_is_shown() {
        let text = format!("{}x", "a".repeat(500));
        let source = Source { name: "p", text: &text, paint: Paint::OFF };
        let (line, start) = source.line(&Spot { path: "", line: 1, column: 501 });
        assert_eq!(line.chars().nth(start), Some('x'));
    }
}

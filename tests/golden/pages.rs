//! Pages of the documents: what stands in a `console` block is a session, and is so.
//!
//! Each page is read from the top in one shell, in a folder of its own that has the repository's `docs`, `events` and
//! `shared` beside it, as a clone has. A line that begins with `$ ` is a command, the `> ` lines below it go on with it,
//! what follows is its output, and `? N` its exit code other than 0. A line `…` stands for lines that are left out, `…`
//! inside a line for a part of it; all others must be there, in their order and with nothing between them. Ids, times,
//! durations, senders, revisions and ports are marks on both sides, spaces and blank lines don't count.
//!
//! `OSPREY_BLESS=1` writes what comes out where nothing is left out.

use std::fs;
use std::ops::Range;
use std::thread;

use osprey_tests::{TextFile, text_files};

use crate::Checked;
use crate::local::{is_progress, marked_line};
use crate::shell::{Said, Shell};

/// Verbs that only look. What they are asked about goes on by itself, so a reader asks again until it is as the page says,
/// and so does the test.
const LOOKS: [&str; 8] = ["dead-letters list", "describe", "jobs", "logs", "priority --local", "queue", "usage", "why"];

/// A command of a page, and what the page shows of it.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    /// As a shell takes it: one line or several.
    command: String,
    /// Lines of the page that hold its output.
    output: Range<usize>,
}

impl Step {
    fn only_looks(&self) -> bool {
        let arguments = self.command.strip_prefix("osprey ").unwrap_or_default();
        LOOKS.iter().any(|look| arguments.starts_with(look))
    }
}

/// The commands of a page, in their order.
fn steps(lines: &[&str]) -> Vec<Step> {
    let mut steps = Vec::<Step>::new();
    let mut is_session = false;
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with("```") {
            is_session = *line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_session) {
            steps.push(Step { command: command.to_owned(), output: index + 1..index + 1 });
        } else if let Some(step) = steps.last_mut().filter(|_| is_session) {
            match line.strip_prefix("> ").filter(|_| step.output.is_empty()) {
                Some(more) => {
                    step.command += &format!("\n{more}");
                    step.output = index + 1..index + 1;
                }
                None => step.output.end = index + 1,
            }
        }
    }
    steps
}

/// A line as it is compared.
fn plain(line: &str) -> String {
    let words: Vec<String> = marked_line(line).split_whitespace().map(marked_word).collect();
    words.join(" ")
}

/// Marks what is left by the sessions' own marks: `1m05s`, times without a fraction, and the port of a server.
fn marked_word(word: &str) -> String {
    if let Some((before, after)) = word.split_once("127.0.0.1:") {
        return format!("{before}127.0.0.1:<port>{}", after.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    let number = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_duration = number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(['s', 'm', 'h', 'd'])
        && number.chars().all(|c| c.is_ascii_digit() || matches!(c, 's' | 'm' | 'h' | 'd'));
    let is_time =
        number.len() == "2026-01-31T12:00:00Z".len() && number.ends_with('Z') && number.get(10..11) == Some("T");
    match (is_duration, is_time) {
        (true, _) => word.replacen(number, "<s>", 1),
        (_, true) => word.replacen(number, "<time>", 1),
        _ => word.to_owned(),
    }
}

/// Lines as they are compared.
fn plain_lines<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<String> {
    lines.filter(|line| !line.trim().is_empty() && !is_progress(line)).map(plain).collect()
}

/// Whether a shown line is the line that was said, `…` in it standing for any part.
fn is_line(shown: &str, said: &str) -> bool {
    let mut parts = shown.split('…');
    let mut rest = match parts.next().and_then(|first| said.strip_prefix(first)) {
        Some(rest) => rest,
        None => return false,
    };
    let mut last = None;
    for part in parts {
        if let Some(passed) = last.replace(part) {
            match rest.split_once(passed) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

/// Whether what is shown is what was said, with lines left out where it says so.
fn is_shown(shown: &[String], said: &[String]) -> bool {
    let (first, rest) = match shown.iter().position(|line| line == "…") {
        Some(gap) => (shown.get(..gap).unwrap_or_default(), shown.get(gap + 1..)),
        None => (shown, None),
    };
    let begins = |said: &[String]| said.len() >= first.len() && first.iter().zip(said).all(|(a, b)| is_line(a, b));
    match rest {
        _ if !begins(said) => false,
        None => said.len() == first.len(),
        Some(rest) => (first.len()..=said.len()).any(|from| said.get(from..).is_some_and(|said| is_shown(rest, said))),
    }
}

/// What a page shows of a command's output, as it is compared, and its exit code.
fn expected(shown: &[&str]) -> (Vec<String>, i32) {
    let code = shown.iter().rev().find_map(|line| line.strip_prefix("? ")).and_then(|code| code.parse().ok());
    let lines = shown.iter().copied().filter(|line| !line.starts_with("? "));
    (plain_lines(lines), code.unwrap_or(0))
}

/// Whether a command said what the page shows.
fn holds(shown: &[&str], said: &Said) -> bool {
    let (lines, code) = expected(shown);
    code == said.code && is_shown(&lines, &plain_lines(said.output.lines()))
}

/// What a command says now, as it stands in a page.
fn written(said: &Said) -> Vec<String> {
    let mut lines: Vec<String> = said.output.trim_end().lines().map(|line| line.trim_end().to_owned()).collect();
    lines.extend((said.code != 0).then(|| format!("? {}", said.code)));
    lines
}

/// Reads a page from the top. Gives what isn't as it says, and the page as it would be right.
fn follow(page: &TextFile, bless: bool) -> Result<(Vec<String>, String), Box<dyn std::error::Error + Send + Sync>> {
    let lines: Vec<&str> = page.text.lines().collect();
    let mut shell = Shell::new(&page.path)?;
    let (mut faults, mut text, mut copied) = (Vec::new(), String::new(), 0);
    for step in steps(&lines) {
        let shown = lines.get(step.output.clone()).unwrap_or_default();
        let said = shell.until(&step.command, step.only_looks(), |said| holds(shown, said))?;
        if holds(shown, &said) {
            continue;
        }
        let (line, now) = (step.output.start, written(&said));
        if bless && !shown.iter().any(|line| line.contains('…')) {
            text.extend(lines.get(copied..line).unwrap_or_default().iter().map(|line| format!("{line}\n")));
            text.extend(now.iter().map(|line| format!("{line}\n")));
            // The blank line before the next command stays.
            copied = line + shown.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
            continue;
        }
        faults.push(format!("{}:{line}: `{}` says\n{}\n", page.path, step.command, now.join("\n")));
        if !bless {
            // What comes after relies on it.
            break;
        }
    }
    text.extend(lines.get(copied..).unwrap_or_default().iter().map(|line| format!("{line}\n")));
    Ok((faults, text))
}

#[test]
fn what_the_documents_show_is_what_is_said() -> Checked {
    let bless = std::env::var_os("OSPREY_BLESS").is_some();
    let pages: Vec<TextFile> = text_files(&[".md"])?
        .into_iter()
        .filter(|page| !steps(&page.text.lines().collect::<Vec<_>>()).is_empty())
        .collect();
    assert!(pages.len() > 5, "the tutorial, what others do and each how-to are sessions");
    let followed: Vec<_> = thread::scope(|scope| {
        let readers: Vec<_> = pages.iter().map(|page| scope.spawn(move || follow(page, bless))).collect();
        readers.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let mut faults = Vec::new();
    for (page, read) in pages.iter().zip(followed) {
        let (found, text) =
            read.map_err(|_| format!("{}: the reader broke off", page.path))?.map_err(|fault| fault.to_string())?;
        if bless && text != page.text {
            fs::write(osprey_tests::root().join(&page.path), text)?;
        }
        faults.extend(found);
    }
    assert!(faults.is_empty(), "{}\nOSPREY_BLESS=1 accepts what is said now", faults.join("\n"));
    Ok(())
}

#[test]
fn a_page_is_read_as_commands_and_what_they_say() {
    let page =
        "text\n```console\n$ osprey jobs\none\n\n$ cat > f <<E\n> {}\n> E\n$ osprey x\n> y\n```\n```sh\n$ no\n```";
    let lines: Vec<&str> = page.lines().collect();
    let steps = steps(&lines);
    let read: Vec<(&str, &[&str])> =
        steps.iter().map(|step| (step.command.as_str(), lines.get(step.output.clone()).unwrap_or_default())).collect();
    assert_eq!(read, [("osprey jobs", &["one", ""][..]), ("cat > f <<E\n{}\nE", &[]), ("osprey x\ny", &[])]);
    assert!(steps.first().is_some_and(Step::only_looks) && !steps.last().is_some_and(Step::only_looks));
}

#[test]
fn what_is_shown_must_be_said_except_what_is_left_out() {
    let said = Said {
        output: "one  1.5s\ntwo\n\nthree 4m05s of 127.0.0.1:4711.\nfour 2026-12-01T02:31:56Z\n".to_owned(),
        code: 3,
    };
    for (shown, want) in [
        (&["one 9.0s", "two", "three 12s of 127.0.0.1:9.", "four 2026-01-31T12:00:00Z", "? 3"][..], true),
        (&["one 9.0s", "two", "three 12s of 127.0.0.1:9.", "four 2026-01-31T12:00:00Z"], false),
        (&["…", "four 2026-01-31T12:00:00Z", "? 3"], true),
        (&["one 2.0s", "…", "? 3"], true),
        (&["one 2.0s", "…", "fou…", "…", "? 3"], true),
        (&["one 2.0s", "…", "five", "? 3"], false),
        (&["one 2.0s", "four 2026-01-31T12:00:00Z", "? 3"], false),
        (&["four 2026-01-31T12:00:00Z", "? 3"], false),
        (&["…", "two", "? 3"], false),
        (&["…", "fou…", "two", "…", "? 3"], false),
        (&["…", "thr… of 127…", "fou…r …", "? 3"], true),
        (&["…", "thr… on 127…", "four 2026-01-31T12:00:00Z", "? 3"], false),
        (&["…", "two…two", "…", "? 3"], false),
    ] {
        assert_eq!(holds(shown, &said), want, "{shown:?}");
    }
}

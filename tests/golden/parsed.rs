//! Commands of the documents that no test can run are ones that the program understands.

use osprey_tests::{TextFile, text_files};

use crate::Checked;

/// The documents for readers; what changed, and why, is not rewritten.
fn documents() -> std::io::Result<Vec<TextFile>> {
    let mut files = text_files(&[".md"])?;
    files.retain(|file| !file.path.starts_with("docs/decisions/") && file.path != "CHANGELOG.md");
    Ok(files)
}

/// The commands of `sh` blocks, each with its line, with what a `\` goes on with.
fn commands(markdown: &str) -> Vec<(usize, String)> {
    let mut found = Vec::<(usize, String)>::new();
    let (mut is_shell, mut goes_on) = (false, false);
    for (index, line) in markdown.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            (is_shell, goes_on) = (language == "sh", false);
        } else if is_shell {
            let (part, more) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
            match found.last_mut().filter(|_| goes_on) {
                Some((_, command)) => *command += &format!(" {}", part.trim()),
                None => found.push((index + 1, part.trim().to_owned())),
            }
            goes_on = more;
        }
    }
    found
}

/// Commands in the text, between single backquotes.
fn mentions(markdown: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (index, line) in markdown.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            // A line that a span begins in and doesn't end in has an odd number of them; the rest is not looked at.
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.filter(|span| span.starts_with("osprey ")).map(|span| (index + 1, span.to_owned())));
        }
    }
    found
}

/// The words of the command that a line begins with, up to where the shell goes on with something else. Empty when it isn't
/// `osprey`.
fn words(line: &str) -> Vec<String> {
    let line = line.strip_prefix("cargo run --release --").map_or(line.to_owned(), |rest| format!("osprey{rest}"));
    let mut words = Vec::new();
    let mut word = None::<String>;
    let (mut quote, mut depth) = (None, 0_u32);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | '>' | '<' | ';' | '&') if depth == 0 => break,
            (None, ' ') if depth == 0 => words.extend(word.take()),
            (_, c) => {
                match c {
                    '(' if quote.is_none() => depth += 1,
                    ')' if quote.is_none() => depth = depth.saturating_sub(1),
                    _ => {}
                }
                word.get_or_insert_default().push(c);
            }
        }
    }
    words.extend(word);
    if words.first().is_some_and(|first| first == "osprey") { words } else { Vec::new() }
}

/// `SHELL` of `osprey completions SHELL`: what it stands for is understood, and it itself needn't be.
fn is_placeholder(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase())
}

/// What is wrong with the commands of a document.
fn faults(file: &TextFile) -> Vec<String> {
    let mut faults = Vec::new();
    let mut judge = |line: usize, command: &str, words: &[String]| {
        if let Err(fault) = osprey::understands(words)
            && !words.iter().any(|word| is_placeholder(word) && fault.contains(&format!("'{word}'")))
        {
            faults.push(format!("{}:{line}: `{command}`: {fault}", file.path));
        }
    };
    for (line, command) in commands(&file.text) {
        let words = words(&command);
        if !words.is_empty() {
            judge(line, &command, &words);
        }
    }
    for (line, command) in mentions(&file.text) {
        // A mention may leave out what a command needs; `…` and `a|b` stand for something else.
        if !command.contains(['…', '|']) {
            let mut words = words(&command);
            words.push("--help".to_owned());
            judge(line, &command, &words);
        }
    }
    faults
}

#[test]
fn every_command_of_the_documents_is_understood() -> Checked {
    let documents = documents()?;
    let in_blocks = |file: &TextFile| commands(&file.text).iter().filter(|(_, line)| !words(line).is_empty()).count();
    let count: usize = documents.iter().map(|file| in_blocks(file) + mentions(&file.text).len()).sum();
    assert!(count > 100, "{count} commands");
    let found: Vec<String> = documents.iter().flat_map(faults).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

#[test]
fn a_command_that_is_not_understood_is_found() {
    let page = |text: &str| TextFile { path: "a.md".to_owned(), text: text.to_owned() };
    for (text, count) in [
        ("```sh\nosprey jobs --local my-state | less\nosprey export --local s > f\n```", 0),
        ("```sh\nosprey jobs --lokal\n```", 1),
        ("```sh\nosprey cancel JOB --local s\n```", 1),
        ("```sh\nosprey cancel JOB --local s \\\n    --reason 'a b' # why\n```", 0),
        ("```sh\ncargo run --release -- lokal run f\n```", 1),
        ("```sh\nsam deploy --nonsense\n```", 0),
        ("```toml\nosprey nothing\n```", 0),
        ("say `osprey cancel JOB`, `osprey policy` or `osprey cancel … --nonsense`", 0),
        ("say `osprey completions SHELL`, `osprey COMMAND --help` or `osprey completions fishy`", 1),
        ("say `osprey cancle JOB` or `osprey jobs --tyer x`", 2),
    ] {
        let found = faults(&page(text));
        assert_eq!(found.len(), count, "{text}: {found:?}");
    }
}

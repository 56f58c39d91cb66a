//! A session: commands and what they print.

use std::fmt;

/// A session file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// What comes before the first command.
    comment: String,
    pub(crate) steps: Vec<Step>,
}

/// One command and its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    command: String,
    /// Output without the blank lines around it.
    pub(crate) output: String,
}

impl Session {
    pub(crate) fn read(text: &str) -> Self {
        let mut session = Self { comment: String::new(), steps: Vec::new() };
        for line in text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                session.steps.push(Step { command: command.to_owned(), output: String::new() });
            } else {
                let text = session.steps.last_mut().map_or(&mut session.comment, |step| &mut step.output);
                text.push_str(line);
                text.push('\n');
            }
        }
        for step in &mut session.steps {
            step.output = trimmed(&step.output);
        }
        session
    }

    /// Lines of both, those of `self` alone with `-`, those of `now` alone with `+`.
    pub(crate) fn difference(&self, now: &Self) -> String {
        let mut text = String::new();
        for (was, is) in self.steps.iter().zip(&now.steps).filter(|(was, is)| was != is) {
            text += &format!("  $ {}\n", was.command);
            let (old, new): (Vec<&str>, Vec<&str>) = (was.output.lines().collect(), is.output.lines().collect());
            let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
            text.extend(old.iter().take(same).map(|line| format!("    {line}\n")));
            text.extend(old.iter().skip(same).map(|line| format!("  - {line}\n")));
            text.extend(new.iter().skip(same).map(|line| format!("  + {line}\n")));
        }
        text
    }
}

/// Without trailing spaces and without blank lines at the end, one line break at the end of every line.
fn trimmed(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

impl Step {
    /// Puts what the command says now in the place of what it said.
    pub(crate) fn answer(&mut self, output: &str) {
        self.output = trimmed(output);
    }

    /// The words of the command, by the shell's rules for spaces and quotes.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut word = None::<String>;
        let mut quote = None;
        for c in self.command.chars() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (None, ' ') => words.extend(word.take()),
                (_, c) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.comment)?;
        for (index, Step { command, output }) in self.steps.iter().enumerate() {
            let blank = if index == 0 { "" } else { "\n" };
            write!(f, "{blank}$ {command}\n{output}")?;
        }
        Ok(())
    }
}

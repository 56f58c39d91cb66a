//! The one place where anything is printed: answers to standard output, progress and advice to standard error.

use std::io::{self, IsTerminal, Write};

use osprey_model::message::words;
use serde::Serialize;

use crate::error::{CliError, ErrorCode};

/// How answers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Tables and sentences for people.
    #[default]
    Table,
    /// JSON for programs; standard output then carries nothing else.
    Json,
}

/// Where a command writes, and how.
pub struct Ui {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    format: Format,
    out_is_terminal: bool,
    err_is_terminal: bool,
    paint: Paint,
    colours_wanted: bool,
    muted: bool,
}

/// Colours, or none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    is_on: bool,
}

impl Paint {
    /// No colour.
    pub const OFF: Self = Self { is_on: false };

    /// Red and bold, for what is wrong.
    #[must_use]
    pub fn wrong(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// Bold.
    #[must_use]
    pub fn strong(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Cyan, for advice.
    #[must_use]
    pub fn advice(self, text: &str) -> String {
        self.wrap("36", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

impl Ui {
    /// Writes to standard output and standard error. Colours only on a terminal, and never with `NO_COLOR`.
    #[must_use]
    pub fn stdio(format: Format) -> Self {
        let out_is_terminal = io::stdout().is_terminal();
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_on = out_is_terminal && io::stderr().is_terminal() && !refused && !is_dumb;
        Self {
            out: Box::new(io::BufWriter::new(io::stdout())),
            err: Box::new(io::stderr()),
            format,
            out_is_terminal: out_is_terminal && !is_dumb,
            err_is_terminal: io::stderr().is_terminal() && !is_dumb,
            paint: Paint { is_on },
            colours_wanted: !refused && !is_dumb,
            muted: false,
        }
    }

    /// Whether answers are JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether a person watches: a live table can be drawn.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.out_is_terminal && !self.is_json() && !self.muted
    }

    /// Whether a view that draws on the terminal may use colours: never with `NO_COLOR`.
    #[must_use]
    pub fn wants_colours(&self) -> bool {
        self.colours_wanted
    }

    /// Columns of the terminal that answers go to; `None` where they go elsewhere.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        let terminal = || comfy_table::Table::new().width().map(usize::from);
        self.out_is_terminal.then(terminal).flatten()
    }

    /// Whether a line of progress can be drawn over itself on standard error.
    #[must_use]
    pub fn shows_progress(&self) -> bool {
        self.err_is_terminal && !self.is_json() && !self.muted
    }

    /// Draws a line over the last one on standard error. That it can't be written is no failure of the command.
    pub fn overdraw(&mut self, line: &str) {
        let _ = write!(self.err, "\r\x1b[K{}", words::shown(line));
        let _ = self.err.flush();
    }

    /// The colours.
    #[must_use]
    pub fn paint(&self) -> Paint {
        self.paint
    }

    /// Writes text and a line end to standard output.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn text(&mut self, text: &str) -> Result<(), CliError> {
        if self.muted {
            return Ok(());
        }
        let shown = if self.is_json() { text.to_owned() } else { lines_shown(text) };
        Ok(writeln!(self.out, "{shown}")?)
    }

    /// Writes one line of JSON to standard output.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn json<T: Serialize>(&mut self, value: &T) -> Result<(), CliError> {
        let line = serde_json::to_string(value).map_err(|error| CliError::failed(error.to_string()))?;
        self.text(&line)
    }

    /// Writes text as it is and shows it at once; for the live table.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn draw(&mut self, text: &str) -> Result<(), CliError> {
        if self.muted {
            return Ok(());
        }
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// Says something about the progress: on standard output for people, on standard error beside JSON. Whoever
    /// stopped reading doesn't stop the work: nothing more is printed then.
    pub fn progress(&mut self, line: &str) {
        let shown = match self.format {
            Format::Table => self.text(line).and_then(|()| self.flush()),
            Format::Json => writeln!(self.err, "{}", lines_shown(line)).map_err(CliError::from),
        };
        self.muted |= shown.is_err_and(|error| error.code == ErrorCode::BrokenPipe);
    }

    /// Writes a line of advice to standard error. That it can't be written is no failure of the command.
    pub fn note(&mut self, text: &str) {
        let _ = writeln!(self.err, "{}", lines_shown(text));
    }

    /// Shows what is still buffered.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn flush(&mut self) -> Result<(), CliError> {
        if self.muted {
            return Ok(());
        }
        Ok(self.out.flush()?)
    }

    /// Says why the command failed, on standard error. Nothing for a pipe that broke.
    pub fn error(&mut self, error: &CliError) {
        if error.code == ErrorCode::BrokenPipe {
            return;
        }
        let _ = self.out.flush();
        let text = if self.is_json() { json_error(error) } else { self.plain_error(error) };
        self.note(&text);
    }

    fn plain_error(&self, error: &CliError) -> String {
        let CliError { code: _, message, help } = error;
        let mut text = format!("{} {message}", self.paint.wrong("error:"));
        if let Some(help) = help {
            text.push_str(&format!("\n{} {help}", self.paint.advice("help:")));
        }
        text
    }
}

/// The escape sequences that [`Paint`] makes.
const COLOURS: [&str; 4] = ["\x1b[1;31m", "\x1b[1m", "\x1b[36m", "\x1b[0m"];

/// Lines as a terminal may show them: names, reasons and bodies are foreign, and must not move the cursor, clear the
/// screen or turn the direction of writing. Our colours stay.
fn lines_shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\x1b', '\n']) {
        let (before, after) = rest.split_at(at);
        shown.push_str(&words::shown(before));
        let kept = COLOURS.iter().copied().chain(["\n"]).find(|kept| after.starts_with(kept));
        let length = kept.map_or(1, str::len);
        let (special, after) = after.split_at(length);
        shown.push_str(&kept.map_or_else(|| words::shown(special), str::to_owned));
        rest = after;
    }
    shown.push_str(&words::shown(rest));
    shown
}

fn json_error(error: &CliError) -> String {
    let CliError { code, message, help } = error;
    serde_json::json!({ "error": { "code": code, "message": message, "help": help } }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_as_json_is_one_object() {
        let error = CliError::new(ErrorCode::FileEmpty, "`a` is empty").help("put a job in it");
        assert_eq!(
            json_error(&error),
            r#"{"error":{"code":"FileEmpty","message":"`a` is empty","help":"put a job in it"}}"#
        );
    }

    #[test]
    fn without_colour_text_stays_as_it_is() {
        assert_eq!(Paint::OFF.wrong("error:"), "error:");
        assert_eq!(Paint { is_on: true }.advice("x"), "\u{1b}[36mx\u{1b}[0m");
    }

    #[test]
    fn foreign_text_cant_speak_to_the_terminal_and_our_colours_can() {
        let text = format!("{} a\x1b[2Jb\u{9b}31m\nc\u{202e}d\u{7}", Paint { is_on: true }.wrong("error:"));
        let want = "\x1b[1;31merror:\x1b[0m a\\u{1b}[2Jb\\u{9b}31m\nc\\u{202e}d\\u{7}";
        assert_eq!(lines_shown(&text), want);
    }
}

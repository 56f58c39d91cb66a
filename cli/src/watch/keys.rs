//! What a key does.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Something that a person wants of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// To leave.
    Quit,
    /// The help, or to leave it.
    Help,
    /// To stop reading, or to go on.
    Pause,
    /// To read now.
    Refresh,
    /// To type a filter.
    Filter,
    /// Another order of the jobs.
    Order,
    /// Other states of the jobs.
    Show,
    /// To go so many jobs down, or up.
    Move(isize),
    /// The first job.
    First,
    /// The last job.
    Last,
    /// Away with the help, the filter.
    Clear,
    /// A letter of the filter.
    Letter(char),
    /// The last letter of the filter away.
    Erase,
    /// The filter is as wanted.
    Accept,
}

/// Jobs that a page up or down goes.
const PAGE: isize = 10;

/// The keys, each with what it does, for the help.
pub const HELP: [(&str, &str); 10] = [
    ("↑ ↓  k j", "select a job; its reason is shown"),
    ("PgUp PgDn", "ten jobs up, down"),
    ("g G", "the first job, the last"),
    ("/", "filter (name, id, tier, pool, state): Enter keeps, Esc drops"),
    ("s", "show all jobs, those that wait, those that run"),
    ("o", "order by urgency, by wait, by GPUs"),
    ("p Space", "pause reading, go on"),
    ("r", "read now"),
    ("?", "this help"),
    ("q Esc Ctrl-C", "leave"),
];

/// What a key means; `is_typing` while a filter is typed.
#[must_use]
pub fn meaning(key: KeyEvent, is_typing: bool) -> Option<Wanted> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Wanted::Quit);
    }
    if is_typing {
        return match key.code {
            KeyCode::Char(letter) => Some(Wanted::Letter(letter)),
            KeyCode::Backspace => Some(Wanted::Erase),
            KeyCode::Enter => Some(Wanted::Accept),
            KeyCode::Esc => Some(Wanted::Clear),
            _ => None,
        };
    }
    Some(match key.code {
        KeyCode::Char('q') => Wanted::Quit,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => Wanted::Help,
        KeyCode::Char('p' | ' ') => Wanted::Pause,
        KeyCode::Char('r') => Wanted::Refresh,
        KeyCode::Char('/') => Wanted::Filter,
        KeyCode::Char('o') => Wanted::Order,
        KeyCode::Char('s') => Wanted::Show,
        KeyCode::Char('j') | KeyCode::Down => Wanted::Move(1),
        KeyCode::Char('k') | KeyCode::Up => Wanted::Move(-1),
        KeyCode::PageDown => Wanted::Move(PAGE),
        KeyCode::PageUp => Wanted::Move(-PAGE),
        KeyCode::Char('g') | KeyCode::Home => Wanted::First,
        KeyCode::Char('G') | KeyCode::End => Wanted::Last,
        KeyCode::Esc => Wanted::Clear,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_typed_into_a_filter_and_ctrl_c_leaves_even_there() {
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(meaning(key(KeyCode::Char('q')), false), Some(Wanted::Quit));
        assert_eq!(meaning(key(KeyCode::Char('q')), true), Some(Wanted::Letter('q')));
        let leave = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(meaning(leave, true), Some(Wanted::Quit));
        assert_eq!(meaning(key(KeyCode::F(9)), false), None);
    }
}

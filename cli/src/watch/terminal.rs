//! The terminal: taking it over, drawing on it, and giving it back as it was, whatever happens.

use std::io::{self, Stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event as Input, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};

use super::keys;
use super::look::Look;
use super::reader::Reader;
use super::state::{Event, State};
use super::view::draw;
use crate::error::CliError;

/// How long a key is waited for before it is looked whether anything was read.
const TICK: Duration = Duration::from_millis(50);

/// Whether the terminal is ours.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back, once.
fn restore() {
    if IS_TAKEN.swap(false, Ordering::AcqRel) {
        // Nothing is left to do where that fails.
        let _ = disable_raw_mode();
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    }
}

/// The terminal while it is ours.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    fn take() -> io::Result<Self> {
        IS_TAKEN.store(true, Ordering::Release);
        let before = std::panic::take_hook();
        // What a panic says has to be seen, in whichever thread it is.
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(io::stdout()))? })
    }

    fn draw(&mut self, state: &State, look: Look) -> io::Result<()> {
        self.terminal.draw(|frame| draw(state, look, frame.area(), frame.buffer_mut()))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Shows a pipeline until a person has seen enough, or `asked` says that a signal came.
///
/// # Errors
/// When the terminal can't be used, or reading has ended.
pub fn show(reader: &Reader, look: Look, asked: &Arc<AtomicBool>) -> Result<(), CliError> {
    let mut state = State::new(reader.place.clone());
    let mut wish = state.wish();
    let mut screen = Screen::take()?;
    let mut is_new = true;
    while !state.has_ended && !asked.load(Ordering::Acquire) {
        is_new |= take_read(reader, &mut state)?;
        if is_new {
            screen.draw(&state, look)?;
        }
        is_new = take_keys(&mut state)?;
        let now = state.wish();
        if now != wish {
            // A reader that has gone is told of above.
            let _ = reader.wishes.send(now.clone());
            wish = now;
        }
    }
    Ok(())
}

/// Takes in what was read; whether anything was.
fn take_read(reader: &Reader, state: &mut State) -> Result<bool, CliError> {
    let mut is_new = false;
    loop {
        match reader.events.try_recv() {
            Ok(event) => state.take(event),
            Err(TryRecvError::Empty) => return Ok(is_new),
            Err(TryRecvError::Disconnected) => {
                return Err(CliError::failed("reading has ended for good: a fault of Osprey"));
            }
        }
        is_new = true;
    }
}

/// Takes in the keys that were pressed, and waits a moment for the first; whether there is anything new to draw.
fn take_keys(state: &mut State) -> io::Result<bool> {
    let mut is_new = false;
    let mut patience = TICK;
    while !state.has_ended && event::poll(patience)? {
        match event::read()? {
            Input::Key(key) if key.kind != KeyEventKind::Release => {
                if let Some(wanted) = keys::meaning(key, state.is_typing) {
                    state.take(Event::Wanted(wanted));
                    is_new = true;
                }
            }
            Input::Resize(..) => is_new = true,
            _ => {}
        }
        patience = Duration::ZERO;
    }
    Ok(is_new)
}

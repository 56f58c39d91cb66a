//! The view at three sizes, as it was and as it is. `OSPREY_BLESS=1` writes what is drawn now into the files.

use std::path::PathBuf;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;

use super::keys::Wanted;
use super::look::Look;
use super::scene;
use super::state::{Event, State};
use super::view::{HEIGHT_MIN, WIDTH_MIN, draw, view};

const COLOURED: Look = Look { has_colours: true };
const PLAIN: Look = Look { has_colours: false };

fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let line = |y| {
        let cells = (0..area.width).filter_map(|x| buffer.cell((x, y))).map(ratatui::buffer::Cell::symbol);
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    (0..area.height).map(line).collect()
}

/// What a terminal of a size shows.
fn drawn(state: &State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(state, PLAIN, frame.area(), frame.buffer_mut())).unwrap();
    text(terminal.backend().buffer())
}

fn check(name: &str, now: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/watch/golden").join(format!("{name}.txt"));
    if std::env::var_os("OSPREY_BLESS").is_some() {
        std::fs::write(&path, now).unwrap();
    }
    let was = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(was, now, "{} differs; OSPREY_BLESS=1 accepts what is drawn now", path.display());
}

#[test]
fn the_view_is_as_it_was_at_three_sizes() {
    let state = scene::state();
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        check(&format!("{width}x{height}"), &drawn(&state, width, height));
    }
}

#[test]
fn help_filter_pause_and_faults_are_shown() {
    let mut state = scene::state();
    state.take(Event::Wanted(Wanted::Help));
    check("help", &drawn(&state, 80, 24));
    state.take(Event::Wanted(Wanted::Help));
    state.take(Event::Wanted(Wanted::Pause));
    state.take(Event::Wanted(Wanted::Filter));
    "zz".chars().for_each(|letter| state.take(Event::Wanted(Wanted::Letter(letter))));
    state.take(Event::Failed("the table can't be reached: no route".to_owned()));
    check("fault", &drawn(&state, 80, 24));
}

#[test]
fn before_the_first_reading_it_says_that_it_reads() {
    let shown = drawn(&State::new("stack `osprey`"), 80, 24);
    assert!(shown.contains("osprey watch") && shown.contains("reading …"), "{shown}");
}

#[test]
fn a_terminal_that_is_too_small_is_told_in_a_sentence_with_the_way_out() {
    for (width, height) in [(WIDTH_MIN - 1, 40), (100, HEIGHT_MIN - 1), (30, 8)] {
        let shown = drawn(&scene::state(), width, height);
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let want = format!(
            "{width}×{height} is too small for this view, which takes 60×16: enlarge the terminal, or leave with q and take `osprey queue`"
        );
        assert_eq!(words, want);
    }
}

#[test]
fn no_size_makes_it_fail_and_nothing_is_drawn_outside() {
    let mut state = scene::state();
    for help in [false, true] {
        state.has_help = help;
        for (width, height) in
            [(0, 0), (1, 1), (60, 16), (61, 17), (79, 23), (129, 16), (130, 16), (131, 25), (400, 200)]
        {
            let buffer = view(&state, COLOURED, Rect::new(0, 0, width, height));
            assert_eq!(buffer.area, Rect::new(0, 0, width, height));
        }
    }
}

#[test]
fn without_colours_there_is_none() {
    let cells = |look| view(&scene::state(), look, Rect::new(0, 0, 120, 40));
    let has_colour =
        |buffer: &Buffer| buffer.content().iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
    assert!(has_colour(&cells(COLOURED)));
    assert!(!has_colour(&cells(PLAIN)));
    assert_eq!(text(&cells(COLOURED)), text(&cells(PLAIN)), "nothing is said by a colour alone");
}

//! Colours and signs. The colours are those of Okabe and Ito, which people of every colour vision tell apart, as the
//! nearest of the 256 that terminals have; nothing is said by a colour alone.

use osprey_model::job::JobState;
use ratatui::style::{Color, Modifier, Style};

use super::feed::Kind;

/// How things look: with colours or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether there are colours.
    pub has_colours: bool,
}

/// Blue.
const BLUE: Color = Color::Indexed(32);
/// Sky blue.
const SKY: Color = Color::Indexed(74);
/// Bluish green.
const GREEN: Color = Color::Indexed(36);
/// Orange.
const ORANGE: Color = Color::Indexed(214);
/// Vermilion.
const VERMILION: Color = Color::Indexed(202);
/// Reddish purple.
const PURPLE: Color = Color::Indexed(175);
/// What steps back.
const GREY: Color = Color::Indexed(245);

impl Look {
    fn of(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// Plain text.
    #[must_use]
    pub fn plain(self) -> Style {
        Style::new()
    }

    /// What counts.
    #[must_use]
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What steps back.
    #[must_use]
    pub fn faint(self) -> Style {
        if self.has_colours { self.of(GREY) } else { Style::new().add_modifier(Modifier::DIM) }
    }

    /// A heading of a part.
    #[must_use]
    pub fn heading(self) -> Style {
        self.of(SKY).add_modifier(Modifier::BOLD)
    }

    /// GPUs that are taken.
    #[must_use]
    pub fn taken(self) -> Style {
        self.of(BLUE)
    }

    /// GPUs that are free and kept for some.
    #[must_use]
    pub fn kept(self) -> Style {
        self.of(PURPLE)
    }

    /// What somebody should look at.
    #[must_use]
    pub fn alarming(self) -> Style {
        self.of(VERMILION).add_modifier(Modifier::BOLD)
    }

    /// The job that is selected.
    #[must_use]
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A state of a job.
    #[must_use]
    pub fn state(self, state: JobState) -> Style {
        match state {
            JobState::Running => self.of(GREEN),
            JobState::Claimed | JobState::Submitted => self.of(SKY),
            JobState::Queued => self.of(ORANGE),
            _ => self.faint(),
        }
    }

    /// A kind of what happens.
    #[must_use]
    pub fn kind(self, kind: Kind) -> Style {
        match kind {
            Kind::Started | Kind::Succeeded => self.of(GREEN),
            Kind::Sent => self.of(SKY),
            Kind::MakesRoom | Kind::Evicted => self.of(PURPLE).add_modifier(Modifier::BOLD),
            Kind::Back => self.of(ORANGE),
            Kind::Failed => self.alarming(),
            Kind::Came | Kind::Held => self.plain(),
        }
    }
}

/// The sign of a state.
#[must_use]
pub fn sign(state: JobState) -> &'static str {
    match state {
        JobState::Running => "●",
        JobState::Claimed | JobState::Submitted => "→",
        JobState::Queued => "○",
        JobState::Waiting => "◇",
        _ => "·",
    }
}

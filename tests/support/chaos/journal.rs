//! What happened, as a number that two equal runs share and, when asked for, as a story.

use std::fmt::Write as _;

/// The account of a run.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    hash: u64,
    story: Option<String>,
}

/// The prime of FNV-1a.
const PRIME: u64 = 0x0100_0000_01b3;

impl Journal {
    /// An empty account, with or without a story.
    #[must_use]
    pub fn new(with_story: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, story: with_story.then(String::new) }
    }

    /// Takes a number into the hash.
    pub fn number(&mut self, number: u64) {
        self.hash = (self.hash.rotate_left(5) ^ number).wrapping_mul(PRIME);
    }

    /// Takes a text into the hash, eight bytes at a time.
    pub fn text(&mut self, text: &str) {
        let mut chunks = text.as_bytes().chunks_exact(8);
        for chunk in &mut chunks {
            let bytes: [u8; 8] = chunk.try_into().unwrap_or_default();
            self.number(u64::from_le_bytes(bytes));
        }
        for byte in chunks.remainder() {
            self.number(u64::from(*byte));
        }
        self.number(text.len() as u64);
    }

    /// Tells a line of the story.
    pub fn tell(&mut self, now: i64, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            let (seconds, ms) = (now / 1000, now % 1000);
            let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            let _ = writeln!(story, "{hours:02}:{minutes:02}:{seconds:02}.{ms:03}  {}", line());
        }
    }

    /// The hash of everything so far.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The story, when one was asked for.
    #[must_use]
    pub fn into_story(self) -> Option<String> {
        self.story
    }
}

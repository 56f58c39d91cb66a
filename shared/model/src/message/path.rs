//! Where in a body something stands: `containerOverrides.resourceRequirements[0].value`.

use std::fmt::{self, Write as _};

/// A path that grows on the way in and shrinks on the way out.
#[derive(Debug, Default)]
pub(super) struct Path(String);

/// The length to go back to.
#[derive(Clone, Copy)]
pub(super) struct Mark(usize);

impl Path {
    /// Goes into a member of an object.
    pub(super) fn enter_member(&mut self, name: &str) -> Mark {
        let mark = Mark(self.0.len());
        if !self.0.is_empty() {
            self.0.push('.');
        }
        self.0.push_str(name);
        mark
    }

    /// Goes into an element of a list.
    pub(super) fn enter_index(&mut self, index: usize) -> Mark {
        let mark = Mark(self.0.len());
        // Writing into a text can't fail.
        let _ = write!(self.0, "[{index}]");
        mark
    }

    /// Goes back to where `mark` was made.
    pub(super) fn leave(&mut self, mark: Mark) {
        self.0.truncate(mark.0);
    }

    /// The path of a member of what the path stands at.
    pub(super) fn member(&self, name: &str) -> String {
        if self.0.is_empty() { name.to_owned() } else { format!("{}.{name}", self.0) }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

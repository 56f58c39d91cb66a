//! What is wrong with a policy file, and what is merely odd: place, code, sentence, way out.

use std::fmt;

use osprey_model::message::words::nearest;

/// A mistake that keeps a policy from being used.
///
/// The sentence is lower case without a final period, with what the file says in backticks; the help is separate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// Where in the structure, such as `rule[3].when`; lists count from 0. Empty for the file as a whole.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What kind of mistake; stable.
    pub code: PolicyErrorCode,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl std::error::Error for PolicyError {}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The help has a line of its own wherever errors are shown.
        let Self { path, line, column, code, message, help: _ } = self;
        let separator = if path.is_empty() { "" } else { ": " };
        write!(f, "{line}:{column}: {path}{separator}{message} ({code})")
    }
}

/// Something that is allowed and yet probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where in the structure, such as `rule[3]`; lists count from 0.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What is odd.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, column, message } = self;
        write!(f, "{line}:{column}: {path}: {message}")
    }
}

/// What kind of mistake; a code is never renamed or given another meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PolicyErrorCode {
    /// The text is longer than a policy may be.
    TooLarge,
    /// The text is no TOML.
    TomlSyntax,
    /// A key that doesn't exist.
    UnknownKey,
    /// A key that must be there and isn't.
    MissingKey,
    /// Keys that exclude each other.
    ConflictingKeys,
    /// A value of another type than the key takes.
    WrongType,
    /// A value of the right type that means nothing.
    InvalidValue,
    /// A number outside its range.
    OutOfRange,
    /// A name or id that is taken.
    Duplicate,
    /// Thresholds of tiers that don't fall, or that leave numbers without a tier.
    TierOrder,
    /// A tier that isn't in the file.
    UnknownTier,
    /// A rule that isn't in the file.
    UnknownRule,
    /// An expression that can't be read.
    ExprSyntax,
    /// An expression that is too long or too deep.
    ExprTooLarge,
    /// A part of CEL that policies don't have.
    ExprUnsupported,
    /// A fact that doesn't exist.
    UnknownFact,
    /// A function that doesn't exist.
    UnknownFunction,
    /// Values that don't go together, or an expression of the wrong type.
    TypeMismatch,
    /// A fact that may be absent, read without `has`.
    UnguardedFact,
    /// A test that can't fail.
    VacuousTest,
}

impl fmt::Display for PolicyErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The help that names the nearest known word, when one is near enough to be meant.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|candidate| format!("did you mean `{candidate}`?"))
}

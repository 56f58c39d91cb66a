//! The types of expressions.

use crate::schema::FactKind;

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    One(FactKind),
    List(FactKind),
}

impl Type {
    pub fn is_number(self) -> bool {
        matches!(self, Self::One(FactKind::Int | FactKind::Number))
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::One(kind) => kind.fmt(f),
            Self::List(_) => f.write_str("a list"),
        }
    }
}

pub(super) const BOOL: Type = Type::One(FactKind::Bool);
pub(super) const INT: Type = Type::One(FactKind::Int);
pub(super) const TEXT: Type = Type::One(FactKind::Text);

/// Several values of a kind.
pub(super) fn plural(kind: FactKind) -> &'static str {
    match kind {
        FactKind::Bool => "truth values",
        FactKind::Int => "whole numbers",
        FactKind::Number => "numbers",
        FactKind::Text => "texts",
    }
}

//! CEL behind one door: an expression is read, checked and compiled once, and evaluated as often as there are jobs.
//!
//! The language is CEL's core: `&& || ! ?: == != < <= > >= + - * / % in has() []`, literals and lists, and the
//! functions of [`check`]. Facts are bound as variables of their whole dotted name, so that an absent one can be told
//! from an empty one, and every whole number is a signed one: CEL has no arithmetic between signed and unsigned.

mod check;
mod guard;
mod hint;
mod kind;
mod range;
mod syntax;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::common::types::{CelBool, CelDouble, CelInt, CelString};
use cel::common::value::CowVal;
use cel::context::VariableResolver;
use cel::{Context, Env, ExecutionError, Value};
use osprey_model::decision::FactValue;
use osprey_model::facts::Facts;

use crate::problem::PolicyErrorCode;
use crate::schema::{self, Fact};

/// Longest expression in bytes. A rule that needs more says several things and reads better as several rules.
pub(crate) const EXPR_BYTES_MAX: usize = 2_000;

/// Deepest nesting. The parser bounds parentheses at 96 by itself, but not chains such as `1+1+…`, and evaluation
/// recurses: this keeps it far from the end of a small stack.
pub(crate) const EXPR_DEPTH_MAX: usize = 64;

/// What an expression must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Bool,
    Int,
}

/// Facts that are known to be there.
pub(crate) type Guards = BTreeSet<String>;

/// A mistake in an expression, at a byte offset of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExprError {
    pub offset: usize,
    pub code: PolicyErrorCode,
    pub message: String,
    pub help: Option<String>,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    node: IdedExpr,
    reads: Vec<FactRef>,
    /// Facts that are there whenever the expression is true.
    pub proves: Guards,
}

/// A fact that an expression reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FactRef {
    name: String,
    source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// The place in the table of facts.
    Table(usize),
    /// The key of a tag.
    Tag(String),
}

impl FactRef {
    fn known(name: &str) -> Option<(Self, &'static Fact)> {
        let index = schema::FACTS.iter().position(|fact| fact.name == name)?;
        Some((Self { name: name.to_owned(), source: Source::Table(index) }, schema::FACTS.get(index)?))
    }

    fn tag(key: &str) -> Self {
        Self { name: format!("{}.{key}", schema::TAGS), source: Source::Tag(key.to_owned()) }
    }

    fn value(&self, facts: &Facts) -> FactValue {
        match &self.source {
            Source::Table(index) => schema::FACTS.get(*index).map_or(FactValue::Absent, |fact| fact.read(facts)),
            Source::Tag(key) => facts.job.tags.get(key).map_or(FactValue::Absent, |text| FactValue::Text(text.clone())),
        }
    }
}

/// The variable that says whether a fact is there. No fact's name has a parenthesis, so the two can't meet.
fn presence(name: &str) -> String {
    format!("has({name})")
}

/// The functions of CEL, those of its mathematical extension for `min` and `max` included.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::default().with_optional_support(false).with_stdlib();
    // INVARIANT: the extension declares nothing that the standard library has; a test uses `min` and `max`.
    drop(env.add_extension(cel::extensions::math));
    Arc::new(env)
});

/// A parser without macros: `has` is ours, and the loops are refused by name.
fn parser() -> cel::parser::Parser {
    Env::default().with_optional_support(false).parser()
}

impl Expr {
    /// Reads, checks and compiles an expression; all mistakes that can be told at once.
    pub fn compile(text: &str, wanted: Wanted, guards: &Guards) -> Result<Self, Vec<ExprError>> {
        if text.len() > EXPR_BYTES_MAX {
            return Err(vec![too_long(text.len())]);
        }
        let parsed = parser().parse_with_source_info(text);
        let (mut node, source) = parsed.map_err(|errors| vec![syntax::error(text, &errors)])?;
        let proves = guard::proves(&node, true);
        let reads = check::check(&mut node, &source, wanted, guards)?;
        Ok(Self { node, reads, proves })
    }

    /// The facts it reads, with their values.
    pub fn because(&self, facts: &Facts) -> BTreeMap<String, FactValue> {
        self.reads.iter().map(|fact| (fact.name.clone(), fact.value(facts))).collect()
    }

    /// Whether it says the same of every job.
    pub fn is_constant(&self) -> bool {
        self.reads.is_empty()
    }

    /// True or false, or why it can't be told.
    pub fn holds(&self, values: &BTreeMap<String, FactValue>) -> Result<bool, String> {
        match self.evaluate(values)? {
            Value::Bool(holds) => Ok(holds),
            _ => Err("the condition is neither true nor false".to_owned()),
        }
    }

    /// The amount, or why it can't be told.
    pub fn amount(&self, values: &BTreeMap<String, FactValue>) -> Result<i64, String> {
        match self.evaluate(values)? {
            Value::Int(amount) => Ok(amount),
            _ => Err("the amount is no whole number".to_owned()),
        }
    }

    /// Between which numbers the amount lies, whatever the job.
    pub fn range(&self) -> range::Range {
        range::range(&self.node)
    }

    fn evaluate(&self, values: &BTreeMap<String, FactValue>) -> Result<Value, String> {
        let bound = Bound { values };
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        context.set_variable_resolver(&bound);
        Value::resolve(&self.node, &context).map_err(|error| sentence(&error))
    }
}

fn too_long(bytes: usize) -> ExprError {
    ExprError {
        offset: 0,
        code: PolicyErrorCode::ExprTooLarge,
        message: format!("the expression has {bytes} bytes, more than {EXPR_BYTES_MAX}"),
        help: Some("split it into several rules".to_owned()),
    }
}

/// What went wrong, in our words where the cause is a user's.
fn sentence(error: &ExecutionError) -> String {
    match error {
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "division by zero".to_owned(),
        ExecutionError::Overflow(..) => "a number beyond 64 bits".to_owned(),
        // The types were checked, so only `NaN` is left that can't be compared.
        ExecutionError::ValuesNotComparable(..) | ExecutionError::NoSuchOverload(_) => "a fact is no number".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("`{name}` is absent"),
        other => format!("it can't be evaluated: {other}"),
    }
}

/// The facts of one job as CEL's variables.
struct Bound<'a> {
    values: &'a BTreeMap<String, FactValue>,
}

impl VariableResolver for Bound<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        if let Some(name) = variable.strip_prefix("has(").and_then(|rest| rest.strip_suffix(')')) {
            let there = self.values.get(name).is_some_and(|value| *value != FactValue::Absent);
            return Some(CowVal::owned(CelBool::from(there)));
        }
        match self.values.get(variable)? {
            FactValue::Absent => schema::find(variable)?.substitute().and_then(owned),
            FactValue::Text(text) => Some(CowVal::owned(CelString::from(text.as_str()))),
            other => owned(other.clone()),
        }
    }
}

fn owned<'b>(value: FactValue) -> Option<CowVal<'b, 'b>> {
    match value {
        FactValue::Bool(value) => Some(CowVal::owned(CelBool::from(value))),
        FactValue::Int(value) => Some(CowVal::owned(CelInt::from(value))),
        FactValue::Number(value) => Some(CowVal::owned(CelDouble::from(value))),
        FactValue::Text(value) => Some(CowVal::owned(CelString::from(value))),
        FactValue::Absent | FactValue::List(_) => None,
    }
}

#[cfg(test)]
mod tests;

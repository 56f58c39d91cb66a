//! The static check: every fact and function is known, every operator gets values that it takes, and no fact that may
//! be absent is read without a guard. What passes can still fail by dividing by zero, beyond 64 bits, or
//! for a fact that is no number, and in no other way.
//!
//! The check also compiles: a fact becomes one variable of its dotted name, and literals such as `size("1TB")` numbers.

use cel::common::ast::{CallExpr, Expr, IdedExpr, ListExpr, LiteralValue, SourceInfo, operators};
use cel::common::types::CelInt;
use osprey_model::metadata::{parse_duration, parse_size};

use super::guard::proves;
use super::hint::{FUNCTIONS, fact_help, function_help, sign, usage};
use super::kind::{BOOL, INT, TEXT, Type, plural};
use super::{EXPR_DEPTH_MAX, ExprError, FactRef, Guards, Wanted, presence};
use crate::problem::PolicyErrorCode as Code;
use crate::schema::{FactKind, ROOTS, TAGS, WhenAbsent};

/// Checks and compiles in place; the facts read, or every mistake.
pub(super) fn check(
    node: &mut IdedExpr,
    source: &SourceInfo,
    wanted: Wanted,
    guards: &Guards,
) -> Result<Vec<FactRef>, Vec<ExprError>> {
    let mut checker = Checker { source, guards: guards.clone(), reads: Vec::new(), errors: Vec::new() };
    let start = checker.start(node);
    let found = checker.node(node, 0);
    checker.wanted(start, wanted, found);
    checker.errors.sort_by_key(|error| error.offset);
    if checker.errors.is_empty() { Ok(checker.reads) } else { Err(checker.errors) }
}

/// `a.b.c` as text, when the expression is that.
pub(super) fn dotted(node: &IdedExpr) -> Option<String> {
    match &node.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => Some(format!("{}.{}", dotted(&select.operand)?, select.field)),
        _ => None,
    }
}

/// The key of `job.tags["key"]` and of `job.tags.key`.
pub(super) fn tag_key(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Select(select) if dotted(&select.operand).as_deref() == Some(TAGS) => Some(&select.field),
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::INDEX, [map, key]) if dotted(map).as_deref() == Some(TAGS) => text_literal(key),
            _ => None,
        },
        _ => None,
    }
}

/// The text of a text in quotes.
pub(super) fn text_literal(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

struct Checker<'a> {
    source: &'a SourceInfo,
    guards: Guards,
    reads: Vec<FactRef>,
    errors: Vec<ExprError>,
}

impl Checker<'_> {
    /// Records a mistake. `None` stands for an unknown type, so that one mistake isn't reported at every level above.
    fn error<T>(&mut self, offset: usize, code: Code, message: String, help: Option<String>) -> Option<T> {
        self.errors.push(ExprError { offset, code, message, help });
        None
    }

    fn wanted(&mut self, start: usize, wanted: Wanted, found: Option<Type>) {
        let (type_, what, help) = match wanted {
            Wanted::Bool => (BOOL, "a condition", "compare it with something"),
            Wanted::Int => (INT, "an amount", "compute with whole numbers"),
        };
        if let Some(found) = found.filter(|found| *found != type_) {
            let message = format!("{what} must be {type_}, not {found}");
            self.error::<()>(start, Code::TypeMismatch, message, Some(help.to_owned()));
        }
    }

    /// Where the node's own sign stands.
    fn offset(&self, node: &IdedExpr) -> usize {
        self.source.offset_for(node.id).map_or(0, |(start, _)| usize::try_from(start).unwrap_or(0))
    }

    /// Where the first character of the node and all below it stands.
    fn start(&self, node: &IdedExpr) -> usize {
        let below = match &node.expr {
            Expr::Select(select) => self.start(&select.operand),
            Expr::Call(call) => {
                call.target.as_deref().or(call.args.first()).map_or(usize::MAX, |first| self.start(first))
            }
            _ => usize::MAX,
        };
        let name = match &node.expr {
            // A call stands at its parenthesis.
            Expr::Call(call) if call.target.is_none() && FUNCTIONS.contains(&call.func_name.as_str()) => {
                call.func_name.len()
            }
            _ => 0,
        };
        self.offset(node).saturating_sub(name).min(below)
    }

    /// The type of a node, which is compiled in passing.
    fn node(&mut self, node: &mut IdedExpr, depth: usize) -> Option<Type> {
        if depth > EXPR_DEPTH_MAX {
            let message = format!("the expression is nested deeper than {EXPR_DEPTH_MAX}");
            let help = Some("split it into several rules".to_owned());
            let known = self.errors.iter().any(|error| error.code == Code::ExprTooLarge);
            return if known { None } else { self.error(0, Code::ExprTooLarge, message, help) };
        }
        if let Some(key) = tag_key(node).map(ToOwned::to_owned) {
            return self.tag(node, &key);
        }
        match &mut node.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Some(BOOL),
                LiteralValue::Int(_) => Some(INT),
                LiteralValue::Double(_) => Some(Type::One(FactKind::Number)),
                LiteralValue::String(_) => Some(TEXT),
                LiteralValue::UInt(_) => self.unsupported(node, "an unsigned number", "leave the `u` away"),
                LiteralValue::Null => self.unsupported(node, "`null`", "ask with `has`"),
                LiteralValue::Bytes(_) => self.unsupported(node, "bytes", "leave the `b` away"),
            },
            Expr::Ident(_) | Expr::Select(_) => self.fact(node),
            Expr::List(_) => self.list(node, depth),
            Expr::Call(_) => self.call(node, depth),
            Expr::Map(_) | Expr::Struct(_) => self.unsupported(node, "a map", "compare facts with single values"),
            Expr::Comprehension(_) | Expr::Unspecified => self.unsupported(node, "a loop", "write the cases out"),
        }
    }

    fn unsupported(&mut self, node: &IdedExpr, what: &str, help: &str) -> Option<Type> {
        let message = format!("{what} is not part of the policy language");
        self.error(self.start(node), Code::ExprUnsupported, message, Some(help.to_owned()))
    }

    fn fact(&mut self, node: &mut IdedExpr) -> Option<Type> {
        let start = self.start(node);
        let Some(name) = dotted(node) else {
            return self.unsupported(node, "a member of a value", "facts are `job.gpus` and the like");
        };
        let Some((reference, fact)) = FactRef::known(&name) else { return self.unknown_fact(start, &name) };
        if fact.when_absent == WhenAbsent::Guarded && !self.guards.contains(&name) {
            return self.unguarded(start, &name);
        }
        self.read(reference);
        node.expr = Expr::Ident(name);
        Some(Type::One(fact.kind))
    }

    fn tag(&mut self, node: &mut IdedExpr, key: &str) -> Option<Type> {
        let start = self.start(node);
        let reference = FactRef::tag(key);
        if !self.guards.contains(&reference.name) {
            let as_written = if matches!(node.expr, Expr::Select(_)) {
                format!("{TAGS}.{key}")
            } else {
                format!("{TAGS}[\"{key}\"]")
            };
            return self.unguarded(start, &as_written);
        }
        node.expr = Expr::Ident(reference.name.clone());
        self.read(reference);
        Some(TEXT)
    }

    fn read(&mut self, reference: FactRef) {
        if !self.reads.contains(&reference) {
            self.reads.push(reference);
        }
    }

    fn unguarded(&mut self, start: usize, name: &str) -> Option<Type> {
        let message = format!("`{name}` may be absent");
        self.error(start, Code::UnguardedFact, message, Some(format!("write `has({name}) && …` in the same condition")))
    }

    fn unknown_fact(&mut self, start: usize, name: &str) -> Option<Type> {
        let message = match name {
            _ if name == TAGS => format!("`{name}` is no value"),
            _ if ROOTS.contains(&name) => format!("`{name}` is no fact by itself"),
            _ => format!("unknown fact `{name}`"),
        };
        self.error(start, Code::UnknownFact, message, Some(fact_help(name)))
    }

    fn list(&mut self, node: &mut IdedExpr, depth: usize) -> Option<Type> {
        let start = self.offset(node);
        let Expr::List(ListExpr { elements, .. }) = &mut node.expr else { return None };
        let types: Vec<_> = elements.iter_mut().map(|element| self.node(element, depth + 1)).collect();
        match types.split_first() {
            None => {
                self.error(start, Code::TypeMismatch, "an empty list".to_owned(), Some("nothing is in it".to_owned()))
            }
            Some((Some(Type::One(kind)), rest)) if rest.iter().all(|type_| *type_ == Some(Type::One(*kind))) => {
                Some(Type::List(*kind))
            }
            Some(_) if types.contains(&None) => None,
            Some(_) => {
                let message = "a list of values that aren't of one type".to_owned();
                self.error(start, Code::TypeMismatch, message, None)
            }
        }
    }

    fn call(&mut self, node: &mut IdedExpr, depth: usize) -> Option<Type> {
        let at = self.offset(node);
        let start = self.start(node);
        let Expr::Call(call) = &mut node.expr else { return None };
        let name = call.func_name.clone();
        let operands = (name.as_str(), call.target.is_some(), call.args.len());
        match operands {
            (operators::LOGICAL_AND, false, 2) => self.logic(call, depth, true),
            (operators::LOGICAL_OR, false, 2) => self.logic(call, depth, false),
            (operators::LOGICAL_NOT, false, 1) => self.operand(call, depth, "`!`", at, BOOL),
            (operators::NEGATE, false, 1) => self.negation(call, depth, at),
            (operators::CONDITIONAL, false, 3) => self.conditional(call, depth, at),
            (operators::EQUALS | operators::NOT_EQUALS, false, 2) => self.equality(call, depth, at),
            (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, false, 2) => {
                self.comparison(call, depth, at)
            }
            (
                operators::ADD | operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO,
                false,
                2,
            ) => self.arithmetic(call, depth, at),
            (operators::IN, false, 2) => self.membership(node, depth, at),
            (operators::HAS, false, 1) => self.has(node, start),
            ("duration" | "size", false, 1) if is_literal(call) => self.measure(node, &name),
            ("size" | "len", false, 1) => self.length(call, depth, start),
            ("min" | "max", false, 2..) => self.extreme(call, depth, start),
            ("startsWith" | "endsWith" | "contains", true, 1) => self.text_method(call, depth, start),
            _ => self.unknown_function(call, at),
        }
    }

    /// `&&` and `||`. What one side proves, the other may rely on, in either order: CEL forgives an error on one side
    /// when the other decides.
    fn logic(&mut self, call: &mut CallExpr, depth: usize, truth: bool) -> Option<Type> {
        let [left, right] = call.args.as_mut_slice() else { return None };
        let (by_left, by_right) = (proves(left, truth), proves(right, truth));
        for (operand, proven) in [(left, by_right), (right, by_left)] {
            let start = self.start(operand);
            let found = self.with_guards(proven, |checker| checker.node(operand, depth + 1));
            self.expect(start, if truth { "`&&`" } else { "`||`" }, BOOL, found);
        }
        Some(BOOL)
    }

    fn with_guards<T>(&mut self, more: Guards, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.guards.clone();
        self.guards.extend(more);
        let result = run(self);
        self.guards = before;
        result
    }

    fn expect(&mut self, offset: usize, what: &str, wanted: Type, found: Option<Type>) -> Option<()> {
        match found {
            Some(found) if found != wanted => {
                self.error(offset, Code::TypeMismatch, format!("{what} takes {wanted}, not {found}"), None)
            }
            _ => found.map(|_| ()),
        }
    }

    fn operand(&mut self, call: &mut CallExpr, depth: usize, what: &str, at: usize, wanted: Type) -> Option<Type> {
        let found = self.node(call.args.first_mut()?, depth + 1);
        self.expect(at, what, wanted, found).map(|()| wanted)
    }

    fn negation(&mut self, call: &mut CallExpr, depth: usize, at: usize) -> Option<Type> {
        let found = self.node(call.args.first_mut()?, depth + 1)?;
        if found.is_number() { Some(found) } else { self.expect(at, "`-`", INT, Some(found)).map(|()| found) }
    }

    fn conditional(&mut self, call: &mut CallExpr, depth: usize, at: usize) -> Option<Type> {
        let [condition, yes, no] = call.args.as_mut_slice() else { return None };
        let (if_true, if_false) = (proves(condition, true), proves(condition, false));
        let found = self.node(condition, depth + 1);
        self.expect(at, "`?`", BOOL, found);
        let yes = self.with_guards(if_true, |checker| checker.node(yes, depth + 1));
        let no = self.with_guards(if_false, |checker| checker.node(no, depth + 1));
        self.same(at, "`? :`", yes?, no?)
    }

    fn same(&mut self, at: usize, what: &str, left: Type, right: Type) -> Option<Type> {
        if left == right {
            return Some(left);
        }
        self.error(at, Code::TypeMismatch, format!("{what} can't take {left} and {right}"), None)
    }

    fn pair(&mut self, call: &mut CallExpr, depth: usize) -> (Option<Type>, Option<Type>) {
        let [left, right] = call.args.as_mut_slice() else { return (None, None) };
        (self.node(left, depth + 1), self.node(right, depth + 1))
    }

    fn equality(&mut self, call: &mut CallExpr, depth: usize, at: usize) -> Option<Type> {
        let number_in_quotes =
            call.args.iter().any(|arg| text_literal(arg).is_some_and(|text| text.parse::<f64>().is_ok()));
        let sign = sign(&call.func_name);
        let (left, right) = self.pair(call, depth);
        let (left, right) = (left?, right?);
        if left == right || (left.is_number() && right.is_number()) {
            return Some(BOOL);
        }
        let help = number_in_quotes.then(|| "leave the quotes away".to_owned());
        self.error(at, Code::TypeMismatch, format!("`{sign}` can't compare {left} with {right}"), help)
    }

    fn comparison(&mut self, call: &mut CallExpr, depth: usize, at: usize) -> Option<Type> {
        let sign = sign(&call.func_name);
        let (left, right) = self.pair(call, depth);
        if let Some(found) = [left?, right?].into_iter().find(|type_| !type_.is_number()) {
            return self.error(at, Code::TypeMismatch, format!("`{sign}` compares numbers, not {found}"), None);
        }
        Some(BOOL)
    }

    fn arithmetic(&mut self, call: &mut CallExpr, depth: usize, at: usize) -> Option<Type> {
        let sign = sign(&call.func_name);
        let by_zero = matches!(sign, "/" | "%") && call.args.get(1).is_some_and(is_zero);
        let (left, right) = self.pair(call, depth);
        let (left, right) = (left?, right?);
        if let Some(found) = [left, right].into_iter().find(|type_| !type_.is_number()) {
            return self.error(at, Code::TypeMismatch, format!("`{sign}` takes numbers, not {found}"), None);
        }
        if by_zero {
            return self.error(at, Code::InvalidValue, "division by zero".to_owned(), None);
        }
        if left != right {
            let help = Some("write `2.0` for the 2 that goes with fractions".to_owned());
            return self.error(at, Code::TypeMismatch, format!("`{sign}` can't take {left} and {right}"), help);
        }
        Some(left)
    }

    fn membership(&mut self, node: &mut IdedExpr, depth: usize, at: usize) -> Option<Type> {
        let Expr::Call(call) = &mut node.expr else { return None };
        let [item, list] = call.args.as_mut_slice() else { return None };
        if dotted(list).as_deref() == Some(TAGS) {
            let Some(reference) = text_literal(item).map(FactRef::tag) else {
                let help = Some(format!("write `\"cost-center\" in {TAGS}`"));
                return self.error(
                    at,
                    Code::TypeMismatch,
                    "the name of a tag must be a text in quotes".to_owned(),
                    help,
                );
            };
            node.expr = Expr::Ident(presence(&reference.name));
            self.read(reference);
            return Some(BOOL);
        }
        match (self.node(item, depth + 1)?, self.node(list, depth + 1)?) {
            (Type::One(item), Type::List(element)) if item == element => Some(BOOL),
            (item, Type::List(element)) => {
                let message = format!("`in` can't look for {item} in a list of {}", plural(element));
                self.error(at, Code::TypeMismatch, message, None)
            }
            (_, other) => {
                let help = Some("write a list such as `[\"a\", \"b\"]`".to_owned());
                self.error(at, Code::TypeMismatch, format!("`in` looks into a list, not into {other}"), help)
            }
        }
    }

    fn has(&mut self, node: &mut IdedExpr, start: usize) -> Option<Type> {
        let Expr::Call(call) = &node.expr else { return None };
        let argument = call.args.first()?;
        let reference = match (tag_key(argument), dotted(argument)) {
            (Some(key), _) => FactRef::tag(key),
            (None, Some(name)) => match FactRef::known(&name) {
                Some((reference, _)) => reference,
                None => return self.unknown_fact(self.start(argument), &name),
            },
            (None, None) => {
                let help = Some("write `has(job.sla)`".to_owned());
                return self.error(start, Code::TypeMismatch, "`has` takes a fact".to_owned(), help);
            }
        };
        node.expr = Expr::Ident(presence(&reference.name));
        self.read(reference);
        Some(BOOL)
    }

    /// `duration("4h")` is 14,400, and `size("1TB")` is 10¹².
    fn measure(&mut self, node: &mut IdedExpr, name: &str) -> Option<Type> {
        let Expr::Call(call) = &node.expr else { return None };
        let argument = call.args.first()?;
        let text = text_literal(argument)?;
        let value = if name == "duration" { parse_duration(text) } else { parse_size(text) };
        let Some(value) = value.ok().and_then(|value| i64::try_from(value).ok()) else {
            let help = if name == "duration" {
                "write `duration(\"4h30m\")`"
            } else {
                "write `size(\"500GB\")` or `size(\"2TiB\")`; a text's length is `len`"
            };
            return self.error(
                self.start(argument),
                Code::InvalidValue,
                format!("`{text}` is no {name}"),
                Some(help.to_owned()),
            );
        };
        node.expr = Expr::Literal(LiteralValue::Int(CelInt::from(value)));
        Some(INT)
    }

    fn length(&mut self, call: &mut CallExpr, depth: usize, start: usize) -> Option<Type> {
        let name = std::mem::replace(&mut call.func_name, "size".to_owned());
        match self.node(call.args.first_mut()?, depth + 1)? {
            TEXT | Type::List(_) => Some(INT),
            other => self.error(start, Code::TypeMismatch, format!("`{name}` takes text or a list, not {other}"), None),
        }
    }

    /// `min` and `max` become CEL's functions, which take a list.
    fn extreme(&mut self, call: &mut CallExpr, depth: usize, start: usize) -> Option<Type> {
        let name = std::mem::take(&mut call.func_name);
        let types: Vec<_> = call.args.iter_mut().map(|arg| self.node(arg, depth + 1)).collect();
        call.func_name = format!("math.@{name}");
        call.args = vec![IdedExpr { id: 0, expr: Expr::List(ListExpr::new(std::mem::take(&mut call.args))) }];
        let types = types.into_iter().collect::<Option<Vec<_>>>()?;
        let first = types.first().copied()?;
        if first.is_number() && types.iter().all(|type_| *type_ == first) {
            return Some(first);
        }
        self.error(start, Code::TypeMismatch, format!("`{name}` takes numbers of one kind"), None)
    }

    fn text_method(&mut self, call: &mut CallExpr, depth: usize, start: usize) -> Option<Type> {
        let name = format!("`{}`", call.func_name);
        let operands = call.target.as_deref_mut().into_iter().chain(call.args.first_mut());
        let types: Vec<_> = operands.map(|operand| self.node(operand, depth + 1)).collect();
        for found in types {
            self.expect(start, &name, TEXT, found)?;
        }
        Some(BOOL)
    }

    fn unknown_function(&mut self, call: &CallExpr, at: usize) -> Option<Type> {
        let name = &call.func_name;
        // The call stands at its parenthesis, right behind the name.
        let offset = at.saturating_sub(name.len());
        if FUNCTIONS.contains(&name.as_str()) {
            return self.error(offset, Code::TypeMismatch, format!("`{name}` is called wrongly"), usage(name));
        }
        self.error(offset, Code::UnknownFunction, format!("unknown function `{name}`"), Some(function_help(name)))
    }
}

fn is_literal(call: &CallExpr) -> bool {
    call.args.first().is_some_and(|arg| text_literal(arg).is_some())
}

fn is_zero(node: &IdedExpr) -> bool {
    matches!(&node.expr, Expr::Literal(LiteralValue::Int(number)) if *number.inner() == 0)
}

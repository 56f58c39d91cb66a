//! Between which numbers the value of an expression lies: what can be said of a computed amount without a job.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use crate::schema::{self, FactKind, WhenAbsent};

/// The least and the greatest value, both included.
pub(crate) type Range = (i64, i64);

const ANY: Range = (i64::MIN, i64::MAX);

/// The range of a whole number; everything where nothing is known.
pub(super) fn range(node: &IdedExpr) -> Range {
    match &node.expr {
        Expr::Literal(LiteralValue::Int(number)) => (*number.inner(), *number.inner()),
        Expr::Ident(name) => fact(name),
        Expr::Call(call) => of_call(call),
        _ => ANY,
    }
}

/// Counts are never below 0. Of what may be absent only sizes and durations are known to be that: a deadline may have
/// passed.
fn fact(name: &str) -> Range {
    let Some(fact) = schema::find(name).filter(|fact| fact.kind == FactKind::Int) else { return ANY };
    let is_count = fact.when_absent == WhenAbsent::Never || name != "job.sla";
    if is_count { (0, i64::MAX) } else { ANY }
}

fn of_call(call: &CallExpr) -> Range {
    if let ("math.@min" | "math.@max", [IdedExpr { expr: Expr::List(list), .. }]) =
        (call.func_name.as_str(), call.args.as_slice())
    {
        let ranges = || list.elements.iter().map(range);
        return if call.func_name == "math.@min" {
            (
                ranges().map(|range| range.0).min().unwrap_or(i64::MIN),
                ranges().map(|range| range.1).min().unwrap_or(i64::MAX),
            )
        } else {
            (
                ranges().map(|range| range.0).max().unwrap_or(i64::MIN),
                ranges().map(|range| range.1).max().unwrap_or(i64::MAX),
            )
        };
    }
    let args: Vec<Range> = call.args.iter().map(range).collect();
    match (call.func_name.as_str(), args.as_slice()) {
        (operators::NEGATE, [(low, high)]) => (high.saturating_neg(), low.saturating_neg()),
        (operators::ADD, [a, b]) => (a.0.saturating_add(b.0), a.1.saturating_add(b.1)),
        (operators::SUBSTRACT, [a, b]) => (a.0.saturating_sub(b.1), a.1.saturating_sub(b.0)),
        (operators::MULTIPLY, [a, b]) => product(*a, *b),
        (operators::CONDITIONAL, [_, a, b]) => (a.0.min(b.0), a.1.max(b.1)),
        _ => ANY,
    }
}

fn product(a: Range, b: Range) -> Range {
    let corners = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(a, b)| a.saturating_mul(b));
    (corners.into_iter().min().unwrap_or(i64::MIN), corners.into_iter().max().unwrap_or(i64::MAX))
}

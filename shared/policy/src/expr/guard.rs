//! Which facts an expression proves to be there: `has(job.sla) && job.sla < 60` never reads an absent fact.

use cel::common::ast::{CallExpr, Expr, IdedExpr, operators};

use super::Guards;
use super::check::{dotted, tag_key, text_literal};
use crate::schema::TAGS;

/// The facts that are there whenever the expression has this truth.
pub(super) fn proves(node: &IdedExpr, truth: bool) -> Guards {
    let Expr::Call(call) = &node.expr else { return Guards::new() };
    match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::LOGICAL_NOT, [operand]) => proves(operand, !truth),
        (operators::LOGICAL_AND, [left, right]) => combine(left, right, truth, truth),
        (operators::LOGICAL_OR, [left, right]) => combine(left, right, truth, !truth),
        _ if truth => presence(call).into_iter().collect(),
        _ => Guards::new(),
    }
}

fn combine(left: &IdedExpr, right: &IdedExpr, truth: bool, both: bool) -> Guards {
    let (left, right) = (proves(left, truth), proves(right, truth));
    if both { left.union(&right).cloned().collect() } else { left.intersection(&right).cloned().collect() }
}

/// The fact that `has(fact)` or `"key" in job.tags` asks for.
fn presence(call: &CallExpr) -> Option<String> {
    match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::HAS, [fact]) => tag_key(fact).map(|key| format!("{TAGS}.{key}")).or_else(|| dotted(fact)),
        (operators::IN, [key, map]) if dotted(map).as_deref() == Some(TAGS) => {
            text_literal(key).map(|key| format!("{TAGS}.{key}"))
        }
        _ => None,
    }
}

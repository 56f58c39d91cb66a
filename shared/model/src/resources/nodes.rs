//! The nodes of a multi-node job: which range says what of which node.

use std::collections::BTreeMap;

use super::amount::Amounts;
use super::{Base, Layer, node_amounts, node_count, part};
use crate::definition::{JobDefinition, NodeRangeProperty};
use crate::message::words::quote;
use crate::reason::{ReasonCode, Refusal};
use crate::request::{NodePropertyOverride, SubmitJobRequest};

/// Most ranges of nodes that are read.
///
/// Batch takes a handful; the bound keeps a hostile request from costing ranges × nodes steps.
const RANGES_MAX: usize = 100;

/// Amounts of the greatest node, the number of nodes, and the amounts of all nodes.
pub(super) fn amounts(
    request: &SubmitJobRequest,
    definition: Option<&JobDefinition>,
) -> Result<(Amounts, u32, Amounts), Refusal> {
    let nodes = node_count(request, definition)?;
    let given = request.node_overrides.as_ref().and_then(|over| over.node_property_overrides.as_deref());
    let given = given.unwrap_or_default();
    let defined = definition.and_then(|definition| definition.node_properties.as_ref());
    let defined = defined.map(|properties| properties.node_range_properties.as_slice()).unwrap_or_default();
    let given_ranges =
        ranges(given.iter().map(|range| range.target_nodes.as_str()), "nodeOverrides.nodePropertyOverrides")?;
    let defined_ranges = ranges(
        defined.iter().map(|range| range.target_nodes.as_str()),
        "job definition: nodeProperties.nodeRangeProperties",
    )?;
    // Nodes that the same two ranges speak of are alike: each pair is read once.
    let mut alike: BTreeMap<(Option<usize>, Option<usize>), u64> = BTreeMap::new();
    for node in 0..nodes {
        *alike.entry((narrowest(&defined_ranges, node), narrowest(&given_ranges, node))).or_default() += 1;
    }
    let (mut greatest, mut total) = (Amounts::default(), Amounts::default());
    for ((base, layer), count) in alike {
        let one = node_amounts(&base_of(defined, base), &layer_of(request, given, layer))?;
        greatest.at_least(one);
        total.add(times(one, count));
    }
    Ok((greatest, nodes, total))
}

fn times(one: Amounts, count: u64) -> Amounts {
    Amounts {
        gpus: one.gpus.saturating_mul(count),
        vcpu_thousandths: one.vcpu_thousandths.saturating_mul(count),
        memory_mib: one.memory_mib.saturating_mul(count),
    }
}

fn base_of(defined: &[NodeRangeProperty], index: Option<usize>) -> Base<'_> {
    let Some((index, range)) = index.and_then(|index| defined.get(index).map(|range| (index, range))) else {
        return Base::default();
    };
    Base {
        container: range.container.as_ref(),
        ecs: part(&range.other, "ecsProperties"),
        eks: part(&range.other, "eksProperties"),
        path: format!("nodeProperties.nodeRangeProperties[{index}]."),
    }
}

/// A node that no override speaks of takes the job's own overrides, which Batch refuses beside those of nodes anyway.
fn layer_of<'r>(request: &'r SubmitJobRequest, given: &'r [NodePropertyOverride], index: Option<usize>) -> Layer<'r> {
    match index.and_then(|index| given.get(index).map(|range| (index, range))) {
        Some((index, range)) => Layer::of_range(range, index),
        None => Layer::of_job(request),
    }
}

/// First and last node of a range, both included.
#[derive(Clone, Copy)]
struct Range {
    first: u32,
    last: u32,
}

fn ranges<'t>(texts: impl ExactSizeIterator<Item = &'t str>, path: &str) -> Result<Vec<Range>, Refusal> {
    if texts.len() > RANGES_MAX {
        let given = texts.len();
        let message = format!("`{path}` takes at most {RANGES_MAX} ranges; {given} were given");
        return Err(Refusal::new(ReasonCode::InvalidResource, message));
    }
    let read = |(index, text)| {
        range(text).ok_or_else(|| {
            let path = format!("{path}[{index}].targetNodes");
            let message = format!("`{path}` must be a range of nodes such as `0:3` or `4:`; {} was given", quote(text));
            Refusal::new(ReasonCode::InvalidResource, message)
        })
    };
    texts.enumerate().map(read).collect()
}

/// Reads `0:3`, `4:`, `:3` or `2`.
fn range(text: &str) -> Option<Range> {
    let (first, last) = text.trim().split_once(':').unwrap_or((text.trim(), text.trim()));
    if first.is_empty() && last.is_empty() {
        return None;
    }
    let number = |text: &str, open: u32| match text {
        "" => Some(open),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    };
    let range = Range { first: number(first, 0)?, last: number(last, u32::MAX)? };
    (range.first <= range.last).then_some(range)
}

/// The range that speaks of a node: of nested ones the narrowest, of equal ones the first.
fn narrowest(ranges: &[Range], node: u32) -> Option<usize> {
    let covering = ranges.iter().enumerate().filter(|(_, range)| (range.first..=range.last).contains(&node));
    covering.min_by_key(|(index, range)| (range.last - range.first, *index)).map(|(index, _)| index)
}

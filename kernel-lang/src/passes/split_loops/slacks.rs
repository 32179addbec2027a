//! Slacks: how far the loop index may move until a condition of full iterations fails.
//!
//! In the first iteration, `start + stride terms < limit` has the slack `limit - start` less the largest sum of stride terms. If the loop index adds to `start`
//! by `scale`, the condition holds for distances of the index below `slack / scale`.

use crate::analysis::masks::Comparison;
use crate::analysis::polynomial::Polynomial;
use crate::ir::{BinaryOp, Builder, CompareOp, Value};
use crate::passes::split_full_tiles::{Plan, Test};

/// A limit of the loop index: `slack` must be more than `scale` times the distance of the index from the first one.
pub(super) struct Slack {
    slack: Value,
    scale: Polynomial,
}

/// The slack that each condition leaves the loop index in the first iteration. The slack is positive if all conditions hold.
pub(super) fn slacks(b: &mut Builder<'_>, plan: &Plan, index: Value) -> Vec<Slack> {
    let mut slacks = Vec::new();
    for bound in &plan.bounds {
        if let Some(scale) = bound.index.start.coefficient(index).filter(|scale| !scale.is(0)) {
            let start = bound.index.uniform_value(b);
            let length = b.length(bound.base);
            let (span, one) = (bound.span(b), b.index(1));
            let last = b.binary(BinaryOp::Sub, length, span);
            let steps = b.binary(BinaryOp::Sub, last, start);
            slacks.push(Slack { slack: b.binary(BinaryOp::Add, steps, one), scale });
        }
    }
    for (_, test) in &plan.masks {
        let Test::Order(Comparison { op, index: at, limit, .. }, maximum) = test else { continue };
        if let Some(scale) = at.start.coefficient(index).filter(|scale| !scale.is(0)) {
            let start = at.uniform_value(b);
            let (slack, is_closed) = match op {
                CompareOp::Lt | CompareOp::Le => {
                    let limit = limit.value(b);
                    (b.binary(BinaryOp::Sub, limit, start), *op == CompareOp::Le)
                }
                _ => {
                    // The sum with the stride terms must not wrap.
                    let (zero, most) = (b.index(0), b.index(i64::MAX.into()));
                    let start = b.binary(BinaryOp::Max, start, zero);
                    (b.binary(BinaryOp::Sub, most, start), true)
                }
            };
            // The slack of a tile of one index must not wrap, either: its last iteration is left to the remainder loop.
            let last = maximum - i64::from(is_closed);
            let less = b.index(last.max(0).into());
            slacks.push(Slack { slack: b.binary(BinaryOp::Sub, slack, less), scale });
        }
    }
    slacks
}

/// Appends the span of the loop index over full iterations, by the slacks of the first iteration. `span` is that of the whole loop.
pub(super) fn full_span(b: &mut Builder<'_>, slacks: Vec<Slack>, mut span: Value) -> Value {
    for Slack { slack, scale } in smallest(b, slacks) {
        let one = b.index(1);
        let mut iterations = slack;
        if !scale.is(1) {
            // The condition holds for distances of the index below `slack / scale`, rounded up. If `scale` is an argument that is 0, it holds
            // for any distance; but `x / 0` is 0 here, so the limit is 1, and only the first iteration counts as full.
            let (before, scale) = (b.binary(BinaryOp::Sub, slack, one), scale.value(b));
            let whole = b.binary(BinaryOp::Div, before, scale);
            iterations = b.binary(BinaryOp::Add, whole, one);
        }
        span = b.binary(BinaryOp::Min, span, iterations);
    }
    span
}

/// For each scale, the smallest slack: tensors that are accessed at the same places need one division together.
fn smallest(b: &mut Builder<'_>, slacks: Vec<Slack>) -> Vec<Slack> {
    let mut smallest: Vec<Slack> = Vec::new();
    for next in slacks {
        match smallest.iter_mut().find(|known| known.scale == next.scale) {
            Some(known) => known.slack = b.binary(BinaryOp::Min, known.slack, next.slack),
            None => smallest.push(next),
        }
    }
    smallest
}

//! The condition of a full tile: the test of a plan.
//!
//! It never holds for a tile that is not full, whatever values the scalars have: each part compares without overflow, or overflows to false.

use rustc_hash::FxHashSet;

use crate::analysis::bounds;
use crate::analysis::masks::Comparison;
use crate::analysis::polynomial::Polynomial;
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Type, Value};

use super::plan::{Plan, Test};

/// The sum or the difference of two numbers below this, and of a number and a position in a tile, does not overflow.
const SMALL: i64 = 1 << 62;

/// Appends ops that test what a plan requires. Their result is a `bool`.
pub(in crate::passes) fn condition(b: &mut Builder<'_>, plan: &Plan) -> Value {
    let mut parts = bounds::tests(b, &plan.bounds);
    parts.extend(divisible(b, plan, plan.widest));
    for (_, test) in &plan.masks {
        match test {
            Test::Order(comparison, maximum) => parts.extend(order(b, comparison, *maximum)),
            Test::Uniform(value) => parts.push(*value),
        }
    }
    parts.extend(distances_are_small(b, plan));
    parts.extend(aligned(b, plan, plan.widest));
    all_of(b, parts)
}

/// Appends tests of the comparisons that end within the tile: their distances must not overflow, and must fit in 32 bits if the plan says so.
fn distances_are_small(b: &mut Builder<'_>, plan: &Plan) -> Vec<Value> {
    let (mut small, mut parts): (FxHashSet<&Polynomial>, _) = (FxHashSet::default(), Vec::new());
    for number in plan.distances().flat_map(|Comparison { index, limit, .. }| [&index.start, limit]) {
        if small.insert(number) {
            let number = number.value(b);
            parts.push(bounds::is_below(b, number, SMALL));
        }
    }
    if plan.has_short_distances {
        let mut seen: FxHashSet<Polynomial> = FxHashSet::default();
        for distance in plan.distances().map(Comparison::distance).filter(|distance| seen.insert(distance.clone())) {
            let (distance, half) = (distance.value(b), b.index(1 << 31));
            let distance = b.binary(BinaryOp::Add, distance, half);
            parts.push(bounds::is_below(b, distance, 1 << 32));
        }
    }
    parts
}

/// Appends ops that test whether the accesses of a plan are in bounds, and its masks hold for all elements.
pub(in crate::passes) fn is_inside(b: &mut Builder<'_>, plan: &Plan) -> Value {
    let mut parts = bounds::tests(b, &plan.bounds);
    for (_, test) in &plan.masks {
        if let Test::Order(comparison, maximum) = test {
            parts.extend(order(b, comparison, *maximum));
        }
    }
    parts.extend(distances_are_small(b, plan));
    all_of(b, parts)
}

/// Appends ops that test whether a comparison holds for sums of its start and stride terms, of which the largest is `maximum`.
fn order(b: &mut Builder<'_>, Comparison { op, index, limit, .. }: &Comparison, maximum: i64) -> [Value; 2] {
    let (start, limit) = (index.uniform_value(b), limit.value(b));
    let holds_for_first = b.compare(*op, start, limit);
    let holds_for_last = if matches!(op, CompareOp::Lt | CompareOp::Le) {
        // If `start < limit`, the exact difference is positive. A difference that overflows is negative, and its test fails.
        let room = b.binary(BinaryOp::Sub, limit, start);
        let maximum = b.index(maximum.into());
        b.compare(op.swapped(), room, maximum)
    } else {
        // The stride terms only add to `index`. The sum must not wrap.
        let last = b.index((i64::MAX - maximum).into());
        b.compare(CompareOp::Le, start, last)
    };
    [holds_for_first, holds_for_last]
}

/// Appends ops that test whether runs of `run` bytes are aligned, and masks end and rows begin between them. `run` divides the runs of the plan.
pub(in crate::passes) fn has_aligned_runs(b: &mut Builder<'_>, plan: &Plan, run: i64) -> Value {
    let parts: Vec<Value> = divisible(b, plan, run).into_iter().chain(aligned(b, plan, run)).collect();
    all_of(b, parts)
}

/// The numbers of a plan that must be multiples, for runs of `run` bytes.
fn divisible(b: &mut Builder<'_>, plan: &Plan, run: i64) -> Vec<Value> {
    let (mut known, mut parts) = (FxHashSet::default(), Vec::new());
    for (number, divisor) in &plan.divisible {
        if known.insert((number, divisor)) {
            let number = number.value(b);
            let low_bits = b.index((divisor * run / plan.widest - 1).max(0).into());
            let rest = b.binary(BinaryOp::And, number, low_bits);
            let zero = b.index(0);
            parts.push(b.compare(CompareOp::Eq, rest, zero));
        }
    }
    parts
}

/// The addresses of a plan that must be multiples of `run` bytes.
fn aligned(b: &mut Builder<'_>, plan: &Plan, run: i64) -> Option<Value> {
    let mut addresses: Option<Value> = None;
    for (base, index, bytes) in &plan.aligned {
        let start = index.uniform_value(b);
        let bytes = b.index((*bytes).into());
        let offset = b.binary(BinaryOp::Mul, start, bytes);
        let address = b.address(*base);
        let address = b.binary(BinaryOp::Add, address, offset);
        addresses = Some(addresses.map_or(address, |all| b.binary(BinaryOp::Or, all, address)));
    }
    let addresses = addresses?;
    let low_bits = b.index((run - 1).into());
    let misaligned = b.binary(BinaryOp::And, addresses, low_bits);
    let zero = b.index(0);
    Some(b.compare(CompareOp::Eq, misaligned, zero))
}

/// Appends the conjunction of all parts.
pub(super) fn all_of(b: &mut Builder<'_>, parts: impl IntoIterator<Item = Value>) -> Value {
    let always = b.constant(ConstExpr::Bool(true), Type::scalar(Dtype::Bool));
    parts.into_iter().reduce(|all, part| b.binary(BinaryOp::And, all, part)).unwrap_or(always)
}

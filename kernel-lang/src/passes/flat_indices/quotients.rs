//! Quotients of quotients: `o / (a * b)` divides `o / a` by `b`, so that it shares a quotient and a reciprocal with `o / a % b`.
//!
//! ```text
//! %q = div %o, (broadcast %w)                       %q = div %o, (broadcast %w)
//! %r = rem %q, (broadcast %h)                       %r = rem %q, (broadcast %h)
//! %p = div %o, (broadcast (mul %h, %w))             %p = div %q, (broadcast %h)
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::factors::Factors;
use crate::analysis::ranges::{Divisor, divisor};
use crate::ir::{BinaryOp, Function, Inst, Op, Value};

use super::runs::Run;

/// The most quotients that are compared with each other.
const MOST_QUOTIENTS: usize = 32;

/// The quotients `o / (a * b)` where `o / a` is computed, too, and `b` is a divisor of the region: they equal `(o / a) / b`, which divides as
/// `o / a % b` does. All divisors are at least 1 and less than 2^31, so `a * b` does not overflow if it is one of them.
pub(super) fn shared(
    func: &Function,
    ops: &[Inst],
    indices: &FxHashSet<Value>,
    runs: &FxHashMap<Value, Run>,
) -> FxHashMap<Value, (Value, Value)> {
    let mut quotients: Vec<(Value, Value, Value)> = Vec::new();
    let mut factors: FxHashMap<Value, Factors> = FxHashMap::default();
    for inst in ops {
        if let Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs, rhs } = func.inst(*inst).op
            && indices.contains(&func.result(*inst))
            && let Some(Divisor::Scalar(scalar)) = divisor(func, rhs)
        {
            factors.entry(scalar).or_insert_with(|| Factors::of(func, scalar));
            if op == BinaryOp::Div && quotients.len() < MOST_QUOTIENTS {
                quotients.push((func.result(*inst), lhs, scalar));
            }
        }
    }
    // The order of a map differs from run to run.
    let mut divisors: Vec<Value> = factors.keys().copied().collect();
    divisors.sort();
    let is_same = |value: &Value| matches!(runs.get(value), Some(Run::Same { .. }));
    let mut shared = FxHashMap::default();
    for (value, dividend, by) in &quotients {
        let others = quotients.iter().filter(|(other, of, _)| other != value && of == dividend && (is_same(other) || !is_same(value)));
        let found = others.filter_map(|(other, _, part)| {
            let rest = factors[by].without(&factors[part]).filter(|rest| !rest.is_one())?;
            let rest = divisors.iter().find(|divisor| factors[*divisor] == rest)?;
            Some((factors[part].scalars().len(), *other, *rest))
        });
        if let Some((_, other, rest)) = found.max_by_key(|(count, ..)| *count) {
            shared.insert(*value, (other, rest));
        }
    }
    shared
}

//! Quotients of quotients: `o / (a * b)` divides `o / a` by `b`, so that it shares a quotient and a reciprocal with `o / a % b`.
//!
//! ```text
//! %q = div %o, (broadcast %w)                       %q = div %o, (broadcast %w)
//! %r = rem %q, (broadcast %h)                       %r = rem %q, (broadcast %h)
//! %p = div %o, (broadcast (mul %h, %w))             %p = div %q, (broadcast %h)
//! ```

use std::collections::{HashMap, HashSet};

use crate::analysis::ranges::{Divisor, divisor};
use crate::ir::{BinaryOp, Function, Inst, Op, Value};

use super::runs::Run;

/// The most quotients that are compared with each other, and the most factors of a divisor.
const MOST_QUOTIENTS: usize = 32;
const MOST_FACTORS: usize = 16;

/// The quotients `o / (a * b)` where `o / a` is computed, too, and `b` is a divisor of the region: they equal `(o / a) / b`, which divides as
/// `o / a % b` does. All divisors are at least 1 and less than 2^31, so `a * b` does not overflow if it is one of them.
pub(super) fn shared(
    func: &Function,
    ops: &[Inst],
    indices: &HashSet<Value>,
    runs: &HashMap<Value, Run>,
) -> HashMap<Value, (Value, Value)> {
    let mut quotients: Vec<(Value, Value, Value)> = Vec::new();
    let mut factors: HashMap<Value, Factors> = HashMap::new();
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
    let mut shared = HashMap::new();
    for (value, dividend, by) in &quotients {
        let others = quotients.iter().filter(|(other, of, _)| other != value && of == dividend && (is_same(other) || !is_same(value)));
        let found = others.filter_map(|(other, _, part)| {
            let rest = factors[by].without(&factors[part]).filter(|rest| !rest.is_one())?;
            let rest = divisors.iter().find(|divisor| factors[*divisor] == rest)?;
            Some((factors[part].values.len(), *other, *rest))
        });
        if let Some((_, other, rest)) = found.max_by_key(|(count, ..)| *count) {
            shared.insert(*value, (other, rest));
        }
    }
    shared
}

/// The factors of a product of scalars.
#[derive(Clone, PartialEq, Eq)]
struct Factors {
    /// The factors that are no constants, in order.
    values: Vec<Value>,
    constant: i128,
}

impl Factors {
    fn of(func: &Function, scalar: Value) -> Factors {
        let mut factors = Factors { values: Vec::new(), constant: 1 };
        let mut next = vec![scalar];
        while let Some(value) = next.pop() {
            match func.def_op(value) {
                Some(Op::Const { value }) if let Some(number) = value.as_int().filter(|number| (1..1 << 31).contains(number)) => {
                    factors.constant = factors.constant.saturating_mul(number);
                }
                Some(Op::Binary { op: BinaryOp::Mul, lhs, rhs }) if factors.values.len() + next.len() < MOST_FACTORS => {
                    next.extend([*lhs, *rhs]);
                }
                _ => factors.values.push(value),
            }
        }
        factors.values.sort();
        factors
    }

    fn without(&self, part: &Factors) -> Option<Factors> {
        let mut rest = self.clone();
        for value in &part.values {
            let at = rest.values.iter().position(|own| own == value)?;
            rest.values.remove(at);
        }
        (rest.constant % part.constant == 0).then(|| Factors { constant: rest.constant / part.constant, ..rest })
    }

    fn is_one(&self) -> bool {
        self.values.is_empty() && self.constant == 1
    }
}

//! Bits of scalars: which scalars are small numbers, such as multiples of program ids.

use rustc_hash::FxHashMap;

use crate::analysis::polynomial::{Polynomial, Product};
use crate::ir::{BinaryOp, Function, Op, Value, postorder};

/// For scalars that are at least 0 and less than `2^bits`: a number of such bits. Each is computed once.
#[derive(Default)]
pub struct Bits {
    known: FxHashMap<Value, Option<u32>>,
}

impl Bits {
    /// Is a sum at least 0 and less than 2^62?
    pub fn are_few(&mut self, func: &Function, sum: &Polynomial) -> bool {
        let mut is_small = |(factors, coefficient): &(Product, i64)| {
            let [value] = &factors[..] else { return false };
            *coefficient > 0 && self.get(func, *value).is_some_and(|bits| bits + coefficient.ilog2() < 58)
        };
        sum.terms.len() <= 4 && sum.terms.iter().all(&mut is_small) && (0..1 << 60).contains(&sum.constant)
    }

    fn get(&mut self, func: &Function, value: Value) -> Option<u32> {
        let enter = |cx: &mut Bits, value: Value, before: &mut Vec<Value>| {
            let is_new = !cx.known.contains_key(&value);
            if is_new && let Some(Op::Binary { op: BinaryOp::Add | BinaryOp::Mul, lhs, rhs }) = func.def_op(value) {
                before.extend([*lhs, *rhs]);
            }
            is_new
        };
        postorder(self, value, enter, |cx, value| {
            let bits = cx.of(func, value);
            cx.known.insert(value, bits);
        });
        self.known.get(&value).copied().flatten()
    }

    fn of(&self, func: &Function, value: Value) -> Option<u32> {
        let known = |value: &Value| self.known.get(value).copied().flatten();
        match func.def_op(value)? {
            Op::Const { value } => value.as_int().filter(|value| (0..1 << 62).contains(value)).map(|value| (value + 1).ilog2() + 1),
            Op::ProgramId { .. } | Op::NumPrograms { .. } => Some(32),
            Op::Binary { op: BinaryOp::Add, lhs, rhs } => Some(known(lhs)?.max(known(rhs)?) + 1).filter(|bits| *bits < 63),
            Op::Binary { op: BinaryOp::Mul, lhs, rhs } => Some(known(lhs)? + known(rhs)?).filter(|bits| *bits < 63),
            _ => None,
        }
    }
}

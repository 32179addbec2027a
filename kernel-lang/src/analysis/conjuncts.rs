//! Conjuncts: the masks whose conjunction a mask is.
//!
//! ```text
//! %3 = and %1, %2
//! %5 = and %3, %4      %1, %2, %4
//! %6 = and %5, %3      the same: each mask counts once
//! ```

use std::collections::HashSet;

use crate::ir::{BinaryOp, Function, Op, Value};

/// The limit on the masks visited. In a longer conjunction, the remaining `and` ops are conjuncts themselves.
pub const MOST_PARTS: usize = 64;

/// The masks that all hold exactly where `mask` holds. Each appears once, in the order of the operands.
pub fn compute(func: &Function, mask: Value) -> Vec<Value> {
    let (mut parts, mut seen, mut next) = (Vec::new(), HashSet::new(), vec![mask]);
    while let Some(part) = next.pop() {
        if !seen.insert(part) {
            continue;
        }
        match func.def_op(part) {
            Some(Op::Binary { op: BinaryOp::And, lhs, rhs }) if seen.len() < MOST_PARTS => next.extend([*rhs, *lhs]),
            _ => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `%m2 = and %m1, %m0`, `%m3 = and %m2, %m1`, and so on up to `depth` masks: each is the conjunction of the two masks before it.
    fn shared(depth: usize) -> (Function, Value) {
        let lines: String = (2..depth).map(|at| format!("%m{at} = and %m{}, %m{} : bool\n", at - 1, at - 2)).collect();
        let text = format!("kernel @k(%m0: bool, %m1: bool) {{\n{lines}return\n}}");
        let func = crate::ir::parse(&text).expect("it is well formed");
        let last = func.result(func.region(func.body).insts[depth - 3]);
        (func, last)
    }

    #[test]
    fn parts_that_are_shared_count_once() {
        let (func, last) = shared(50);
        let mut parts = compute(&func, last);
        parts.sort_unstable();
        assert_eq!(parts, func.params.iter().map(|param| param.value).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_long_is_taken_apart_in_part() {
        let (func, last) = shared(1000);
        assert!(compute(&func, last).len() <= MOST_PARTS);
    }
}

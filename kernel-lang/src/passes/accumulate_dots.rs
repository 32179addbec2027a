//! Accumulation of matrix products: `x + dot(a, b)` becomes a `dot` that adds to `x`, so that the sum stays in the accumulators.
//!
//! ```text
//! ; before
//! ; then dce
//! kernel @k(%y: ptr_mut<f32>, %a: tile<f16, [16, 16]>, %b: tile<f16, [16, 8]>, %x: tile<f32, [16, 8]>, %i: tile<i64, [16, 8]>) {
//!     %0 = const {value = 0.0} : tile<f32, [16, 8]>
//!     %1 = dot %a, %b, %0 : tile<f32, [16, 8]>
//!     %2 = add %x, %1 : tile<f32, [16, 8]>
//!     store %y, %i, %2
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<f32>, %a: tile<f16, [16, 16]>, %b: tile<f16, [16, 8]>, %x: tile<f32, [16, 8]>, %i: tile<i64, [16, 8]>) {
//!     %0 = dot %a, %b, %x : tile<f32, [16, 8]>
//!     store %y, %i, %0
//!     return
//! }
//! ```
//!
//! The order of the additions of a `dot` is unspecified, so this is one of its results. A product with other uses stays.

use crate::ir::rewrite::{Changed, use_counts};
use crate::ir::{BinaryOp, ConstExpr, Def, Function, Handle, InstData, Op, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let uses = use_counts(func);
    let mut changed = false;
    for inst in func.all_insts() {
        let Op::Binary { op: BinaryOp::Add, lhs, rhs } = func.inst(inst).op else { continue };
        let product = |value: Value| {
            let Def::Result(product, _) = func.def(value) else { return None };
            match func.inst(product) {
                InstData { op: Op::Dot { a, b, acc, precision }, loc, .. } if uses[value.index()] == 1 && is_zero(func, *acc) => {
                    Some((*a, *b, *precision, *loc))
                }
                _ => None,
            }
        };
        let (acc, product) = match (product(lhs), product(rhs)) {
            (_, Some(product)) => (lhs, product),
            (Some(product), None) => (rhs, product),
            (None, None) => continue,
        };
        let (a, b, precision, loc) = product;
        let data = func.inst_mut(inst);
        (data.op, data.loc) = (Op::Dot { a, b, acc, precision }, loc);
        changed = true;
    }
    changed
}

/// Is it a constant 0 of either sign?
fn is_zero(func: &Function, value: Value) -> bool {
    match func.splat(value) {
        Some(ConstExpr::Float(number)) => *number == 0.0,
        Some(ConstExpr::Int(number)) => *number == 0,
        _ => false,
    }
}

//! Contraction: in kernels that allow it, `a * b + c` becomes `fma(a, b, c)`, with one rounding instead of two.
//!
//! ```text
//! ; before
//! ; then dce
//! kernel @k(%y: ptr_mut<f32>, %a: f32, %b: f32, %c: f32, %i: i64) contract {
//!     %0 = mul %a, %b : f32
//!     %1 = sub %0, %c : f32
//!     store %y, %i, %1
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<f32>, %a: f32, %b: f32, %c: f32, %i: i64) contract {
//!     %0 = neg %c : f32
//!     %1 = fma %a, %b, %0 : f32
//!     store %y, %i, %1
//!     return
//! }
//! ```
//!
//! The pass contracts only products with a single use. It runs before [`super::expand_math`], whose formulas rely on every rounding.

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute, use_counts};
use crate::ir::{BinaryOp, Builder, Function, Handle, Op, UnaryOp, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    if !func.contract {
        return false;
    }
    let uses = use_counts(func);
    let mut with = Substitution::new();
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            let (op, loc) = (func.inst(inst).op.clone(), func.inst(inst).loc);
            out.push(inst);
            let Op::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), lhs, rhs } = op else { continue };
            if !matches!(func.ty(lhs).dtype(), Dtype::F32 | Dtype::F64) {
                continue;
            }
            let product = |value: Value| match func.def_op(value) {
                Some(Op::Binary { op: BinaryOp::Mul, lhs, rhs }) if uses[value.index()] == 1 => Some((*lhs, *rhs)),
                _ => None,
            };
            let (left, right) = (product(lhs), product(rhs));
            let scratch = func.add_region();
            let b = &mut Builder::new(func, scratch, loc);
            let fused = match (left, right, op) {
                (Some((x, y)), _, BinaryOp::Add) => b.fma(x, y, rhs),
                (Some((x, y)), ..) => {
                    let less = b.unary(UnaryOp::Neg, rhs);
                    b.fma(x, y, less)
                }
                (None, Some((x, y)), BinaryOp::Add) => b.fma(x, y, lhs),
                (None, Some((x, y)), _) => {
                    let less = b.unary(UnaryOp::Neg, x);
                    b.fma(less, y, lhs)
                }
                (None, None, _) => continue,
            };
            out.pop();
            out.append(func.insts_mut(scratch));
            with.insert(func.result(inst), fused);
        }
        *func.insts_mut(region) = out;
    }
    let body = func.body;
    substitute(func, body, &with)
}

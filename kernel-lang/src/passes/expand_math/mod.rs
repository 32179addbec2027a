//! Rewrites the math functions that the target has no instruction for into primitives, and the arithmetic of `f16` and `bf16` into
//! `f32`.
//!
//! before:
//! ```text
//! %1 = rsqrt %x : tile<f16, [64]> @3:5
//! ```
//! after:
//! ```text
//! %1 = cast %x : tile<f32, [64]> @3:5
//! %2 = rsqrt_approx %1 : tile<f32, [64]> @3:5
//! %3 = cast %2 : tile<f16, [64]> @3:5
//! ```
//!
//! Coefficients are our own; `coefficients.py` beside this file derives them (Remez exchange, rounded one by one) and prints them.

mod erf;
mod erf_f64;
mod exp;
mod exp_f64;
mod formula;
mod half;
mod log;
mod log_f64;
mod trig;
mod trig_f64;

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{Builder, Function, Inst, Op, Region, UnaryOp, Value};

use formula::Formula;

/// Expands every math function of a specialised kernel; see the module.
pub fn run(func: &mut Function) -> Changed {
    let mut replaced = Substitution::new();
    for region in func.regions_under(func.body) {
        for inst in std::mem::take(func.insts_mut(region)) {
            match expand(func, region, inst) {
                Some(value) => replaced.insert(func.result(inst), value),
                None => func.insts_mut(region).push(inst),
            }
        }
    }
    substitute(func, func.body, &replaced)
}

/// Appends what replaces an op, unless it is a primitive.
fn expand(func: &mut Function, region: Region, inst: Inst) -> Option<Value> {
    let data = func.inst(inst);
    let (op, loc) = (data.op.clone(), data.loc);
    let mut operands = Vec::new();
    op.for_each_operand(&mut |value| operands.push(value));
    let ty = func.ty(*operands.first()?).clone();
    if ty.is_pointer() {
        return None;
    }
    let build = Builder::new(func, region, loc);
    match (&op, ty.dtype()) {
        (_, Dtype::F16 | Dtype::Bf16) => half::expand(build, &op, &operands),
        (Op::Unary { op, x }, Dtype::F32 | Dtype::F64) => function(&mut Formula::new(build, ty), *op, *x),
        _ => None,
    }
}

/// The formula of a function of `f32` or `f64`, unless it is a primitive.
fn function(f: &mut Formula<'_>, op: UnaryOp, x: Value) -> Option<Value> {
    let wide = f.dtype() == Dtype::F64;
    Some(match (op, wide) {
        (UnaryOp::Exp, false) => exp::exp(f, x),
        (UnaryOp::Exp, true) => exp_f64::exp(f, x),
        (UnaryOp::Exp2, false) => f.unary(UnaryOp::ExpApprox2, x),
        (UnaryOp::Exp2 | UnaryOp::ExpApprox2, true) => exp_f64::exp2(f, x),
        (UnaryOp::Sigmoid, false) => exp::sigmoid(f, x),
        (UnaryOp::Sigmoid, true) => exp_f64::sigmoid(f, x),
        (UnaryOp::Tanh, false) => exp::tanh(f, x),
        (UnaryOp::Tanh, true) => exp_f64::tanh(f, x),
        (UnaryOp::Log, false) => log::log(f, x),
        (UnaryOp::Log, true) => log_f64::log(f, x),
        (UnaryOp::Log2, false) => log::log2(f, x),
        (UnaryOp::Log2 | UnaryOp::LogApprox2, true) => log_f64::log2(f, x),
        (UnaryOp::Rsqrt, false) => f.unary(UnaryOp::RsqrtApprox, x),
        (UnaryOp::Rsqrt | UnaryOp::RsqrtApprox, true) => {
            let root = f.unary(UnaryOp::Sqrt, x);
            let one = f.k(1.0);
            f.div(one, root)
        }
        (UnaryOp::RecipApprox, true) => {
            let one = f.k(1.0);
            f.div(one, x)
        }
        (UnaryOp::Sin, false) => trig::sin(f, x),
        (UnaryOp::Sin, true) => trig_f64::sin(f, x),
        (UnaryOp::Cos, false) => trig::cos(f, x),
        (UnaryOp::Cos, true) => trig_f64::cos(f, x),
        (UnaryOp::Tan, false) => trig::tan(f, x),
        (UnaryOp::Tan, true) => trig_f64::tan(f, x),
        (UnaryOp::Erf, false) => erf::erf(f, x),
        (UnaryOp::Erf, true) => erf_f64::erf(f, x),
        (UnaryOp::Round, _) => round(f, x),
        _ => return None,
    })
}

/// Halves away from zero: `trunc(x + sign(x) * h)` with the float `h` just below 1/2. With 1/2 itself the sum for 0.49999997 would
/// round up to 1; with `h` the sum for n + 1/2 is so close below n + 1 that it rounds up to it, and from 2^23 (2^52) on `h` is less
/// than half the distance to the next float, so that nothing is added.
fn round(f: &mut Formula<'_>, x: Value) -> Value {
    let below_half = if f.dtype() == Dtype::F64 { 0.5f64.next_down() } else { f64::from(0.5f32.next_down()) };
    let below_half = f.k(below_half);
    let signed = f.with_sign_of(below_half, x);
    let sum = f.add(x, signed);
    f.unary(UnaryOp::Trunc, sum)
}

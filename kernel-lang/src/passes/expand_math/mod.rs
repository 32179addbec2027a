//! Math expansion: rewrites math functions that the target has no instruction for into primitives, and arithmetic of `f16` and `bf16` into
//! `f32`. Runs on specialised Tile IR.
//!
//! ```
//! # use kernel_lang::{ir, passes::expand_math};
//! let before = "kernel @f(%x: tile<f16, [64]>) {
//!     %0 = rsqrt %x : tile<f16, [64]> @3:5
//!     return
//! }
//! ";
//! let after = "kernel @f(%x: tile<f16, [64]>) {
//!     %0 = cast %x : tile<f32, [64]> @3:5
//!     %1 = rsqrt_approx %0 : tile<f32, [64]> @3:5
//!     %2 = cast %1 : tile<f16, [64]> @3:5
//!     return
//! }
//! ";
//! let mut func = ir::parse(before).unwrap();
//! assert!(expand_math::run(&mut func));
//! assert_eq!(func.to_string(), after);
//! ```
//!
//! These primitives stay:
//!
//! - on `f32` and `f64`: `add sub mul div fma sqrt min max neg abs floor ceil rint trunc`, all of them correctly rounded, and `copysign`;
//! - on `f32`: `exp2_approx log2_approx recip_approx rsqrt_approx sqrt_approx sin_approx cos_approx tanh_approx div_approx reduce_pio2`;
//! - on all floats: `fma`;
//! - on integers: everything;
//! - comparisons of `f32` and wider, `select`, `cast`, `bitcast`;
//! - `rem` of floats, which has no formula of bounded length.
//!
//! # Errors and costs
//!
//! The table has the largest error in ulp, and the number of ops besides constants and bitcasts. "Exact device" has approximations that are
//! rounded to nearest. "Worst device" has approximations with any errors within the bounds of the PTX ISA: `exp2_approx` 2 ulp,
//! `recip_approx` 1 ulp, `rsqrt_approx` 2 ulp. `tests/math` measures and asserts both; its ignored test `every_float` does so for every
//! `f32`.
//!
//! | function | f32 exact device | f32 worst device | f32 ops | f64 | f64 ops |
//! |---|---|---|---|---|---|
//! | `exp` | 1.0 | 2.5 | 10 | 1.0 | 29 |
//! | `exp2` | 0.5 | 2.0 | 1 | 1.0 | 27 |
//! | `log` | 1.1 | 1.1 | 26 | 0.9 | 35 |
//! | `log2` | 1.9 | 1.9 | 26 | 1.0 | 42 |
//! | `sqrt` | 0.5 | 0.5 | 1 | 0.5 | 1 |
//! | `rsqrt` | 0.5 | 2.0 | 1 | 1.5 | 2 |
//! | `sin` | 1.6 | 1.6 | 16 | 1.8 | 108 |
//! | `cos` | 1.6 | 1.6 | 17 | 1.8 | 109 |
//! | `tan` | 3.2 | 3.6 | 14 | 1.3 | 139 |
//! | `tanh` | 1.8 | 2.6 | 16 | 1.3 | 41 |
//! | `sigmoid` | 2.4 | 5.2 | 14 | 2.1 | 33 |
//! | `erf` | 1.3 | 1.5 | 21 | 1.1 | 58 |
//! | `round` | exact | exact | 4 | exact | 4 |
//!
//! The ops of `exp` are 8 instructions: a clamp between 0 and 1 is a modifier of `fma`, and `exp2_approx_ftz` does not scale its argument.
//!
//! Functions of `f16` and `bf16` have an error of at most one ulp. All but a few of their 65536 values are correctly rounded.
//!
//! Every function takes every float: NaN stays NaN, infinities and zeros give the limits, and odd functions keep the signs of zeros.
//! Subnormals are flushed neither in arguments nor in results.
//!
//! # Rules for later passes
//!
//! * No contraction: `mul` and `add` stay two roundings.
//! * `fma(a, b, 0.0)` is not `a * b`, and `eq(x, x)` is not true.
//! * In these formulas, `recip_approx` neither takes nor gives a subnormal that matters. So a backend may use `rcp.approx.ftz.f32`, which
//!   saves three instructions of scaling. `exp2_approx`, `log2_approx` and `rsqrt_approx` need their subnormals: no `.ftz`.
//!
//! The coefficients come from `coefficients.py` beside this file, which derives them (Remez exchange, rounded one by one) and prints them.

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
use crate::ir::rewrite::{Changed, expand_each};
use crate::ir::{BinaryOp, Builder, Function, Inst, Op, Region, UnaryOp, Value};

use formula::Formula;

/// Expands every math function of a specialised kernel; see the module.
pub fn run(func: &mut Function) -> Changed {
    expand_each(func, expand)
}

/// Appends the replacement of an op, unless the op is a primitive.
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
        (_, dtype) if dtype.is_half() || dtype.is_float8() => half::expand(build, &op, &operands),
        (Op::Unary { op, x }, Dtype::F32 | Dtype::F64) => function(&mut Formula::new(build, ty), *op, *x),
        (Op::Binary { op: BinaryOp::DivApprox, lhs, rhs }, Dtype::F64) => Some(Formula::new(build, ty).div(*lhs, *rhs)),
        _ => None,
    }
}

/// The formula for a function of `f32` or `f64`, unless the function is a primitive.
fn function(f: &mut Formula<'_>, op: UnaryOp, x: Value) -> Option<Value> {
    let wide = f.dtype() == Dtype::F64;
    Some(match (op, wide) {
        (UnaryOp::Exp, false) => exp::exp(f, x),
        (UnaryOp::Exp, true) => exp_f64::exp(f, x),
        (UnaryOp::Exp2, false) => f.unary(UnaryOp::ExpApprox2, x),
        (UnaryOp::Exp2 | UnaryOp::ExpApprox2 | UnaryOp::ExpApproxFtz2, true) => exp_f64::exp2(f, x),
        (UnaryOp::Sigmoid, false) => exp::sigmoid(f, x),
        (UnaryOp::Sigmoid, true) => exp_f64::sigmoid(f, x),
        (UnaryOp::Tanh, false) => exp::tanh(f, x),
        (UnaryOp::Tanh | UnaryOp::TanhApprox, true) => exp_f64::tanh(f, x),
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
        (UnaryOp::SqrtApprox, true) => f.unary(UnaryOp::Sqrt, x),
        (UnaryOp::Sin | UnaryOp::SinApprox, true) => trig_f64::sin(f, x),
        (UnaryOp::Cos, false) => trig::cos(f, x),
        (UnaryOp::Cos | UnaryOp::CosApprox, true) => trig_f64::cos(f, x),
        (UnaryOp::Tan, false) => trig::tan(f, x),
        (UnaryOp::Tan, true) => trig_f64::tan(f, x),
        (UnaryOp::Erf, false) => erf::erf(f, x),
        (UnaryOp::Erf, true) => erf_f64::erf(f, x),
        (UnaryOp::Round, _) => round(f, x),
        _ => return None,
    })
}

/// Rounds halves away from zero: `trunc(x + sign(x) * h)` with the float `h` just below 1/2. With 1/2 itself the sum for 0.49999997 would
/// round up to 1. With `h` the sum for n + 1/2 is so close to n + 1 that it rounds up to n + 1. From 2^23 (2^52) on, `h` is less than half
/// the distance to the next float, so the sum is x.
fn round(f: &mut Formula<'_>, x: Value) -> Value {
    let below_half = if f.dtype() == Dtype::F64 { 0.5f64.next_down() } else { f64::from(0.5f32.next_down()) };
    let below_half = f.k(below_half);
    let signed = f.with_sign_of(below_half, x);
    let sum = f.add(x, signed);
    f.unary(UnaryOp::Trunc, sum)
}

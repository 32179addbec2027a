//! Integer division: computes quotients and remainders without the division of the GPU where the divisor is the same for many.
//!
//! ```text
//! ; before
//! ; then dce
//! kernel @k(%y: ptr_mut<i64>, %a: i64, %n: i64) {
//!     %0 = const {value = 8} : i64
//!     %1 = div %n, %0 : i64
//!     %2 = rem %a, %n : i64
//!     store %y, %1, %2
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %a: i64, %n: i64) {
//!     %0 = const {value = 63} : i64
//!     %1 = shr %n, %0 : i64
//!     %2 = bitcast %1 : u64
//!     %3 = const {value = 61} : u64
//!     %4 = shr %2, %3 : u64
//!     %5 = bitcast %4 : i64
//!     %6 = add %n, %5 : i64
//!     %7 = const {value = 3} : i64
//!     %8 = shr %6, %7 : i64
//!     %9 = div %a, %n : i64
//!     %10 = mul %9, %n : i64
//!     %11 = sub %a, %10 : i64
//!     store %y, %8, %11
//!     return
//! }
//! ```
//!
//! No GPU has an instruction that divides integers: a 32-bit quotient takes about twenty instructions, a 64-bit one a call of about a hundred. A product with a
//! reciprocal takes six. How a division is computed follows from what is known of its operands, in two questions.
//!
//! | the divisor is | the quotient is |
//! |---|---|
//! | a constant | a product and shifts ([`constants`]) |
//! | one scalar for all elements of a tile | a product with its reciprocal, computed once ([`reciprocal`]), in most kernels by the host |
//! | one that the host knows, of a scalar | the same, behind the conditions that the host computes ([`scalars`]) |
//! | another one | the op `div` |
//!
//! | the operands have | |
//! |---|---|
//! | a type of at most 32 bits | they are divided in 32 bits |
//! | 64 bits, but are small by the ops that compute them | the same |
//! | 64 bits, but a test of scalars shows that they fit | the same, in a copy of the code ([`groups`], [`super::flat_indices`]) |
//! | 64 bits | they are divided in 64 bits |
//!
//! A remainder is what a quotient leaves, so [`super::cse`] leaves one division of `a / n` and `a % n`.

mod constants;
mod groups;
mod reciprocal;
pub(super) mod scalars;

use crate::analysis::ranges::{Divisor, divisor};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, expand_each};
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Inst, Op, Region, Type, Value};

use reciprocal::Reciprocal;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    groups::run(func) | expand_each(func, expand)
}

/// Appends the quotients (`Div`) or the remainders (`Rem`) of `i32`, none of which is negative, by a scalar or a constant of 1 to 2^31 - 1.
pub(super) fn naturals(b: &mut Builder<'_>, op: BinaryOp, dividends: Value, of: Divisor) -> Value {
    let dividends = b.bitcast(dividends, Dtype::U32);
    let results = match of {
        Divisor::Constant(constant) => {
            let divisors = b.int_like(constant.into(), dividends);
            b.binary(op, dividends, divisors)
        }
        Divisor::Scalar(scalar) => {
            let divisor = b.cast(scalar, Dtype::U32);
            Reciprocal::of_positive(b, divisor).divided(b, op, dividends)
        }
    };
    b.bitcast(results, Dtype::I32)
}

/// Appends the replacement of an op, if it has one.
fn expand(func: &mut Function, region: Region, inst: Inst) -> Option<Value> {
    let data = func.inst(inst);
    let Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs: n, rhs: d } = data.op else { return None };
    let (loc, dtype, is_tile) = (data.loc, func.ty(n).dtype(), func.ty(n).is_tile());
    if !dtype.is_int() {
        let reciprocal = func.splat(d).filter(|_| op == BinaryOp::Div).and_then(|d| constants::exact_reciprocal(d, dtype))?;
        let b = &mut Builder::new(func, region, loc);
        let reciprocal = b.float_like(reciprocal, n);
        return Some(b.binary(BinaryOp::Mul, n, reciprocal));
    }
    let constant = func.splat(d).and_then(ConstExpr::as_int);
    let small = small(func, n).filter(|_| constant.is_none_or(|constant| constant.unsigned_abs() < SMALL));
    let shared = divisor(func, d).filter(|_| is_tile && dtype == Dtype::U32);
    let b = &mut Builder::new(func, region, loc);
    if let Some(sign) = small {
        return Some(of_small(b, op, n, sign, d));
    }
    let quotient = match (op, constant, shared) {
        (_, Some(constant), _) => constants::by_constant(b, n, constant),
        (_, None, Some(Divisor::Scalar(scalar))) => return Some(Reciprocal::of(b, scalar).divided(b, op, n)),
        (BinaryOp::Rem, None, _) => b.binary(BinaryOp::Div, n, d),
        _ => return None,
    };
    if op == BinaryOp::Div {
        return Some(quotient);
    }
    // As `n / 0` is 0, `n % 0` is n.
    let product = b.binary(BinaryOp::Mul, quotient, d);
    Some(b.binary(BinaryOp::Sub, n, product))
}

/// The magnitude of a small number is below this.
const SMALL: u128 = 1 << 31;
/// The most ops that are followed to show that a number is small.
const FARTHEST: usize = 8;

/// May a small number be negative?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Positive,
    Any,
}

/// The sign of a 64-bit scalar whose magnitude is known to be below 2^31: the number of a program, and quotients and remainders of it.
fn small(func: &Function, value: Value) -> Option<Sign> {
    let (mut at, mut sign) = (value, Sign::Positive);
    for _ in 0..FARTHEST {
        match *func.def_op(at)? {
            Op::ProgramId { .. } | Op::NumPrograms { .. } => return Some(sign),
            Op::Binary { op: BinaryOp::Rem, lhs, .. } => at = lhs,
            Op::Binary { op: BinaryOp::Div, lhs, rhs } => {
                let is_positive = func.splat(rhs).and_then(ConstExpr::as_int).is_some_and(|divisor| divisor >= 0);
                (at, sign) = (lhs, if is_positive { sign } else { Sign::Any });
            }
            _ => return None,
        }
    }
    None
}

/// The quotient or the remainder of a small number, in 32 bits.
///
/// A divisor of a larger magnitude leaves a small number as it is, as 2^31 does, and so does 0. So with `m = min(|d| - 1, 2^31 - 1) + 1`, where
/// `|d| - 1` is unsigned, `|n| / m` and `|n| % m` are the magnitudes of both results.
fn of_small(b: &mut Builder<'_>, op: BinaryOp, n: Value, sign: Sign, d: Value) -> Value {
    let zero = b.int_like(0, n);
    let magnitude = |b: &mut Builder<'_>, x: Value| {
        let negative = b.binary(BinaryOp::Sub, zero, x);
        b.binary(BinaryOp::Max, x, negative)
    };
    let dividend = if sign == Sign::Positive { n } else { magnitude(b, n) };
    let (one, most) = (b.int_like(1, n), b.constant(ConstExpr::Int(SMALL as i128 - 1), Type::scalar(Dtype::U64)));
    let less = magnitude(b, d);
    let less = b.binary(BinaryOp::Sub, less, one);
    let less = b.bitcast(less, Dtype::U64);
    let less = b.binary(BinaryOp::Min, less, most);
    let [dividend, less] = [dividend, less].map(|value| b.cast(value, Dtype::U32));
    let one = b.int_like(1, less);
    let divisor = b.binary(BinaryOp::Add, less, one);
    let mut result = b.binary(BinaryOp::Div, dividend, divisor);
    if op == BinaryOp::Rem {
        let product = b.binary(BinaryOp::Mul, result, divisor);
        result = b.binary(BinaryOp::Sub, dividend, product);
    }
    let result = b.bitcast(result, Dtype::I32);
    let result = b.cast(result, Dtype::I64);
    // A quotient is negative if one of both numbers is, and a remainder if the dividend is.
    let mut is_negative = (sign == Sign::Any).then(|| b.compare(CompareOp::Lt, n, zero));
    if op == BinaryOp::Div {
        let of_divisor = b.compare(CompareOp::Lt, d, zero);
        is_negative = Some(is_negative.map_or(of_divisor, |of_dividend| b.binary(BinaryOp::Xor, of_dividend, of_divisor)));
    }
    is_negative.map_or(result, |is_negative| {
        let negative = b.binary(BinaryOp::Sub, zero, result);
        b.select(is_negative, negative, result)
    })
}

#[cfg(test)]
mod tests;

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
//! reciprocal takes two to six. How a division is computed follows from two questions about its operands.
//!
//! | is the divisor the same for many? | the quotient is |
//! |---|---|
//! | a constant | a product and shifts (`constants.rs`) |
//! | one that the host knows | a product with its reciprocal, which the host computes (`reciprocal.rs`, and for scalars `scalars.rs`) |
//! | one for all elements of a tile | the same, with a coarser reciprocal that each program computes, and a correction |
//! | no | the op `div` |
//!
//! | in how many bits? | |
//! |---|---|
//! | 32 | the type has no more |
//! | 32 | the dividend is small in every launch (`launch_value/sizes.rs`) |
//! | 32 | a test of scalars shows that all values fit (`groups.rs`, and for whole regions `passes/flat_indices`) |
//! | 64 | in other cases |
//!
//! Signed numbers are divided by their magnitudes, and a sign that is known is not computed. A remainder is what a quotient leaves, so [`super::cse`] leaves one
//! division of `a / n` and `a % n`.
//!
//! A reciprocal of 64 bits takes as many instructions as the op `div` for a single element: of several elements of a thread, `div` shares the reciprocal of 32 bits
//! that it computes, and takes fewer. So it remains in large tiles.

mod constants;
mod groups;
mod reciprocal;
pub(super) mod scalars;

use crate::analysis::ranges::{Divisor, divisor};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, expand_each};
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Inst, Op, Region, SideTable, Type, Value, computation};
use crate::launch_value::sizes::Sizes;
use crate::launch_value::{executed, known_scalars};

use reciprocal::{FineReciprocal, Reciprocal, spread};

/// In a tile of more elements, a thread has so many that the op `div` takes fewer instructions than reciprocals of 64 bits. In a tile of fewer, it has so few that
/// `div` takes no more than a reciprocal that each program computes.
const FEW: usize = 256;
/// The magnitude of a small number is below this.
const SMALL: u128 = 1 << 31;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let divides = |inst: &Inst| matches!(func.inst(*inst).op, Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, .. });
    if !func.all_insts().iter().any(divides) {
        return false;
    }
    let are_grouped = groups::run(func);
    let (sizes, known) = (Sizes::of(func), known_scalars(func, &executed(func), &Op::is_uniform));
    are_grouped | expand_each(func, |func, region, inst| expand(func, &sizes, &known, region, inst))
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
            by_positive(b, op, dividends, divisor)
        }
    };
    b.bitcast(results, Dtype::I32)
}

/// Appends the quotients (`Div`) or the remainders (`Rem`) of `u32` below 2^31, by a scalar from 1 to 2^31.
fn by_positive(b: &mut Builder<'_>, op: BinaryOp, dividends: Value, divisor: Value) -> Value {
    if computation(b.func, divisor, &Op::is_uniform).is_some() {
        FineReciprocal::of(b, divisor).divided(b, op, dividends)
    } else {
        Reciprocal::of_positive(b, divisor).divided(b, op, dividends)
    }
}

/// Appends the replacement of an op, if it has one. `known` are the scalars that the host knows.
fn expand(func: &mut Function, sizes: &Sizes, known: &SideTable<Value, bool>, region: Region, inst: Inst) -> Option<Value> {
    let data = func.inst(inst);
    let Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs: n, rhs: d } = data.op else { return None };
    let (loc, ty) = (data.loc, func.ty(n).clone());
    let Some(size) = sizes.size(func, n) else {
        let reciprocal = func.splat(d).filter(|_| op == BinaryOp::Div).and_then(|d| constants::exact_reciprocal(d, ty.dtype()))?;
        let b = &mut Builder::new(func, region, loc);
        let reciprocal = b.float_like(reciprocal, n);
        return Some(b.binary(BinaryOp::Mul, n, reciprocal));
    };
    if let Some(constant) = func.splat(d).and_then(ConstExpr::as_int) {
        return Some(constants::divided(&mut Builder::new(func, region, loc), op, n, size, constant));
    }
    let is_small = size.magnitude() < SMALL;
    let are_natural = [n, d].map(|value| sizes.is_natural(func, value));
    let shared = if ty.is_scalar() {
        // In 32 bits, so that the host recognises it. Other divisions of scalars come later.
        Some(d).filter(|_| is_small && ty.dtype().bits() == 64)
    } else {
        let is_known = |scalar: Value| func.param_index(scalar).is_some() || known[scalar];
        let is_large = ty.extents().iter().product::<usize>() > FEW;
        let scalar = match divisor(func, d) {
            Some(Divisor::Scalar(scalar)) => Some(scalar),
            _ => None,
        };
        scalar.filter(
            |scalar| if is_small || ty.dtype().bits() <= 32 { is_large || is_known(*scalar) } else { !is_large && is_known(*scalar) },
        )
    };
    let b = &mut Builder::new(func, region, loc);
    if let Some(scalar) = shared {
        return Some(Division { op, are_natural, is_small }.by(b, n, scalar));
    }
    if op == BinaryOp::Div {
        return None;
    }
    // As `n / 0` is 0, `n % 0` is n.
    let quotient = b.binary(BinaryOp::Div, n, d);
    let product = b.binary(BinaryOp::Mul, quotient, d);
    Some(b.binary(BinaryOp::Sub, n, product))
}

/// A division by a scalar.
#[derive(Clone, Copy)]
struct Division {
    /// `Div` or `Rem`.
    op: BinaryOp,
    /// The dividend and the divisor: is it known not to be negative?
    are_natural: [bool; 2],
    /// Are the magnitudes of all dividends below 2^31?
    is_small: bool,
}

impl Division {
    /// Appends the quotients or the remainders, from those of the magnitudes.
    fn by(self, b: &mut Builder<'_>, n: Value, d: Value) -> Value {
        let dtype = b.func.ty(n).dtype();
        if dtype.bits() < 32 {
            let wide = if dtype.is_signed_int() { Dtype::I32 } else { Dtype::U32 };
            let [n, d] = [n, d].map(|value| b.cast(value, wide));
            let result = self.by(b, n, d);
            return b.cast(result, dtype);
        }
        let to = if self.is_small || dtype.bits() == 32 { Dtype::U32 } else { Dtype::U64 };
        let are_natural = if dtype.is_signed_int() { self.are_natural } else { [true; 2] };
        let dividends = if are_natural[0] { n } else { magnitude(b, n) };
        let dividends = converted(b, dividends, to);
        let divisor = if are_natural[1] { d } else { magnitude(b, d) };
        let result = if to.bits() == dtype.bits() {
            let divisor = converted(b, divisor, to);
            Reciprocal::of(b, divisor).divided(b, self.op, dividends)
        } else {
            let divisor = clamped(b, divisor);
            if b.func.ty(n).is_scalar() { self.of_scalar(b, dividends, divisor) } else { by_positive(b, self.op, dividends, divisor) }
        };
        // In fewer bits, it is less than 2^31.
        let result = converted(b, result, dtype);
        // A quotient is negative if one of both numbers is, and a remainder if the dividend is.
        let mut signs =
            [(n, are_natural[0]), (d, are_natural[1] || self.op == BinaryOp::Rem)].into_iter().filter(|(_, is_natural)| !is_natural);
        let mut is_negative = |b: &mut Builder<'_>| {
            let (number, _) = signs.next()?;
            let zero = b.int_like(0, number);
            let is_negative = b.compare(CompareOp::Lt, number, zero);
            Some(spread(b, is_negative, n))
        };
        let (Some(one), other) = (is_negative(b), is_negative(b)) else { return result };
        let is_negative = other.map_or(one, |other| b.binary(BinaryOp::Xor, one, other));
        let zero = b.int_like(0, result);
        let negative = b.binary(BinaryOp::Sub, zero, result);
        b.select(is_negative, negative, result)
    }

    /// The quotient or the remainder of a scalar, as an op that the host recognises.
    fn of_scalar(self, b: &mut Builder<'_>, n: Value, d: Value) -> Value {
        let quotient = b.binary(BinaryOp::Div, n, d);
        if self.op == BinaryOp::Div {
            return quotient;
        }
        let product = b.binary(BinaryOp::Mul, quotient, d);
        b.binary(BinaryOp::Sub, n, product)
    }
}

/// `|x|` of signed integers, as an unsigned number: the smallest integer wraps to its own magnitude.
fn magnitude(b: &mut Builder<'_>, x: Value) -> Value {
    let zero = b.int_like(0, x);
    let negative = b.binary(BinaryOp::Sub, zero, x);
    b.binary(BinaryOp::Max, x, negative)
}

/// The magnitude of a divisor of 64 bits, as a `u32` from 1 to 2^31, for small dividends. A divisor of a larger magnitude leaves these as they are, as 2^31
/// does, and so does 0: the result is `min(d - 1, 2^31 - 1) + 1`, where `d - 1` is unsigned.
fn clamped(b: &mut Builder<'_>, d: Value) -> Value {
    let (one, most) = (b.int_like(1, d), b.constant(ConstExpr::Int(SMALL as i128 - 1), Type::scalar(Dtype::U64)));
    let less = b.binary(BinaryOp::Sub, d, one);
    let less = converted(b, less, Dtype::U64);
    let less = b.binary(BinaryOp::Min, less, most);
    let less = b.cast(less, Dtype::U32);
    let one = b.int_like(1, less);
    b.binary(BinaryOp::Add, less, one)
}

/// An integer as another type, by its bits if both types have as many.
fn converted(b: &mut Builder<'_>, x: Value, to: Dtype) -> Value {
    let from = b.func.ty(x).dtype();
    if from != to && from.bits() == to.bits() { b.bitcast(x, to) } else { b.cast(x, to) }
}

#[cfg(test)]
mod tests;

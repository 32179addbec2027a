//! Affine tiles: the base and the coefficients of an op's result, from those of its operands.
//!
//! ```text
//! %3 = arange {start = 2, end = 66}     base 2, coefficient 1
//! %4 = broadcast %first                 base %first, coefficient 0
//! %5 = add %4, %3                       base %first + 2, a new scalar; coefficient 1
//! ```
//!
//! The same rules serve twice: [`crate::forms`] finds the scalars that are constants, before anything is translated, and
//! [`crate::symbolic`] computes all scalars. A scalar that is a constant for the first is one for the second.
//!
//! The executor does not use `kernel_lang::analysis::affine`, for three reasons:
//!
//! - That analysis writes an index as polynomials of the kernel's scalars, from which the compiler generates new code. The executor follows
//!   the kernel's ops: the sum of two tiles costs one addition, and tiles that share an operand share its scalars.
//! - A tile that a `for` carries has no polynomial. Here it keeps its coefficients, and its base is a scalar that the loop carries.
//! - `kernel-lang` is compiled without optimisation, and a program is translated while its first launch waits.
//!
//! For the same reasons it does not use `kernel_lang::analysis::masks`, which also requires a limit that is the same for all elements. The two
//! analyses share the rules for axes, [`kernel_lang::ir::axes`].

use crate::code::Affine;
use kernel_lang::ir::{BinaryOp, Function, Op, UnaryOp, Value, axes};

/// The scalars of affine tiles.
pub(super) trait Scalars {
    /// An `i64` scalar.
    type Scalar: Copy + PartialEq;

    /// A constant.
    fn constant(number: i64) -> Self::Scalar;

    /// A scalar of the kernel.
    fn scalar(&self, value: Value) -> Self::Scalar;

    /// A sum, difference or product.
    fn binary(&mut self, op: BinaryOp, lhs: Self::Scalar, rhs: Self::Scalar) -> Self::Scalar;

    /// A tile as an affine one, if it is.
    fn tile(&self, value: Value) -> Option<Affine<Self::Scalar>>;
}

/// The result of an op as an affine tile, if it is an `i64` tile that is affine.
pub(super) fn result<C: Scalars>(cx: &mut C, func: &Function, op: &Op, result: Value) -> Option<Affine<C::Scalar>> {
    let rank = func.ty(result).shape().len();
    let zero = C::constant(0);
    let uniform = |base: C::Scalar| Affine { base, coefficients: vec![zero; rank] };
    match op {
        Op::Const { value } => Some(uniform(C::constant(int(value.as_int())))),
        Op::Arange { start, .. } => Some(Affine { base: C::constant(int(start.as_int())), coefficients: vec![C::constant(1)] }),
        Op::Broadcast { x } if func.ty(*x).is_scalar() => Some(uniform(cx.scalar(*x))),
        Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Permute { x, .. } => {
            let Affine { base, coefficients } = cx.tile(*x)?;
            Some(Affine { base, coefficients: axes::of_result(func, op, result, &coefficients, zero)? })
        }
        Op::Unary { op: UnaryOp::Neg, x } => {
            let x = cx.tile(*x)?;
            Some(each(cx, BinaryOp::Sub, uniform(zero), x))
        }
        Op::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), lhs, rhs } => {
            let (lhs, rhs) = (cx.tile(*lhs)?, cx.tile(*rhs)?);
            Some(each(cx, *op, lhs, rhs))
        }
        Op::Binary { op: BinaryOp::Mul, lhs, rhs } => {
            let (lhs, rhs) = (cx.tile(*lhs)?, cx.tile(*rhs)?);
            let is_uniform = |tile: &Affine<C::Scalar>| tile.coefficients.iter().all(|coefficient| *coefficient == zero);
            let (tile, factor) = match (is_uniform(&lhs), is_uniform(&rhs)) {
                (_, true) => (lhs, rhs.base),
                (true, _) => (rhs, lhs.base),
                _ => return None,
            };
            let base = cx.binary(BinaryOp::Mul, tile.base, factor);
            let coefficients = tile.coefficients.into_iter().map(|coefficient| cx.binary(BinaryOp::Mul, coefficient, factor));
            Some(Affine { base, coefficients: coefficients.collect() })
        }
        _ => None,
    }
}

/// A sum or difference.
fn each<C: Scalars>(cx: &mut C, op: BinaryOp, lhs: Affine<C::Scalar>, rhs: Affine<C::Scalar>) -> Affine<C::Scalar> {
    let base = cx.binary(op, lhs.base, rhs.base);
    let coefficients = lhs.coefficients.into_iter().zip(rhs.coefficients).map(|(lhs, rhs)| cx.binary(op, lhs, rhs));
    Affine { base, coefficients: coefficients.collect() }
}

/// The constant that a sum, difference or product is, if constants among its operands determine it.
pub(super) fn folded(op: BinaryOp, lhs: Option<i64>, rhs: Option<i64>) -> Option<i64> {
    match (op, lhs, rhs) {
        (BinaryOp::Add, Some(lhs), Some(rhs)) => Some(lhs.wrapping_add(rhs)),
        (BinaryOp::Sub, Some(lhs), Some(rhs)) => Some(lhs.wrapping_sub(rhs)),
        (BinaryOp::Mul, Some(lhs), Some(rhs)) => Some(lhs.wrapping_mul(rhs)),
        (BinaryOp::Mul, Some(0), _) | (BinaryOp::Mul, _, Some(0)) => Some(0),
        _ => None,
    }
}

/// The value of a scalar that is a constant.
pub(super) fn constant(func: &Function, value: Value) -> Option<i64> {
    match func.def_op(value) {
        Some(Op::Const { value }) => value.as_int().map(|number| number as i64),
        _ => None,
    }
}

fn int(value: Option<i128>) -> i64 {
    value.expect("a specialised kernel's constants are literals") as i64
}

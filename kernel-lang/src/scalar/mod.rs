//! Semantics of every elementwise op on one element.
//!
//! The functions are total and never panic: integers wrap, an integer divided by zero is 0, float operations round once, `f16` and `bf16` are
//! computed in `f32` and rounded. Constant folding calls them, and the CPU backend runs the same code over arrays. A constant therefore
//! behaves exactly as a value that is computed at run time.
//!
//! ```
//! use kernel_lang::dtype::Dtype;
//! use kernel_lang::ir::{BinaryOp, ConstExpr};
//! use kernel_lang::scalar::{self, Scalar};
//!
//! let seven = Scalar::from_const(&ConstExpr::Int(-7), Dtype::I32).unwrap();
//! let zero = Scalar::from_const(&ConstExpr::Int(0), Dtype::I32).unwrap();
//! assert_eq!(scalar::binary(BinaryOp::Div, seven, zero), Some(zero));
//! assert_eq!(scalar::binary(BinaryOp::Rem, seven, zero), Some(seven));
//! assert_eq!(seven.to_const(), ConstExpr::Int(-7));
//! ```

mod atomic;
mod float;
mod half;
mod int;
pub mod lanes;
mod math;
mod pio2;

use std::fmt;

use ::half::{bf16, f16};

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, CompareOp, ConstExpr, UnaryOp, to_f64_odd};
pub use atomic::atomic;
use float::{F8E4M3, F8E5M2, Real};
use lanes::Lanes;

/// One element: its type and its bits.
///
/// Two are equal if their bits are: a NaN equals itself, and 0.0 is not -0.0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scalar {
    dtype: Dtype,
    bits: u64,
}

impl Scalar {
    /// The element with those bits; bits beyond the width are dropped.
    #[inline]
    pub fn from_bits(dtype: Dtype, bits: u64) -> Scalar {
        Scalar { dtype, bits: bits & (u64::MAX >> (64 - dtype.bits())) }
    }

    /// Converts a literal to an element: floats are rounded once, integers wrap. `None` if it is not a literal, or if its kind does not match
    /// the dtype: a float or a boolean as an integer, a number as a `bool`.
    pub fn from_const(value: &ConstExpr, dtype: Dtype) -> Option<Scalar> {
        let bits = match (value, dtype) {
            (ConstExpr::Bool(value), Dtype::Bool) => u64::from(*value),
            (ConstExpr::Int(value), _) if dtype.is_int() => *value as u64,
            (ConstExpr::Int(value), Dtype::F32) => u64::from((*value as f32).to_bits()),
            (ConstExpr::Int(value), Dtype::F64) => (*value as f64).to_bits(),
            (ConstExpr::Int(value), _) => return Scalar::from_odd(to_f64_odd(*value), dtype),
            (ConstExpr::Float(value), _) => return Scalar::from_odd(*value, dtype),
            _ => return None,
        };
        Some(Scalar::from_bits(dtype, bits))
    }

    fn from_odd(value: f64, dtype: Dtype) -> Option<Scalar> {
        let bits = match dtype {
            Dtype::F16 => f16::from_f64_odd(value).to_bits().into(),
            Dtype::Bf16 => bf16::from_f64_odd(value).to_bits().into(),
            Dtype::F32 => (value as f32).to_bits().into(),
            Dtype::F64 => value.to_bits(),
            Dtype::F8E4M3 => F8E4M3::from_f64_odd(value).0.into(),
            Dtype::F8E5M2 => F8E5M2::from_f64_odd(value).0.into(),
            _ => return None,
        };
        Some(Scalar::from_bits(dtype, bits))
    }

    /// The element as a literal, exactly; a NaN loses its payload.
    pub fn to_const(self) -> ConstExpr {
        let bits = self.bits;
        match self.dtype {
            Dtype::Bool => ConstExpr::Bool(bits != 0),
            Dtype::F16 => ConstExpr::Float(half::f16_to_f32(f16::from_bits(bits as u16)).into()),
            Dtype::Bf16 => ConstExpr::Float(half::bf16_to_f32(bf16::from_bits(bits as u16)).into()),
            Dtype::F32 => ConstExpr::Float(f32::from_bits(bits as u32).into()),
            Dtype::F64 => ConstExpr::Float(f64::from_bits(bits)),
            Dtype::F8E4M3 => ConstExpr::Float(F8E4M3(bits as u8).widen().into()),
            Dtype::F8E5M2 => ConstExpr::Float(F8E5M2(bits as u8).widen().into()),
            dtype => {
                let unused = 64 - dtype.bits();
                let signed = (bits << unused) as i64 >> unused;
                ConstExpr::Int(if dtype.is_signed_int() { signed.into() } else { bits.into() })
            }
        }
    }

    /// The element's type.
    #[inline]
    pub fn dtype(self) -> Dtype {
        self.dtype
    }

    /// The element's bits, zero-extended; 0 or 1 for `bool`.
    #[inline]
    pub fn bits(self) -> u64 {
        self.bits
    }

    /// Runs a loop on one element.
    ///
    /// # Safety
    /// The loop takes operands of these types and produces a `dtype`.
    #[inline]
    unsafe fn compute(lanes: Lanes, dtype: Dtype, operands: [Scalar; 3]) -> Scalar {
        // An element is in the low bytes of its bits on a little-endian machine, in the high bytes on a big-endian one.
        let unused = |dtype: Dtype| if cfg!(target_endian = "big") { 64 - 8 * dtype.bytes() as u32 } else { 0 };
        let cells = operands.map(|scalar| scalar.bits << unused(scalar.dtype));
        let mut result = 0u64;
        // SAFETY: the cells are eight bytes each, aligned for every element type, and distinct; a `bool` is 0 or 1 by construction.
        unsafe { lanes((&raw mut result).cast(), cells.each_ref().map(|cell| std::ptr::from_ref(cell).cast()), 1) };
        Scalar::from_bits(dtype, result >> unused(dtype))
    }
}

/// Prints the text form with the type: `1.5f32`, `-3i8`, `truebool`.
impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.to_const(), self.dtype)
    }
}

/// `op(x)`; `None` if the type is not in the op's domain.
pub fn unary(op: UnaryOp, x: Scalar) -> Option<Scalar> {
    let lanes = lanes::unary(op, x.dtype)?;
    // SAFETY: the loop was chosen by the operand's type, which is the result's.
    Some(unsafe { Scalar::compute(lanes, x.dtype, [x; 3]) })
}

/// `op(lhs, rhs)`; `None` if the types differ or are not in the op's domain.
pub fn binary(op: BinaryOp, lhs: Scalar, rhs: Scalar) -> Option<Scalar> {
    let lanes = lanes::binary(op, lhs.dtype).filter(|_| lhs.dtype == rhs.dtype)?;
    // SAFETY: the loop was chosen by the operands' type, which is the result's.
    Some(unsafe { Scalar::compute(lanes, lhs.dtype, [lhs, rhs, rhs]) })
}

/// `op(lhs, rhs)` as `bool`; `None` if the types differ.
pub fn compare(op: CompareOp, lhs: Scalar, rhs: Scalar) -> Option<Scalar> {
    if lhs.dtype != rhs.dtype {
        return None;
    }
    let (lanes, swapped) = lanes::compare(op, lhs.dtype);
    let operands = if swapped { [rhs, lhs, lhs] } else { [lhs, rhs, rhs] };
    // SAFETY: the loop was chosen by the operands' type and gives a `bool`.
    Some(unsafe { Scalar::compute(lanes, Dtype::Bool, operands) })
}

/// Rounds to the 10 bits of fraction of `tf32`, ties away from zero, as `cvt.rna.tf32.f32` does. A number that rounds above the largest `tf32` becomes infinite. A NaN keeps its bits.
///
/// ```
/// use kernel_lang::scalar::tf32;
/// assert_eq!(tf32(1.0 + 1.0 / 2048.0), 1.0 + 1.0 / 1024.0);
/// assert_eq!(tf32(-1.0 - 1.0 / 4096.0), -1.0);
/// assert_eq!(tf32(f32::MAX), f32::INFINITY);
/// assert!(tf32(f32::NAN).is_nan());
/// ```
pub fn tf32(x: f32) -> f32 {
    const DROPPED: u32 = 13;
    if x.is_nan() { x } else { f32::from_bits((x.to_bits() + (1 << (DROPPED - 1))) >> DROPPED << DROPPED) }
}

/// `a * b + c`, rounded once; `None` if the types differ or are not floats.
pub fn fma(a: Scalar, b: Scalar, c: Scalar) -> Option<Scalar> {
    let lanes = lanes::fma(a.dtype).filter(|_| a.dtype == b.dtype && a.dtype == c.dtype)?;
    // SAFETY: the loop was chosen by the operands' type, which is the result's.
    Some(unsafe { Scalar::compute(lanes, a.dtype, [a, b, c]) })
}

/// `on_true` if `cond`, else `on_false`; `None` if `cond` is not a `bool` or the types differ.
pub fn select(cond: Scalar, on_true: Scalar, on_false: Scalar) -> Option<Scalar> {
    let fits = cond.dtype == Dtype::Bool && on_true.dtype == on_false.dtype;
    fits.then_some(if cond.bits != 0 { on_true } else { on_false })
}

/// `x as to`, with Rust's conversions.
pub fn cast(x: Scalar, to: Dtype) -> Scalar {
    // SAFETY: the loop was chosen by the two types.
    unsafe { Scalar::compute(lanes::cast(x.dtype, to), to, [x; 3]) }
}

/// Reinterprets the bits of `x` as another type; `None` unless both have the same width and either both or neither are `bool`.
pub fn bitcast(x: Scalar, to: Dtype) -> Option<Scalar> {
    let fits = x.dtype.bits() == to.bits();
    fits.then(|| Scalar::from_bits(to, x.bits))
}

/// Splits an `f32` angle into its remainder modulo pi/2 (an `f32` in [-pi/4, pi/4], rounded once) and the multiple modulo 4 (an `i32`). NaN
/// and infinities give NaN and 0. `None` for other types.
pub fn reduce_pio2(x: Scalar) -> Option<(Scalar, Scalar)> {
    let [remainder, quadrant] = lanes::reduce_pio2();
    // SAFETY: the loops take an `f32` and give an `f32` and an `i32`.
    let split = || unsafe { (Scalar::compute(remainder, Dtype::F32, [x; 3]), Scalar::compute(quadrant, Dtype::I32, [x; 3])) };
    (x.dtype == Dtype::F32).then(split)
}

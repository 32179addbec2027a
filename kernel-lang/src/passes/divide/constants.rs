//! Division by constants: integers are multiplied and shifted, floats are multiplied by the reciprocal of a power of two.
//!
//! Division of integers follows Granlund and Montgomery, "Division by invariant integers using multiplication" (1994), and uses their names: `n / d` of `N`
//! bits, `l` the bits of `d`, `m` a multiple of about `1 / d`. If `n` has fewer than `N` bits, as a signed number that is not negative, `m` may be less exact: then
//! it has `N` bits for every `d`.
//!
//! A float division that rounds correctly takes some ten instructions and a branch. If the divisor is a power of two, so is its reciprocal, and the
//! product rounds the same number as the quotient.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, ConstExpr, UnaryOp, Value};
use crate::launch_value::sizes::Size;

use super::converted;

/// The reciprocal of a power of two, if both are normal numbers of the type.
pub(super) fn exact_reciprocal(d: &ConstExpr, dtype: Dtype) -> Option<f64> {
    let ConstExpr::Float(d) = *d else { return None };
    let most = match dtype {
        Dtype::F16 => 14,
        Dtype::Bf16 | Dtype::F32 => 126,
        Dtype::F64 => 1022,
        _ => return None,
    };
    let exponent = (d.to_bits() >> 52 & 0x7ff) as i64 - 1023;
    let is_power = d.to_bits() << 12 == 0;
    (is_power && exponent.abs() <= most).then(|| 1.0 / d)
}

/// The quotients (`Div`), rounded towards zero, or the remainders (`Rem`) of numbers of a known size; those by 0 are 0 and `n`.
pub(super) fn divided(b: &mut Builder<'_>, op: BinaryOp, n: Value, size: Size, d: i128) -> Value {
    let (dtype, magnitude) = (b.func.ty(n).dtype(), d.unsigned_abs());
    if d == 0 || size.magnitude() < magnitude {
        return if op == BinaryOp::Rem { n } else { b.int_like(0, n) };
    }
    // The sign of the divisor does not count for the remainder.
    let narrow = type_for(dtype, size);
    let dividend = converted(b, n, narrow);
    let result = by_magnitude(b, op, dividend, size, magnitude);
    let result = converted(b, result, dtype);
    if op == BinaryOp::Div && d < 0 { b.unary(UnaryOp::Neg, result) } else { result }
}

/// The type in which numbers are divided: of 32 bits if they fit, and unsigned if none is negative, which takes fewer instructions.
fn type_for(dtype: Dtype, size: Size) -> Dtype {
    let fits = |dtype: Dtype| match dtype {
        Dtype::U32 => size.is_natural() && size.high < 1 << 32,
        _ => -(1 << 31) <= size.low && size.high < 1 << 31,
    };
    match dtype {
        _ if fits(Dtype::U32) => Dtype::U32,
        _ if fits(Dtype::I32) => Dtype::I32,
        Dtype::I64 if size.is_natural() => Dtype::U64,
        _ => dtype,
    }
}

/// `n / d` or `n % d` in a type of at least 32 bits, `d >= 1`.
fn by_magnitude(b: &mut Builder<'_>, op: BinaryOp, n: Value, size: Size, d: u128) -> Value {
    let is_signed = b.func.ty(n).dtype().is_signed_int();
    if op == BinaryOp::Rem && d.is_power_of_two() && !is_signed {
        let low_bits = b.int_like(d as i128 - 1, n);
        return b.binary(BinaryOp::And, n, low_bits);
    }
    let quotient = match d {
        1 => n,
        _ if is_signed => of_signed(b, n, d),
        _ => of_unsigned(b, n, u128::BITS - size.magnitude().leading_zeros(), d),
    };
    if op == BinaryOp::Div {
        return quotient;
    }
    // The divisor wraps if it is the magnitude of the smallest integer, and so does the product.
    let bits = b.func.ty(n).dtype().bits();
    let wrapped = if is_signed && d == 1 << (bits - 1) { -(d as i128) } else { d as i128 };
    let divisor = b.int_like(wrapped, n);
    let product = b.binary(BinaryOp::Mul, quotient, divisor);
    b.binary(BinaryOp::Sub, n, product)
}

/// `ceil(log2(d))`
fn log2(d: u128) -> u32 {
    u128::BITS - (d - 1).leading_zeros()
}

/// `n / d` of signed integers, `2 <= d <= 2^(N-1)`.
fn of_signed(b: &mut Builder<'_>, n: Value, d: u128) -> Value {
    let dtype = b.func.ty(n).dtype();
    let (bits, l) = (dtype.bits(), log2(d));
    let sign = shifted(b, n, bits - 1);
    if d.is_power_of_two() {
        // A shift rounds down. For a negative n, d - 1 is added first, so that the quotient is rounded towards zero.
        let ones = b.bitcast(sign, if bits == 64 { Dtype::U64 } else { Dtype::U32 });
        let less = shifted(b, ones, bits - l);
        let less = b.bitcast(less, dtype);
        let sum = b.binary(BinaryOp::Add, n, less);
        return shifted(b, sum, l);
    }
    // m = 2^N + m', which does not fit a signed integer: n * m / 2^N = n + n * m' / 2^N.
    let m = (1u128 << (bits + l - 1)) / d + 1;
    let m = b.int_like(m as i128 - (1i128 << bits), n);
    let high = b.binary(BinaryOp::MulHigh, n, m);
    let sum = b.binary(BinaryOp::Add, n, high);
    let floor = shifted(b, sum, l - 1);
    b.binary(BinaryOp::Sub, floor, sign)
}

/// `n / d` of unsigned integers below `2^length`, `d >= 2`.
fn of_unsigned(b: &mut Builder<'_>, n: Value, length: u32, d: u128) -> Value {
    let bits = b.func.ty(n).dtype().bits();
    if d.is_power_of_two() {
        return shifted(b, n, log2(d));
    }
    // The smallest shift for which m has N bits and is so close to 2^(N + shift) / d that the quotient is exact for every n.
    let short = (0..log2(d)).find_map(|shift| {
        let m = (1u128 << (bits + shift)) / d + 1;
        (m >> bits == 0 && m * d - (1u128 << (bits + shift)) <= 1 << (bits + shift - length)).then_some((m, shift))
    });
    if let Some((m, shift)) = short {
        let m = b.int_like(m as i128, n);
        let high = b.binary(BinaryOp::MulHigh, n, m);
        return shifted(b, high, shift);
    }
    // m = 2^N + m': (n + high) / 2^l, where the sum may have one bit more than n.
    let l = log2(d);
    let m = (((1u128 << l) - d) << bits) / d + 1;
    let m = b.int_like(m as i128, n);
    let high = b.binary(BinaryOp::MulHigh, n, m);
    let rest = b.binary(BinaryOp::Sub, n, high);
    let half = shifted(b, rest, 1);
    let sum = b.binary(BinaryOp::Add, half, high);
    shifted(b, sum, l - 1)
}

/// `x >> count`
fn shifted(b: &mut Builder<'_>, x: Value, count: u32) -> Value {
    if count == 0 {
        return x;
    }
    let count = b.int_like(count.into(), x);
    b.binary(BinaryOp::Shr, x, count)
}

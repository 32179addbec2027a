//! Division by a scalar that is known only at run time: its reciprocal is computed once, and each quotient is a product and a correction, or a shift.
//!
//! # Any numbers
//!
//! For `0 <= n < 2^N` and `1 <= d < 2^N`, let `m` be `(2^N - 1) / d`, rounded down: it is at most `2^N / d`, and at least `2^N / d - 1`, because the
//! rounding drops at most `(d - 1) / d`. Then `q = (n * m) >> N` is the quotient or one less, because `n / d - n * m / 2^N` is at least 0 and at most
//! `n / 2^N`, which is less than 1. So the remainder `n - q * d` is less than `2 * d`, and one comparison with `d - 1` corrects both.
//!
//! | N | n | d | m | q | n - q * d | n / d | n % d |
//! |---:|---:|---:|---:|---:|---:|---:|---:|
//! | 32 | 10 | 3 | 1431655765 | 3 | 1 | 3 | 1 |
//! | 32 | 9 | 3 | 1431655765 | 2 | 3 | 3 | 0 |
//! | 32 | 10 | 1 | 4294967295 | 9 | 1 | 10 | 0 |
//! | 32 | 10 | 0 | 0 | 0 | 10 | 0 | 10 |
//!
//! The last row needs no test: `m` is 0, because a quotient by 0 is 0, and `d - 1` is the largest number, so nothing is corrected. A divisor that is known to be
//! positive is compared itself.
//!
//! # Numbers below 2^31
//!
//! For `0 <= n < 2^31` and `1 <= d <= 2^31`, a finer reciprocal needs no correction. Let `s` be the logarithm of `d` to base 2, rounded down, and `m` the
//! smaller of `2^(32 + s) / d`, rounded down, and `2^32 - 1`. The error `e = 2^(32 + s) - m * d` is positive: for a power of two it is `2^s`, and another `d`
//! does not divide `2^(32 + s)`. It is at most `d`, and less than `2^(s + 1)`. So for `n = q * d + r`,
//!
//! ```text
//! (n + 1) * m / 2^(32 + s) = q + (r + 1) / d - (n + 1) * e / (d * 2^(32 + s))
//! ```
//!
//! is less than `q + 1`, because `r + 1 <= d` and `e > 0`; and it is at least `q`, because `(n + 1) * e <= 2^31 * 2^(s + 1) = 2^(32 + s)`. The quotient is the high word
//! of `(n + 1) * m`, shifted by `s`. For constants, `constants.rs` does the same with a larger `m`; Robison, "N-bit unsigned division via N-bit multiply-add" (2005),
//! compares both.
//!
//! | n | d | s | m | (n + 1) * m >> 32 | n / d |
//! |---:|---:|---:|---:|---:|---:|
//! | 10 | 3 | 1 | 2863311530 | 7 | 3 |
//! | 10 | 1 | 0 | 4294967295 | 10 | 10 |
//! | 10 | 8 | 3 | 4294967295 | 10 | 1 |
//!
//! The reciprocal takes a division of 64 bits, so the host must compute it.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Type, Value};

/// The reciprocal of a divisor: scalars of an unsigned type.
#[derive(Clone, Copy)]
pub(super) struct Reciprocal {
    divisor: Value,
    /// `m`.
    multiplier: Value,
    /// Is the divisor known not to be 0?
    is_positive: bool,
}

impl Reciprocal {
    /// Appends the computation of the reciprocal of an unsigned scalar.
    pub(super) fn of(b: &mut Builder<'_>, divisor: Value) -> Reciprocal {
        let bits = b.func.ty(divisor).dtype().bits();
        let most = b.int_like((1i128 << bits) - 1, divisor);
        Reciprocal { divisor, multiplier: b.binary(BinaryOp::Div, most, divisor), is_positive: false }
    }

    /// The same of a scalar that is not 0.
    pub(super) fn of_positive(b: &mut Builder<'_>, divisor: Value) -> Reciprocal {
        Reciprocal { is_positive: true, ..Reciprocal::of(b, divisor) }
    }

    /// Appends the quotients (`Div`) or the remainders (`Rem`) of a tile or of a scalar of the divisor's type.
    pub(super) fn divided(self, b: &mut Builder<'_>, op: BinaryOp, dividends: Value) -> Value {
        let [divisors, multipliers] = [self.divisor, self.multiplier].map(|scalar| spread(b, scalar, dividends));
        let quotients = b.binary(BinaryOp::MulHigh, dividends, multipliers);
        let product = b.binary(BinaryOp::Mul, quotients, divisors);
        let rests = b.binary(BinaryOp::Sub, dividends, product);
        if op == BinaryOp::Rem {
            // A rest that is less than the divisor makes a large number of the difference.
            let less = b.binary(BinaryOp::Sub, rests, divisors);
            return b.binary(BinaryOp::Min, rests, less);
        }
        let is_low = if self.is_positive {
            b.compare(CompareOp::Ge, rests, divisors)
        } else {
            let one = b.int_like(1, self.divisor);
            let last = b.binary(BinaryOp::Sub, self.divisor, one);
            let last = spread(b, last, dividends);
            b.compare(CompareOp::Gt, rests, last)
        };
        let one = b.int_like(1, quotients);
        let next = b.binary(BinaryOp::Add, quotients, one);
        b.select(is_low, next, quotients)
    }
}

/// The reciprocal of a divisor from 1 to 2^31, for dividends below 2^31: scalars of `u32`.
#[derive(Clone, Copy)]
pub(super) struct FineReciprocal {
    divisor: Value,
    /// `m`.
    multiplier: Value,
    /// `s`.
    shift: Value,
}

impl FineReciprocal {
    /// Appends the computation of the reciprocal of a `u32`.
    pub(super) fn of(b: &mut Builder<'_>, divisor: Value) -> FineReciprocal {
        // The exponent of the number as a float of 64 bits, which is exact.
        let float = b.cast(divisor, Dtype::F64);
        let bits = b.bitcast(float, Dtype::U64);
        let word = |b: &mut Builder<'_>, value: i128| b.constant(ConstExpr::Int(value), Type::scalar(Dtype::U64));
        let (fraction_bits, bias) = (word(b, 52), word(b, 1023));
        let exponent = b.binary(BinaryOp::Shr, bits, fraction_bits);
        let shift = b.binary(BinaryOp::Sub, exponent, bias);
        let (one, most) = (word(b, 1 << 32), word(b, (1 << 32) - 1));
        let power = b.binary(BinaryOp::Shl, one, shift);
        let wide = b.cast(divisor, Dtype::U64);
        let quotient = b.binary(BinaryOp::Div, power, wide);
        let multiplier = b.binary(BinaryOp::Min, quotient, most);
        FineReciprocal { divisor, multiplier: b.cast(multiplier, Dtype::U32), shift: b.cast(shift, Dtype::U32) }
    }

    /// Appends the quotients (`Div`) or the remainders (`Rem`) of a tile or of a scalar of `u32`.
    pub(super) fn divided(self, b: &mut Builder<'_>, op: BinaryOp, dividends: Value) -> Value {
        let [multipliers, shifts] = [self.multiplier, self.shift].map(|scalar| spread(b, scalar, dividends));
        let one = b.int_like(1, dividends);
        let next = b.binary(BinaryOp::Add, dividends, one);
        let high = b.binary(BinaryOp::MulHigh, next, multipliers);
        let quotients = b.binary(BinaryOp::Shr, high, shifts);
        if op == BinaryOp::Div {
            return quotients;
        }
        // A product with the negative divisor, so that product and sum are one instruction.
        let zero = b.int_like(0, self.divisor);
        let negative = b.binary(BinaryOp::Sub, zero, self.divisor);
        let negatives = spread(b, negative, dividends);
        let product = b.binary(BinaryOp::Mul, quotients, negatives);
        b.binary(BinaryOp::Add, dividends, product)
    }
}

/// A scalar as a tile, if the other value is one.
pub(super) fn spread(b: &mut Builder<'_>, scalar: Value, like: Value) -> Value {
    let ty = b.func.ty(like).clone();
    if ty.is_scalar() { scalar } else { b.broadcast(scalar, ty.shape()) }
}

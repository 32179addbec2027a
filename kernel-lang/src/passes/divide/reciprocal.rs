//! Division by a scalar that is known only at run time: its reciprocal is computed once, and each quotient is a product and a correction.
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

use crate::ir::{BinaryOp, Builder, CompareOp, Value};

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

/// A scalar as a tile, if the other value is one.
pub(super) fn spread(b: &mut Builder<'_>, scalar: Value, like: Value) -> Value {
    let ty = b.func.ty(like).clone();
    if ty.is_scalar() { scalar } else { b.broadcast(scalar, ty.shape()) }
}

//! Division by a scalar that is known only at run time: its reciprocal is computed once, and each quotient is a product and a shift.
//!
//! For `0 <= n < 2^31` and `1 <= d < 2^31`, let `2^(l - 1) < d <= 2^l` and `m = floor(2^(31 + l) / d) + 1`, which fits in 32 bits. Then
//! `n / d = (2 * n * m) >> (32 + l)`: the upper half of a product of 32-bit numbers, shifted by `l`. This is the method of Granlund and
//! Montgomery, "Division by invariant integers using multiplication" (1994), for dividends of 31 bits.
//!
//! | d | l | m | 10 / d |
//! |---:|---:|---:|---|
//! | 1 | 0 | 2^31 + 1 | (20 * m) >> 32 = 10 |
//! | 3 | 2 | floor(2^33 / 3) + 1 = 2863311531 | (20 * m) >> 34 = 3 |
//! | 4 | 2 | 2^31 + 1 | (20 * m) >> 34 = 2 |

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, UnaryOp, Value};

/// The reciprocal of a divisor: scalars.
#[derive(Clone, Copy)]
pub(super) struct Reciprocal {
    /// The divisor, an `i32`.
    divisor: Value,
    /// `m`, a `u32`.
    multiplier: Value,
    /// `l`, a `u32`.
    shift: Value,
}

impl Reciprocal {
    /// Appends the computation of the reciprocal of an `i64` from 1 to 2^31 - 1.
    ///
    /// With `D = d << (31 - l)`, `m - 1` is `floor(2^62 / D)`. An approximate reciprocal in `f32` gives this within 2^11, one step of Newton's method
    /// within 1, and the sign of the rest says in which direction.
    pub(super) fn of(b: &mut Builder<'_>, divisor: Value) -> Reciprocal {
        // l = 32 - clz(d - 1)
        let narrow = b.cast(divisor, Dtype::U32);
        let one = b.int_like(1, narrow);
        let less = b.binary(BinaryOp::Sub, narrow, one);
        let zeros = b.unary(UnaryOp::Clz, less);
        let bits = b.int_like(32, narrow);
        let shift = b.binary(BinaryOp::Sub, bits, zeros);
        let up = b.binary(BinaryOp::Sub, zeros, one);
        let scaled = b.binary(BinaryOp::Shl, narrow, up);

        let approximate = b.cast(scaled, Dtype::F32);
        let inverse = b.unary(UnaryOp::RecipApprox, approximate);
        let two_to_62 = b.float_like((1u64 << 62) as f64, inverse);
        let first = b.binary(BinaryOp::Mul, inverse, two_to_62);
        let first = b.cast(first, Dtype::U32);
        let first = b.cast(first, Dtype::I64);
        let dividend = b.index(1 << 62);
        let scaled = b.cast(scaled, Dtype::I64);
        let product = b.binary(BinaryOp::Mul, first, scaled);
        let rest = b.binary(BinaryOp::Sub, dividend, product);

        let error = b.cast(rest, Dtype::F32);
        let error = b.binary(BinaryOp::Mul, error, inverse);
        let error = b.cast(error, Dtype::I32);
        let error = b.cast(error, Dtype::I64);
        let second = b.binary(BinaryOp::Add, first, error);
        let product = b.binary(BinaryOp::Mul, error, scaled);
        let rest = b.binary(BinaryOp::Sub, rest, product);

        // m = the quotient + 1
        let (zero, one, two) = (b.index(0), b.index(1), b.index(2));
        let (is_large, is_small) = (b.compare(CompareOp::Lt, rest, zero), b.compare(CompareOp::Ge, rest, scaled));
        let add = b.select(is_small, two, one);
        let add = b.select(is_large, zero, add);
        let multiplier = b.binary(BinaryOp::Add, second, add);
        Reciprocal { divisor: b.cast(divisor, Dtype::I32), multiplier: b.cast(multiplier, Dtype::U32), shift }
    }

    /// Appends the quotients of a tile of `i32`, none of which is negative.
    pub(super) fn quotients(self, b: &mut Builder<'_>, dividends: Value) -> Value {
        let shape = b.func.ty(dividends).shape().to_vec();
        let unsigned = b.bitcast(dividends, Dtype::U32);
        let doubled = b.binary(BinaryOp::Add, unsigned, unsigned);
        let [multiplier, shift] = [self.multiplier, self.shift].map(|scalar| b.broadcast(scalar, &shape));
        let high = b.binary(BinaryOp::MulHigh, doubled, multiplier);
        let quotients = b.binary(BinaryOp::Shr, high, shift);
        b.bitcast(quotients, Dtype::I32)
    }

    /// The divisor as an `i32`.
    pub(super) fn divisor(self) -> Value {
        self.divisor
    }
}

/// Appends the quotients of two tiles of `i32`. No dividend is negative, and every divisor is positive.
pub(super) fn by_division(b: &mut Builder<'_>, dividends: Value, divisors: Value) -> Value {
    let [x, y] = [dividends, divisors].map(|value| b.bitcast(value, Dtype::U32));
    let quotients = b.binary(BinaryOp::Div, x, y);
    b.bitcast(quotients, Dtype::I32)
}

#[cfg(test)]
mod tests {
    /// What [`Reciprocal::of`](super::Reciprocal::of) computes if the approximate reciprocal is off by `ulps`.
    fn reciprocal(d: u32, ulps: i32) -> (u32, u32) {
        let zeros = (d - 1).leading_zeros();
        let scaled = d << (zeros - 1);
        let inverse = f32::from_bits((1.0 / scaled as f32).to_bits().wrapping_add_signed(ulps));
        let first = i64::from((inverse * (1u64 << 62) as f32) as u32);
        let rest = (1i64 << 62) - first * i64::from(scaled);
        let error = i64::from((rest as f32 * inverse) as i32);
        let rest = rest - error * i64::from(scaled);
        let add = if rest < 0 {
            0
        } else if rest >= i64::from(scaled) {
            2
        } else {
            1
        };
        ((first + error + add) as u32, 32 - zeros)
    }

    #[test]
    fn quotients_are_exact_whatever_the_approximation_is() {
        let mut state = 1u64;
        let mut random = |bits: u32| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            ((state >> 33) as u32) >> (31 - bits)
        };
        let near_powers = (1..31).flat_map(|bit| [(1u32 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let mut divisors: Vec<u32> = (1..1000).chain(near_powers).chain([i32::MAX as u32, i32::MAX as u32 - 1]).collect();
        divisors.extend((0..3000).map(|at| random(at % 31 + 1).max(1)));
        for d in divisors.into_iter().filter(|d| (1..1 << 31).contains(d)) {
            for ulps in -2..=2 {
                let (m, l) = reciprocal(d, ulps);
                assert_eq!(u64::from(m), (1u64 << 31 << l) / u64::from(d) + 1, "{d}, off by {ulps}");
                let multiples = [1, 2, 3, 5, (i32::MAX as u32 / d).max(1)].map(|factor| d.wrapping_mul(factor));
                let edges = multiples.into_iter().flat_map(|n| [n.wrapping_sub(1), n, n + 1]);
                for n in edges.chain([0, 1, random(31), i32::MAX as u32]).filter(|n| *n < 1 << 31) {
                    let high = (u64::from(2 * n) * u64::from(m)) >> 32;
                    assert_eq!(high >> l, u64::from(n / d), "{n} / {d}");
                }
            }
        }
    }
}

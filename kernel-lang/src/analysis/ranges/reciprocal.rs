//! Division by a scalar that is known only at run time: its reciprocal is computed once, and each quotient is a product and a correction.
//!
//! For `0 <= n < 2^32` and `1 <= d < 2^32`, let `m` be `(2^32 - 1) / d`, rounded down: it is at most `2^32 / d`, and at least `2^32 / d - 1`, because the
//! rounding drops at most `(d - 1) / d`. Then `q = (n * m) >> 32` is the quotient or one less, because `n / d - n * m / 2^32` is at least 0 and at most
//! `n / 2^32`, which is less than 1. So the remainder `n - q * d` is less than `2 * d`, and one comparison with `d` corrects both. The divisor is mostly an
//! argument, and then the host computes `m`.
//!
//! | n | d | m | q | n - q * d | n / d | n % d |
//! |---:|---:|---:|---:|---:|---:|---:|
//! | 10 | 3 | 1431655765 | 3 | 1 | 3 | 1 |
//! | 9 | 3 | 1431655765 | 2 | 3 | 3 | 0 |
//! | 10 | 1 | 4294967295 | 9 | 1 | 10 | 0 |

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, Value};

/// The reciprocal of a divisor: scalars of type `u32`.
#[derive(Clone, Copy)]
pub struct Reciprocal {
    divisor: Value,
    /// `m`.
    multiplier: Value,
}

impl Reciprocal {
    /// Appends the computation of the reciprocal of a `u32`, or of an `i64` that fits one. If it is 0, quotients have no meaning.
    pub fn of(b: &mut Builder<'_>, divisor: Value) -> Reciprocal {
        let divisor = b.cast(divisor, Dtype::U32);
        let most = b.int_like(u32::MAX.into(), divisor);
        Reciprocal { divisor, multiplier: b.binary(BinaryOp::Div, most, divisor) }
    }

    /// Appends the quotients (`Div`) or the remainders (`Rem`) of `u32`, or of `i32` none of which is negative: those of a tile, or one of a scalar.
    pub fn divided(self, b: &mut Builder<'_>, op: BinaryOp, dividends: Value) -> Value {
        let ty = b.func.ty(dividends).clone();
        let is_signed = ty.dtype() == Dtype::I32;
        let [divisors, multipliers] =
            [self.divisor, self.multiplier].map(|scalar| if ty.is_scalar() { scalar } else { b.broadcast(scalar, ty.shape()) });
        let dividends = if is_signed { b.bitcast(dividends, Dtype::U32) } else { dividends };
        let quotients = b.binary(BinaryOp::MulHigh, dividends, multipliers);
        let product = b.binary(BinaryOp::Mul, quotients, divisors);
        let rests = b.binary(BinaryOp::Sub, dividends, product);
        let result = if op == BinaryOp::Rem {
            // A rest that is less than the divisor makes a large number of the difference.
            let less = b.binary(BinaryOp::Sub, rests, divisors);
            b.binary(BinaryOp::Min, rests, less)
        } else {
            let is_low = b.compare(CompareOp::Ge, rests, divisors);
            let one = b.int_like(1, quotients);
            let next = b.binary(BinaryOp::Add, quotients, one);
            b.select(is_low, next, quotients)
        };
        if is_signed { b.bitcast(result, Dtype::I32) } else { result }
    }
}

/// Appends the quotients or the remainders of `i32` by a positive constant. No dividend is negative.
pub fn by_constant(b: &mut Builder<'_>, op: BinaryOp, dividends: Value, constant: i64) -> Value {
    let dividends = b.bitcast(dividends, Dtype::U32);
    let divisors = b.int_like(constant.into(), dividends);
    let result = b.binary(op, dividends, divisors);
    b.bitcast(result, Dtype::I32)
}

#[cfg(test)]
mod tests {
    #[test]
    fn quotients_are_exact() {
        let mut state = 1u64;
        let mut random = |bits: u32| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            ((state >> 32) as u32) >> (32 - bits)
        };
        let near_powers = (1..32).flat_map(|bit| [(1u32 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let mut divisors: Vec<u32> = (1..1000).chain(near_powers).chain([u32::MAX, u32::MAX - 1]).collect();
        divisors.extend((0..3000).map(|at| random(at % 32 + 1).max(1)));
        for d in divisors {
            let m = u32::MAX / d;
            let product = u64::from(m) * u64::from(d);
            assert!(product <= 1 << 32 && product + u64::from(d) >= 1 << 32, "{d}: {m}");
            let multiples = [1, 2, 3, 5, u32::MAX / d].map(|factor| d.wrapping_mul(factor));
            let edges = multiples.into_iter().flat_map(|n| [n.wrapping_sub(1), n, n.wrapping_add(1)]);
            for n in edges.chain([0, 1, random(32), u32::MAX]) {
                let quotient = ((u64::from(n) * u64::from(m)) >> 32) as u32;
                let rest = n - quotient * d;
                assert_eq!(quotient + u32::from(rest >= d), n / d, "{n} / {d}");
                assert_eq!(rest.min(rest.wrapping_sub(d)), n % d, "{n} % {d}");
            }
        }
    }
}

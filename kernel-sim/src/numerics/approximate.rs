//! Functions that hardware approximates: `ex2 lg2 sin cos tanh rcp rsqrt sqrt div` (PTX ISA, 9.7.3 and 9.7.4).
//!
//! The functions compute in `f64`, and the caller rounds once. The results are closer to the exact value than any documented error. Values
//! that the tables of the ISA define are exact.

/// `2^x`
pub(crate) fn ex2(x: f64) -> f64 {
    x.exp2()
}

/// `log2 x`: negative infinity for both zeros, NaN for negative operands.
pub(crate) fn lg2(x: f64) -> f64 {
    x.log2()
}

/// `sin x`: NaN for infinities. Large operands lose no precision here, whereas hardware meets its documented error only near zero.
pub(crate) fn sin(x: f64) -> f64 {
    x.sin()
}

/// `cos x`: NaN for infinities.
pub(crate) fn cos(x: f64) -> f64 {
    x.cos()
}

/// `tanh x`
pub(crate) fn tanh(x: f64) -> f64 {
    x.tanh()
}

/// `1 / x`
pub(crate) fn rcp(x: f64) -> f64 {
    1.0 / x
}

/// `1 / sqrt x`: an infinity with the sign of a zero operand, NaN for negative operands.
pub(crate) fn rsqrt(x: f64) -> f64 {
    if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() }
}

/// `sqrt x`
pub(crate) fn sqrt(x: f64) -> f64 {
    x.sqrt()
}

/// `div.approx.f32`: `a * (1 / b)`, with 0 as the reciprocal of a very large number.
pub(crate) fn div(a: f64, b: f64) -> f64 {
    let large = 2f64.powi(126);
    if b.is_finite() && b.abs() > large { a * 0f64.copysign(b) } else { a / b }
}

/// The upper half of an `f64`: the `f64` functions with `.ftz` use only the upper half of their operand and result.
pub(crate) fn upper_half(bits: u64) -> u64 {
    bits & !0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_the_tables_name() {
        let infinity = f64::INFINITY;
        let same = |got: f64, expected: f64| assert!(got.to_bits() == expected.to_bits(), "{got} is not {expected}");
        same(ex2(0.0), 1.0);
        same(ex2(-0.0), 1.0);
        same(ex2(-infinity), 0.0);
        same(ex2(10.0), 1024.0);
        same(lg2(0.0), -infinity);
        same(lg2(-0.0), -infinity);
        same(lg2(8.0), 3.0);
        assert!(lg2(-1.0).is_nan() && sin(infinity).is_nan() && cos(-infinity).is_nan() && rsqrt(-1.0).is_nan() && sqrt(-1.0).is_nan());
        same(sin(-0.0), -0.0);
        same(cos(0.0), 1.0);
        same(tanh(-infinity), -1.0);
        same(tanh(-0.0), -0.0);
        same(rcp(-0.0), -infinity);
        same(rcp(-infinity), -0.0);
        same(rsqrt(-0.0), -infinity);
        same(rsqrt(infinity), 0.0);
        same(sqrt(-0.0), -0.0);
        same(div(3.0, 2f64.powi(127)), 0.0);
        same(div(-3.0, 2f64.powi(127)), -0.0);
        same(div(3.0, 2f64.powi(126)), 3.0 * 2f64.powi(-126));
        assert!(div(infinity, -2f64.powi(127)).is_nan());
        same(upper_half(0x1234_5678_9abc_def0) as f64, 0x1234_5678_0000_0000u64 as f64);
    }
}

//! Errors in units of the last place.

/// The distance of the `f32` around `y`; of the subnormals below the smallest normal.
pub(crate) fn ulp32(y: f64) -> f64 {
    let exponent = ((y.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    f64::from_bits(((exponent.clamp(-126, 127) - 23 + 1023) as u64) << 52)
}

/// How far `got` is from `exact`, in ulp of `f32`: of the larger of both where a power of two lies between. NaN counts as wrong unless both
/// are; zeros must agree in sign; past the largest float, inf stands for 2^128.
pub(crate) fn error32(got: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if rounded.is_nan() || got.is_nan() {
        return if rounded.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if exact == 0.0 || exact.is_infinite() {
        return if got.to_bits() == rounded.to_bits() { 0.0 } else { f64::INFINITY };
    }
    if got.is_infinite() && rounded.is_infinite() {
        return if got == rounded { 0.0 } else { f64::INFINITY };
    }
    if got == 0.0 && got.is_sign_negative() != rounded.is_sign_negative() {
        return f64::INFINITY;
    }
    let top = f64::from(f32::MAX) + ulp32(f64::from(f32::MAX));
    let as_f64 = |x: f64| if x.is_infinite() { top.copysign(x) } else { x.clamp(-top, top) };
    let got = as_f64(f64::from(got));
    (got - as_f64(exact)).abs() / ulp32(exact).max(ulp32(got))
}

/// The same for `f64`; the exact value is `high + low`.
pub(crate) fn error64(got: f64, high: f64, low: f64) -> f64 {
    if high == 0.0 || !high.is_finite() || !got.is_finite() || got == 0.0 {
        let tiny = got == 0.0 && high == f64::from_bits(1) && low < 0.0;
        return if got.to_bits() == high.to_bits() {
            0.0
        } else if tiny {
            0.5
        } else {
            f64::INFINITY
        };
    }
    let larger = got.abs().max(high.abs());
    let ulp = larger.next_up() - larger;
    ((got - high) - low).abs() / ulp
}

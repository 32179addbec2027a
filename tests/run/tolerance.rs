//! The error bound of a result against its reference: one function, by element type and kind of computation.

use crate::value::{FloatValue, IntValue, Value};

/// The kind of computation, by its rounding errors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    /// One operation that rounds correctly.
    Rounded,
    /// So many roundings, of numbers no larger than the result.
    Chain(usize),
    /// A math function, or a short formula with one.
    Math,
}

/// The allowed distance from the exact value, in units in the last place of the result's type.
pub(crate) fn tolerance<T: FloatValue>(class: Class) -> f64 {
    // The references themselves round to `f64`: for `f64` that is what the device does too, for the others it is next to nothing.
    let is_f64 = T::DIGITS == 53;
    match class {
        Class::Rounded if is_f64 => 0.0,
        Class::Rounded => 0.5 + 1e-6,
        Class::Chain(roundings) => 0.5 * roundings as f64 + 0.5,
        Class::Math if T::DIGITS < 24 => 1.0,
        Class::Math if is_f64 => 5.0,
        Class::Math => 6.0,
    }
}

/// The distance of neighbouring numbers of a type around a value.
fn ulp<T: FloatValue>(value: f64) -> f64 {
    let exponent = if value == 0.0 { T::MIN_EXPONENT } else { (value.abs().log2().floor() as i32).clamp(T::MIN_EXPONENT, 1023) };
    2f64.powi((exponent - T::DIGITS + 1).max(-1074))
}

/// Holds floats to a reference. NaN is NaN, and infinity is infinity or what rounds to it.
#[track_caller]
pub(crate) fn check<T: FloatValue>(got: &[T], class: Class, want: impl Fn(usize) -> f64) {
    let allowed = tolerance::<T>(class);
    for (i, &value) in got.iter().enumerate() {
        let (got, want) = (value.wide(), want(i));
        let fits = if got.is_nan() || want.is_nan() {
            got.is_nan() && want.is_nan()
        } else if got.is_infinite() {
            // Halfway to the number after the largest one, less what more than one rounding may add.
            got.signum() == want.signum() && want.abs() >= T::MAX + (1.0 - allowed) * ulp::<T>(T::MAX)
        } else {
            (got - want).abs() <= allowed * ulp::<T>(want)
        };
        let off = (got - want).abs() / ulp::<T>(want);
        assert!(fits, "{} {i}: got {got:e}, want {want:e}: {off:.3} ulp off, allowed {allowed} ({class:?})", T::DTYPE);
    }
}

/// Holds integers to a reference, of which they are the low bits.
#[track_caller]
pub(crate) fn check_ints<T: IntValue>(got: &[T], want: impl Fn(usize) -> i128) {
    for (i, &got) in got.iter().enumerate() {
        let want = want(i);
        assert!(got == T::wrap(want), "{} {i}: got {got:?}, want {:?} ({want} wrapped)", T::DTYPE, T::wrap(want));
    }
}

/// Holds elements to a reference bit by bit: for what only moves.
#[track_caller]
pub(crate) fn check_bits<T: Value>(got: &[T], want: impl Fn(usize) -> T) {
    for (i, &got) in got.iter().enumerate() {
        let want = want(i);
        assert!(got.bits() == want.bits(), "{} {i}: got {got:?}, want {want:?}", T::DTYPE);
    }
}

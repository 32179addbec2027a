//! Hyperbolic functions and their inverses; `tanh` is an op.

use super::extended::{exp_parts, limited, scaled};

pub fn sinh<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { sinh_of(x as f64) as T } else { sinh_of(x as f32) as T }
}

pub fn cosh<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { cosh_of(x as f64) as T } else { cosh_of(x as f32) as T }
}

pub fn asinh<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { asinh_of(x as f64) as T } else { asinh_of(x as f32) as T }
}

pub fn acosh<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { acosh_of(x as f64) as T } else { acosh_of(x as f32) as T }
}

pub fn atanh<T: Float>(x: Value<T>) -> Value<T> {
    if T == f64 { atanh_of(x as f64) as T } else { atanh_of(x as f32) as T }
}

/// e^x / 2 for x >= 0, which is finite a little longer than e^x.
fn half_exp<F: Float>(x: Value<F>) -> Value<F> {
    let (r, t, n) = exp_parts(limited(x, 0.0, if F == f64 { 720.0 as F } else { 95.0 as F }), 0.0);
    scaled(1.0 + (r + t), n - 1)
}

/// With m = e^|x| - 1, (m + m / (m + 1)) / 2; far out e^|x| / 2.
fn sinh_of<F: Float>(x: Value<F>) -> Value<F> {
    let size = abs(x);
    let m = expm1(min(size, 22.0));
    let near = 0.5 * (m + m / (m + 1.0));
    let sinh = select(size > 22.0, half_exp(size), near);
    // `min` has taken the place of a NaN by 22.
    select(x == x, copysign(sinh, x), x)
}

fn cosh_of<F: Float>(x: Value<F>) -> Value<F> {
    let half = half_exp(abs(x));
    half + 0.25 / half
}

/// ln(|x| + sqrt(x^2 + 1)) = log1p(|x| + x^2 / (1 + sqrt(x^2 + 1))); far out ln |x| + ln 2.
fn asinh_of<F: Float>(x: Value<F>) -> Value<F> {
    let size = abs(x);
    let square = size * size;
    let near = log1p(size + square / (1.0 + sqrt(fma(size, size, 1.0))));
    copysign(select(size > large::<F>(), log(size) + ln_2::<F>(), near), x)
}

/// With t = x - 1, log1p(t + sqrt(t^2 + 2 t)).
fn acosh_of<F: Float>(x: Value<F>) -> Value<F> {
    let t = x - 1.0;
    let near = log1p(t + sqrt(fma(t, t, t + t)));
    let acosh = select(x > large::<F>(), log(x) + ln_2::<F>(), near);
    select(x < 1.0, f32::NAN as F, acosh)
}

/// log1p(2 x / (1 - x)) / 2, the quotient written as 2 x + 2 x / (1 - x) x, in which errors count for less.
fn atanh_of<F: Float>(x: Value<F>) -> Value<F> {
    let size = abs(x);
    let twice = size + size;
    let atanh = 0.5 * log1p(fma(twice / (1.0 - size), size, twice));
    select(size > 1.0, f32::NAN as F, copysign(atanh, x))
}

/// From here on x^2 + 1 is x^2.
fn large<F: Float>() -> Value<F> {
    if F == f64 { 268_435_456.0 as F } else { 16_384.0 as F }
}

fn ln_2<F: Float>() -> Value<F> {
    if F == f64 { std::f64::consts::LN_2 as F } else { std::f32::consts::LN_2 as F }
}

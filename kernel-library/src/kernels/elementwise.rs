//! Elementwise functions and their gradients. A constant selects the function, so one kernel serves all of them.
//!
//! All kernels compute in `A`, `f32` or `f64`, and round each result once. The grid is `cdiv(n, BLOCK)`.

use galatea::prelude::*;

/// `y = f(x)` for `n` elements:
///
/// | `F` | function | `F` | function | `F` | function |
/// |---|---|---|---|---|---|
/// | 0 | `x * by` | 4 | `sqrt(x)` | 8 | `sigmoid(x)` |
/// | 1 | `x + by` | 5 | `sin(x)` | 9 | `max(x, 0)`, NaN for NaN |
/// | 2 | `exp(x)` | 6 | `cos(x)` | 10 | `x * sigmoid(x)` |
/// | 3 | `log(x)` | 7 | `tanh(x)` | 11 | `x / 2 * (1 + erf(x / sqrt(2)))` |
#[kernel(T = [f32, f16, bf16], A = [f32], F = [0, 7, 9, 10, 11], BLOCK = 1024)]
pub fn unary<T: Float, A: Float, const F: usize, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, by: A) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(x + at, mask = at < n) as A;
    let result = match F {
        0 => v * by,
        1 => v + by,
        2 => exp(v),
        3 => log(v),
        4 => sqrt(v),
        5 => sin(v),
        6 => cos(v),
        7 => tanh(v),
        8 => sigmoid(v),
        9 => select(v <= 0.0, 0.0, v),
        10 => v * sigmoid(v),
        _ => 0.5 * v * (1.0 + erf(v * 0.707_106_781_186_547_5)),
    };
    store(y + at, result as T, mask = at < n);
}

/// `dx = dy * f'(x)` for `n` elements, `f` of [`unary`] from 2 on.
///
/// Argument `v` is the result `f(x)` for 2 (`exp`), 4 (`sqrt`), 7 (`tanh`) and 8 (`sigmoid`), and `x` for the other functions.
#[kernel(T = [f32, f16, bf16], A = [f32], F = [7, 9, 10, 11], BLOCK = 1024)]
pub fn unary_gradients<T: Float, A: Float, const F: usize, const BLOCK: usize>(dy: Ptr<T>, v: Ptr<T>, dx: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let g = load(dy + at, mask = at < n) as A;
    let x = load(v + at, mask = at < n) as A;
    let result = match F {
        2 => g * x,
        3 => g / x,
        4 => 0.5 * g / x,
        5 => g * cos(x),
        6 => -(g * sin(x)),
        7 => g * (1.0 - x * x),
        8 => g * x * (1.0 - x),
        9 => select(x <= 0.0, 0.0, g),
        10 => {
            let s = sigmoid(x);
            g * s * (1.0 + x * (1.0 - s))
        }
        _ => {
            // The density of the standard normal distribution has the factor 1 / sqrt(2 pi).
            let density = exp(-0.5 * x * x) * 0.398_942_280_401_432_7;
            g * (0.5 * (1.0 + erf(x * 0.707_106_781_186_547_5)) + x * density)
        }
    };
    store(dx + at, result as T, mask = at < n);
}

/// `z = f(x, y)` for `n` elements of `z`: `F` is 0 for `x + y`, 1 for `x - y`, 2 for `x * y`, 3 for `x / y` and 4 for `-(x / y)`.
///
/// With `SAME`, `x` and `y` have the shape of `z`. Without it, the element of `x` for element `i` of `z` is number `i / x_inner % x_middle`, and that of `y` is
/// `i / y_inner % y_middle`.
#[kernel(T = [f32, f16, bf16], A = [f32], F = [0, 2], SAME = [true, false], BLOCK = 1024)]
pub fn binary<T: Float, A: Float, const F: usize, const SAME: bool, const BLOCK: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    z: PtrMut<T>,
    n: usize,
    x_inner: usize,
    x_middle: usize,
    y_inner: usize,
    y_middle: usize,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let left = load(x + if SAME { at } else { at / x_inner % x_middle }, mask = at < n) as A;
    let right = load(y + if SAME { at } else { at / y_inner % y_middle }, mask = at < n) as A;
    let result = match F {
        0 => left + right,
        1 => left - right,
        2 => left * right,
        3 => left / right,
        _ => -(left / right),
    };
    store(z + at, result as T, mask = at < n);
}

/// `y = x` for `n` elements, each rounded or truncated to the type of `y` as by `as`.
#[kernel(T = [f32, f16, bf16], U = [f32, f16, bf16], BLOCK = 1024)]
pub fn convert<T: Number, U: Number, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<U>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at, mask = at < n) as U, mask = at < n);
}

/// `y = x / divisor` for `n` elements of `y`, where element `i` has element `i / block * inner + i % inner` of `x`: the gradient of a sum along an axis.
#[kernel(T = [f32, f16, bf16], A = [f32], BLOCK = 1024)]
pub fn repeated<T: Float, A: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, block: usize, inner: usize, divisor: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(x + (at / block * inner + at % inner), mask = at < n) as A;
    store(y + at, (v / divisor as A) as T, mask = at < n);
}

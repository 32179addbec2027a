//! Sums along axes in two launches, and of squared differences. No launch has atomics, so each result has the same bits in every call.

use galatea::prelude::*;

/// Sums over the middle one of three axes, in parts of up to `CHUNK` terms: `x` is `[outer, count, inner]`, and `parts` is `[outer * inner, cdiv(count, CHUNK)]`. With
/// `DIFFERENCE`, a term is `(x - y)^2`; without it, `y` is not read.
///
/// A program adds 1024 terms at once: of one sum with `OUTPUTS` of 1, for few long sums, or of 32 sums.
///
/// Grid: `cdiv(outer * inner, OUTPUTS) * cdiv(count, CHUNK)`. Sums are computed in `A`.
#[kernel(T = [f32, f16, bf16], A = [f32], DIFFERENCE = [false], OUTPUTS = [1, 32], CHUNK = 4096)]
pub fn sum_parts<T: Float, A: Float, const DIFFERENCE: bool, const OUTPUTS: usize, const CHUNK: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    parts: PtrMut<A>,
    outer: usize,
    count: usize,
    inner: usize,
) {
    const TERMS: usize = 1024 / OUTPUTS;
    let outputs = outer * inner;
    let chunks = cdiv(count, CHUNK);
    let chunk = program_id(0) % chunks;
    let output = program_id(0) / chunks * OUTPUTS + arange(0, OUTPUTS);
    let base = output / inner * (count * inner) + output % inner;
    let begin = chunk * CHUNK;
    let mut total = zeros::<A>([OUTPUTS, TERMS]);
    for first in range(begin, min(begin + CHUNK, count), TERMS) {
        let k = first + arange(0, TERMS);
        let at = base.col() + (k * inner).row();
        let mask = (output < outputs).col() & (k < count).row();
        let v = load(x + at, mask = mask) as A;
        if DIFFERENCE {
            let difference = v - load(y + at, mask = mask) as A;
            total += difference * difference;
        } else {
            total += v;
        }
    }
    store(parts + (output * chunks + chunk), sum(total, axis = 1), mask = output < outputs);
}

/// `y = sum / divisor` of each row of `parts`, which is `[outputs, count]`. Grid: `cdiv(outputs, OUTPUTS)`. Computed in `A` and rounded once.
#[kernel(T = [f32, f16, bf16], A = [f32], OUTPUTS = 32, TERMS = 32)]
pub fn sum_of_parts<T: Float, A: Float, const OUTPUTS: usize, const TERMS: usize>(
    parts: Ptr<A>,
    y: PtrMut<T>,
    outputs: usize,
    count: usize,
    divisor: usize,
) {
    let output = program_id(0) * OUTPUTS + arange(0, OUTPUTS);
    let mut total = zeros::<A>([OUTPUTS, TERMS]);
    for first in range(0, count, TERMS) {
        let k = first + arange(0, TERMS);
        total += load(parts + (output.col() * count + k.row()), mask = (output < outputs).col() & (k < count).row());
    }
    store(y + output, (sum(total, axis = 1) / divisor as A) as T, mask = output < outputs);
}

/// `dx = (x - y) * (2 * dloss / n)` for `n` elements: the gradient of the mean of squared differences, whose gradient is the one element of `dloss`.
///
/// Grid: `cdiv(n, BLOCK)`. Computed in `A` and rounded once.
#[kernel(T = [f32, f16, bf16], A = [f32], BLOCK = 1024)]
pub fn difference_gradients<T: Float, A: Float, const BLOCK: usize>(dloss: Ptr<A>, x: Ptr<T>, y: Ptr<T>, dx: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let difference = load(x + at, mask = at < n) as A - load(y + at, mask = at < n) as A;
    let factor = 2.0 * load(dloss) / n as A;
    store(dx + at, (difference * factor) as T, mask = at < n);
}

//! Stateless random numbers: each number is a function of a seed and an offset, independent of the numbers for other seeds and offsets.
//!
//! Every element takes its own offset, such as its index in the tensor. A number can be generated again: the backward pass of a dropout needs
//! no mask in memory.
//!
//! The generator is Philox (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011), with 10 rounds or a constant
//! number of them; `n_rounds = 7` is enough for its authors' tests. Integers and uniform numbers are bit-equal to Triton's for the same seed
//! and offset, on every device. A seed is a scalar or a tile of any integer type, converted to 64 bits.

use super::{Value, only_in_a_kernel};

/// The Philox generator: four random words for a key and a counter of four words.
///
/// 32-bit counters give Philox 4x32 with the two halves of the seed as key; 64-bit counters give Philox 4x64 with the seed and 0 as key;
/// smaller counters are an error. The words have the type of the counters.
///
/// ```ignore
/// let (a, b, c, d) = philox(n, offsets as u32, 0, 0, 0);
/// ```
pub fn philox<S, C>(
    seed: Value<S>,
    c0: Value<C>,
    c1: Value<C>,
    c2: Value<C>,
    c3: Value<C>,
    n_rounds: Option<usize>,
) -> (Value<C>, Value<C>, Value<C>, Value<C>) {
    only_in_a_kernel()
}

/// 32 random bits for each offset.
///
/// ```ignore
/// let dice = randint(n, offsets) % 6 + 1;
/// ```
pub fn randint<S, I>(seed: Value<S>, offset: Value<I>, n_rounds: Option<usize>) -> Value<u32> {
    only_in_a_kernel()
}

/// A uniform `f32` in [0, 1) for each offset: a multiple of approximately 2^-31.
///
/// ```ignore
/// let kept = select(rand(n, offsets) > 0.1, v / 0.9, 0.0);
/// ```
pub fn rand<S, I>(seed: Value<S>, offset: Value<I>, n_rounds: Option<usize>) -> Value<f32> {
    only_in_a_kernel()
}

/// A normal `f32` with mean 0 and variance 1 for each offset, by the Box-Muller method; the absolute value is at most 5.7.
///
/// The formula is Triton's. The results differ from Triton's by the errors of `log`, `sqrt` and `cos` on both sides.
///
/// ```ignore
/// let noisy = v + 0.1 * randn(n, offsets);
/// ```
pub fn randn<S, I>(seed: Value<S>, offset: Value<I>, n_rounds: Option<usize>) -> Value<f32> {
    only_in_a_kernel()
}

/// Four times 32 random bits for each offset, at the cost of one call of [`randint`]. The first result equals that of [`randint`].
///
/// ```ignore
/// let (a, b, c, d) = randint4x(n, offsets);
/// ```
pub fn randint4x<S, I>(seed: Value<S>, offset: Value<I>, n_rounds: Option<usize>) -> (Value<u32>, Value<u32>, Value<u32>, Value<u32>) {
    only_in_a_kernel()
}

/// Four uniform `f32` in [0, 1) for each offset, at the cost of one call of [`rand`]. The first result equals that of [`rand`].
///
/// ```ignore
/// let (a, b, c, d) = rand4x(n, offsets);
/// ```
pub fn rand4x<S, I>(seed: Value<S>, offset: Value<I>, n_rounds: Option<usize>) -> (Value<f32>, Value<f32>, Value<f32>, Value<f32>) {
    only_in_a_kernel()
}

/// Four normal `f32` for each offset, at little more than the cost of two calls of [`randn`]. The first result equals that of [`randn`].
///
/// ```ignore
/// let (a, b, c, d) = randn4x(n, offsets);
/// ```
pub fn randn4x<S, I>(seed: Value<S>, offset: Value<I>, n_rounds: Option<usize>) -> (Value<f32>, Value<f32>, Value<f32>, Value<f32>) {
    only_in_a_kernel()
}

//! Steps of optimizers, in place.

use galatea::prelude::*;

/// The change of weights in step `step` of AdamW, in units of the learning rate, from the moments behind the step.
#[device]
fn change_of<A: Float>(first: Value<A>, second: Value<A>, beta1: A, beta2: A, eps: A, step: i64) -> Value<A> {
    // 1 - beta^step, with all digits where beta is nearly 1.
    let unbiased1 = -expm1(log1p(beta1 - 1.0) * step as A);
    let unbiased2 = -expm1(log1p(beta2 - 1.0) * step as A);
    first * (1.0 / unbiased1) / (sqrt(second * (1.0 / unbiased2)) + eps)
}

/// A step of AdamW (arXiv 1711.05101): weights, and the two moments of their gradients, are updated in place.
///
/// With the gradient `g`, step `t` (1 is the first) and `lr` the learning rate:
///
/// | | |
/// |---|---|
/// | `m` | `beta1 * m + (1 - beta1) * g` |
/// | `v` | `beta2 * v + (1 - beta2) * g * g` |
/// | `weights` | `weights * (1 - lr * weight_decay) - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)` |
///
/// `weights` and `gradients` have `n` elements, `m` and `v` as many of `f32`, zeros before the first step; the grid is `cdiv(n, BLOCK_SIZE)`. Computed in
/// `f32`, weights are rounded once: who trains in halves keeps weights of `f32` beside them. Not autotuned, since each launch is a step: a
/// `BLOCK_SIZE` of 1024 or 4096 is compiled ahead.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let mut weights = device.tensor(&[1.0f32, 1.0])?;
/// let gradients = device.tensor(&[0.3f32, -20.0])?;
/// let [mut m, mut v] = [device.zeros::<f32>(2)?, device.zeros::<f32>(2)?];
/// kernel_library::kernels::adamw::<f32, 1024>(&mut weights, &gradients, &mut m, &mut v, 2, 0.1, 0.9, 0.999, 1e-8, 0.0, 1).grid(1).launch()?;
/// let weights = weights.to_vec()?; // the first step is as long as the learning rate
/// assert!((weights[0] - 0.9).abs() < 1e-5 && (weights[1] - 1.1).abs() < 1e-5);
/// # Ok(())
/// # }
/// ```
#[kernel(T = [f32, f16, bf16], BLOCK_SIZE = [1024, 4096], contract)]
pub fn adamw<T: Float, const BLOCK_SIZE: usize>(
    weights: PtrMut<T>,
    gradients: Ptr<T>,
    m: PtrMut<f32>,
    v: PtrMut<f32>,
    n: usize,
    lr: f32,
    beta1: f32,
    beta2: f32,
    eps: f32,
    weight_decay: f32,
    step: i64,
) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = at < n;
    let g = load(gradients + at, mask = mask) as f32;
    let first = load(m + at, mask = mask) * beta1 + g * (1.0 - beta1);
    let second = load(v + at, mask = mask) * beta2 + g * g * (1.0 - beta2);
    store(m + at, first, mask = mask);
    store(v + at, second, mask = mask);
    let change = change_of::<f32>(first, second, beta1, beta2, eps, step);
    // Loaded last, because it is needed last: the kernel takes fewer registers.
    let w = load(weights + at, mask = mask) as f32;
    store(weights + at, (w * (1.0 - lr * weight_decay) - lr * change) as T, mask = mask);
}

/// [`adamw()`] with the number of the step in a tensor of one element, so that a recorded step counts. Computed in `A`, the type of both moments.
#[kernel(T = [f32, f16, bf16], A = [f32], BLOCK = 1024, contract)]
pub fn adamw_counted<T: Float, A: Float, const BLOCK: usize>(
    weights: PtrMut<T>,
    gradients: Ptr<T>,
    m: PtrMut<A>,
    v: PtrMut<A>,
    step: Ptr<i64>,
    n: usize,
    lr: A,
    beta1: A,
    beta2: A,
    eps: A,
    weight_decay: A,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let g = load(gradients + at, mask = mask) as A;
    let first = load(m + at, mask = mask) * beta1 + g * (1.0 - beta1);
    let second = load(v + at, mask = mask) * beta2 + g * g * (1.0 - beta2);
    store(m + at, first, mask = mask);
    store(v + at, second, mask = mask);
    let change = change_of::<A>(first, second, beta1, beta2, eps, load(step));
    let w = load(weights + at, mask = mask) as A;
    store(weights + at, (w * (1.0 - lr * weight_decay) - lr * change) as T, mask = mask);
}

/// Adds 1 to the one element of `step`. Grid: 1.
#[kernel]
pub fn count_step(step: PtrMut<i64>) {
    store(step, load(step) + 1);
}

/// A step of stochastic gradient descent with momentum: `velocity = momentum * velocity + g`, and `weights -= lr * velocity`, or `lr * (g + momentum * velocity)` with
/// `NESTEROV`, for `g = gradients + weight_decay * weights`.
///
/// All tensors have `n` elements; `velocity` is zeros before the first step. Without `MOMENTUM`, `velocity` is not accessed, and `weights -= lr * g`. Computed in `A`; the grid
/// is `cdiv(n, BLOCK)`.
#[kernel(T = [f32, f16, bf16], A = [f32], MOMENTUM = [false, true], NESTEROV = false, BLOCK = 1024)]
pub fn sgd<T: Float, A: Float, const MOMENTUM: bool, const NESTEROV: bool, const BLOCK: usize>(
    weights: PtrMut<T>,
    gradients: Ptr<T>,
    velocity: PtrMut<A>,
    n: usize,
    lr: A,
    momentum: A,
    weight_decay: A,
) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = at < n;
    let w = load(weights + at, mask = mask) as A;
    let g = load(gradients + at, mask = mask) as A + weight_decay * w;
    if MOMENTUM {
        let v = momentum * load(velocity + at, mask = mask) + g;
        store(velocity + at, v, mask = mask);
        let change = if NESTEROV { g + momentum * v } else { v };
        store(weights + at, (w - lr * change) as T, mask = mask);
    } else {
        store(weights + at, (w - lr * g) as T, mask = mask);
    }
}

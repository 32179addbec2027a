//! Element by element: gated activations with their gradients, and dropout.
//!
//! All tensors of a kernel have the same `n` elements; the grid is `cdiv(n, BLOCK_SIZE)`. Computed in `f32` and rounded once.

use galatea::prelude::*;

/// `y = silu(gate) * up`, `silu(v) = v / (1 + exp(-v))`.
///
/// `gate`, `up` and `y` have `n` elements; the grid is `cdiv(n, BLOCK_SIZE)`. Computed in `f32` and rounded once.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (gate, up) = (device.tensor(&[0.0f32, 20.0, -200.0])?, device.tensor(&[5.0f32, 0.5, 1.0])?);
/// let mut y = device.empty_like(&gate)?;
/// kernel_library::kernels::swiglu(&gate, &up, &mut y, 3).grid(|config| cdiv(3, config.BLOCK_SIZE)).launch()?;
/// assert_eq!(y.to_vec()?, [0.0, 10.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 512, num_warps: 2 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
    ],
    key = [n],
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn swiglu<T: Float, const BLOCK_SIZE: usize>(gate: Ptr<T>, up: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let g = load(gate + at, mask = at < n) as f32;
    let u = load(up + at, mask = at < n) as f32;
    store(y + at, (g * sigmoid(g) * u) as T, mask = at < n);
}

/// The gradients of [`swiglu()`]: `dgate = dy * up * s * (1 + gate * (1 - s))` with `s = sigmoid(gate)`, and `dup = dy * silu(gate)`.
///
/// All have `n` elements; the grid is `cdiv(n, BLOCK_SIZE)`. Computed in `f32` and rounded once.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (gate, up, dy) = (device.tensor(&[0.0f32])?, device.tensor(&[3.0f32])?, device.tensor(&[2.0f32])?);
/// let [mut dgate, mut dup] = [device.empty_like(&gate)?, device.empty_like(&up)?];
/// kernel_library::kernels::swiglu_backward(&dy, &gate, &up, &mut dgate, &mut dup, 1).grid(|config| cdiv(1, config.BLOCK_SIZE)).launch()?;
/// assert_eq!((dgate.to_vec()?, dup.to_vec()?), (vec![3.0], vec![0.0]));
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 512, num_warps: 2 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
    ],
    key = [n],
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn swiglu_backward<T: Float, const BLOCK_SIZE: usize>(
    dy: Ptr<T>,
    gate: Ptr<T>,
    up: Ptr<T>,
    dgate: PtrMut<T>,
    dup: PtrMut<T>,
    n: usize,
) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let d = load(dy + at, mask = at < n) as f32;
    let g = load(gate + at, mask = at < n) as f32;
    let u = load(up + at, mask = at < n) as f32;
    let s = sigmoid(g);
    store(dgate + at, (d * u * s * (g * (1.0 - s) + 1.0)) as T, mask = at < n);
    store(dup + at, (d * g * s) as T, mask = at < n);
}

/// `y = gelu(gate) * up`, `gelu(v) = v / 2 * (1 + erf(v / sqrt(2)))`: the exact function, not that of `tanh`.
///
/// `gate`, `up` and `y` have `n` elements; the grid is `cdiv(n, BLOCK_SIZE)`. Computed in `f32` and rounded once: below -3, where `gelu` comes close to
/// 0, within 1e-6 of it rather than to a relative error.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (gate, up) = (device.tensor(&[0.0f32, 20.0, -20.0])?, device.tensor(&[5.0f32, 0.5, 1.0])?);
/// let mut y = device.empty_like(&gate)?;
/// kernel_library::kernels::geglu(&gate, &up, &mut y, 3).grid(|config| cdiv(3, config.BLOCK_SIZE)).launch()?;
/// assert_eq!(y.to_vec()?, [0.0, 10.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 512, num_warps: 2 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
    ],
    key = [n],
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn geglu<T: Float, const BLOCK_SIZE: usize>(gate: Ptr<T>, up: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let g = load(gate + at, mask = at < n) as f32;
    let u = load(up + at, mask = at < n) as f32;
    let normal = 0.5 + 0.5 * erf(g * 0.707_106_78); // sqrt(1 / 2)
    store(y + at, (g * normal * u) as T, mask = at < n);
}

/// The gradients of [`geglu()`]: `dgate = dy * up * (P + gate * p)` and `dup = dy * gate * P`, with `P` the standard normal distribution at `gate` and
/// `p` its density.
///
/// All have `n` elements; the grid is `cdiv(n, BLOCK_SIZE)`. Computed in `f32` and rounded once, exact as [`geglu()`] is.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (gate, up, dy) = (device.tensor(&[0.0f32])?, device.tensor(&[3.0f32])?, device.tensor(&[2.0f32])?);
/// let [mut dgate, mut dup] = [device.empty_like(&gate)?, device.empty_like(&up)?];
/// kernel_library::kernels::geglu_backward(&dy, &gate, &up, &mut dgate, &mut dup, 1).grid(|config| cdiv(1, config.BLOCK_SIZE)).launch()?;
/// assert_eq!((dgate.to_vec()?, dup.to_vec()?), (vec![3.0], vec![0.0]));
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 512, num_warps: 2 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
    ],
    key = [n],
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn geglu_backward<T: Float, const BLOCK_SIZE: usize>(dy: Ptr<T>, gate: Ptr<T>, up: Ptr<T>, dgate: PtrMut<T>, dup: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let d = load(dy + at, mask = at < n) as f32;
    let g = load(gate + at, mask = at < n) as f32;
    let u = load(up + at, mask = at < n) as f32;
    let normal = 0.5 + 0.5 * erf(g * 0.707_106_78); // sqrt(1 / 2)
    let density = exp2(g * g * -0.721_347_52) * 0.398_942_28; // -log2(e) / 2, 1 / sqrt(2 * pi)
    store(dgate + at, (d * u * (g * density + normal)) as T, mask = at < n);
    store(dup + at, (d * g * normal) as T, mask = at < n);
}

/// `y = x / (1 - p)`, or 0 with probability `p`.
///
/// Element `i` is kept where `rand(seed, i) >= p`, so that the same seed keeps the same elements whatever the block size, the type and the device. No
/// mask is stored: the backward pass is this kernel with the same `seed` and `p`, `dropout(&dy, &mut dx, n, p, seed)`. A dropped element is 0, of NaN
/// too. With `p` of 0 all stay, with `p` of 1 or more none do.
///
/// `x` and `y` have `n` elements; the grid is `cdiv(n, BLOCK_SIZE)`. Computed in `f32` and rounded once.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[3.0f32; 1000])?;
/// let mut y = device.empty_like(&x)?;
/// kernel_library::kernels::dropout(&x, &mut y, 1000, 0.25, 7).grid(|config| cdiv(1000, config.BLOCK_SIZE)).launch()?;
/// assert!(y.to_vec()?.into_iter().all(|y| y == 0.0 || y == 4.0));
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 512, num_warps: 2 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
    ],
    key = [n],
)]
#[kernel(T = [f32, f16, bf16])]
pub fn dropout<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, p: f32, seed: u64) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let v = load(x + at, mask = at < n) as f32;
    let kept = select(rand(seed, at) >= p, v * (1.0 / (1.0 - p)), 0.0);
    store(y + at, kept as T, mask = at < n);
}

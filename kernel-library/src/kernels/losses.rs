//! Losses of the rows of a matrix: cross entropy, with its gradient.

use galatea::prelude::*;

use crate::kernels::online::finite;

/// `losses[i] = lse[i] - logits[i, targets[i]]`, `lse[i]` the logarithm of the sum of the exponentials of row `i`: a program a row.
///
/// `logits` are `[rows, classes]`, `targets`, `losses` and `lse` are `[rows]`; the grid is the number of rows. `lse` is kept for
/// [`cross_entropy_backward()`]. Rows are of any length and read once, computed in `f32`. A row whose target is `ignore_index` (-100 elsewhere) has
/// the loss 0; one whose target is no class otherwise has the loss NaN. The mean is left to the caller, who knows how many rows count.
///
/// While a row is read, the largest element so far and the sum of exponentials are kept for every eight lanes and joined at the end (online
/// normalizer calculation, arXiv 1805.02867).
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let logits = device.tensor(&[1.0f32, 1.0, 1.0, 1.0, 0.0, 9.0, 0.0, 0.0])?;
/// let targets = device.tensor(&[2i64, -100])?;
/// let [mut losses, mut lse] = [device.empty::<f32>(2)?, device.empty::<f32>(2)?];
/// kernel_library::kernels::cross_entropy(&logits, &targets, &mut losses, &mut lse, 4, -100).grid(|_| 2).launch()?;
/// let losses = losses.to_vec()?;
/// assert!((losses[0] - 4f32.ln()).abs() < 1e-6 && losses[1] == 0.0);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 512, num_warps: 1 },
        Config { BLOCK_SIZE: 1024, num_warps: 2 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, num_warps: 16 },
    ],
    key = [classes],
    prune = |config| config.BLOCK_SIZE >= 2 * classes.max(257),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn cross_entropy<T: Float, const BLOCK_SIZE: usize>(
    logits: Ptr<T>,
    targets: Ptr<i64>,
    losses: PtrMut<f32>,
    lse: PtrMut<f32>,
    classes: usize,
    ignore_index: i64,
) {
    let row = program_id(0);
    // First, so that nobody waits for it at the end.
    let target = load(targets + row);
    let is_class = (target >= 0) & (target < classes);
    let chosen = load(logits + row * classes + target, mask = is_class) as f32;
    let class = arange(0, BLOCK_SIZE);
    // Eight lanes, four neighbours in each half of a block, share what they compare with: a thread has them all, and one exponential in nine
    // scales sums.
    let mut largest = full([BLOCK_SIZE / 8], f32::NEG_INFINITY);
    let mut total = zeros::<f32>([BLOCK_SIZE / 8]);
    for first in range(0, classes, BLOCK_SIZE) {
        let at = first + class;
        let lowest = f32::NEG_INFINITY as T;
        let mask = at < classes;
        let v = load(logits + row * classes + at, mask = mask, other = lowest) as f32;
        let eights = reshape(v, [2, BLOCK_SIZE / 8, 4]);
        let next = max(largest, max(max(eights, axis = 2), axis = 0));
        let base = finite(next);
        let terms = fast_exp(eights - base[(None, .., None)]);
        total = total * fast_exp(largest - base) + sum(sum(terms, axis = 2), axis = 0);
        largest = next;
    }
    let top = max(largest);
    let row_lse = top + log(sum(total * fast_exp(largest - finite(top))));
    let loss = select(is_class, row_lse - chosen, f32::NAN);
    store(losses + row, select(target == ignore_index, 0.0, loss));
    store(lse + row, row_lse);
}

/// The gradient of [`cross_entropy()`]: `dlogits[i, j] = dlosses[i] * scale * (exp(logits[i, j] - lse[i]) - 1 if j is the target)`.
///
/// `logits` and `dlogits` are `[rows, classes]`, `targets`, `lse` and `dlosses` are `[rows]`. A program takes a block of a row: the grid is
/// `rows * cdiv(classes, config.BLOCK_SIZE)`. For the mean of the losses `dlosses` are the gradient of the mean in each row, and `scale` is one over the
/// number of rows that count. Computed in `f32` and rounded once. A row whose target is `ignore_index` has the gradient 0; one whose target is no
/// class otherwise NaN.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let logits = device.tensor(&[1.0f32, 1.0, 1.0, 1.0, 0.0, 9.0, 0.0, 0.0])?;
/// let targets = device.tensor(&[2i64, -100])?;
/// let [mut losses, mut lse] = [device.empty::<f32>(2)?, device.empty::<f32>(2)?];
/// kernel_library::kernels::cross_entropy(&logits, &targets, &mut losses, &mut lse, 4, -100).grid(|_| 2).launch()?;
/// let (dlosses, mut dlogits) = (device.tensor(&[1.0f32, 1.0])?, device.empty_like(&logits)?);
/// kernel_library::kernels::cross_entropy_backward(&logits, &targets, &lse, &dlosses, &mut dlogits, 4, -100, 1.0)
///     .grid(|config| 2 * cdiv(4, config.BLOCK_SIZE))
///     .launch()?;
/// let expected = [0.25, 0.25, -0.75, 0.25, 0.0, 0.0, 0.0, 0.0];
/// assert!(dlogits.to_vec()?.iter().zip(expected).all(|(have, want): (&f32, f32)| (have - want).abs() < 1e-6));
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 256, num_warps: 1 },
        Config { BLOCK_SIZE: 1024, num_warps: 1 },
        Config { BLOCK_SIZE: 1024, num_warps: 2 },
        Config { BLOCK_SIZE: 2048, num_warps: 2 },
        Config { BLOCK_SIZE: 4096, num_warps: 4 },
        Config { BLOCK_SIZE: 8192, num_warps: 8 },
    ],
    key = [classes],
    prune = |config| config.BLOCK_SIZE >= 2 * classes.max(129),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn cross_entropy_backward<T: Float, const BLOCK_SIZE: usize>(
    logits: Ptr<T>,
    targets: Ptr<i64>,
    lse: Ptr<f32>,
    dlosses: Ptr<f32>,
    dlogits: PtrMut<T>,
    classes: usize,
    ignore_index: i64,
    scale: f32,
) {
    let blocks = cdiv(classes, BLOCK_SIZE);
    let row = program_id(0) / blocks;
    let class = program_id(0) % blocks * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = class < classes;
    let v = load(logits + row * classes + class, mask = mask) as f32;
    let target = load(targets + row);
    let factor = select((target >= 0) & (target < classes), load(dlosses + row) * scale, f32::NAN);
    let gradient = (fast_exp(v - load(lse + row)) - select(class == target, 1.0, 0.0)) * factor;
    store(dlogits + row * classes + class, select(target == ignore_index, 0.0, gradient) as T, mask = mask);
}

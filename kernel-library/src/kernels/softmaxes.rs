//! Softmax of the rows of a matrix.

use galatea::prelude::*;

use crate::kernels::online::{finite, joined};

/// `y[i, j] = exp(x[i, j] - m) / sum over k of exp(x[i, k] - m)`, `m` the largest element of row `i`: a program a row.
///
/// `x` and `y` are `[rows, columns]`; the grid is the number of rows. Computed in `f32` and rounded once. Rows have any length.
///
/// A row is held in registers, so that each element is read once: by one CTA up to 32,768 columns, by a cluster of up to 16 CTAs up to 524,288 on
/// GPUs that have clusters. For rows of more than 16,384 columns a kernel that reads them twice stands by, the second time to scale: while it reads,
/// the largest element so far and the sum of exponentials are kept for every four neighbouring lanes and joined at the end (online
/// normalizer calculation, arXiv 1805.02867).
/// A row with NaN or `+inf` becomes NaN; `-inf` becomes 0, as does what is less than 2^-126 of the largest, and a row of nothing but `-inf` NaN.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[0.0f32, 0.0, 1.0, 1.0])?;
/// let mut y = device.empty_like(&x)?;
/// kernel_library::kernels::softmax(&x, &mut y, 2).grid(|_| 2).launch()?;
/// assert_eq!(y.to_vec()?, [0.5; 4]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 256, ONCE: true, num_warps: 1 },
        Config { BLOCK_SIZE: 512, ONCE: true, num_warps: 1 },
        Config { BLOCK_SIZE: 1024, ONCE: true, num_warps: 1 },
        Config { BLOCK_SIZE: 1024, ONCE: true, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, ONCE: true, num_warps: 2 },
        Config { BLOCK_SIZE: 2048, ONCE: true, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, ONCE: true, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, ONCE: true, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, ONCE: true, num_warps: 4 },
        Config { BLOCK_SIZE: 8192, ONCE: true, num_warps: 8 },
        Config { BLOCK_SIZE: 16384, ONCE: true, num_warps: 8 },
        Config { BLOCK_SIZE: 16384, ONCE: true, num_warps: 16 },
        Config { BLOCK_SIZE: 32768, ONCE: true, num_warps: 16 },
        Config { BLOCK_SIZE: 32768, ONCE: true, num_warps: 32 },
        Config { BLOCK_SIZE: 32768, ONCE: true, num_warps: 4, num_ctas: 2 },
        Config { BLOCK_SIZE: 65536, ONCE: true, num_warps: 2, num_ctas: 8 },
        Config { BLOCK_SIZE: 65536, ONCE: true, num_warps: 4, num_ctas: 4 },
        Config { BLOCK_SIZE: 65536, ONCE: true, num_warps: 8, num_ctas: 8 },
        Config { BLOCK_SIZE: 131072, ONCE: true, num_warps: 4, num_ctas: 8 },
        Config { BLOCK_SIZE: 131072, ONCE: true, num_warps: 8, num_ctas: 8 },
        Config { BLOCK_SIZE: 262144, ONCE: true, num_warps: 4, num_ctas: 16 },
        Config { BLOCK_SIZE: 262144, ONCE: true, num_warps: 8, num_ctas: 16 },
        Config { BLOCK_SIZE: 524288, ONCE: true, num_warps: 8, num_ctas: 16 },
        Config { BLOCK_SIZE: 524288, ONCE: true, num_warps: 16, num_ctas: 16 },
        Config { BLOCK_SIZE: 4096, ONCE: false, num_warps: 16 },
        Config { BLOCK_SIZE: 8192, ONCE: false, num_warps: 32, maxnreg: 64 }, // without it, NVIDIA's assembler takes 32 and spills
        Config { BLOCK_SIZE: 16384, ONCE: false, num_warps: 32 },
        Config { BLOCK_SIZE: 65536, ONCE: false, num_warps: 16, num_ctas: 16, num_stages: 2 },
    ],
    key = [columns],
    prune = |config| match config.ONCE {
        true => config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(129),
        false => columns <= 16_384,
    },
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn softmax<T: Float, const BLOCK_SIZE: usize, const ONCE: bool>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    let start = program_id(0) * columns;
    let lane = arange(0, BLOCK_SIZE);
    let lowest = f32::NEG_INFINITY as T;
    // Parts of a row that is a cluster's, none of which lies in several CTAs: what they gave is exchanged at once, so that CTAs wait for each other once.
    const PARTS: usize = 16;
    if ONCE {
        let mask = lane < columns;
        let v = load(x + start + lane, mask = mask, other = lowest) as f32;
        let p = if BLOCK_SIZE <= 32_768 {
            let e = fast_exp(v - max(v));
            (e * (1.0 / sum(e))) as T
        } else {
            // Each part has a largest element and a sum of its own.
            let parts = reshape(v, [PARTS, BLOCK_SIZE / PARTS]);
            let largest = max(parts, axis = 1);
            let base = finite(largest);
            let e = fast_exp(parts - base[(.., None)]);
            let (top, total) = reduce((largest, sum(e, axis = 1)), 0, joined);
            // Of a part in which everything is `-inf` this is 0, like its elements: `base` would overflow.
            let scale = fast_exp(largest - top) * (1.0 / total);
            reshape(e * scale[(.., None)], [BLOCK_SIZE]) as T
        };
        store(y + start + lane, p, mask = mask);
    } else {
        // Four neighbours share what they compare with: a thread has them all, and one exponential in five scales sums.
        let mut largest = full([BLOCK_SIZE / 4], f32::NEG_INFINITY);
        let mut total = zeros::<f32>([BLOCK_SIZE / 4]);
        for first in range(0, columns, BLOCK_SIZE) {
            let at = first + lane;
            let v = load(x + start + at, mask = at < columns, other = lowest) as f32;
            let fours = reshape(v, [BLOCK_SIZE / 4, 4]);
            let next = max(largest, max(fours, axis = 1));
            let base = finite(next);
            let terms = fast_exp(fours - base[(.., None)]);
            total = total * fast_exp(largest - base) + sum(terms, axis = 1);
            largest = next;
        }
        let largest = reshape(largest, [PARTS, BLOCK_SIZE / (4 * PARTS)]);
        let part_top = max(largest, axis = 1);
        let terms = reshape(total, [PARTS, BLOCK_SIZE / (4 * PARTS)]) * fast_exp(largest - finite(part_top)[(.., None)]);
        let (top, total) = reduce((part_top, sum(terms, axis = 1)), 0, joined);
        let scale = 1.0 / total;
        for first in range(0, columns, BLOCK_SIZE) {
            let at = first + lane;
            // Read for the last time.
            let v = load(x + start + at, mask = at < columns) as f32;
            store(y + start + at, (fast_exp(v - top) * scale) as T, mask = at < columns);
        }
    }
}

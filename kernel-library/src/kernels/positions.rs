//! Positions of tokens: rotary embeddings, and their gradient.

use galatea::prelude::*;

/// The halves of each head of a token turned by angles, the sines times `direction`.
#[device]
fn rotate<T: Float, const HEADS: usize, const PAIRS: usize>(
    x: Ptr<T>,
    cosine: Ptr<f32>,
    sine: Ptr<f32>,
    positions: Ptr<i64>,
    y: PtrMut<T>,
    heads: usize,
    pairs: usize,
    direction: Value<f32>,
) {
    let token = program_id(0);
    let head = program_id(1) * HEADS + arange(0, HEADS);
    let pair = arange(0, PAIRS);
    let angle = load(positions + token) * pairs + pair;
    let c = load(cosine + angle, mask = pair < pairs)[(None, ..)];
    let s = load(sine + angle, mask = pair < pairs)[(None, ..)] * direction;
    let first = ((token * heads + head) * (2 * pairs))[(.., None)] + pair[(None, ..)];
    let second = first + pairs;
    let mask = (head < heads)[(.., None)] & (pair < pairs)[(None, ..)];
    let a = load(x + first, mask = mask) as f32;
    let b = load(x + second, mask = mask) as f32;
    store(y + first, (a * c - b * s) as T, mask = mask);
    store(y + second, (b * c + a * s) as T, mask = mask);
}

/// Rotary position embedding (arXiv 2104.09864): each pair of elements of a head turned by an angle that grows with the position.
///
/// The pairs of a head of `2 * pairs` elements are its halves, `(x[j], x[j + pairs])`, as in GPT-NeoX and Llama: they become
/// `(a * cos - b * sin, b * cos + a * sin)`.
///
/// `x` and `y` are `[tokens, heads, 2 * pairs]`, `cosine` and `sine` are tables `[positions, pairs]`, `positions` is `[tokens]` and says each token's row
/// of them; a position that the tables have not makes zeros. The grid is `(tokens, cdiv(heads, HEADS))`. Computed in `f32` and rounded once.
/// Heads of up to 512 elements; longer ones are [`Error::NoConfig`].
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor(&[1.0f32, 2.0, 3.0, 4.0])?; // one token, one head, two pairs
/// let (cosine, sine) = (device.tensor(&[1.0f32, 0.0])?, device.tensor(&[0.0f32, 1.0])?);
/// let positions = device.tensor(&[0i64])?;
/// let mut y = device.empty_like(&x)?;
/// kernel_library::kernels::rope(&x, &cosine, &sine, &positions, &mut y, 1, 2).grid(|config| (1, cdiv(1, config.HEADS))).launch()?;
/// assert_eq!(y.to_vec()?, [1.0, -4.0, 3.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { HEADS: 4, PAIRS: 32, num_warps: 1 },
        Config { HEADS: 16, PAIRS: 32, num_warps: 4 },
        Config { HEADS: 4, PAIRS: 64, num_warps: 1 },
        Config { HEADS: 16, PAIRS: 64, num_warps: 4 },
        Config { HEADS: 4, PAIRS: 128, num_warps: 2 },
        Config { HEADS: 8, PAIRS: 128, num_warps: 4 },
        Config { HEADS: 4, PAIRS: 256, num_warps: 4 },
    ],
    key = [heads, pairs],
    prune = |config| config.PAIRS < pairs || config.PAIRS >= 2 * pairs.max(17),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn rope<T: Float, const HEADS: usize, const PAIRS: usize>(
    x: Ptr<T>,
    cosine: Ptr<f32>,
    sine: Ptr<f32>,
    positions: Ptr<i64>,
    y: PtrMut<T>,
    heads: usize,
    pairs: usize,
) {
    rotate::<T, HEADS, PAIRS>(x, cosine, sine, positions, y, heads, pairs, 1.0);
}

/// The gradient of [`rope()`], which is the turn by the negative angle.
///
/// `dy` and `dx` are `[tokens, heads, 2 * pairs]`, the rest is as in the forward pass; so are the grid and the limit.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let dy = device.tensor(&[1.0f32, -4.0, 3.0, 2.0])?; // one token, one head, two pairs
/// let (cosine, sine) = (device.tensor(&[1.0f32, 0.0])?, device.tensor(&[0.0f32, 1.0])?);
/// let positions = device.tensor(&[0i64])?;
/// let mut dx = device.empty_like(&dy)?;
/// kernel_library::kernels::rope_backward(&dy, &cosine, &sine, &positions, &mut dx, 1, 2).grid(|config| (1, cdiv(1, config.HEADS))).launch()?;
/// assert_eq!(dx.to_vec()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[autotune(
    configs = [
        Config { HEADS: 4, PAIRS: 32, num_warps: 1 },
        Config { HEADS: 16, PAIRS: 32, num_warps: 4 },
        Config { HEADS: 4, PAIRS: 64, num_warps: 1 },
        Config { HEADS: 16, PAIRS: 64, num_warps: 4 },
        Config { HEADS: 4, PAIRS: 128, num_warps: 2 },
        Config { HEADS: 8, PAIRS: 128, num_warps: 4 },
        Config { HEADS: 4, PAIRS: 256, num_warps: 4 },
    ],
    key = [heads, pairs],
    prune = |config| config.PAIRS < pairs || config.PAIRS >= 2 * pairs.max(17),
)]
#[kernel(T = [f32, f16, bf16], contract)]
pub fn rope_backward<T: Float, const HEADS: usize, const PAIRS: usize>(
    dy: Ptr<T>,
    cosine: Ptr<f32>,
    sine: Ptr<f32>,
    positions: Ptr<i64>,
    dx: PtrMut<T>,
    heads: usize,
    pairs: usize,
) {
    rotate::<T, HEADS, PAIRS>(dy, cosine, sine, positions, dx, heads, pairs, -1.0);
}

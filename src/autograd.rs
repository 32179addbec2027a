//! The kernels with which gradients are put together.

use crate::ops::{Any, GradKernels, Tensor};
use crate::{Dim, Result, kernel, op};

/// What each op with a backward function refers to.
pub static KERNELS: GradKernels = GradKernels { add, pad };

/// `sum = x + y`, elementwise over `n` elements. Grid: `cdiv(n, BLOCK)`.
#[kernel(crate = crate, T = [f32, f16, bf16, f64], BLOCK = 1024)]
fn add_elements<T: Float, const BLOCK: usize>(x: Ptr<T>, y: Ptr<T>, sum: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(sum + at, load(x + at, mask = at < n) + load(y + at, mask = at < n), mask = at < n);
}

/// The `part` elements of `x` as those of `y` from number `offset` on, and zeros as the others of its `n` elements. Grid: `cdiv(n, BLOCK)`.
#[kernel(crate = crate, T = [f32, f16, bf16, f64], BLOCK = 1024)]
fn pad_elements<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, offset: usize, part: usize, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let inside = (at >= offset) & (at < offset + part);
    store(y + at, load(x + (at - offset), mask = inside, other = 0.0), mask = at < n);
}

/// The sum of two gradients of one tensor.
#[op("galatea::add_gradients", crate = crate)]
fn add(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (n, mut sum) = (x.numel(), x.empty_like()?);
    add_elements::<Any, 1024>(x, y, &mut sum, &n).grid(n.cdiv(1024)).launch()?;
    Ok(sum)
}

/// The gradient of a tensor from that of its elements from number `offset` on.
fn pad(part: &Tensor, offset: &Dim, dims: &[Dim]) -> Result<Tensor> {
    let mut whole = part.new_empty(part.dtype(), dims)?;
    let n = whole.numel();
    pad_elements::<Any, 1024>(part, &mut whole, offset, &part.numel(), &n).grid(n.cdiv(1024)).launch()?;
    Ok(whole)
}

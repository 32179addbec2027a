//! Kernels, and functions of tensors that launch them.

use galatea::op;
use galatea::ops::{Any, Tensor};
use galatea::prelude::*;

/// y = x * sigmoid(x)
#[kernel]
pub(crate) fn silu_elements<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(x + at, mask = at < n) as f32;
    store(y + at, (v * sigmoid(v)) as T, mask = at < n);
}

/// y = a * y + b, in place
#[kernel]
pub(crate) fn scale_elements(y: PtrMut<f32>, a: f32, b: i32, n: i32) {
    let at = program_id(0) * 64 + arange(0, 64);
    let inside = at < n;
    store(y + at, load(y + at, mask = inside) * a + b as f32, mask = inside);
}

/// x = 3 * x, in place
#[kernel]
pub(crate) fn triple(x: PtrMut<f32>, n: usize) {
    let at = arange(0, 128);
    store(x + at, load(x + at, mask = at < n) * 3.0, mask = at < n);
}

/// y = a * x, for any type
#[kernel]
pub(crate) fn times<T: Float>(x: Ptr<T>, y: PtrMut<T>, a: T, n: usize) {
    let at = arange(0, 16);
    store(y + at, load(x + at, mask = at < n) * a, mask = at < n);
}

/// y[i] = the sum of row i
#[kernel]
fn sum_rows<const BLOCK: usize>(x: View<f32, 2>, y: PtrMut<f32>) {
    let row = program_id(0);
    let mut total = 0.0;
    for first in range(0, extent(x, 1), BLOCK) {
        total += sum(x.load([row, first], [1, BLOCK]));
    }
    store(y + row, total);
}

/// Two results of one launch.
#[kernel]
pub(crate) fn sum_and_difference(a: Ptr<f32>, b: Ptr<f32>, sum: PtrMut<f32>, difference: PtrMut<f32>, n: usize) {
    let at = program_id(0) * 64 + arange(0, 64);
    let (x, y) = (load(a + at, mask = at < n), load(b + at, mask = at < n));
    store(sum + at, x + y, mask = at < n);
    store(difference + at, x - y, mask = at < n);
}

pub(crate) fn silu(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    silu_elements::<Any, 64>(x, &mut y, &n).grid(n.cdiv(64)).launch()?;
    Ok(y)
}

pub(crate) fn scale(y: &mut Tensor, a: f32, b: i32) -> Result<()> {
    let n = y.numel();
    scale_elements(y, a, b, &n).grid(n.cdiv(64)).launch()
}

pub(crate) fn row_sums(x: &Tensor) -> Result<Tensor> {
    let mut y = x.new_empty(x.dtype(), [x.dim(0)])?;
    sum_rows::<32>(x, &mut y).grid(x.dim(0)).launch()?;
    Ok(y)
}

#[op("test::scale_")]
pub(crate) fn scale_op(y: &mut Tensor, a: f32, b: i32) -> Result<()> {
    scale(y, a, b)
}

#[op("test::silu")]
pub(crate) fn silu_op(x: &Tensor) -> Result<Tensor> {
    silu(x)
}

/// Its parameters have the names of what the attribute adds.
#[op("test::names")]
pub(crate) fn names_op(body: &Tensor, call: f32, result: &mut Tensor) -> Result<Tensor> {
    scale(result, call, 0)?;
    silu(body)
}

/// An op that calls others.
#[op("test::mlp")]
pub(crate) fn mlp_op(x: &Tensor, weights: &[Tensor], bias: Option<&Tensor>, keep: bool) -> Result<(Tensor, Tensor)> {
    let mut y = silu_op(x)?;
    let (sum, difference) = sum_difference(&y, &weights[0])?;
    if keep && bias.is_none() {
        scale_op(&mut y, 0.5, -3)?;
    }
    let (total, _) = sum_difference(&sum, &y)?;
    Ok((total, silu_op(&difference)?))
}

pub(crate) fn sum_difference(a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
    let (n, mut sum, mut difference) = (a.numel(), a.empty_like()?, a.empty_like()?);
    sum_and_difference(a, b, &mut sum, &mut difference, &n).grid(n.cdiv(64)).launch()?;
    Ok((sum, difference))
}

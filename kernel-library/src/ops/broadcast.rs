//! Shapes that broadcast: the common extents of two tensors, the index of an operand's element, and the sum of a gradient over repeated axes.
//!
//! Neighbouring axes that an operand has, or that repeat it, are one *run*, because tensors are contiguous. An operand with one run of its own axes needs no copy: a bias, a
//! column, a scalar. Others, such as `[2, 1, 3]` for `[2, 4, 3]`, are copied with the runs in between repeated.

use galatea::ops::{Any, OpsError, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype};

use super::{product_of, wide};
use crate::kernels;

/// The terms that a program of `sum_parts` adds.
const CHUNK: usize = 4096;

/// The extents of the result of an elementwise function of two tensors.
pub(super) fn broadcast_dims(op: &'static str, x: &Tensor, y: &Tensor) -> Result<Vec<Dim>> {
    let (x_dims, y_dims) = (x.dims(), y.dims());
    let rank = x_dims.len().max(y_dims.len());
    let (x_padded, y_padded) = (padded(&x_dims, rank), padded(&y_dims, rank));
    let mut dims = Vec::with_capacity(rank);
    for (x_dim, y_dim) in x_padded.into_iter().zip(y_padded) {
        // Known extents of 1 first: whether a named dim is 1 is usually not decided.
        if x_dim.known() == Some(1) {
            dims.push(y_dim);
        } else if y_dim.known() == Some(1) || x_dim.is_eq(&y_dim)? {
            dims.push(x_dim);
        } else {
            return Err(Error::Ops(OpsError::Broadcast { op, first: ("x", x_dims), second: ("y", y_dims) }));
        }
    }
    Ok(dims)
}

/// The extents with axes of 1 in front.
fn padded(dims: &[Dim], rank: usize) -> Vec<Dim> {
    let ones = std::iter::repeat_n(Dim::from(1), rank - dims.len());
    ones.chain(dims.iter().cloned()).collect()
}

/// Neighbouring axes of a result.
#[derive(Clone)]
struct Run {
    /// Whether the operand is repeated along them.
    is_repeated: bool,
    extent: Dim,
}

/// The runs of `dims` for an operand, in turns: a repeated one follows one of the operand's own axes.
fn runs(operand: &[Dim], dims: &[Dim]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (own, extent) in padded(operand, dims.len()).into_iter().zip(dims) {
        if extent.known() == Some(1) {
            continue;
        }
        let is_repeated = own.known() == Some(1);
        match runs.last_mut().filter(|run| run.is_repeated == is_repeated) {
            Some(run) => run.extent = &run.extent * extent,
            None => runs.push(Run { is_repeated, extent: extent.clone() }),
        }
    }
    runs
}

/// The product of the extents of runs.
fn extent_of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Dim {
    runs.into_iter().fold(Dim::from(1), |product, run| product * &run.extent)
}

/// A tensor as an operand of a function whose result has other extents.
pub(super) struct Operand {
    tensor: Tensor,
    runs: Vec<Run>,
}

impl Operand {
    /// The operand, with the repeated runs between its own axes copied.
    pub(super) fn new(tensor: &Tensor, dims: &[Dim]) -> Result<Operand> {
        let (mut tensor, mut runs) = (tensor.clone(), runs(&tensor.dims(), dims));
        while let Some(at) = (1..runs.len().max(1) - 1).rev().find(|at| runs.get(*at).is_some_and(|run| run.is_repeated)) {
            let outer = extent_of(runs[..at].iter().filter(|run| !run.is_repeated));
            let inner = extent_of(runs[at + 1..].iter().filter(|run| !run.is_repeated));
            tensor = repeated(&tensor, &[outer, runs[at].extent.clone(), inner], &Dim::from(1))?;
            let merged = Run { is_repeated: false, extent: extent_of(&runs[at - 1..=at + 1]) };
            runs.splice(at - 1..=at + 1, [merged]);
        }
        Ok(Operand { tensor, runs })
    }

    pub(super) fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// Returns whether the operand has an element of its own for each one of the result.
    pub(super) fn is_whole(&self) -> bool {
        self.runs.iter().all(|run| !run.is_repeated)
    }

    /// The numbers `inner` and `middle`: element `i` of the result takes element `i / inner % middle` of the operand. `n` is the number of elements of the result.
    pub(super) fn strides(&self, n: &Dim) -> (Dim, Dim) {
        match self.runs.iter().position(|run| !run.is_repeated) {
            Some(own) => (extent_of(&self.runs[own + 1..]), self.runs[own].extent.clone()),
            None => (n.clone(), Dim::from(1)),
        }
    }
}

/// A tensor `[outer, inner]` as `dims`, which are `[outer, extent, inner]`, each element divided by a number.
pub(super) fn repeated(x: &Tensor, dims: &[Dim; 3], divisor: &Dim) -> Result<Tensor> {
    let mut y = x.new_empty(x.dtype(), &dims[..])?;
    let (n, block) = (y.numel(), &dims[1] * &dims[2]);
    with_wide!(x.dtype(), A => {
        kernels::repeated::<Any, A, 1024>(x, &mut y, &n, &block, &dims[2], divisor).grid(n.cdiv(1024)).launch()
    })?;
    Ok(y)
}

/// The gradient of an operand from that of a result with which the operand was broadcast: summed over the repeated axes.
pub(super) fn sum_to(grad: &Tensor, operand: &Tensor) -> Result<Tensor> {
    let mut runs = runs(&operand.dims(), &grad.dims());
    let (mut sum, dtype) = (grad.clone(), grad.dtype());
    while let Some(at) = runs.iter().rposition(|run| run.is_repeated) {
        let axes = [extent_of(&runs[..at]), runs[at].extent.clone(), extent_of(&runs[at + 1..])];
        // Each sum but the last one keeps the digits of the type in which it is computed.
        let is_last = runs.iter().filter(|run| run.is_repeated).count() == 1;
        sum = sums(&sum, &axes, &Dim::from(1), if is_last { dtype } else { wide(dtype) })?;
        runs.remove(at);
    }
    sum.reshape(operand.dims())
}

/// The sums of `x`, as `[outer, extent, inner]`, over the middle axis, divided by `divisor`: one axis of elements of `dtype`.
pub(super) fn sums(x: &Tensor, [outer, extent, inner]: &[Dim; 3], divisor: &Dim, dtype: Dtype) -> Result<Tensor> {
    // The number of outputs decides on the order of the sum. It does not depend on extents, so that a recording for named dims has the same order.
    const OUTPUTS: usize = 32;
    let (outputs, chunks) = (outer * inner, extent.cdiv(CHUNK));
    let mut parts = x.new_empty(wide(x.dtype()), [&outputs, &chunks])?;
    with_wide!(x.dtype(), A => {
        kernels::sum_parts::<Any, A, false, OUTPUTS, CHUNK>(x, x, &mut parts, outer, extent, inner)
            .grid(outputs.cdiv(OUTPUTS) * &chunks)
            .launch()
    })?;
    sum_of_parts(&parts, &outputs, &chunks, divisor, dtype)
}

/// The sum of all elements, divided by `divisor`: an element of `dtype`, without axes. With `DIFFERENCE`, of the squares of differences to the elements of `y`.
pub(super) fn sum_of_all<const DIFFERENCE: bool>(x: &Tensor, y: &Tensor, divisor: &Dim, dtype: Dtype) -> Result<Tensor> {
    let (one, n) = (Dim::from(1), x.numel());
    let chunks = n.cdiv(CHUNK);
    let mut parts = x.new_empty(wide(x.dtype()), [&chunks])?;
    with_wide!(x.dtype(), A => {
        kernels::sum_parts::<Any, A, DIFFERENCE, 1, CHUNK>(x, y, &mut parts, &one, &n, &one).grid(&chunks).launch()
    })?;
    sum_of_parts(&parts, &one, &chunks, divisor, dtype)?.reshape([0i64; 0])
}

/// The sums of rows of parts, `[outputs, count]` of a wide dtype, divided by `divisor`: one axis of elements of `dtype`.
pub(super) fn sum_of_parts(parts: &Tensor, outputs: &Dim, count: &Dim, divisor: &Dim, dtype: Dtype) -> Result<Tensor> {
    let mut y = parts.new_empty(dtype, [outputs])?;
    with_wide!(parts.dtype(), A => {
        kernels::sum_of_parts::<Any, A, 32, 32>(parts, &mut y, outputs, count, divisor).grid(outputs.cdiv(32)).launch()
    })?;
    Ok(y)
}

/// The extents before an axis, of the axis, and behind it. Axes below 0 count from the end.
pub(super) fn around(x: &Tensor, axis: isize) -> Result<(usize, [Dim; 3])> {
    let (dims, extent) = (x.dims(), x.dim(axis));
    extent.bounds()?;
    let at = if axis < 0 { dims.len() - axis.unsigned_abs() } else { axis.unsigned_abs() };
    Ok((at, [product_of(&dims[..at]), extent, product_of(&dims[at + 1..])]))
}

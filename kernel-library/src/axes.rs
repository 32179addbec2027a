//! Reductions over any axes of a tensor.

use galatea::MAX_RANK;
use galatea::prelude::*;

use crate::call::Call;
use crate::stages::{self, Matrices};
use crate::{AsTensor, kernels};

/// The elements of a block of the kernel `quotients`, which is compiled with this crate.
const BLOCK_SIZE: usize = 1024;

/// Whether the result of a reduction keeps the axes over which it reduces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// Each reduced axis has the extent 1, so that the result broadcasts against the input.
    Yes,
    /// The result has the other axes alone.
    No,
}

/// The sum over any axes.
///
/// `axes` are numbers of axes of `x`, in any order, without repetition. The result has the shape of `x`, in which each of these axes has the extent 1 with
/// [`Keep::Yes`], and is left out with [`Keep::No`]. Every [`Float`] is accepted, added up in `f32` and rounded once. Sums of no elements are 0.
/// Neighbouring axes are reduced at once, and others in turn. The result is the same in every call on one device; see
/// [Reductions](crate#reductions).
///
/// # Errors
/// [`Error::ArgumentValue`] if `axes` repeats an axis, or `x` has no such axis; or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # use kernel_library::{Keep, sum_over};
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [2, 2, 2])?;
/// let y = sum_over(&x, &[1], Keep::No)?;
/// assert_eq!((y.shape(), y.to_vec()?), (&[2, 2][..], vec![4.0, 6.0, 12.0, 14.0]));
/// let y = sum_over(&x, &[0, 2], Keep::Yes)?;
/// assert_eq!((y.shape(), y.to_vec()?), (&[1, 2, 1][..], vec![14.0, 22.0]));
/// # Ok(())
/// # }
/// ```
pub fn sum_over<T: Float>(x: &impl AsTensor<T>, axes: &[usize], keep: Keep) -> Result<Tensor<T>> {
    let x = x.as_tensor();
    let call = Call::new("sum_over", "x", &x);
    let plan = Plan::of(&call, &x, axes, keep)?;
    match plan.steps[..] {
        [Matrices { matrices, rows, columns: 1 }] => stages::sum_of_rows(&call, x, matrices, rows, &plan.shape),
        _ => sum_in_steps(&call, x, &plan),
    }
}

/// The mean over any axes: the sum divided by the number of elements.
///
/// `axes` and `keep` are those of [`sum_over()`]. Every [`Float`] is accepted, computed in `f32` and rounded once. Means of no elements are NaN. The
/// result is the same in every call on one device.
///
/// # Errors
/// As [`sum_over()`].
///
/// ```
/// # use galatea::prelude::*;
/// # use kernel_library::{Keep, mean_over};
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 9.0], [2, 3])?;
/// assert_eq!(mean_over(&x, &[1], Keep::No)?.to_vec()?, [2.0, 6.0]);
/// let y = mean_over(&x, &[0, 1], Keep::No)?;
/// assert_eq!((y.shape(), y.to_vec()?), (&[][..], vec![4.0]));
/// # Ok(())
/// # }
/// ```
pub fn mean_over<T: Float>(x: &impl AsTensor<T>, axes: &[usize], keep: Keep) -> Result<Tensor<T>> {
    let x = x.as_tensor();
    let call = Call::new("mean_over", "x", &x);
    let plan = Plan::of(&call, &x, axes, keep)?;
    let sums: Tensor<f32> = sum_in_steps(&call, x, &plan)?;
    let mut means = call.empty(&plan.shape)?;
    if !means.is_empty() {
        let n = means.len();
        kernels::quotients::<T, BLOCK_SIZE>(&sums, &mut means, n, plan.reduced as f32).grid(cdiv(n, BLOCK_SIZE)).launch()?;
    }
    Ok(means)
}

/// The largest element over any axes. NaN counts as `-inf`.
///
/// `axes` and `keep` are those of [`sum_over()`]. `f32`, `f16` and `bf16` are accepted. The largest of no elements is `-inf`.
///
/// # Errors
/// [`Error::ArgumentValue`] if `axes` repeats an axis, or `x` has no such axis; [`Error::Compile`] for `f64`; or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # use kernel_library::{Keep, max_over};
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor_from(&[1.0f32, 7.0, f32::NAN, -4.0, -5.0, -6.0], [2, 3])?;
/// assert_eq!(max_over(&x, &[0], Keep::No)?.to_vec()?, [1.0, 7.0, -6.0]);
/// let y = max_over(&x, &[1], Keep::Yes)?;
/// assert_eq!((y.shape(), y.to_vec()?), (&[2, 1][..], vec![7.0, -4.0]));
/// # Ok(())
/// # }
/// ```
pub fn max_over<T: Float>(x: &impl AsTensor<T>, axes: &[usize], keep: Keep) -> Result<Tensor<T>> {
    let x = x.as_tensor();
    let call = Call::new("max_over", "x", &x);
    let plan = Plan::of(&call, &x, axes, keep)?;
    let step = |x: TensorView<'_, T>, step: Matrices, shape: &[usize]| match step {
        Matrices { matrices, rows, columns: 1 } => stages::max_of_rows(&call, x, matrices, rows, shape),
        matrices => stages::max_of_columns(&call, x, matrices, shape),
    };
    let (last, before) = plan.last_step();
    let mut largest: Option<Tensor<T>> = None;
    for &extents in before {
        let shape = [extents.matrices, extents.columns];
        largest = Some(step(largest.as_ref().map_or(x, Tensor::view), extents, &shape)?);
    }
    step(largest.as_ref().map_or(x, Tensor::view), last, &plan.shape)
}

/// Sums in steps, with parts of `f32` between them.
fn sum_in_steps<S: Float, T: Float>(call: &Call<'_>, x: TensorView<'_, S>, plan: &Plan) -> Result<Tensor<T>> {
    let (last, before) = plan.last_step();
    let mut parts: Option<Tensor<f32>> = None;
    for &step in before {
        let shape = [step.matrices, step.columns];
        parts = Some(match &parts {
            None => sum_of_step(call, x, step, &shape)?,
            Some(parts) => sum_of_step(call, parts.view(), step, &shape)?,
        });
    }
    match &parts {
        None => sum_of_step(call, x, last, &plan.shape),
        Some(parts) => sum_of_step(call, parts.view(), last, &plan.shape),
    }
}

fn sum_of_step<S: Float, T: Float>(call: &Call<'_>, x: TensorView<'_, S>, step: Matrices, shape: &[usize]) -> Result<Tensor<T>> {
    match step {
        Matrices { matrices, rows, columns: 1 } => stages::sum_of_blocks(call, x, matrices, rows, shape),
        matrices => stages::sum_of_columns(call, x, matrices, shape),
    }
}

/// How a tensor is reduced over some of its axes.
struct Plan {
    /// Each step reduces the rows of matrices. Matrices of one column are rows in memory. There is at least one step.
    steps: Vec<Matrices>,
    /// The number of elements of which each element of the result is reduced.
    reduced: usize,
    /// The shape of the result.
    shape: Vec<usize>,
}

impl Plan {
    /// The plan for these axes, or the error about them.
    fn of<T: Element>(call: &Call<'_>, x: &TensorView<'_, T>, axes: &[usize], keep: Keep) -> Result<Plan> {
        let shape = x.shape();
        let mut is_reduced = [false; MAX_RANK];
        for &axis in axes {
            let error = |expected: String, help| call.expect_value("axes", axes, false, expected, help);
            match is_reduced.get_mut(axis).filter(|_| axis < shape.len()) {
                None => error(axes_below(shape, axis), "axes are counted from 0, which is the outermost")?,
                Some(true) => {
                    error(format!("each axis once is expected: axis {axis} of the shape {shape:?} is repeated"), "name each axis once")?
                }
                Some(seen) => *seen = true,
            }
        }
        let axes = || shape.iter().copied().zip(is_reduced);
        let kept = |(extent, is_reduced)| match (is_reduced, keep) {
            (false, _) => Some(extent),
            (true, Keep::Yes) => Some(1),
            (true, Keep::No) => None,
        };
        Ok(Plan {
            steps: steps(axes()),
            reduced: axes().filter(|(_, is_reduced)| *is_reduced).map(|(extent, _)| extent).product(),
            shape: axes().filter_map(kept).collect(),
        })
    }

    /// The step that gives the result, and those before it.
    fn last_step(&self) -> (Matrices, &[Matrices]) {
        let (last, before) = self.steps.split_last().expect("a plan has at least one step");
        (*last, before)
    }
}

/// What is expected of an axis that a shape does not have.
fn axes_below(shape: &[usize], axis: usize) -> String {
    match shape.len() {
        0 => format!("no axis is expected: `x` has the shape [], without an axis {axis}"),
        rank => format!("axes below {rank} are expected: `x` has the shape {shape:?}, without an axis {axis}"),
    }
}

/// The steps that reduce a tensor of these extents over the axes that are marked, largest extents first: the steps behind read less.
///
/// Neighbouring axes are one. An axis of extent 1 separates no others: its elements are neither further apart nor fewer without it.
fn steps(axes: impl Iterator<Item = (usize, bool)>) -> Vec<Matrices> {
    let mut merged: Vec<(usize, bool)> = Vec::new();
    for (extent, is_reduced) in axes.filter(|(extent, _)| *extent != 1) {
        match merged.last_mut() {
            Some((last, same)) if *same == is_reduced => *last *= extent,
            _ => merged.push((extent, is_reduced)),
        }
    }
    let product = |axes: &[(usize, bool)]| axes.iter().map(|(extent, _)| extent).product::<usize>();
    let mut steps = Vec::new();
    while let Some((at, rows)) = (0..merged.len()).filter(|&at| merged[at].1).map(|at| (at, merged[at].0)).max_by_key(|&(_, rows)| rows) {
        steps.push(Matrices { matrices: product(&merged[..at]), rows, columns: product(&merged[at + 1..]) });
        merged.remove(at);
    }
    if steps.is_empty() {
        // Each element is reduced alone.
        steps.push(Matrices { matrices: 1, rows: 1, columns: product(&merged) });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps for a shape whose axes with an exclamation mark are reduced, as `matrices x rows x columns`.
    fn text(shape: &str) -> String {
        let axes = shape.split_whitespace().map(|axis| (axis.trim_end_matches('!').parse().unwrap(), axis.ends_with('!')));
        let text = |Matrices { matrices, rows, columns }: &Matrices| format!("{matrices}x{rows}x{columns}");
        steps(axes).iter().map(text).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn steps_for_shapes() {
        assert_eq!(text("2 3 4!"), "6x4x1");
        assert_eq!(text("2! 3 4"), "1x2x12");
        assert_eq!(text("2 3! 4"), "2x3x4");
        assert_eq!(text("2! 3! 4!"), "1x24x1");
        // Neighbours are one step, also beside an axis of extent 1.
        assert_eq!(text("2 3! 4! 5"), "2x12x5");
        assert_eq!(text("2 3! 1 4! 5"), "2x12x5");
        assert_eq!(text("2 1! 3!"), "2x3x1");
        // The largest first.
        assert_eq!(text("7! 3 2!"), "1x7x6, 3x2x1");
        assert_eq!(text("2! 3 7!"), "6x7x1, 1x2x3");
        assert_eq!(text("2! 3 9! 5 4!"), "6x9x20, 30x4x1, 1x2x15");
        // Nothing to reduce.
        assert_eq!(text(""), "1x1x1");
        assert_eq!(text("2 3"), "1x1x6");
        assert_eq!(text("2 1! 3"), "1x1x6");
        assert_eq!(text("2 0! 3"), "2x0x3");
        assert_eq!(text("0 3!"), "0x3x1");
    }
}

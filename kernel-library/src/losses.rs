//! Cross entropy, with its gradient.

use galatea::prelude::*;

use crate::call::{Call, Of, Rows};
use crate::{AsTensor, kernels};

/// The values that [`cross_entropy_forward()`] saves for [`cross_entropy_backward()`].
#[derive(Debug)]
pub struct CrossEntropySaved {
    /// The logarithm of the sum of exponentials of each row of logits. The shape is that of the targets.
    pub lse: Tensor<f32>,
    /// The target whose rows have the loss 0 and the gradient 0.
    pub ignore_index: i64,
}

/// The cross entropy of each row of logits with its target class: `log(sum over j of exp(logits[i, j])) - logits[i, targets[i]]`.
///
/// `logits` has any shape with at least one axis; the classes lie along the last axis, and there is at least one. `targets` has the shape of `logits`
/// without the last axis, which is the shape of the result. Every [`Float`] is accepted; losses are computed in `f32`. A row whose target is
/// `ignore_index`, usually -100, has the loss 0. A row with another target that is no class has the loss NaN: targets are on the device, so an error would
/// need a synchronisation. The mean is left to the caller, because only the caller knows how many rows count. For training, call
/// [`cross_entropy_forward()`].
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] for tensors that do not match, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let logits = device.tensor_from(&[1.0f32, 1.0, 1.0, 1.0, 0.0, 9.0, 0.0, 0.0], [2, 4])?;
/// let targets = device.tensor(&[2i64, -100])?;
/// let losses = kernel_library::cross_entropy(&logits, &targets, -100)?.to_vec()?;
/// assert!((losses[0] - 4f32.ln()).abs() < 1e-6 && losses[1] == 0.0);
/// # Ok(())
/// # }
/// ```
pub fn cross_entropy<T: Float>(logits: &impl AsTensor<T>, targets: &impl AsTensor<i64>, ignore_index: i64) -> Result<Tensor<f32>> {
    let (losses, _) = cross_entropy_of("cross_entropy", logits.as_tensor(), targets.as_tensor(), ignore_index)?;
    Ok(losses)
}

/// [`cross_entropy()`] for training: also returns what [`cross_entropy_backward()`] needs.
///
/// # Errors
/// As [`cross_entropy()`].
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let logits = device.tensor_from(&[1.0f32, 1.0, 1.0, 1.0, 0.0, 9.0, 0.0, 0.0], [2, 4])?;
/// let targets = device.tensor(&[2i64, -100])?;
/// let (losses, saved) = kernel_library::cross_entropy_forward(&logits, &targets, -100)?;
///
/// let dlosses = device.full(losses.shape(), 1.0f32)?; // the gradient of the sum of the losses; for their mean, one over the number of rows that count
/// let dlogits = kernel_library::cross_entropy_backward(&dlosses, &logits, &targets, &saved)?;
/// let expected = [0.25, 0.25, -0.75, 0.25, 0.0, 0.0, 0.0, 0.0];
/// assert!(dlogits.to_vec()?.iter().zip(expected).all(|(have, want): (&f32, f32)| (have - want).abs() < 1e-6));
/// # Ok(())
/// # }
/// ```
pub fn cross_entropy_forward<T: Float>(
    logits: &impl AsTensor<T>,
    targets: &impl AsTensor<i64>,
    ignore_index: i64,
) -> Result<(Tensor<f32>, CrossEntropySaved)> {
    cross_entropy_of("cross_entropy_forward", logits.as_tensor(), targets.as_tensor(), ignore_index)
}

fn cross_entropy_of<T: Float>(
    function: &'static str,
    logits: TensorView<'_, T>,
    targets: TensorView<'_, i64>,
    ignore_index: i64,
) -> Result<(Tensor<f32>, CrossEntropySaved)> {
    let call = Call::new(function, "logits", &logits);
    let rows = classes(&call, "logits", &logits, call.rows(&logits, usize::MAX)?)?;
    call.expect("targets", &targets, rows.leading, Of::rows("logits", logits.shape()))?;
    let mut losses = call.empty(rows.leading)?;
    let mut saved = CrossEntropySaved { lse: call.empty(rows.leading)?, ignore_index };
    if rows.rows > 0 {
        let launch = kernels::cross_entropy(logits, targets, &mut losses, &mut saved.lse, rows.columns, ignore_index);
        launch.grid(|_| rows.rows).launch()?;
    }
    Ok((losses, saved))
}

/// The gradient of [`cross_entropy()`]: `dlogits[i, j] = dlosses[i] * (exp(logits[i, j] - lse[i]) - (1 if j is the target, else 0))`.
///
/// `logits` and `targets` are those of the forward pass, and `saved` is its result. `dlosses` has the shape of `targets`. The result has the shape and
/// the type of `logits`, computed in `f32` and rounded once. The gradient of a row is 0 if its target is `ignore_index`, and NaN if its target is no
/// class. For the gradient of the mean, each element of `dlosses` is one over the number of rows that count.
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] for tensors that do not match, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (logits, targets) = (device.tensor_from(&[0.0f32, 0.0], [1, 2])?, device.tensor(&[1i64])?);
/// let (_, saved) = kernel_library::cross_entropy_forward(&logits, &targets, -100)?;
/// let dlogits = kernel_library::cross_entropy_backward(&device.tensor(&[3.0f32])?, &logits, &targets, &saved)?.to_vec()?;
/// assert!((dlogits[0] - 1.5).abs() < 1e-6 && (dlogits[1] + 1.5).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
pub fn cross_entropy_backward<T: Float>(
    dlosses: &impl AsTensor<f32>,
    logits: &impl AsTensor<T>,
    targets: &impl AsTensor<i64>,
    saved: &CrossEntropySaved,
) -> Result<Tensor<T>> {
    let (dlosses, logits, targets) = (dlosses.as_tensor(), logits.as_tensor(), targets.as_tensor());
    let call = Call::new("cross_entropy_backward", "dlosses", &dlosses);
    call.expect_device("logits", &logits)?;
    let rows = classes(&call, "logits", &logits, call.rows_of("logits", &logits, usize::MAX)?)?;
    call.expect("dlosses", &dlosses, rows.leading, Of::rows("logits", logits.shape()))?;
    call.expect("targets", &targets, rows.leading, Of::rows("logits", logits.shape()))?;
    call.expect("saved.lse", &saved.lse.view(), rows.leading, Of::rows("logits", logits.shape()))?;
    let mut dlogits = call.empty(logits.shape())?;
    if rows.rows > 0 {
        let (rows, classes) = (rows.rows, rows.columns);
        kernels::cross_entropy_backward(logits, targets, &saved.lse, dlosses, &mut dlogits, classes, saved.ignore_index, 1.0)
            .grid(|config| rows * cdiv(classes, config.BLOCK_SIZE))
            .launch()?;
    }
    Ok(dlogits)
}

/// An error if the rows of logits have no class.
fn classes<'t, T: Float>(call: &Call<'_>, argument: &'static str, logits: &TensorView<'_, T>, rows: Rows<'t>) -> Result<Rows<'t>> {
    if rows.columns > 0 {
        return Ok(rows);
    }
    let expected = "at least one class is expected: classes lie along the last axis".to_owned();
    Err(call.wrong_shape(argument, logits, expected, format!("pass `{argument}` with one column for each class")))
}

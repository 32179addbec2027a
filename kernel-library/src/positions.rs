//! Rotary position embeddings, with their gradient.

use galatea::prelude::*;

use crate::call::{Call, Of};
use crate::{AsTensor, kernels};

/// The longest head of the kernels.
const LONGEST: usize = 512;

/// Rotary position embedding (arXiv 2104.09864): rotates each pair of elements of a head by an angle that depends on the position of the token.
///
/// `x` is `[.., heads, 2 * pairs]`, and each index of the leading axes is a token. `positions` has the shape of the leading axes, and gives each token
/// its row of the tables `cosine` and `sine`, which are `[rows, pairs]` of `f32`. The result has the shape of `x`. The pairs of a head are its halves,
/// `(a, b) = (x[j], x[j + pairs])`, as in GPT-NeoX and Llama; they become `(a * cos - b * sin, b * cos + a * sin)`. Every [`Float`] is accepted,
/// computed in `f32` and rounded once. Heads have at most 512 elements. A position that the tables do not have gives zeros: positions are on the device,
/// so an error would need a synchronisation.
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] if `x` has fewer than two axes, heads of an odd number of elements or longer heads, or if the
/// others do not match; or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let x = device.tensor_from(&[1.0f32, 2.0, 3.0, 4.0], [1, 1, 4])?; // one token, one head, two pairs
/// let positions = device.tensor(&[0i64])?;
/// let (cosine, sine) = (device.tensor_from(&[1.0f32, 0.0], [1, 2])?, device.tensor_from(&[0.0f32, 1.0], [1, 2])?);
/// assert_eq!(kernel_library::rope(&x, &positions, &cosine, &sine)?.to_vec()?, [1.0, -4.0, 3.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub fn rope<T: Float>(
    x: &impl AsTensor<T>,
    positions: &impl AsTensor<i64>,
    cosine: &impl AsTensor<f32>,
    sine: &impl AsTensor<f32>,
) -> Result<Tensor<T>> {
    let (x, positions, cosine, sine) = (x.as_tensor(), positions.as_tensor(), cosine.as_tensor(), sine.as_tensor());
    let call = Call::new("rope", "x", &x);
    let [heads, pairs] = heads(&call, "x", &x, &positions, &cosine, &sine)?;
    let mut y = call.empty(x.shape())?;
    if !x.is_empty() {
        let tokens = positions.len();
        let launch = kernels::rope(x, cosine, sine, positions, &mut y, heads, pairs);
        launch.grid(|config| (tokens, cdiv(heads, config.HEADS))).launch()?;
    }
    Ok(y)
}

/// The gradient of [`rope()`], which is the rotation by the negative angle.
///
/// `dy` and the result have the shape of `x` of the forward pass; the other arguments are those of the forward pass.
///
/// # Errors
/// As [`rope()`].
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let dy = device.tensor_from(&[1.0f32, -4.0, 3.0, 2.0], [1, 1, 4])?;
/// let positions = device.tensor(&[0i64])?;
/// let (cosine, sine) = (device.tensor_from(&[1.0f32, 0.0], [1, 2])?, device.tensor_from(&[0.0f32, 1.0], [1, 2])?);
/// assert_eq!(kernel_library::rope_backward(&dy, &positions, &cosine, &sine)?.to_vec()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
pub fn rope_backward<T: Float>(
    dy: &impl AsTensor<T>,
    positions: &impl AsTensor<i64>,
    cosine: &impl AsTensor<f32>,
    sine: &impl AsTensor<f32>,
) -> Result<Tensor<T>> {
    let (dy, positions, cosine, sine) = (dy.as_tensor(), positions.as_tensor(), cosine.as_tensor(), sine.as_tensor());
    let call = Call::new("rope_backward", "dy", &dy);
    let [heads, pairs] = heads(&call, "dy", &dy, &positions, &cosine, &sine)?;
    let mut dx = call.empty(dy.shape())?;
    if !dy.is_empty() {
        let tokens = positions.len();
        let launch = kernels::rope_backward(dy, cosine, sine, positions, &mut dx, heads, pairs);
        launch.grid(|config| (tokens, cdiv(heads, config.HEADS))).launch()?;
    }
    Ok(dx)
}

/// Checks the arguments. Returns the number of heads and of pairs of elements in a head.
fn heads<T: Float>(
    call: &Call<'_>,
    argument: &'static str,
    x: &TensorView<'_, T>,
    positions: &TensorView<'_, i64>,
    cosine: &TensorView<'_, f32>,
    sine: &TensorView<'_, f32>,
) -> Result<[usize; 2]> {
    let &[ref tokens @ .., heads, head] = x.shape() else {
        let expected = "at least two axes are expected: `[.., heads, 2 * pairs]`".to_owned();
        return Err(call.wrong_shape(
            argument,
            x,
            expected,
            format!("give it an axis of heads, such as `{argument}.reshape([1, {}])?`", x.len()),
        ));
    };
    if head > LONGEST {
        let expected = format!("a last extent of at most {LONGEST} is expected: a head lies along the last axis");
        return Err(call.wrong_shape(argument, x, expected, "compare the order of the axes; longer heads are not supported".to_owned()));
    }
    if head % 2 == 1 {
        let expected = "an even last extent is expected: a head consists of pairs".to_owned();
        return Err(call.wrong_shape(
            argument,
            x,
            expected,
            "the last axis is the axis within a head: compare the order of the axes".to_owned(),
        ));
    }
    call.expect("positions", positions, tokens, Of::tokens(argument, x.shape()))?;
    call.expect_device("cosine", cosine)?;
    if !matches!(*cosine.shape(), [_, pairs] if pairs == head / 2) {
        let expected = format!("`[rows, {}]` is expected: half a head of `{argument}`, which has the shape {:?}", head / 2, x.shape());
        return Err(call.wrong_shape("cosine", cosine, expected, "make the table for the length of the heads".to_owned()));
    }
    call.expect("sine", sine, cosine.shape(), Of::shape("cosine"))?;
    Ok([heads, head / 2])
}

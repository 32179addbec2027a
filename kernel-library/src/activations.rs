//! Elementwise functions: gated activations with their gradients, and dropout.

use galatea::prelude::*;

use crate::call::{Call, Of};
use crate::{AsTensor, kernels};

/// The gradients of a gated activation, returned by [`swiglu_backward()`] and [`geglu_backward()`]. Both have the shape of the inputs.
#[derive(Debug)]
pub struct GateGradients<T: Element> {
    /// The gradient of `gate`.
    pub dgate: Tensor<T>,
    /// The gradient of `up`.
    pub dup: Tensor<T>,
}

/// SwiGLU (arXiv 2002.05202): `y = silu(gate) * up`, where `silu(v) = v / (1 + exp(-v))`.
///
/// `gate` and `up` have the same shape, of any rank; it is the shape of the result. Every [`Float`] is accepted, computed in `f32` and rounded once.
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] if `up` does not match `gate`, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (gate, up) = (device.tensor(&[0.0f32, 20.0, -200.0])?, device.tensor(&[5.0f32, 0.5, 1.0])?);
/// assert_eq!(kernel_library::swiglu(&gate, &up)?.to_vec()?, [0.0, 10.0, 0.0]);
/// # Ok(())
/// # }
/// ```
pub fn swiglu<T: Float>(gate: &impl AsTensor<T>, up: &impl AsTensor<T>) -> Result<Tensor<T>> {
    let (gate, up) = (gate.as_tensor(), up.as_tensor());
    let call = Call::new("swiglu", "gate", &gate);
    call.expect("up", &up, gate.shape(), Of::shape("gate"))?;
    let (n, mut y) = (gate.len(), call.empty(gate.shape())?);
    if n > 0 {
        kernels::swiglu(gate, up, &mut y, n).grid(|config| cdiv(n, config.BLOCK_SIZE)).launch()?;
    }
    Ok(y)
}

/// The gradients of [`swiglu()`]: `dgate = dy * up * s * (1 + gate * (1 - s))` with `s = sigmoid(gate)`, and `dup = dy * silu(gate)`.
///
/// `dy`, `gate` and `up` have the same shape, of any rank; it is the shape of both results. Every [`Float`] is accepted, computed in `f32` and rounded
/// once.
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] if `gate` or `up` does not match `dy`, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (gate, up, dy) = (device.tensor(&[0.0f32])?, device.tensor(&[3.0f32])?, device.tensor(&[2.0f32])?);
/// let gradients = kernel_library::swiglu_backward(&dy, &gate, &up)?;
/// assert_eq!((gradients.dgate.to_vec()?, gradients.dup.to_vec()?), (vec![3.0], vec![0.0]));
/// # Ok(())
/// # }
/// ```
pub fn swiglu_backward<T: Float>(dy: &impl AsTensor<T>, gate: &impl AsTensor<T>, up: &impl AsTensor<T>) -> Result<GateGradients<T>> {
    let (dy, gate, up) = (dy.as_tensor(), gate.as_tensor(), up.as_tensor());
    let (n, mut all) = gate_gradients("swiglu_backward", &dy, &gate, &up)?;
    if n > 0 {
        let launch = kernels::swiglu_backward(dy, gate, up, &mut all.dgate, &mut all.dup, n);
        launch.grid(|config| cdiv(n, config.BLOCK_SIZE)).launch()?;
    }
    Ok(all)
}

/// GeGLU (arXiv 2002.05202): `y = gelu(gate) * up`, where `gelu(v) = v / 2 * (1 + erf(v / sqrt(2)))`. This is the exact function, not the approximation
/// by `tanh`.
///
/// `gate` and `up` have the same shape, of any rank; it is the shape of the result. Every [`Float`] is accepted, computed in `f32` and rounded once.
/// For `gate` below -3, `gelu` has an absolute error of at most 1e-6.
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] if `up` does not match `gate`, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (gate, up) = (device.tensor(&[0.0f32, 20.0, -20.0])?, device.tensor(&[5.0f32, 0.5, 1.0])?);
/// assert_eq!(kernel_library::geglu(&gate, &up)?.to_vec()?, [0.0, 10.0, 0.0]);
/// # Ok(())
/// # }
/// ```
pub fn geglu<T: Float>(gate: &impl AsTensor<T>, up: &impl AsTensor<T>) -> Result<Tensor<T>> {
    let (gate, up) = (gate.as_tensor(), up.as_tensor());
    let call = Call::new("geglu", "gate", &gate);
    call.expect("up", &up, gate.shape(), Of::shape("gate"))?;
    let (n, mut y) = (gate.len(), call.empty(gate.shape())?);
    if n > 0 {
        kernels::geglu(gate, up, &mut y, n).grid(|config| cdiv(n, config.BLOCK_SIZE)).launch()?;
    }
    Ok(y)
}

/// The gradients of [`geglu()`]: `dgate = dy * up * (P + gate * p)` and `dup = dy * gate * P`, where `P` is the standard normal distribution at `gate`
/// and `p` its density.
///
/// `dy`, `gate` and `up` have the same shape, of any rank; it is the shape of both results. Every [`Float`] is accepted, computed in `f32` and rounded
/// once.
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] if `gate` or `up` does not match `dy`, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let (gate, up, dy) = (device.tensor(&[0.0f32])?, device.tensor(&[3.0f32])?, device.tensor(&[2.0f32])?);
/// let gradients = kernel_library::geglu_backward(&dy, &gate, &up)?;
/// assert_eq!((gradients.dgate.to_vec()?, gradients.dup.to_vec()?), (vec![3.0], vec![0.0]));
/// # Ok(())
/// # }
/// ```
pub fn geglu_backward<T: Float>(dy: &impl AsTensor<T>, gate: &impl AsTensor<T>, up: &impl AsTensor<T>) -> Result<GateGradients<T>> {
    let (dy, gate, up) = (dy.as_tensor(), gate.as_tensor(), up.as_tensor());
    let (n, mut all) = gate_gradients("geglu_backward", &dy, &gate, &up)?;
    if n > 0 {
        let launch = kernels::geglu_backward(dy, gate, up, &mut all.dgate, &mut all.dup, n);
        launch.grid(|config| cdiv(n, config.BLOCK_SIZE)).launch()?;
    }
    Ok(all)
}

/// Checks the arguments of a gradient. Returns the number of elements and the tensors for the results.
fn gate_gradients<T: Float>(
    function: &'static str,
    dy: &TensorView<'_, T>,
    gate: &TensorView<'_, T>,
    up: &TensorView<'_, T>,
) -> Result<(usize, GateGradients<T>)> {
    let call = Call::new(function, "dy", dy);
    call.expect("gate", gate, dy.shape(), Of::shape("dy"))?;
    call.expect("up", up, dy.shape(), Of::shape("dy"))?;
    Ok((dy.len(), GateGradients { dgate: call.empty(dy.shape())?, dup: call.empty(dy.shape())? }))
}

/// Dropout: each element of `y` is `x / (1 - p)`, or 0 with probability `p`.
///
/// `x` has any shape, which is the shape of the result. Every [`Float`] is accepted, computed in `f32` and rounded once. `p` is from 0 to 1. Element `i`
/// of the flat tensor is kept if `rand(seed, i) >= p`. So a `seed` keeps the same elements on every device and for every type, and no mask is stored:
/// pass the same `p` and `seed` to [`dropout_backward()`], and another `seed` to each call of `dropout` in a training. A dropped NaN is 0.
///
/// # Errors
/// [`Error::ArgumentValue`] if `p` is not from 0 to 1, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor(&[3.0f32; 1000])?;
/// let y = kernel_library::dropout(&x, 0.25, 7)?;
/// assert!(y.to_vec()?.into_iter().all(|y| y == 0.0 || y == 4.0));
/// # Ok(())
/// # }
/// ```
pub fn dropout<T: Float>(x: &impl AsTensor<T>, p: f32, seed: u64) -> Result<Tensor<T>> {
    let x = x.as_tensor();
    dropped(&Call::new("dropout", "x", &x), x, p, seed)
}

/// The gradient of [`dropout()`] with the same `p` and `seed`: `dy / (1 - p)` for each element that `dropout` kept, else 0.
///
/// `dy` has the shape of the input of `dropout`, which is the shape of the result. Every [`Float`] is accepted, computed in `f32` and rounded once.
///
/// # Errors
/// [`Error::ArgumentValue`] if `p` is not from 0 to 1, or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor(&[1.0f32; 1000])?;
/// let (y, dx) = (kernel_library::dropout(&x, 0.25, 7)?, kernel_library::dropout_backward(&x, 0.25, 7)?);
/// assert_eq!(y.to_vec()?, dx.to_vec()?); // both scale the same elements
/// # Ok(())
/// # }
/// ```
pub fn dropout_backward<T: Float>(dy: &impl AsTensor<T>, p: f32, seed: u64) -> Result<Tensor<T>> {
    let dy = dy.as_tensor();
    dropped(&Call::new("dropout_backward", "dy", &dy), dy, p, seed)
}

/// Forward and backward pass are the same function.
fn dropped<T: Float>(call: &Call<'_>, x: TensorView<'_, T>, p: f32, seed: u64) -> Result<Tensor<T>> {
    let help = "pass a fraction, such as 0.1 to drop a tenth of the elements";
    call.expect_value("p", p, (0.0..=1.0).contains(&p), "a probability from 0 to 1 is expected", help)?;
    let (n, mut y) = (x.len(), call.empty(x.shape())?);
    if n > 0 {
        kernels::dropout(x, &mut y, n, p, seed).grid(|config| cdiv(n, config.BLOCK_SIZE)).launch()?;
    }
    Ok(y)
}

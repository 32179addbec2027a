//! The type that a launch names where the arguments determine the dtype.

/// Named for a type parameter of a kernel, stands for the dtype of the arguments: in `silu::<Any, 1024>(&x, &mut y, n)` the kernel runs for the dtype
/// that the [`ops::Tensor`](super::Tensor)s `x` and `y` have.
///
/// The tensors of one type parameter must have one dtype, and the parameter's bound must allow it. Otherwise the launch returns an error. A scalar
/// of the parameter's type is given as `f32`, `f64` or `i64`, and converted to the dtype.
///
/// A parameter without a tensor needs a type. So does one on which `heuristics`, `prune` or another rule of `#[autotune]` depends.
#[derive(Clone, Copy, Debug)]
pub enum Any {}

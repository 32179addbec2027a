//! The host runtime: devices, tensors, streams and launches of the kernels that `kernel-lang` compiles.
//!
//! A program opens a [`Device`], copies data into [`Tensor`]s, and calls kernels. `#[kernel]` turns a kernel into a function that returns a
//! [`Launch`]. On a CUDA GPU a launch is queued on a [`Stream`], and the runtime orders launches by the tensors that they use. On the CPU a launch is
//! complete when the call returns. Without an NVIDIA driver everything runs on the CPU; nothing panics.
//!
//! The feature `sim` adds simulated GPUs, see [`sim`]. The feature `jit`, on by default, compiles variants that were not built with the program when
//! they are first launched. Compiled code and tuning results are cached on disk, see [`cache`].

#![deny(missing_docs)]

pub mod assembler;
pub mod bench;
pub mod cache;
mod device;
mod dim;
mod error;
mod kernel;
mod launch;
pub mod ops;
pub mod prelude;
#[doc(hidden)]
pub mod private;
pub mod profile;
mod replay;
pub mod sim;
mod site;
mod tensor;
pub mod tune;

/// The version of cudarc whose types tensors and launches accept.
pub use cudarc;
pub use device::Device;
pub use device::event::Event;
pub use device::stream::Stream;
pub use dim::{Dim, DimError, DimValues, Proof, Relation};
pub use error::{AssertionFailed, Error, FreeBytes, OutOfBounds, Result};
/// The element type inside a kernel.
pub use kernel_lang::dtype::Dtype;
/// A GPU architecture for which PTX is compiled.
pub use kernel_lang::target::Target;
pub use launch::grid::{Grid, GridDim, IntoGrid, cdiv};
pub use launch::prints::capture_prints;
pub use launch::scalar::ScalarArg;
pub use launch::{Launch, NoGrid};
pub use replay::{Lent, Replay, Tensors, Update};
pub use site::Site;
pub use tensor::Tensor;
pub use tensor::compare::{Comparison, FirstDifference, compare};
pub use tensor::element::{Element, Float, Int, Number, Scalar, bf16, f8e4m3, f8e5m2, f16};
pub use tensor::pointer::{PtrArg, PtrMutArg, ViewArg, ViewMutArg};
pub use tensor::shape::{IntoShape, MAX_RANK, Shape};
pub use tensor::view::{TensorView, TensorViewMut};

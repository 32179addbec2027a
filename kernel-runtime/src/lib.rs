//! The machine: devices, tensors, streams and launches for kernels that `kernel-lang` compiled.
//!
//! A program opens a [`Device`], puts data into [`Tensor`]s, and calls kernels, which `#[kernel]` made into functions that return
//! a [`Launch`]. On a GPU work is queued on a [`Stream`] and ordered by the tensors it uses; on the CPU it is done at once.
//! Without an NVIDIA driver everything runs on the CPU; nothing panics.
//! With the feature `sim` a GPU can be simulated, see [`sim`]. What is compiled and tuned is kept on disk, see [`cache`]. What was not built with the
//! program is compiled when it is first launched: the feature `jit`, on by default.

#![deny(missing_docs)]

mod args;
#[cfg(feature = "cache")]
pub mod assembler;
mod background;
pub mod bench;
pub mod cache;
mod call;
mod cpu;
mod device;
mod driver;
mod element;
mod error;
mod event;
mod fact;
mod float8;
mod gpu;
mod graph;
mod grid;
mod grown;
mod kernel;
mod launch;
mod memory;
mod module;
mod pointer;
pub mod prelude;
mod prints;
#[doc(hidden)]
pub mod private;
pub mod profile;
mod reporting;
mod shape;
pub mod sim;
mod slice;
mod stream;
mod tensor;
pub mod tune;
mod view;

/// The CUDA library whose types tensors and launches accept, in the version they accept.
pub use cudarc;
pub use device::Device;
pub use element::{Element, Float, Int, Number, Scalar, bf16, f8e4m3, f8e5m2, f16};
pub use error::{AssertionFailed, Error, FreeBytes, OutOfBounds, Result};
pub use event::Event;
pub use graph::{Graph, Lent, Tensors, Update};
pub use grid::{Grid, GridDim, IntoGrid, cdiv};
/// The type of an element inside a kernel.
pub use kernel_lang::dtype::Dtype;
/// What PTX is made for: an architecture of GPUs.
pub use kernel_lang::target::Target;
pub use launch::{Launch, NoGrid};
pub use pointer::{PtrArg, PtrMutArg, ViewArg, ViewMutArg};
pub use prints::capture_prints;
pub use shape::{IntoShape, MAX_RANK, Shape};
pub use stream::Stream;
pub use tensor::Tensor;
pub use view::{TensorView, TensorViewMut};

//! Block-level GPU kernels in Rust.
//!
//! A function marked [`#[kernel]`](kernel) is written in a small tile language with Rust's syntax and Triton's model: a *program* works
//! on *tiles*. While your crate compiles, it is type-checked and lowered to PTX that is embedded in your binary. Running it needs the
//! NVIDIA driver and nothing else; without a GPU the same kernel runs on the CPU.
//!
//! ```
//! use galatea::prelude::*;
//!
//! /// y = x * sigmoid(x), computed in f32 and rounded once.
//! #[kernel(BLOCK_SIZE = [1024, 4096])]
//! fn silu<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
//!     let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
//!     let mask = offsets < n;
//!     let v = load(x + offsets, mask = mask) as f32;
//!     store(y + offsets, (v * sigmoid(v)) as T, mask = mask);
//! }
//!
//! # fn main() -> galatea::Result<()> {
//! let device = Device::default()?; // the first CUDA GPU, else the CPU
//! let x = device.tensor(&[1.0f32, -2.0, 3.0])?;
//! let mut y = device.empty_like(&x)?;
//! silu::<f32, 1024>(&x, &mut y, x.len()).grid(cdiv(x.len(), 1024)).launch()?;
//! assert!((y.to_vec()?[0] - 0.731_058_6).abs() < 1e-6);
//! # Ok(())
//! # }
//! ```
//!
//! The words of a kernel are documented in [`dsl`]; who knows Triton begins with [`guide`]; devices, tensors and launches below; [`mod@bench`] times
//! launches, [`profile`] shows what ran when, and [`tune`] tells what `#[autotune]` tried and chose. With the feature `sim`, a GPU can be simulated: `Device::sim(Target::SM_90A)?` runs
//! the PTX itself, and checks every access of it, see [`sim`]. What is compiled and tuned at run time is kept on disk, see [`cache`].

pub use kernel_graph as graph;
pub use kernel_lang::dsl;
pub use kernel_macros::{__device, __kernel, autotune, device, kernel, op};
#[doc(hidden)]
pub use kernel_runtime::private as __private;
pub use kernel_runtime::{
    AssertionFailed, Device, Dim, DimError, DimValues, Dtype, Element, Error, Event, Float, FreeBytes, Grid, GridDim, Int, IntoGrid,
    IntoShape, Launch, Lent, MAX_RANK, NoGrid, Number, OutOfBounds, Proof, PtrArg, PtrMutArg, Relation, Replay, Result, Scalar, Shape,
    Stream, Target, Tensor, TensorView, TensorViewMut, Tensors, Update, ViewArg, ViewMutArg, bench, bf16, cache, capture_prints, cdiv,
    compare, cudarc, f8e4m3, f8e5m2, f16, profile, sim, tune,
};

/// Tensors as values, ops and models.
pub mod ops {
    pub use kernel_macros::Module;
    pub use kernel_runtime::ops::*;
}

/// Tests an op on arguments: [`graph::op_check`] with the default options.
///
/// ```
/// use galatea::op;
/// use galatea::ops::{Any, Tensor};
/// use galatea::{op_check, prelude::*};
///
/// #[kernel(T = [f32], BLOCK = 64)]
/// fn twice<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
///     let at = program_id(0) * BLOCK + arange(0, BLOCK);
///     let v = load(x + at, mask = at < n);
///     store(y + at, v + v, mask = at < n);
/// }
///
/// #[op("mylib::double", backward() = double)] // the gradient of 2x is 2
/// fn double(x: &Tensor) -> Result<Tensor> {
///     let (n, mut y) = (x.numel(), x.empty_like()?);
///     twice::<Any, 64>(x, &mut y, &n).grid(n.cdiv(64)).launch()?;
///     Ok(y)
/// }
///
/// # fn main() -> galatea::graph::Result<()> {
/// let x = Tensor::from(Device::cpu().tensor(&[1.0f32, -2.5, 3.0])?);
/// let check = op_check!(double, &x)?;
/// assert_eq!(check.gradients.map(|gradients| gradients.checked), Some(3));
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! op_check {
    ($($op:ident)::+ $(, $argument:expr)* $(,)?) => {
        $crate::graph::op_check(&$($op)::+::DEF, [$($crate::ops::OpInput::from($argument)),*], &$crate::graph::OpCheckOptions::default())
    };
}

#[doc(hidden)]
#[path = "autograd.rs"]
pub mod __autograd;

/// Stands for every builtin where rustc looks for names that are similar to an unknown one.
#[doc(hidden)]
#[macro_export]
macro_rules! __builtin_of_kernels {
    () => {};
}

#[doc(hidden)]
pub mod __builtins {
    kernel_macros::__builtin_names!(crate::__builtin_of_kernels);
}

#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

/// The other pages of the book that have programs: each program is a doctest.
#[cfg(doctest)]
mod book {
    macro_rules! pages {
        ($($name:ident $path:literal)*) => {$(
            #[doc = include_str!($path)]
            mod $name {}
        )*};
    }
    pages! {
        autograd "../docs/autograd.md"
        autotuning "../docs/autotuning.md"
        benchmarking "../docs/benchmarking.md"
        caches "../docs/caches.md"
        deployment "../docs/deployment.md"
        device_functions "../docs/device-functions.md"
        graphs "../docs/graphs.md"
        introduction "../docs/introduction.md"
        matrix_products "../docs/matrix-products.md"
        ops "../docs/ops.md"
        packages "../docs/packages.md"
        profiling "../docs/profiling.md"
        replay "../docs/replay.md"
        simulator "../docs/simulator.md"
        tuning "../docs/tuning.md"
        views "../docs/views.md"
    }
}

/// The items that most programs need: `use galatea::prelude::*`.
pub mod prelude {
    pub use kernel_macros::{autotune, device, kernel};
    pub use kernel_runtime::prelude::*;
}

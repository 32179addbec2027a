//! What the code that `#[kernel]` and `#[autotune]` generate names. Not for people.

pub use crate::args::{Args, PtrArg, PtrMutArg};
pub use crate::element::{Element, Float, Int, Number, Scalar};
pub use crate::kernel::{Kernel, Param, ParamKind, Variant};
pub use crate::launch::Launch;
pub use crate::tune::{AutotunedLaunch, TuneConfig, Tuner};

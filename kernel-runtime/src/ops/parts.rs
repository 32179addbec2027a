//! The parts of kernels and launches, for files that hold graphs. They are not part of the stable API.

pub use crate::kernel::cpu::stopping_at;
pub use crate::kernel::parts::{BuiltParts, FactParts, KernelParts, KnownParts, VariantParts};
pub use crate::kernel::{Kernel, ParamKind};
pub use crate::launch::scalar::IntegerType;
pub use crate::replay::is_capturing;
pub use crate::tune::recorded::{KeyPartParts, NotPacked, TunerParts};
pub use kernel_lang::Schedule;

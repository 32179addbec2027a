//! What the code that `#[kernel]` and `#[autotune]` generate names. Not for people: these items are no part of the
//! crate's promises. That words, PTX and IR belong together is what the callers of `Kernel::new` and `Launch::new` promise, which are `unsafe` therefore.

pub use kernel_lang::Schedule;

pub use crate::args::Args;
pub use crate::element::{Element, Float, Int, Number, Scalar};
pub use crate::fact::Fact;
pub use crate::kernel::{Kernel, Param, ParamKind, Variant};
pub use crate::launch::Launch;
pub use crate::pointer::{PtrArg, PtrMutArg, ViewArg, ViewMutArg};
pub use crate::tune::{AutotunedLaunch, Extents, HostArgs, KeyPart, RecordsFile, Rules, TuneConfig, Tuner, asked, debug_config, extent};

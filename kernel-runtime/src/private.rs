//! What the code that `#[kernel]` and `#[autotune]` generate names. Not for people: these items trust that the words, the
//! PTX and the IR belong together, and are no part of the crate's promises.

pub use kernel_lang::Schedule;

pub use crate::args::Args;
pub use crate::element::{Element, Float, Int, Number, Scalar};
pub use crate::fact::Fact;
pub use crate::kernel::{Kernel, Param, ParamKind, Variant};
pub use crate::launch::Launch;
pub use crate::pointer::{PtrArg, PtrMutArg, ViewArg, ViewMutArg};
pub use crate::tune::{AutotunedLaunch, Extents, HostArgs, KeyPart, RecordsFile, Rules, TuneConfig, Tuner, asked, debug_config, extent};

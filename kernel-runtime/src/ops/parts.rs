//! The parts of kernels and launches, for files that hold graphs. They are not part of the stable API.

pub use crate::kernel::cpu::stopping_at;
pub use crate::kernel::literals::word_of;
pub use crate::kernel::parts::{BuiltParts, FactParts, KernelParts, KnownParts, MachineCodeParts, VariantParts};
pub use crate::kernel::{Kernel, ParamKind};
pub use crate::launch::scalar::IntegerType;
pub use crate::ops::schema::Schema;
pub use crate::replay::is_capturing;
pub use crate::tune::known_records::KnownRecords;
pub use crate::tune::recorded::{KeyPartParts, NotPacked, TunerParts};
pub use kernel_lang::Schedule;
pub use kernel_lang::diagnostic::did_you_mean;
pub use kernel_lang::launch_value::persistent_entry::split_entries;
pub use kernel_lang::target::Architecture;

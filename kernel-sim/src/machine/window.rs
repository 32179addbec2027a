//! Address windows: the ranges of generic addresses that map to shared memory, local memory and the kernel's parameters. All other generic
//! addresses map to global memory (PTX ISA, 6.4.1.1).

use std::ops::Range;

/// The window of shared memory.
pub(crate) const SHARED: Range<u64> = 0x1_0000_0000..0x2_0000_0000;
/// The window of local memory.
pub(crate) const LOCAL: Range<u64> = 0x2_0000_0000..0x3_0000_0000;
/// The window of the kernel's parameters.
pub(crate) const PARAM: Range<u64> = 0x3_0000_0000..0x4_0000_0000;

//! Windows: the ranges of generic addresses that mean shared memory, local memory and the kernel's parameters. All other generic
//! addresses are global (PTX ISA, 6.4.1.1).

use std::ops::Range;

/// Generic addresses of shared memory.
pub(crate) const SHARED: Range<u64> = 0x1_0000_0000..0x2_0000_0000;
/// Generic addresses of local memory.
pub(crate) const LOCAL: Range<u64> = 0x2_0000_0000..0x3_0000_0000;
/// Generic addresses of the kernel's parameters.
pub(crate) const PARAM: Range<u64> = 0x3_0000_0000..0x4_0000_0000;

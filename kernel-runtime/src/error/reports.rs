//! Reports of a `.checked()` launch: an access out of bounds, or an assertion that fails.

use super::phrases::{kept, tensor};

/// An access outside its tensor, in a `.checked()` launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "out of bounds in kernel `{kernel}`: {op} at index {index} of {}\n  \
     --> {file}:{line}:{column}\n   \
     = program id ({}, {}, {})\n\
     help: mask the access, as in `mask = offsets {}`", tensor(.parameter, *.length), .program_id[0], .program_id[1], .program_id[2], kept(*.index)
)]
pub struct OutOfBounds {
    /// The kernel.
    pub kernel: &'static str,
    /// `load` or `store`.
    pub op: &'static str,
    /// The source file of the kernel.
    pub file: String,
    /// The line of the access.
    pub line: u32,
    /// The column of the access.
    pub column: u32,
    /// The id of the program that made the access.
    pub program_id: [u32; 3],
    /// The index of the accessed element.
    pub index: i64,
    /// The number of elements in the tensor.
    pub length: u64,
    /// The pointer parameter of the access; empty for a pointer that was made of an address.
    pub parameter: String,
}

/// A `device_assert!` that failed in a `.checked()` launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "in kernel `{kernel}`: {message}\n  \
     --> {file}:{line}:{column}\n   \
     = program id ({}, {}, {})", .program_id[0], .program_id[1], .program_id[2]
)]
pub struct AssertionFailed {
    /// The kernel.
    pub kernel: &'static str,
    /// `assertion failed: ` and the message of the assertion, or its condition.
    pub message: String,
    /// The source file of the assertion.
    pub file: String,
    /// The line of the assertion.
    pub line: u32,
    /// The column of its condition.
    pub column: u32,
    /// The id of the program in which the assertion failed: if there are several, the first to report it.
    pub program_id: [u32; 3],
}

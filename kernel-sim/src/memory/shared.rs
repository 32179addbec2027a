//! Shared memory.

/// Shared memory.
pub(crate) struct SharedMemory;

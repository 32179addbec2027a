//! Local memory.

/// Local memory.
pub(crate) struct LocalMemory;

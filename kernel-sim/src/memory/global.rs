//! Global memory.

/// Global memory.
pub(crate) struct GlobalView;

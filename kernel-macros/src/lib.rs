//! The doorway.

//! The compiler.

pub mod layout;

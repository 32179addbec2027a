//! PTX text and its syntax tree.

mod syntax;

pub use syntax::*;

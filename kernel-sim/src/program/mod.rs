//! A kernel, ready to run: names looked up, calls expanded, branches resolved.

mod scope;

pub(crate) use scope::{Named, Scope};

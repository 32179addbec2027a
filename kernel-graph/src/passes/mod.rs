//! Rewrites of graphs, one a file.

pub(crate) mod dead_code;

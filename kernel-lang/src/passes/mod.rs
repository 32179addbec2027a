//! The passes: each a function that rewrites a kernel, one a file.

pub mod expand_math;

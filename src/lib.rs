//! Block-level GPU kernels in Rust.

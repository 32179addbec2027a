//! Kernels that nvcc compiled, run with real inputs under several schedules and compared with plain Rust.

mod asynchronous;
mod harness;
mod library;
mod plain;
mod planted;
mod various;

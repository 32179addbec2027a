//! The kernel language's compiler: from Rust syntax to tile IR to PTX, and a CPU executor. No I/O, no GPU, no environment variables.

pub mod diagnostic;
pub mod dtype;
pub mod ir;
pub mod location;
#[cfg(feature = "codegen")]
pub mod scalar;
#[cfg(feature = "codegen")]
pub mod backend;

//! The kernel language's compiler: tile IR to PTX. It does no I/O and uses no GPU and no environment variables.
//!
//! The frontend is the crate `kernel-frontend`: programs that run kernels need none, and share this crate with the macros. The crate `kernel-cpu`
//! executes tile IR on the CPU.

pub mod diagnostic;
pub mod dsl;
pub mod dtype;
pub mod float8;
pub mod ir;
pub mod layout;
pub mod location;
pub mod occupancy;
mod schedule;
pub mod target;

pub mod analysis;
pub mod backend;
mod compile;
pub mod explain;
pub mod launch_value;
pub mod passes;
#[cfg(test)]
mod random;
pub mod scalar;

pub use schedule::Schedule;

/// Identifies the compiler: its version and a hash of its sources. Two compilers with the same identifier generate the same code for a
/// kernel.
pub const COMPILER: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("SOURCES_HASH"));

pub use compile::{Compiled, Options, Prepared, compile, compile_cpu, compile_with, notes, specialized, stage_after, steps};
pub use passes::specialize::{Bindings, MAX_VALUES};

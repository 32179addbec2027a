//! The kernel language's compiler: Rust syntax to tile IR, tile IR to PTX, and a CPU executor. It does no I/O and uses no GPU and no
//! environment variables.

pub mod diagnostic;
pub mod dsl;
pub mod dtype;
pub mod float8;
#[cfg(feature = "frontend")]
pub mod frontend;
pub mod ir;
pub mod layout;
// Kernel-language sources that the frontend embeds as text. They are never compiled; the module exists so that rustfmt formats them.
#[cfg(false)]
mod library;
pub mod location;
mod schedule;
pub mod target;

#[cfg(feature = "codegen")]
pub mod analysis;
#[cfg(feature = "codegen")]
pub mod backend;
#[cfg(feature = "codegen")]
mod compile;
#[cfg(feature = "codegen")]
pub mod passes;
#[cfg(feature = "codegen")]
pub mod scalar;

pub use schedule::Schedule;

/// Identifies the compiler: its version and a hash of its sources. Two compilers with the same identifier generate the same code for a
/// kernel.
pub const COMPILER: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("KERNEL_LANG_SOURCES"));

#[cfg(feature = "codegen")]
pub use compile::{Compiled, Options, compile, compile_alike, compile_cpu, compile_with, notes, steps};
#[cfg(feature = "codegen")]
pub use passes::specialize::Bindings;

//! The kernel language's compiler: from Rust syntax to tile IR to PTX, and a CPU executor. No I/O, no GPU, no environment variables.

pub mod diagnostic;
pub mod dsl;
pub mod dtype;
pub mod float8;
#[cfg(feature = "frontend")]
pub mod frontend;
pub mod ir;
pub mod layout;
// Texts of the kernel language, which the frontend embeds: never compiled, named here so that rustfmt formats them.
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

/// Which compiler this is: its version, and a hash of its sources. What two compilers of one name make of a kernel is the same.
pub const COMPILER: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("KERNEL_LANG_SOURCES"));

#[cfg(feature = "codegen")]
pub use compile::{Compiled, Options, compile, compile_alike, compile_cpu, compile_with, notes, steps};
#[cfg(feature = "codegen")]
pub use passes::specialize::Bindings;

//! A PTX simulator: runs kernels thread by thread without a GPU, and checks every access.
//!
//! [`Machine`] is a GPU: it has memory, loads PTX and runs kernels. A kernel that does something wrong (leaves its memory, reads what
//! nobody wrote, races, waits for ever) ends in a [`Fault`] that says what, where in the source and in which thread; a kernel
//! that does not is counted: [`Counters`].

mod arguments;
mod counters;
mod fault;
mod instructions;
mod lanes;
mod machine;
mod memory;
mod numerics;
mod program;
pub mod ptx;
pub mod tensor_map;

pub use arguments::{Argument, Element};
pub use counters::{Class, Counters, LineCounters, SharedTraffic, Traffic};
pub use fault::{Caller, Fault, FaultKind, LaneSet};
pub use machine::{Gpu, Kernel, Launch, LaunchError, Machine, Module, Options};
pub use memory::MemoryError;
pub use tensor_map::TensorMap;

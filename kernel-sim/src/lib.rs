//! A PTX simulator: runs kernels thread by thread without a GPU and checks every memory access.
//!
//! [`Machine`] is a simulated GPU: it has memory, loads PTX and launches kernels. A launch with a mistake ends with a [`Fault`]. Mistakes
//! are, for example, an access out of bounds, a read of uninitialised memory, a race and a deadlock. The fault names the mistake, the
//! source line and the thread. A launch without a mistake returns [`Counters`].

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
pub use counters::{Class, Counters, LineCounters, Sectors, SharedTraffic, Traffic};
pub use fault::{Caller, Fault, FaultKind, LaneSet};
pub use machine::{Gpu, Kernel, Launch, LaunchError, Machine, Module, Options};
pub use memory::MemoryError;
pub use tensor_map::TensorMap;

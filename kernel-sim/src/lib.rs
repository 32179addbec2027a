//! A PTX simulator: runs kernels thread by thread without a GPU, and checks every access.

mod counters;
mod fault;
mod instructions;
mod lanes;
mod machine;
mod memory;
mod numerics;
mod program;
pub mod ptx;

pub use counters::{Class, Counters, LineCounters, SharedTraffic, Traffic};
pub use fault::{Fault, FaultKind, LaneSet};
pub use memory::MemoryError;

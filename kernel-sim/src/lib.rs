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
pub mod tensor_map;

pub use counters::{Class, Counters};
pub use fault::{Fault, FaultKind, LaneSet};
pub use tensor_map::TensorMap;

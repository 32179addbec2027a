//! Memory that remembers who wrote it: global, shared and local.

mod clocks;
mod global;
mod knowledge;
mod local;
#[cfg(test)]
mod races;
mod shadow;
mod shared;

pub use global::MemoryError;

pub(crate) use clocks::{Agent, Clocks, Moment, Operation, Proxy, Queue, Stamp, Unordered};
pub(crate) use global::{Allocation, GlobalMemory, GlobalView};
pub(crate) use local::LocalMemory;
pub(crate) use shadow::Touch;
pub(crate) use shared::SharedMemory;

/// Every byte that nobody wrote. In each floating-point format it makes a NaN, and a negative integer.
const POISON: u8 = 0xff;

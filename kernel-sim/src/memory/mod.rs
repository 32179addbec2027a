//! Global, shared and local memory, with a record of written bytes and of the accesses to them.

mod clocks;
mod global;
mod local;
mod past;
#[cfg(test)]
mod races;
mod rerun;
mod shadow;
mod shared;
mod touch;
mod vector_clock;

pub use global::MemoryError;

pub(crate) use clocks::{Agent, Clocks, Moment, Operation, Proxy, Queue, Released, Stamp, Unordered, View};
pub(crate) use global::{Allocation, GlobalMemory, GlobalView};
pub(crate) use local::LocalMemory;
pub(crate) use rerun::LaunchRecord;
pub(crate) use shadow::{Conflict, Shadow};
pub(crate) use shared::SharedMemory;
pub(crate) use touch::{Scope, Touch};

/// The value of every uninitialised byte. It makes a NaN in each floating-point format, and a negative integer.
const POISON: u8 = 0xff;

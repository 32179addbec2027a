//! Memory that remembers who wrote it: global, shared and local.

mod global;
mod local;
mod shared;

pub(crate) use global::GlobalView;
pub(crate) use local::LocalMemory;
pub(crate) use shared::SharedMemory;

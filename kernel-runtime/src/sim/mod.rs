//! Simulated GPUs. `Device::sim(Target::SM_90A)` is a device like any other. Its kernels run as PTX, thread by thread, and every access is checked.
//! This requires the feature `sim`; without it, the module is empty and no such device can be made.
//!
//! A launch is complete when the call returns. A mistake of a kernel is an `Error::Fault` that names the line, the program and the thread. Mistakes
//! are
//!
//! - an access outside every allocation, or to freed memory,
//! - a read of memory that was never written,
//! - a race,
//! - a barrier that not all threads reach.
//!
//! `device.sim_report()` returns counters for each source line. An [`Event`](crate::Event) gives a rough estimate of the time that launches take on
//! such a GPU. Autotuning chooses by this estimate; it runs every configuration, and so checks every one.

#[cfg(not(feature = "sim"))]
mod absent;
#[cfg(feature = "sim")]
mod clock;
#[cfg(feature = "sim")]
mod launch;
#[cfg(feature = "sim")]
mod machine;
#[cfg(feature = "sim")]
mod memory;
#[cfg(feature = "sim")]
mod report;

#[cfg(not(feature = "sim"))]
pub(crate) use absent::{DEFAULT_TARGET, Loaded, Sim, SimBuffer, SimGpu, TARGETS, device, now};
#[cfg(feature = "sim")]
pub(crate) use clock::now;
#[cfg(feature = "sim")]
pub use kernel_sim::{Class, Counters, Fault, FaultKind, LineCounters, SharedTraffic, Traffic};
#[cfg(feature = "sim")]
pub(crate) use launch::{Loaded, SimGpu};
#[cfg(feature = "sim")]
pub(crate) use machine::{DEFAULT_TARGET, Sim, TARGETS, device};
#[cfg(feature = "sim")]
pub(crate) use memory::SimBuffer;
#[cfg(feature = "sim")]
pub use report::{KernelReport, Report};

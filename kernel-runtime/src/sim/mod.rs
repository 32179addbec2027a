//! Simulated GPUs: `Device::sim(Target::SM_90A)` is a device like any other, whose kernels run as PTX, thread by thread, with every
//! access checked. With the feature `sim`; without it this module is empty and such a device cannot be made.
//!
//! A launch is done when the call returns. A mistake of a kernel (an access outside every allocation or of memory that was freed, a read
//! of what nobody wrote, a race, a barrier that not all reach) is an `Error::Fault` that names the line, the program and the thread. What
//! launches did is counted for each source line: `device.sim_report()`. An [`Event`](crate::Event) tells how long launches may have taken on such a
//! GPU, roughly; autotuning chooses by it, and runs, and so checks, every configuration.

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

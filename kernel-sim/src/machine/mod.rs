//! The simulated GPU: launches, clusters, warps, and their accesses to memory.

mod access;
mod cx;
mod gpu;
mod groups;
mod launch;
mod progress;
mod run;
mod state;
mod step;
mod unknown;
mod variables;
mod waiting;
pub(crate) mod window;

pub use gpu::{Gpu, Kernel, Machine, Module};
pub use launch::{Launch, LaunchError, Options};

pub(crate) use access::{Location, Missing};
pub(crate) use cx::{Access, Cx};
pub(crate) use progress::{Cycles, Progress, Version};
pub(crate) use state::{AsyncOperation, Cluster, Cta, GlobalState, Grid, InFlight, Issuer, Warp};
pub(crate) use unknown::{Unknown, Unknowns};

//! The simulated GPU: memory, warps, and what they may touch.

mod access;
mod cx;
mod state;

pub(crate) use access::Place;
pub(crate) use cx::{Access, Cx};
pub(crate) use state::{AsyncOperation, Cluster, Cta, Grid, Issuer, Warp};

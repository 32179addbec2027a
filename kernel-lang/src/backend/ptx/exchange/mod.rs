//! Exchanges between threads: reductions, scans, gathers and layout conversions, by shuffles, through shared memory, or between the CTAs of
//! a cluster.

pub(crate) mod budget;
pub(crate) mod cluster;
pub(crate) mod launch;
pub(crate) mod lookup;
pub(crate) mod outer_products;
pub(crate) mod parts;
pub(crate) mod reduce;
pub(crate) mod relayout;
mod scan;
pub(crate) mod shared;
mod shared_runs;
pub(crate) mod slices;

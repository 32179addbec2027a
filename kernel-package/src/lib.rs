//! Recorded programs as data: plans, the sessions that run them, and packages, the files that hold them.
//!
//! A [`Plan`] is a list of allocations, parts of tensors and launches, whose extents, grids and arguments are expressions of named dims. A [`Session`]
//! runs it for any values of the dims. A [`Package`] is one file with the plan, the kernels and the weights. It needs neither the program that
//! recorded it nor a compiler.

#![deny(missing_docs)]

mod archive;
mod check;
mod code;
mod compiled;
mod error;
mod execute;
mod files;
mod guards;
mod json;
mod limits;
mod manifest;
mod memory;
mod on_stream;
mod opaque;
mod package;
mod plan;
mod replays;
mod session;
mod tuning;
mod verify;
pub mod weights;
mod writer;

pub use check::Check;
pub use compiled::Compiled;
pub use error::{PackageError, RunError};
pub use limits::Limits;
pub use on_stream::OnStream;
pub use package::Package;
pub use plan::{Constant, Node, NodeOp, Plan, PlanInput};
pub use replays::ReplayCounts;
pub use session::Session;
pub use verify::Violation;
pub use weights::{load_parameters, save_parameters};
pub use writer::PackageWriter;

//! Programs of kernels, recorded as graphs.
//!
//! [`export`] calls a function with tensors that have no memory. Each allocation and each launch of the function becomes a node of a [`Graph`], whose
//! extents, grids and arguments are expressions of named dims. A [`Session`] runs the graph for any values of the dims.
//!
//! A graph runs its launches through the launch path that the function itself uses, with the same variants and the same tuning results. So the
//! outputs are equal to the byte.
//!
//! The text of a graph is a graph again: see [`Graph::parse`] and [`Environment`].

#![deny(missing_docs)]

mod dot;
mod error;
mod export;
mod flops;
mod graph;
mod items;
mod op_check;
mod op_kernels;
mod passes;
mod tabular;
mod text;
mod uses;
mod verify;

pub use error::{GraphError, Result};
pub use export::{Input, compile, export, export_slice, input};
pub use flops::{FlopRow, FlopTable, flops};
pub use graph::{Call, Graph, Level};
pub use kernel_package::{
    Check, Compiled, Constant, Limits, Node, NodeOp, OnStream, Package, PackageError, PackageWriter, Plan, PlanInput, ReplayCounts,
    RunError, Session, load_parameters, save_parameters, weights,
};
pub use op_check::{OpCheck, OpCheckOptions, op_check};
pub use op_kernels::{OpKernel, kernels};
pub use text::{Environment, Listing, TextError};

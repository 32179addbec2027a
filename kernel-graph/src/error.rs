//! Errors of graphs.

use std::panic::Location;

use kernel_runtime::{DimError, Dtype};

/// The result of every fallible function in this crate.
pub type Result<T, E = GraphError> = std::result::Result<T, E>;

/// An error of a recording, or of a run of a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The recorded function failed, or a launch of a run did.
    #[error(transparent)]
    Runtime(Box<kernel_runtime::Error>),
    /// An output of the recorded function belongs to no recording, or to another one.
    #[error("output {number} is not a tensor of the recording\nhelp: return tensors that are computed from the inputs")]
    ForeignOutput {
        /// The number of the output, from 0 on.
        number: usize,
    },
    /// Two inputs have one name.
    #[error("two inputs are named `{name}`\nhelp: give each input its own name")]
    SameName {
        /// The name.
        name: String,
    },
    /// The inputs name a dim that has an error, or two dims of one name.
    #[error("input `{input}`: {error}")]
    InputDim {
        /// The name of the input.
        input: String,
        /// The mistake.
        error: Box<DimError>,
    },
    /// A dim occurs only in an expression, so no input determines its value.
    #[error("no input has an axis of `{name}`, so its value is not known in a run\nhelp: add an input with that extent")]
    Undetermined {
        /// The name of the dim.
        name: String,
    },
    /// A run has another number of inputs than the graph.
    #[error("the graph takes {expected} inputs ({names}), and {given} are given")]
    InputCount {
        /// The number of inputs of the graph.
        expected: usize,
        /// Their names.
        names: String,
        /// The number of inputs of the run.
        given: usize,
    },
    /// An input of a run has another dtype than the graph's.
    #[error("input `{input}` has elements of type `{found}`, and the graph takes `{expected}`")]
    InputDtype {
        /// The name of the input.
        input: String,
        /// The dtype in the graph.
        expected: Dtype,
        /// The dtype of the tensor.
        found: Dtype,
    },
    /// An input of a run has another number of axes than the graph's.
    #[error("input `{input}` has rank {found}, and the graph takes rank {expected}")]
    InputRank {
        /// The name of the input.
        input: String,
        /// The number of axes in the graph.
        expected: usize,
        /// The number of axes of the tensor.
        found: usize,
    },
    /// The extent of an input is not allowed.
    #[error("input `{input}`, axis {axis}: {error}")]
    InputExtent {
        /// The name of the input.
        input: String,
        /// The axis.
        axis: usize,
        /// The value of its dim, and the allowed ones.
        error: Box<DimError>,
    },
    /// The extent of an input differs from its expression in the graph.
    #[error("input `{input}`, axis {axis}: `{dim}` is {expected}, and the extent is {found}")]
    InputMismatch {
        /// The name of the input.
        input: String,
        /// The axis.
        axis: usize,
        /// The expression in the graph.
        dim: String,
        /// Its value for the other extents.
        expected: i64,
        /// The extent of the tensor.
        found: i64,
    },
    /// The inputs of a run are on different devices.
    #[error("input `{input}` is on `{found}`, and the session runs on `{expected}`\nhelp: move it with `.to_device(&device)`")]
    InputDevice {
        /// The name of the input.
        input: String,
        /// The device of the session.
        expected: kernel_runtime::Device,
        /// The device of the tensor.
        found: kernel_runtime::Device,
    },
    /// An input of a run belongs to a recording.
    #[error("input `{input}` has no elements: it belongs to a recording\nhelp: run a session outside of recorded functions")]
    RecordedInput {
        /// The name of the input.
        input: String,
    },
    /// A name of an input is not allowed.
    #[error("`{name}` is not a name for an input\nhelp: a name has letters, digits and `_`, and begins with a letter")]
    InputName {
        /// The name.
        name: String,
    },
    /// An operation depends on a dim that no input determines, or on an expression with an error.
    #[error("{error}, in the operation that was recorded in {location}")]
    NodeDim {
        /// The mistake.
        error: String,
        /// The line of the recorded function.
        location: &'static Location<'static>,
    },
    /// An operation failed in a run.
    #[error("{source}\nthe operation was recorded in {location}")]
    Node {
        /// The error.
        source: Box<GraphError>,
        /// The line of the recorded function.
        location: &'static Location<'static>,
    },
    /// A graph breaks a rule of graphs. This is a bug in a pass of this crate.
    #[error("the graph is not valid: {reason}")]
    Invalid {
        /// The broken rule.
        reason: String,
    },
}

impl From<kernel_runtime::Error> for GraphError {
    fn from(error: kernel_runtime::Error) -> GraphError {
        GraphError::Runtime(Box::new(error))
    }
}

impl GraphError {
    /// The error with the line of the recorded function.
    pub(crate) fn at(self, location: &'static Location<'static>) -> GraphError {
        GraphError::Node { source: Box::new(self), location }
    }
}

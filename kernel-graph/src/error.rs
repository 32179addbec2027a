//! Errors of graphs.

use kernel_package::{PackageError, RunError};
use kernel_runtime::{DimError, Site};

use crate::text::TextError;

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
    /// A run of the graph failed, or its inputs do not fit.
    #[error(transparent)]
    Run(Box<RunError>),
    /// A package cannot be written or read.
    #[error(transparent)]
    Package(Box<PackageError>),
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
        location: Site,
    },
    /// An op failed a test of [`op_check`](crate::op_check).
    #[error("`{op}` fails the test of its {test}: {reason}")]
    OpCheck {
        /// The op.
        op: &'static str,
        /// What was tested: `mutation`, `recording`, `fake`, `devices` or `gradients`.
        test: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// A text is not that of a graph.
    #[error(transparent)]
    Text(Box<TextError>),
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

impl From<TextError> for GraphError {
    fn from(error: TextError) -> GraphError {
        GraphError::Text(Box::new(error))
    }
}

impl From<RunError> for GraphError {
    fn from(error: RunError) -> GraphError {
        GraphError::Run(Box::new(error))
    }
}

impl From<PackageError> for GraphError {
    fn from(error: PackageError) -> GraphError {
        GraphError::Package(Box::new(error))
    }
}

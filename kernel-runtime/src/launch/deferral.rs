//! What keeps a launch from running: an error, or arguments that are not known yet.

use crate::launch::scalar::{IntegerType, Untyped};
use crate::{Dim, Error};

/// The error, or the unknown arguments, of a launch that cannot run now.
#[derive(Default)]
pub(crate) struct Deferral {
    /// The first error.
    pub(crate) error: Option<Error>,
    /// The words that are numbers of a dtype that is not known yet, by their indices.
    pub(crate) numbers: Vec<(usize, Untyped)>,
    /// The words that are expressions, by their indices, with the types of their parameters.
    pub(crate) dims: Vec<(usize, Dim, IntegerType)>,
    /// The number of programs along each axis, where it is an expression.
    pub(crate) grid: [Option<Dim>; 3],
}

impl Deferral {
    /// Returns whether nothing keeps the launch from running, unless a tensor of a recording does.
    pub(crate) fn is_vacant(&self) -> bool {
        let Deferral { error, numbers, dims, grid } = self;
        error.is_none() && numbers.is_empty() && dims.is_empty() && grid.iter().all(Option::is_none)
    }
}

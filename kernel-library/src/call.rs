//! A call of a function of this crate: the checks of its arguments, and the tensors that it makes.

use std::fmt::{self, Debug, Display};

use galatea::prelude::*;

/// A call of a function, which the errors name. Its first tensor decides on the device and the stream.
pub(crate) struct Call<'a> {
    function: &'static str,
    first: &'static str,
    stream: &'a Stream,
}

/// A tensor as rows along its last axis.
pub(crate) struct Rows<'a> {
    /// The axes before the last.
    pub(crate) leading: &'a [usize],
    /// The number of rows: the product of the leading axes.
    pub(crate) rows: usize,
    /// The number of elements in a row.
    pub(crate) columns: usize,
}

/// The reason for the shape of an argument: what it is of another tensor.
#[derive(Clone, Copy)]
pub(crate) struct Of<'a> {
    what: &'static str,
    tensor: &'static str,
    /// The shape of the other tensor; `None` if that is the expected shape itself.
    shape: Option<&'a [usize]>,
}

impl<'a> Of<'a> {
    /// The shape of the tensor itself.
    pub(crate) fn shape(tensor: &'static str) -> Of<'a> {
        Of { what: "the shape", tensor, shape: None }
    }

    /// One element for each column of the tensor with this shape.
    pub(crate) fn columns(tensor: &'static str, shape: &'a [usize]) -> Of<'a> {
        Of { what: "one element for each column", tensor, shape: Some(shape) }
    }

    /// One element for each row of the tensor with this shape.
    pub(crate) fn rows(tensor: &'static str, shape: &'a [usize]) -> Of<'a> {
        Of { what: "one element for each row", tensor, shape: Some(shape) }
    }

    /// One element for each token of the tensor with this shape.
    pub(crate) fn tokens(tensor: &'static str, shape: &'a [usize]) -> Of<'a> {
        Of { what: "one element for each token", tensor, shape: Some(shape) }
    }
}

impl Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Of { what, tensor, shape } = self;
        write!(f, "{what} of `{tensor}`")?;
        shape.map_or(Ok(()), |shape| write!(f, ", which has the shape {shape:?}"))
    }
}

impl<'a> Call<'a> {
    /// A call of `function` whose first tensor, named `first`, is `tensor`.
    pub(crate) fn new<T: Element>(function: &'static str, first: &'static str, tensor: &TensorView<'a, T>) -> Call<'a> {
        Call { function, first, stream: tensor.stream() }
    }

    pub(crate) fn device(&self) -> Device {
        self.stream.device()
    }

    /// The rows of the first tensor, see [`Call::rows_of`].
    pub(crate) fn rows<'t, T: Element>(&self, tensor: &'t TensorView<'_, T>, limit: usize) -> Result<Rows<'t>> {
        self.rows_of(self.first, tensor, limit)
    }

    /// The rows of a tensor. An error if it has no axis, or rows longer than `limit`.
    pub(crate) fn rows_of<'t, T: Element>(&self, argument: &'static str, tensor: &'t TensorView<'_, T>, limit: usize) -> Result<Rows<'t>> {
        let Some((&columns, leading)) = tensor.shape().split_last() else {
            let expected = "at least one axis is expected: rows lie along the last axis".to_owned();
            return Err(self.wrong_shape(argument, tensor, expected, format!("one element is a row: `{argument}.reshape([1])?`")));
        };
        if columns > limit {
            let expected = format!("a last extent of at most {limit} is expected: rows lie along the last axis");
            return Err(self.wrong_shape(
                argument,
                tensor,
                expected,
                "compare the order of the axes; longer rows are not supported".to_owned(),
            ));
        }
        // This product is at most that of a shape with 1 in place of each 0, which fits a `usize` in every tensor.
        Ok(Rows { leading, rows: leading.iter().product(), columns })
    }

    /// An error unless `tensor` has the shape `expected` and is on the device of the first tensor.
    pub(crate) fn expect<T: Element>(
        &self,
        argument: &'static str,
        tensor: &TensorView<'_, T>,
        expected: &[usize],
        reason: Of<'_>,
    ) -> Result<()> {
        self.expect_device(argument, tensor)?;
        if tensor.shape() == expected {
            return Ok(());
        }
        let has_same_count = expected.iter().try_fold(1usize, |len, &dim| len.checked_mul(dim)) == Some(tensor.len());
        let help = match has_same_count {
            true => format!("the number of elements is right: `{argument}.reshape({expected:?})?`"),
            false => format!("pass `{argument}` with the shape {expected:?}, or compare the order of the axes of `{}`", reason.tensor),
        };
        Err(self.wrong_shape(argument, tensor, format!("{expected:?} is expected: {reason}"), help))
    }

    /// An error unless `tensor` is on the device of the first tensor.
    pub(crate) fn expect_device<T: Element>(&self, argument: &'static str, tensor: &TensorView<'_, T>) -> Result<()> {
        let (device, expected) = (tensor.device(), self.device());
        if device == expected {
            return Ok(());
        }
        Err(Error::ArgumentDevice { function: self.function, argument, device, first: self.first, expected })
    }

    /// The error for a tensor of a wrong shape.
    pub(crate) fn wrong_shape<T: Element>(
        &self,
        argument: &'static str,
        tensor: &TensorView<'_, T>,
        expected: String,
        help: String,
    ) -> Error {
        Error::ArgumentShape { function: self.function, argument, shape: tensor.shape().to_vec(), expected, help }
    }

    /// An error unless the number is in its range, which `expected` states.
    pub(crate) fn expect_value(
        &self,
        argument: &'static str,
        value: impl Debug,
        is_in_range: bool,
        expected: impl Display,
        help: &'static str,
    ) -> Result<()> {
        if is_in_range {
            return Ok(());
        }
        let (value, expected) = (format!("{value:?}"), expected.to_string());
        Err(Error::ArgumentValue { function: self.function, argument, value, expected, help })
    }

    /// An error unless the number is finite and at least 0.
    pub(crate) fn expect_magnitude(&self, argument: &'static str, value: f32, help: &'static str) -> Result<()> {
        self.expect_value(argument, value, value.is_finite() && value >= 0.0, "a finite number of at least 0 is expected", help)
    }

    /// A tensor for a kernel that writes all of its elements.
    pub(crate) fn empty<T: Element>(&self, shape: &[usize]) -> Result<Tensor<T>> {
        self.at_home(self.device().empty(shape)?)
    }

    /// A tensor of zeros.
    pub(crate) fn zeros<T: Element>(&self, shape: &[usize]) -> Result<Tensor<T>> {
        self.at_home(self.device().zeros(shape)?)
    }

    /// A tensor of `f32` whose elements are all NaN: means of no elements.
    pub(crate) fn not_a_number(&self, shape: &[usize]) -> Result<Tensor<f32>> {
        self.at_home(self.device().full(shape, f32::NAN)?)
    }

    /// Launches run on the home stream of the first tensor that they write. So work on inputs of another stream stays on that stream.
    fn at_home<T: Element>(&self, mut tensor: Tensor<T>) -> Result<Tensor<T>> {
        if tensor.stream() != self.stream {
            tensor.set_stream(self.stream)?;
        }
        Ok(tensor)
    }
}

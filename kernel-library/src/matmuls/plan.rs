//! The extents of a product, and the checks of shapes against them.

use galatea::prelude::*;

use super::Half;
use crate::call::Call;

/// The extents of a product whose operands match.
pub(super) struct Plan {
    /// The shape of the result.
    pub(super) shape: Vec<usize>,
    /// The rows of a matrix, or of all matrices if they are multiplied by the same one.
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) inner: usize,
    /// The number of launched matrices.
    pub(super) batches: usize,
    /// Whether `a`, and `b`, is one matrix for all of a batch.
    pub(super) is_repeated: [bool; 2],
}

impl Plan {
    /// Rows of all matrices, columns, and the inner extent.
    pub(super) fn problem(&self) -> [usize; 3] {
        [self.rows.saturating_mul(self.batches), self.columns, self.inner]
    }

    pub(super) fn expect_bias<T: Half>(&self, call: &Call<'_>, bias: &TensorView<'_, T>, len: usize, of: &str) -> Result<()> {
        call.expect_device("bias", bias)?;
        if bias.shape() == [len] {
            return Ok(());
        }
        let expected = format!("[{len}] is expected: one element for each {of} of the result, which has the shape {:?}", self.shape);
        let help = "`bias` adds an element for each column, `row_bias` for each row";
        Err(call.wrong_shape("bias", bias, expected, help.to_owned()))
    }

    /// An error unless the tensor has the shape of the result.
    pub(super) fn expect_result<E: Element>(
        &self,
        call: &Call<'_>,
        argument: &'static str,
        tensor: &TensorView<'_, E>,
        a: &str,
    ) -> Result<()> {
        call.expect_device(argument, tensor)?;
        if tensor.shape() == self.shape {
            return Ok(());
        }
        let expected = format!("{:?} is expected: the shape of the product", self.shape);
        Err(call.wrong_shape(argument, tensor, expected, format!("compare the order of the axes of `{a}` and `{argument}`")))
    }
}

/// The leading axes of an operand, and the extents of a matrix that is not transposed.
pub(super) fn matrices<'t, T: Half>(
    call: &Call<'_>,
    argument: &'static str,
    tensor: &'t TensorView<'_, T>,
    is_transposed: bool,
) -> Result<(&'t [usize], [usize; 2])> {
    match tensor.shape() {
        [leading @ .., down, across] => Ok((leading, if is_transposed { [*across, *down] } else { [*down, *across] })),
        _ => {
            let expected = "at least two axes are expected: matrices lie along the last two".to_owned();
            let help = format!("a row is a matrix: `{argument}.reshape([1, {}])?`", tensor.len());
            Err(call.wrong_shape(argument, tensor, expected, help))
        }
    }
}

pub(super) fn of_operand<T: Half>(name: &str, tensor: &TensorView<'_, T>) -> String {
    format!("`{name}` has the shape {:?}", tensor.shape())
}

pub(super) fn transpose_help(is_transposed: bool) -> &'static str {
    if is_transposed { "with `transposed_b` it is `[.., columns, inner]`" } else { "`Matmul::transposed_b` takes `[.., columns, inner]`" }
}

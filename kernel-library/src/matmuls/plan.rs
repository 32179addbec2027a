//! The extents of a product, and the checks of shapes against them.

use galatea::prelude::*;

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
    /// The plan of a product of tensors with these names. `transposed` says of which the matrices are stored with their axes exchanged, and `is_one` whether the rows of all
    /// matrices of `a` may be those of one.
    pub(super) fn new<A: Element, B: Element>(
        call: &Call<'_>,
        (a_name, a): (&'static str, &TensorView<'_, A>),
        (b_name, b): (&'static str, &TensorView<'_, B>),
        [transposed_a, transposed_b]: [bool; 2],
        is_one: bool,
    ) -> Result<Plan> {
        let [(a_leading, [rows, inner]), (b_leading, [b_inner, columns])] =
            [matrices(call, a_name, a, transposed_a)?, matrices(call, b_name, b, transposed_b)?];
        call.expect_device(b_name, b)?;
        if inner != b_inner {
            let axis = b.shape().len() - if transposed_b { 1 } else { 2 };
            let expected = format!("an extent of {inner} along axis {axis} is expected: {}", of_operand(a_name, a));
            let help = format!("compare the order of the axes: {}", transpose_help(transposed_b));
            return Err(call.wrong_shape(b_name, b, expected, help));
        }
        if !a_leading.is_empty() && !b_leading.is_empty() && a_leading != b_leading {
            let expected = format!("the leading axes {a_leading:?} or none are expected: {}", of_operand(a_name, a));
            let help = format!("reshape `{b_name}`, or multiply one matrix by all: `{b_name}.slice(i..=i)?.reshape(..)?`");
            return Err(call.wrong_shape(b_name, b, expected, help));
        }
        let leading = if a_leading.is_empty() { b_leading } else { a_leading };
        let shape: Vec<usize> = leading.iter().copied().chain([rows, columns]).collect();
        let batches: usize = leading.iter().product();
        Ok(match b_leading.is_empty() && !transposed_a && is_one {
            true => Plan { shape, rows: rows * batches, columns, inner, batches: 1, is_repeated: [false; 2] },
            false => Plan { shape, rows, columns, inner, batches, is_repeated: [a_leading.is_empty(), b_leading.is_empty()] },
        })
    }

    /// The distances of the rows of both operands in memory, without a workspace.
    pub(super) fn strides(&self, [transposed_a, transposed_b]: [bool; 2]) -> [usize; 2] {
        [if transposed_a { self.rows } else { self.inner }, if transposed_b { self.inner } else { self.columns }]
    }

    /// The distances of the matrices of both operands whose rows have these distances. Batches of an operand that is one matrix are the same matrix.
    pub(super) fn batch_strides(&self, [transposed_a, transposed_b]: [bool; 2], strides: [usize; 2]) -> [usize; 2] {
        let rows = [if transposed_a { self.inner } else { self.rows }, if transposed_b { self.columns } else { self.inner }];
        [0, 1].map(|of| if self.is_repeated[of] { 0 } else { rows[of] * strides[of] })
    }

    /// Rows of all matrices, columns, and the inner extent.
    pub(super) fn problem(&self) -> [usize; 3] {
        [self.rows.saturating_mul(self.batches), self.columns, self.inner]
    }

    pub(super) fn expect_bias<T: Element>(&self, call: &Call<'_>, bias: &TensorView<'_, T>, len: usize, of: &str) -> Result<()> {
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
fn matrices<'t, T: Element>(
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

fn of_operand<T: Element>(name: &str, tensor: &TensorView<'_, T>) -> String {
    format!("`{name}` has the shape {:?}", tensor.shape())
}

fn transpose_help(is_transposed: bool) -> &'static str {
    if is_transposed { "with `transposed_b` it is `[.., columns, inner]`" } else { "`Matmul::transposed_b` takes `[.., columns, inner]`" }
}

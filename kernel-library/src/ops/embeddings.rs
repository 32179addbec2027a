//! Rows of a table that indices select.

use galatea::ops::{Any, Tensor};
use galatea::prelude::*;
use galatea::{Dtype, op};

use super::{convert, wide};
use crate::kernels;

/// Row `indices[i]` of a table for each index, with the bits of the table. An index that the table lacks gives zeros.
///
/// `table` is `[vocabulary, columns]`, `indices` are `[..]` of `i64`, and the result is `[.., columns]`. The gradient of the table adds with atomics, in `f32`, or in `f64` for
/// `f64`, so its last bits may differ between calls.
///
/// # Errors
/// [`OpsError::Dims`](galatea::ops::OpsError::Dims) for a table that is no matrix, [`OpsError::OpDtype`](galatea::ops::OpsError::OpDtype) for other indices, and those of a
/// launch.
///
/// ```
/// # use galatea::ops::Tensor;
/// # use galatea::prelude::*;
/// # use kernel_library::ops;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let table = Tensor::from(device.tensor_from(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?);
/// let indices = Tensor::from(device.tensor(&[1i64, 0, 1])?);
/// assert_eq!(ops::embedding(&table, &indices)?.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[op("galatea::embedding", backward(table, indices) = embedding_backward)]
pub fn embedding(table: &Tensor, indices: &Tensor) -> Result<Tensor> {
    const OP: &str = "galatea::embedding";
    let (vocabulary, columns) = (table.dim(0), table.dim(-1));
    table.expect_dims(OP, "table", [&vocabulary, &columns])?;
    indices.expect_dtype(OP, "indices", Dtype::I64)?;
    let mut dims = indices.dims();
    dims.push(columns.clone());
    let mut y = table.new_empty(table.dtype(), dims)?;
    let n = y.numel();
    kernels::embedded::<Any, 1024>(table, indices, &mut y, &n, &vocabulary, &columns).grid(n.cdiv(1024)).launch()?;
    Ok(y)
}

fn embedding_backward(grad: &Tensor, table: &Tensor, indices: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
    let (vocabulary, columns, tokens) = (table.dim(0), table.dim(1), indices.numel());
    let mut dtable = table.new_zeros(wide(table.dtype()), table.dims())?;
    // No row has the index -1, which is that of the padding.
    with_wide!(table.dtype(), A => {
        kernels::embedding_backward::<Any, A, 256>(grad, indices, &mut dtable, &vocabulary, &columns, -1)
            .grid((tokens, columns.cdiv(256)))
            .launch()
    })?;
    Ok((convert(&dtable, table.dtype())?, None))
}

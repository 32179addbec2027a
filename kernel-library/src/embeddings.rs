//! Embeddings: rows of a table by index, and the gradient of the table.

use galatea::MAX_RANK;
use galatea::prelude::*;

use crate::call::{Call, Of};
use crate::{AsTensor, kernels};

/// The rows of a table that the indices select: `y[i] = table[indices[i]]`.
///
/// `indices` has any shape, `table` is `[vocabulary, columns]`, and the result has the shape of `indices` with `columns` as an additional last axis.
/// Every [`Float`] is accepted, and its bits are copied. An index outside the table gives a row of zeros: indices are on the device, so checking them
/// would need a synchronisation.
///
/// # Errors
/// [`Error::ArgumentShape`] if `table` has not two axes, or `indices` as many axes as a tensor can have; [`Error::ArgumentDevice`]; or an error of an
/// allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let table = device.tensor_from(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let indices = device.tensor(&[1i64, 0, 1])?;
/// let y = kernel_library::embedding(&indices, &table)?;
/// assert_eq!((y.shape(), y.to_vec()?), (&[3, 2][..], vec![3.0, 4.0, 1.0, 2.0, 3.0, 4.0]));
/// # Ok(())
/// # }
/// ```
pub fn embedding<T: Float>(indices: &impl AsTensor<i64>, table: &impl AsTensor<T>) -> Result<Tensor<T>> {
    let (indices, table) = (indices.as_tensor(), table.as_tensor());
    let call = Call::new("embedding", "indices", &indices);
    let [vocabulary, columns] = table_of(&call, &table)?;
    let mut shape = [columns; MAX_RANK];
    let rank = indices.shape().len();
    if rank == MAX_RANK {
        let expected = format!("at most {} axes are expected: the result has one more", MAX_RANK - 1);
        return Err(call.wrong_shape("indices", &indices, expected, format!("merge axes: `indices.reshape([{}])?`", indices.len())));
    }
    shape[..rank].copy_from_slice(indices.shape());
    let mut y = call.empty(&shape[..=rank])?;
    if !y.is_empty() {
        let tokens = indices.len();
        let launch = kernels::embedding(table, indices, &mut y, vocabulary, columns);
        launch.grid(|config| (tokens, cdiv(columns, config.BLOCK_SIZE))).launch()?;
    }
    Ok(y)
}

/// The gradient of the table of [`embedding()`]: row `k` is the sum of `dy[i]` over all `i` with `indices[i] == k`.
///
/// `indices` has any shape, `table` is `[vocabulary, columns]`, and `dy` has the shape of the result of `embedding`. Of `table` only the shape is used.
/// The result is `[vocabulary, columns]` of `f32`, whatever the type of the table, because the sums are made in memory. A row whose index is
/// `padding_index`, or is outside the table, adds nothing. Atomics add the rows in no certain order, so the last bits of a sum can differ between calls.
///
/// # Errors
/// [`Error::ArgumentShape`] or [`Error::ArgumentDevice`] for tensors that do not match; [`Error::ArgumentValue`] if `padding_index` is outside the table;
/// or an error of an allocation or a launch.
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let device = Device::cpu();
/// let table = device.zeros::<f32>([2, 2])?;
/// let indices = device.tensor(&[1i64, 0, 1])?;
/// let dy = device.tensor_from(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2])?;
/// let dtable = kernel_library::embedding_backward(&dy, &indices, &table, None)?;
/// assert_eq!((dtable.shape(), dtable.to_vec()?), (&[2, 2][..], vec![3.0, 4.0, 6.0, 8.0]));
/// # Ok(())
/// # }
/// ```
pub fn embedding_backward<T: Float>(
    dy: &impl AsTensor<T>,
    indices: &impl AsTensor<i64>,
    table: &impl AsTensor<T>,
    padding_index: Option<usize>,
) -> Result<Tensor<f32>> {
    let (dy, indices, table) = (dy.as_tensor(), indices.as_tensor(), table.as_tensor());
    let call = Call::new("embedding_backward", "dy", &dy);
    let [vocabulary, columns] = table_of(&call, &table)?;
    let rows = call.rows(&dy, usize::MAX)?;
    call.expect("indices", &indices, rows.leading, Of::rows("dy", dy.shape()))?;
    if rows.columns != columns {
        let expected = format!("a last extent of {columns} is expected: that of `table`, which has the shape {:?}", table.shape());
        return Err(call.wrong_shape("dy", &dy, expected, "pass the gradient of the result of `embedding`".to_owned()));
    }
    if let Some(index) = padding_index {
        let expected = format_args!("an index below {vocabulary} is expected: the number of rows of `table`");
        call.expect_value("padding_index", index, index < vocabulary, expected, "pass `None` to use every row")?;
    }
    // No row has the index -1.
    let padding = padding_index.map_or(-1, |index| index as i64);
    let mut dtable = call.zeros(&[vocabulary, columns])?;
    if !dy.is_empty() && !dtable.is_empty() {
        // The sizes that are compiled with this crate: a narrow row does not fill the larger block.
        if columns <= 256 {
            let launch = kernels::embedding_backward::<T, f32, 256>(dy, indices, &mut dtable, vocabulary, columns, padding);
            launch.grid((rows.rows, 1)).launch()?;
        } else {
            let launch = kernels::embedding_backward::<T, f32, 1024>(dy, indices, &mut dtable, vocabulary, columns, padding);
            launch.grid((rows.rows, cdiv(columns, 1024))).launch()?;
        }
    }
    Ok(dtable)
}

/// The shape of a table, which has two axes and is on the device of the call.
fn table_of<T: Float>(call: &Call<'_>, table: &TensorView<'_, T>) -> Result<[usize; 2]> {
    call.expect_device("table", table)?;
    match *table.shape() {
        [vocabulary, columns] => Ok([vocabulary, columns]),
        _ => {
            let help = "give it two axes, such as `table.reshape([vocabulary, columns])?`".to_owned();
            Err(call.wrong_shape("table", table, "a matrix is expected: `[vocabulary, columns]`".to_owned(), help))
        }
    }
}

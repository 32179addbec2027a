//! Transposes.

use galatea::prelude::*;

use crate::call::Call;
use crate::{AsTensor, kernels};

/// The transpose of a matrix: `y[j, i] = x[i, j]`.
///
/// `x` is `[rows, columns]`, and the result is `[columns, rows]`. Every [`Element`] is accepted, and its bits are copied.
///
/// # Errors
/// [`Error::ArgumentShape`] if `x` has not two axes, or an error of an allocation or a launch. A GPU takes up to 8 million columns in tiles of 128;
/// beyond that the launch returns [`Error::GridTooLarge`].
///
/// ```
/// # use galatea::prelude::*;
/// # fn main() -> galatea::Result<()> {
/// let x = Device::cpu().tensor_from(&[1, 2, 3, 4, 5, 6], [2, 3])?;
/// let y = kernel_library::transpose(&x)?;
/// assert_eq!((y.shape(), y.to_vec()?), (&[3, 2][..], vec![1, 4, 2, 5, 3, 6]));
/// # Ok(())
/// # }
/// ```
pub fn transpose<T: Element>(x: &impl AsTensor<T>) -> Result<Tensor<T>> {
    let x = x.as_tensor();
    let call = Call::new("transpose", "x", &x);
    let &[rows, columns] = x.shape() else {
        let help = match *x.shape() {
            [.., rows, columns] => format!("transpose one matrix after the other: `x.slice(i..=i)?.reshape([{rows}, {columns}])?`"),
            _ => format!("a row is a matrix: `x.reshape([1, {}])?`", x.len()),
        };
        return Err(call.wrong_shape("x", &x, "a matrix is expected: `[rows, columns]`".to_owned(), help));
    };
    let mut y = call.empty(&[columns, rows])?;
    if !x.is_empty() {
        kernels::transpose(x, &mut y, rows, columns).grid(|config| (cdiv(rows, config.ROWS), cdiv(columns, config.COLUMNS))).launch()?;
    }
    Ok(y)
}

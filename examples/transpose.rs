//! `y[j, i] = x[i, j]`: a matrix is read and written by tiles of two axes.
//!
//! ```sh
//! cargo run --release --example transpose -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

// ANCHOR: kernel
#[kernel(M = 64, N = 64)]
fn transpose_tiles<const M: usize, const N: usize>(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    let (i, j) = (program_id(0) * M, program_id(1) * N);
    let tile = x.load([i, j], [M, N]);
    y.store([j, i], trans(tile));
}
// ANCHOR_END: kernel

// ANCHOR: launch
/// The transpose: `x` has the shape `[m, n]`, `y` the shape `[n, m]`.
pub(crate) fn transpose(x: &Tensor<f32>, y: &mut Tensor<f32>) -> Result<()> {
    // If `x` is not a matrix, the launch returns an error whatever the grid is.
    let (m, n) = if let [m, n] = *x.shape() { (m, n) } else { (1, 1) };
    transpose_tiles::<64, 64>(x, y).grid((cdiv(m, 64), cdiv(n, 64))).launch()
}
// ANCHOR_END: launch

// ANCHOR: part
/// The mean of each element and its neighbours to the left and above; beyond the edge of the matrix they are 0.
#[kernel(M = 8, N = 32)]
fn blur<const M: usize, const N: usize>(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    let (i, j) = (program_id(0) * M, program_id(1) * N);
    let here = x.load([i, j], [M, N]);
    let left = x.load([i, j - 1], [M, N]);
    let above = x.load([i - 1, j], [M, N]);
    y.store([i, j], (here + left + above) / 3.0);
}
// ANCHOR_END: part

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse(4099 * 4099)?;
    // The default is not a multiple of 64, so that the last tiles extend past both edges of the matrix.
    let m = len.isqrt().max(1);
    let n = (len / m).max(1);
    println!("transpose of {m} x {n} f32 on {device}");
    let data = report::random(m * n, 1);
    let x = device.tensor_from(&data, [m, n])?;
    let mut y = device.zeros::<f32>([n, m])?;
    transpose(&x, &mut y)?;

    let values = |y: &Tensor<f32>| Ok::<Vec<f64>, Error>(y.to_vec()?.into_iter().map(f64::from).collect());
    report::check("x transposed", &values(&y)?, |at| f64::from(data[at % m * n + at / m]), 0.0)?;

    let mut z = device.zeros::<f32>([m, n])?;
    blur::<8, 32>(&x, &mut z).grid((cdiv(m, 8), cdiv(n, 32))).launch()?;
    let at = |i: Option<usize>, j: Option<usize>| i.zip(j).map_or(0.0, |(i, j)| f64::from(data[i * n + j]));
    let want = |index: usize| {
        let (i, j) = (index / n, index % n);
        (at(Some(i), Some(j)) + at(Some(i), j.checked_sub(1)) + at(i.checked_sub(1), Some(j))) / 3.0
    };
    report::check("mean with two neighbours", &values(&z)?, want, 1e-6)?;
    report::measure(&device, 2 * size_of_val(&*data), || transpose(&x, &mut y))?;
    Ok(())
}

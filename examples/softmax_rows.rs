//! The softmax of each row of a matrix: rows of any length, as a tensor with a shape, in one program each.
//!
//! ```sh
//! cargo run --release --example softmax_rows -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

/// What lies beside a row of fewer than N columns counts as -infinity, which has no share.
#[kernel(N = [1000, 1024])]
fn softmax_rows<T: Float, const N: usize>(x: View<T, 2>, y: ViewMut<T, 2>) {
    let row = program_id(0);
    let v = x.load([row, 0], [1, N], other = f32::NEG_INFINITY as T);
    y.store([row, 0], softmax(v, axis = 1));
}

fn run<T: Float + Into<f64>>(device: &Device, data: &[T], columns: usize, tolerance: f64) -> Result<(), Box<dyn std::error::Error>> {
    let rows = data.len() / columns;
    let x = device.tensor(&data[..rows * columns])?.reshape([rows, columns])?;
    let mut y = device.zeros::<T>([rows, columns])?;
    softmax_rows::<T, 1000>(&x, &mut y).grid(rows).launch()?;

    let values: Vec<f64> = y.to_vec()?.into_iter().map(Into::into).collect();
    let powers: Vec<f64> = data.iter().map(|x| Into::<f64>::into(*x).exp()).collect();
    let sums: Vec<f64> = powers.chunks(columns).map(|row| row.iter().sum()).collect();
    let what = format!("softmax of {rows} rows of {columns} {}", T::DTYPE);
    report::check(&what, &values, |i| powers[i] / sums[i / columns], tolerance)?;
    report::measure(device, 2 * size_of_val(data), || softmax_rows::<T, 1000>(&x, &mut y).grid(rows).launch())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse(8192 * 1000)?;
    println!("softmax of rows, {len} elements on {device}");
    let data = report::random(len, 1);
    run(&device, &data, 1000, 1e-8)?;
    run(&device, &data, 777, 1e-8)?;
    let data: Vec<bf16> = data.into_iter().map(bf16::from_f32).collect();
    run(&device, &data, 1000, 4e-5)?;
    Ok(())
}

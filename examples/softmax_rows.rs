//! The softmax of each row of a matrix, with one program a row: spelt out with pointers, and as a builtin with views.
//!
//! ```sh
//! cargo run --release --example softmax_rows -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

// ANCHOR: kernel
#[kernel(heuristics(N = columns.next_power_of_two(), num_warps = if N >= 4096 { 8 } else { 4 }), N = [1024, 2048, 4096])]
fn softmax_by_hand<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    let column = arange(0, N);
    let mask = column < columns;
    let offsets = program_id(0) * columns + column;
    // Elements past the end of the row read as -infinity. They do not change the maximum, and their exponential is 0.
    let v = load(x + offsets, mask = mask, other = f32::NEG_INFINITY) as f32;
    let powers = exp(v - max(v, axis = 0));
    store(y + offsets, (powers / sum(powers)) as T, mask = mask);
}
// ANCHOR_END: kernel

// ANCHOR: launch
/// The softmax along the last axis of `x`, into `y` of the same shape.
pub(crate) fn softmax<T: Float>(x: &Tensor<T>, y: &mut Tensor<T>) -> Result<()> {
    let columns = x.shape().last().map_or(1, |columns| *columns).max(1);
    let rows = x.len() / columns;
    softmax_by_hand(x, y, columns).grid(|_| rows).launch()
}
// ANCHOR_END: launch

// ANCHOR: views
/// Elements past the end of a row of fewer than N columns read as -infinity. N need not be a power of two.
#[kernel(N = [1000, 1024])]
fn softmax_rows<T: Float, const N: usize>(x: View<T, 2>, y: ViewMut<T, 2>) {
    let row = program_id(0);
    let v = x.load([row, 0], [1, N], other = f32::NEG_INFINITY as T);
    y.store([row, 0], softmax(v, axis = 1));
}
// ANCHOR_END: views

fn run<T: Float + Into<f64>>(device: &Device, data: &[T], columns: usize, tolerance: f64) -> Result<(), Box<dyn std::error::Error>> {
    let columns = columns.min(data.len()).max(1);
    let rows = data.len() / columns;
    let data = &data[..rows * columns];
    let x = device.tensor(data)?.reshape([rows, columns])?;

    let powers: Vec<f64> = data.iter().map(|x| Into::<f64>::into(*x).exp()).collect();
    let sums: Vec<f64> = powers.chunks(columns).map(|row| row.iter().sum()).collect();
    let check = |what: &str, y: &Tensor<T>| {
        let values: Vec<f64> = y.to_vec()?.into_iter().map(Into::into).collect();
        let what = format!("{what} of {rows} rows of {columns} {}", T::DTYPE);
        report::check(&what, &values, |i| powers[i] / sums[i / columns], tolerance)
    };
    let mut y = device.zeros::<T>([rows, columns])?;
    softmax(&x, &mut y)?;
    check("softmax by hand", &y)?;
    let mut y = device.zeros::<T>([rows, columns])?;
    softmax_rows::<T, 1000>(&x, &mut y).grid(rows).launch()?;
    check("softmax of views", &y)?;
    report::measure(device, 2 * size_of_val(data), || softmax(&x, &mut y))?;
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

//! An RMS norm whose block and number of warps are tuned for each length of rows.
//!
//! ```sh
//! cargo run --release --example autotuned_norm -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

// ANCHOR: kernel
/// `y = x * weight / sqrt(mean of squares + eps)` for each row: a program a row.
#[autotune(
    configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096, 8192, 16384], num_warps = [2, 4, 8, 16])
        if BLOCK_SIZE >= 128 * num_warps && BLOCK_SIZE <= 1024 * num_warps,
    key = [columns],
    prune = |config| config.BLOCK_SIZE < columns || config.BLOCK_SIZE >= 2 * columns.max(257),
)]
#[kernel]
fn rms_norm<const BLOCK_SIZE: usize>(x: Ptr<f32>, weight: Ptr<f32>, y: PtrMut<f32>, columns: usize, eps: f32) {
    let row = program_id(0);
    let column = arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let v = load(x + row * columns + column, mask = mask);
    let rstd = rsqrt(sum(v * v) / columns as f32 + eps);
    store(y + row * columns + column, v * rstd * load(weight + column, mask = mask), mask = mask);
}
// ANCHOR_END: kernel

const EPS: f32 = 1e-6;

// ANCHOR: launch
/// The RMS norm along the last axis of `x`, into `y` of the same shape.
pub(crate) fn norm(x: &Tensor<f32>, weight: &Tensor<f32>, y: &mut Tensor<f32>) -> Result<()> {
    let columns = weight.len().max(1);
    let rows = x.len() / columns;
    rms_norm(x, weight, y, columns, EPS).grid(|_config| rows).launch()
}
// ANCHOR_END: launch

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse(1 << 24)?;
    println!("RMS norm of {len} f32 on {device}");
    let side = len.isqrt().clamp(1, 4000);
    for columns in [side, 4 * side] {
        let rows = (len / columns).max(1);
        let data = report::random(rows * columns, 1);
        let scale = report::random(columns, 2);
        let (x, weight) = (device.tensor_from(&data, [rows, columns])?, device.tensor(&scale)?);
        let mut y = device.empty_like(&x)?;
        norm(&x, &weight, &mut y)?;

        let got: Vec<f64> = y.to_vec()?.into_iter().map(f64::from).collect();
        let squares = data.chunks(columns).map(|row| row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / columns as f64);
        let rstd: Vec<f64> = squares.map(|mean| 1.0 / (mean + f64::from(EPS)).sqrt()).collect();
        let want = |i: usize| f64::from(data[i]) * rstd[i / columns] * f64::from(scale[i % columns]);
        report::check(&format!("{rows} rows of {columns}"), &got, want, 1e-5)?;
        // ANCHOR: report
        println!("{}", rms_norm(&x, &weight, &mut y, columns, EPS).grid(|_config| rows).report()?);
        // ANCHOR_END: report
        report::measure(&device, 2 * size_of_val(&*data), || norm(&x, &weight, &mut y))?;
    }
    Ok(())
}

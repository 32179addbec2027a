//! One kernel for matrices of any layout: a launch selects the variant that knows which stride is 1.
//!
//! ```sh
//! cargo run --release --features sim --example strides -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

// ANCHOR: kernel
/// `y = factor * x` for matrices with any strides.
#[kernel(M = 32, N = 64, assume(x_row = 1, y_row = 1))]
fn scale<const M: usize, const N: usize>(
    x: Ptr<f32>,
    y: PtrMut<f32>,
    m: usize,
    n: usize,
    x_row: usize,
    x_column: usize,
    y_row: usize,
    y_column: usize,
    factor: f32,
) {
    let i = (program_id(0) * M + arange(0, M)).col();
    let j = (program_id(1) * N + arange(0, N)).row();
    let mask = (i < m) & (j < n);
    let v = load(x + i * x_row + j * x_column, mask = mask);
    store(y + i * y_row + j * y_column, v * factor, mask = mask);
}
// ANCHOR_END: kernel

// ANCHOR: unspecialised
/// The same without the variants for strides of 1.
#[kernel(M = 32, N = 64, do_not_specialize)]
fn scale_unspecialised<const M: usize, const N: usize>(
    x: Ptr<f32>,
    y: PtrMut<f32>,
    m: usize,
    n: usize,
    x_row: usize,
    x_column: usize,
    y_row: usize,
    y_column: usize,
    factor: f32,
) {
    let i = (program_id(0) * M + arange(0, M)).col();
    let j = (program_id(1) * N + arange(0, N)).row();
    let mask = (i < m) & (j < n);
    let v = load(x + i * x_row + j * x_column, mask = mask);
    store(y + i * y_row + j * y_column, v * factor, mask = mask);
}
// ANCHOR_END: unspecialised

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse(1 << 24)?;
    // Rows and columns that 16 bytes divide, so that aligned accesses are possible in both layouts.
    let m = (len.isqrt() / 4 * 4).max(4);
    let n = (len / m / 4 * 4).max(4);
    println!("{m} x {n} f32 with several strides on {device}");
    let data = report::random(m * n, 1);
    let x = device.tensor(&data)?;
    let mut y = device.zeros::<f32>(m * n)?;
    let grid = (cdiv(m, 32), cdiv(n, 64));
    let check = |what: &str, y: &Tensor<f32>| {
        let got: Vec<f64> = y.to_vec()?.into_iter().map(f64::from).collect();
        report::check(what, &got, |i| 0.5 * f64::from(data[i]), 0.0)
    };

    // ANCHOR: launch
    // Row-major: the columns have stride 1. This variant exists without an annotation.
    scale::<32, 64>(&x, &mut y, m, n, n, 1, n, 1, 0.5).grid(grid).launch()?;
    // ANCHOR_END: launch
    check("row-major", &y)?;
    y.fill(0.0)?;
    // ANCHOR: column_major
    // Column-major: the rows have stride 1. `assume(..)` has this variant built.
    scale::<32, 64>(&x, &mut y, m, n, 1, m, 1, m, 0.5).grid(grid).launch()?;
    // ANCHOR_END: column_major
    check("column-major", &y)?;
    y.fill(0.0)?;
    scale_unspecialised::<32, 64>(&x, &mut y, m, n, n, 1, n, 1, 0.5).grid(grid).launch()?;
    check("unspecialised", &y)?;

    // ANCHOR: requests
    // On a simulated GPU the gain is a count: the requests of warps to memory.
    if let Some(report) = device.sim_report() {
        let requests = |kernel: &str| report.kernel(kernel).map(|kernel| kernel.total().global.requests / kernel.launches as u64);
        println!("memory requests of a launch: {:?} with known strides, {:?} without", requests("scale"), requests("scale_unspecialised"));
        // In a small matrix few tiles are full.
        if m.min(n) >= 64 && requests("scale") >= requests("scale_unspecialised") {
            return Err("a known stride saves no request".into());
        }
    }
    // ANCHOR_END: requests
    let bytes = 2 * size_of_val(&*data);
    report::measure(&device, bytes, || scale::<32, 64>(&x, &mut y, m, n, n, 1, n, 1, 0.5).grid(grid).launch())?;
    report::measure(&device, bytes, || scale_unspecialised::<32, 64>(&x, &mut y, m, n, n, 1, n, 1, 0.5).grid(grid).launch())?;
    Ok(())
}

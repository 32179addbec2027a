//! A matrix product by the tensor cores: a loop over blocks, with an epilogue.
//!
//! ```sh
//! cargo run --release --example matmul -- --device cpu --len 100000
//! ```
//!
//! On a Hopper GPU, the loop becomes a warp that copies blocks ahead (TMA) and warpgroups that multiply them (`wgmma`). `kernel_library::matmul` is tuned for each shape.

mod report;

use galatea::bench::do_bench;
use galatea::prelude::*;

// ANCHOR: kernel
/// `y = relu(a * b)`, in blocks of `[ROWS, COLUMNS]`. What lies outside of a view reads as 0, and is not stored.
#[kernel(T = bf16, ROWS = 128, COLUMNS = 128, BLOCK = 64, num_warps = 8, require(wgmma, tma, specialized))]
fn matmul_relu<T: Float, const ROWS: usize, const COLUMNS: usize, const BLOCK: usize>(a: View<T, 2>, b: View<T, 2>, y: ViewMut<T, 2>) {
    let (row, column) = (program_id(0) * ROWS, program_id(1) * COLUMNS);
    let mut total = zeros::<f32>([ROWS, COLUMNS]);
    for k in range(0, a.extent(1), BLOCK) {
        total += dot(a.load([row, k], [ROWS, BLOCK]), b.load([k, column], [BLOCK, COLUMNS]));
    }
    y.store([row, column], max(total, 0.0) as T);
}
// ANCHOR_END: kernel

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse(4096 * 4096)?;
    // As many rows as columns, and a few terms in each sum.
    let columns = len.isqrt().max(1) / 8 * 8 + 8;
    let inner = if device.is_cuda() { columns } else { 96 };
    println!("matrix product with {columns} rows, {columns} columns and sums of {inner} terms on {device}");
    let of = |len, seed| report::random(len, seed).into_iter().map(bf16::from_f32).collect::<Vec<bf16>>();
    let (left, right) = (of(columns * inner, 1), of(inner * columns, 2));
    let a = device.tensor(&left)?.reshape([columns, inner])?;
    let b = device.tensor(&right)?.reshape([inner, columns])?;
    let mut y = device.zeros::<bf16>([columns, columns])?;

    let grid = (cdiv(columns, 128), cdiv(columns, 128));
    matmul_relu::<bf16, 128, 128, 64>(&a, &b, &mut y).grid(grid).launch()?;
    // Each 101st row: the host needs a second for a million products.
    let y_rows: Vec<f64> = y.to_vec()?.chunks(columns).step_by(101).flatten().map(|value| value.to_f64()).collect();
    let want = |at: usize| {
        let (row, column) = (at / columns * 101, at % columns);
        let sum: f64 = (0..inner).map(|k| left[row * inner + k].to_f64() * right[k * columns + column].to_f64()).sum();
        sum.max(0.0)
    };
    // A `bf16` has 8 bits.
    report::check("every 101st row", &y_rows, want, 0.005)?;

    let launch = || matmul_relu::<bf16, 128, 128, 64>(&a, &b, &mut y).grid(grid).launch();
    if device.is_sim() {
        report::measure(&device, 2 * (2 * columns * inner + columns * columns), launch)?;
    } else {
        let us = do_bench(&device, launch)?.median_us;
        println!("{us:.1} us a launch, {:.1} GFLOP/s", 2e-3 * (columns * columns * inner) as f64 / us);
    }
    Ok(())
}

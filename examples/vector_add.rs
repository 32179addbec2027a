//! `out = x + y`: one kernel, one launch.
//!
//! ```sh
//! cargo run --release --example vector_add -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

// ANCHOR: kernel
#[kernel(BLOCK_SIZE = 1024)]
fn add<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let sum = load(x + offsets, mask = mask) + load(y + offsets, mask = mask);
    store(out + offsets, sum, mask = mask);
}
// ANCHOR_END: kernel

// ANCHOR: launch
/// `out = x + y`, on the device of the tensors.
pub(crate) fn vector_add(x: &Tensor<f32>, y: &Tensor<f32>, out: &mut Tensor<f32>) -> Result<()> {
    let n = out.len();
    add::<1024>(x, y, out, n).grid(cdiv(n, 1024)).launch()
}
// ANCHOR_END: launch

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse((1 << 24) + 3)?;
    println!("vector_add of {len} f32 on {device}");

    // ANCHOR: check
    let (a, b) = (report::random(len, 1), report::random(len, 2));
    let (x, y) = (device.tensor(&a)?, device.tensor(&b)?);
    let mut out = device.empty::<f32>(len)?;
    vector_add(&x, &y, &mut out)?;

    let got: Vec<f64> = out.to_vec()?.into_iter().map(f64::from).collect();
    report::check("x + y", &got, |i| f64::from(a[i]) + f64::from(b[i]), 1e-7)?;
    // ANCHOR_END: check
    report::measure(&device, 3 * size_of::<f32>() * len, || vector_add(&x, &y, &mut out))?;
    Ok(())
}

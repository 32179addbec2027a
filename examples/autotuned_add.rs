//! The vector add of PyTorch's recipe for user-defined Triton kernels, autotuned over the recipe's four configurations.
//!
//! The first launch times every configuration on the device and keeps the fastest. (Blocks of 2 and 4 elements are the recipe's own
//! choice; a kernel that should be fast uses blocks of a thousand.)
//!
//! ```sh
//! cargo run --release --example autotuned_add -- --device cpu
//! ```

mod report;

use galatea::prelude::*;
use galatea::tune::Outcome;

#[autotune(
    configs = [
        Config { BLOCK_SIZE: 4, num_stages: 3, num_warps: 8 },
        Config { BLOCK_SIZE: 4, num_stages: 4, num_warps: 4 },
        Config { BLOCK_SIZE: 2, num_stages: 3, num_warps: 8 },
        Config { BLOCK_SIZE: 2, num_stages: 4, num_warps: 4 },
    ],
    key = [],
)]
#[kernel]
fn add<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let sum = load(x + offsets, mask = mask) + load(y + offsets, mask = mask);
    store(out + offsets, sum, mask = mask);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse((1 << 20) + 3)?;
    println!("autotuned add of {len} f32 on {device}");

    let (a, b) = (report::random(len, 1), report::random(len, 2));
    let (x, y) = (device.tensor(&a)?, device.tensor(&b)?);
    let mut out = device.empty::<f32>(len)?;
    add(&x, &y, &mut out, len).grid(|config| cdiv(len, config.BLOCK_SIZE)).launch()?;

    let got: Vec<f64> = out.to_vec()?.into_iter().map(f64::from).collect();
    report::check("x + y", &got, |i| f64::from(a[i]) + f64::from(b[i]), 1e-7)?;

    let tuned = add(&x, &y, &mut out, len).grid(|config| cdiv(len, config.BLOCK_SIZE)).report()?;
    println!("{tuned}");
    report::measure(&device, 3 * size_of::<f32>() * len, || {
        add(&x, &y, &mut out, len).grid(|config| cdiv(len, config.BLOCK_SIZE)).launch()
    })?;
    assert!(tuned.trials.iter().all(|trial| !matches!(trial.outcome, Outcome::Failed(_))), "every configuration runs");
    Ok(())
}

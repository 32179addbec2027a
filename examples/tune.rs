//! Tuning before it is needed: the sizes are rows of a file, and what is found is committed and embedded.
//!
//! `galatea tune` runs this program, shows what was chosen for each row, and writes it to `examples/tuned.json`, which the kernel names: built once more,
//! the program tunes nothing. Run by itself, it adds once.
//!
//! ```sh
//! cargo run -p galatea-cli -- tune examples/shapes.json --records examples/tuned.json -- cargo run --release --example tune
//! ```

mod report;

use galatea::prelude::*;
use galatea::{Dtype, tune};

/// The results of every configuration are compared with the CPU's before one may win.
#[autotune(
    configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps,
    key = [n],
    records = "examples/tuned.json",
    verify = cpu,
)]
#[kernel(T = [f32, bf16])]
fn add_kernel<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    store(out + offsets, load(x + offsets, mask = mask) + load(y + offsets, mask = mask), mask = mask);
}

/// Tunes for one size, and says who knew.
fn add<T: Float>(device: &Device, n: usize) -> galatea::Result<()> {
    let (x, y) = (device.zeros::<T>(n)?, device.zeros::<T>(n)?);
    let mut out = device.zeros::<T>(n)?;
    let report = add_kernel(&x, &y, &mut out, n).grid(|config| cdiv(n, config.BLOCK_SIZE)).report()?;
    let chosen = report.chosen().map(|trial| trial.config);
    println!("n = {n}, {}: {chosen:?}, {:?} in {:.3} s", T::DTYPE, report.origin, report.took.as_secs_f64());
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse((1 << 16) + 3)?;
    if std::env::var_os("GALATEA_SHAPES").is_some() {
        for row in tune::shapes("add_kernel")? {
            let n: usize = row.get("n")?;
            // A simulated GPU takes about a microsecond an element.
            let n = if device.is_sim() { n.min(len) } else { n };
            match row.get("T")? {
                Dtype::F32 => add::<f32>(&device, n)?,
                Dtype::Bf16 => add::<bf16>(&device, n)?,
                other => return Err(format!("the kernel is compiled for f32 and bf16, not for {other}").into()),
            }
        }
    }

    let (a, b) = (report::random(len, 1), report::random(len, 2));
    let (x, y) = (device.tensor(&a)?, device.tensor(&b)?);
    let mut out = device.empty::<f32>(len)?;
    add_kernel(&x, &y, &mut out, len).grid(|config| cdiv(len, config.BLOCK_SIZE)).launch()?;
    let got: Vec<f64> = out.to_vec()?.into_iter().map(f64::from).collect();
    report::check("x + y", &got, |i| f64::from(a[i]) + f64::from(b[i]), 1e-7)?;
    report::measure(&device, 3 * size_of::<f32>() * len, || {
        add_kernel(&x, &y, &mut out, len).grid(|config| cdiv(len, config.BLOCK_SIZE)).launch()
    })?;
    Ok(())
}

//! A vector add beside a plain copy, over sizes: a table, the data and a plot in `target/perf-report`; and a verdict on two block sizes.
//!
//! ```sh
//! cargo run --release --features bench-report --example perf_report -- --device cpu
//! ```

mod report;

use galatea::Dtype;
use galatea::bench::{Contender, Unit, Work, do_bench_paired, perf_report};
use galatea::prelude::*;

#[kernel(BLOCK_SIZE = [1024, 4096])]
fn add<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let sum = load(x + offsets, mask = mask) + load(y + offsets, mask = mask);
    store(out + offsets, sum, mask = mask);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse(1 << 26)?;
    println!("vector add and copy of up to {len} f32 on {device}");

    // Zeros and ramps can move faster than data without structure does.
    let (a, b) = (report::random(len, 1), report::random(len, 2));
    let sizes = (12..=26).map(|power| 1 << power).filter(|size| *size <= len);
    let result = perf_report("vector add").x("elements", sizes).unit(Unit::GbPerS).run(&device, |n, step| {
        let (x, y) = (device.tensor(&a[..n])?, device.tensor(&b[..n])?);
        let (mut sum, mut copy) = (device.empty_like(&x)?, device.empty_like(&x)?);
        step.time([
            Contender::new("galatea", Work::bytes(3 * size_of::<f32>() * n).and_flops(n as f64, Dtype::F32), || {
                add::<1024>(&x, &y, &mut sum, n).grid(cdiv(n, 1024)).launch()
            }),
            Contender::new("copy", Work::bytes(2 * size_of::<f32>() * n), || copy.view_mut().copy_from(&x.view())),
        ])
    })?;
    let paths = result.save("target/perf-report")?;
    print!("{}", result.to_markdown());
    println!("\nwrote {}", paths.map(|path| path.display().to_string()).join(", "));

    let (x, y) = (device.tensor(&a)?, device.tensor(&b)?);
    let (mut small, mut large) = (device.empty_like(&x)?, device.empty_like(&x)?);
    let compared = do_bench_paired(
        &device,
        || add::<1024>(&x, &y, &mut small, len).grid(cdiv(len, 1024)).launch(),
        || add::<4096>(&x, &y, &mut large, len).grid(cdiv(len, 4096)).launch(),
    )?;
    println!("blocks of 4096 rather than 1024, {len} elements: {compared}");
    for (name, out) in [("blocks of 1024", &small), ("blocks of 4096", &large)] {
        let got: Vec<f64> = out.to_vec()?.into_iter().map(f64::from).collect();
        report::check(name, &got, |i| f64::from(a[i]) + f64::from(b[i]), 1e-7)?;
    }
    report::measure(&device, 3 * size_of::<f32>() * len, || add::<4096>(&x, &y, &mut large, len).grid(cdiv(len, 4096)).launch())?;
    Ok(())
}

//! Two results from one kernel: `sin` and `cos` of every element, accurate for angles of any size.
//!
//! ```sh
//! cargo run --release --example sin_cos -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

#[kernel(BLOCK_SIZE = 1024)]
fn sin_cos<const BLOCK_SIZE: usize>(x: Ptr<f32>, sine: PtrMut<f32>, cosine: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let angle = load(x + offsets, mask = mask);
    store(sine + offsets, sin(angle), mask = mask);
    store(cosine + offsets, cos(angle), mask = mask);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse((1 << 24) + 3)?;
    println!("sin and cos of {len} f32 on {device}");

    // Every eighth angle is large: there a naive reduction by 2 pi has no correct digit left.
    let scale = |i: usize| if i.is_multiple_of(8) { 1e9 } else { 1.0 };
    let angles: Vec<f32> = report::random(len, 1).into_iter().enumerate().map(|(i, x)| x * scale(i)).collect();
    let x = device.tensor(&angles)?;
    let (mut sine, mut cosine) = (device.empty_like(&x)?, device.empty_like(&x)?);
    sin_cos::<1024>(&x, &mut sine, &mut cosine, len).grid(cdiv(len, 1024)).launch()?;

    let wide = |tensor: &Tensor<f32>| Ok::<Vec<f64>, Error>(tensor.to_vec()?.into_iter().map(f64::from).collect());
    report::check("sin", &wide(&sine)?, |i| f64::from(angles[i]).sin(), 2e-7)?;
    report::check("cos", &wide(&cosine)?, |i| f64::from(angles[i]).cos(), 2e-7)?;
    report::measure(&device, 3 * size_of::<f32>() * len, || {
        sin_cos::<1024>(&x, &mut sine, &mut cosine, len).grid(cdiv(len, 1024)).launch()
    })?;
    Ok(())
}

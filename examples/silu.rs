//! `y = x * sigmoid(x)` in `f32` and `bf16`: one kernel for every float type, in two spellings.
//!
//! ```sh
//! cargo run --release --example silu -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

/// y = x * sigmoid(x), computed in f32 and rounded once.
#[kernel(BLOCK_SIZE = 2048)]
fn silu<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let v = load(x + offsets, mask = mask) as f32;
    store(y + offsets, (v * sigmoid(v)) as T, mask = mask);
}

/// The same with the sigmoid spelt out, as a Triton kernel does.
#[kernel(BLOCK_SIZE = 1024)]
fn silu_by_exp<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let v = load(x + offsets, mask = mask) as f32;
    let sigmoid_v = 1.0 / (1.0 + exp(-v));
    store(y + offsets, (v * sigmoid_v) as T, mask = mask);
}

fn run<T: Float + Into<f64>>(device: &Device, data: &[T], tolerance: f64) -> Result<(), Box<dyn std::error::Error>> {
    let x = device.tensor(data)?;
    let mut y = device.empty_like(&x)?;
    silu::<T, 2048>(&x, &mut y, x.len()).grid(cdiv(x.len(), 2048)).launch()?;

    let values = |y: &Tensor<T>| Ok::<Vec<f64>, Error>(y.to_vec()?.into_iter().map(Into::into).collect());
    let want = |i: usize| {
        let x: f64 = data[i].into();
        x / (1.0 + (-x).exp())
    };
    report::check(&format!("silu {}", T::DTYPE), &values(&y)?, want, tolerance)?;
    y.fill(data[0])?;
    silu_by_exp::<T, 1024>(&x, &mut y, x.len()).grid(cdiv(x.len(), 1024)).launch()?;
    report::check(&format!("silu {} by exp", T::DTYPE), &values(&y)?, want, tolerance)?;
    report::measure(device, 2 * size_of_val(data), || silu::<T, 2048>(&x, &mut y, x.len()).grid(cdiv(x.len(), 2048)).launch())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse((1 << 24) + 3)?;
    println!("silu of {len} elements on {device}");
    let data = report::random(len, 1);
    run(&device, &data, 1e-6)?;
    let data: Vec<bf16> = data.into_iter().map(bf16::from_f32).collect();
    run(&device, &data, 4e-3)?;
    Ok(())
}

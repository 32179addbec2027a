//! A function of tensors, recorded once for all batches: its graph, and runs that equal those of the function.
//!
//! ```sh
//! cargo run --release --example record -- --device cpu
//! ```

#[expect(dead_code, reason = "this example compares tensors, and measures nothing")]
mod report;

use galatea::graph::{Session, export, input};
use galatea::ops::{self, Any, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype};

/// y = x * sigmoid(x)
#[kernel]
fn silu_elements<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(x + at, mask = at < n) as f32;
    store(y + at, (v * sigmoid(v)) as T, mask = at < n);
}

/// Divides each row by the root of its mean square, in place.
#[kernel]
fn normalise_rows<const COLUMNS: usize>(x: PtrMut<f32>) {
    let at = program_id(0) * COLUMNS + arange(0, COLUMNS);
    let v = load(x + at);
    store(x + at, v * rsqrt(sum(v * v) / COLUMNS as f32 + 1e-6));
}

fn silu(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    silu_elements::<Any, 1024>(x, &mut y, &n).grid(n.cdiv(1024)).launch()?;
    Ok(y)
}

fn model(x: &Tensor) -> Result<Tensor> {
    let mut y = silu(x)?;
    normalise_rows::<128>(&mut y).grid(x.dim(0)).launch()?;
    silu(&y)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse(1 << 17)?;
    let batch = Dim::new("batch", 1..=4096);
    let graph = export(|[x]| model(x), [input("x", [&batch, &128.into()], Dtype::F32)])?.named("model");
    println!("{graph}");

    let session = Session::new(graph, &device)?;
    for rows in [1, 16, (len / 128).clamp(1, 4096)] {
        let x: Tensor = device.tensor_from(&report::random(rows * 128, 1), [rows, 128])?.into();
        let comparison = ops::compare(&session.run([&x])?[0], &model(&x)?)?;
        println!("batch {rows}: {comparison}");
        if !comparison.bit_equal {
            return Err("the graph and the function differ".into());
        }
    }
    let x = Tensor::zeros(&device, Dtype::F32, [5000, 128])?;
    println!("batch 5000: {}", session.run([&x]).expect_err("the batch is not in the range"));
    Ok(())
}

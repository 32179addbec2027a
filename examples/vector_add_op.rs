//! The vector addition of PyTorch's recipe for user-defined Triton kernels: an op whose kernel has one block size, and one that is autotuned. Each runs
//! as a function, compiled, and from a package.
//!
//! ```sh
//! cargo run --release --example vector_add_op -- --device cpu
//! ```

#[expect(dead_code, reason = "this example prints tensors, and measures nothing")]
mod report;

use std::error::Error;

use galatea::graph::{Package, export, input};
use galatea::ops::{self, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype, op};
use kernel_library::nn::{Seed, normal};

#[kernel(BLOCK_SIZE = 4)]
fn add_kernel<const BLOCK_SIZE: usize>(in_ptr0: Ptr<f32>, in_ptr1: Ptr<f32>, out_ptr: PtrMut<f32>, n_elements: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n_elements;
    let (x, y) = (load(in_ptr0 + offsets, mask = mask), load(in_ptr1 + offsets, mask = mask));
    store(out_ptr + offsets, x + y, mask = mask);
}

/// The sum of two tensors.
#[op("mylib::add")]
fn add(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let mut output = x.zeros_like()?;
    let n_elements = output.numel();
    add_kernel::<4>(x, y, &mut output, &n_elements).grid(n_elements.cdiv(4)).launch()?;
    Ok(output)
}

/// The recipe's configurations and its empty key: one of them serves all sizes that keep the GPU equally busy.
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
fn add_kernel_autotuned<const BLOCK_SIZE: usize>(in_ptr0: Ptr<f32>, in_ptr1: Ptr<f32>, out_ptr: PtrMut<f32>, n_elements: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n_elements;
    let (x, y) = (load(in_ptr0 + offsets, mask = mask), load(in_ptr1 + offsets, mask = mask));
    store(out_ptr + offsets, x + y, mask = mask);
}

/// The sum of two tensors, with the fastest configuration.
#[op("mylib::add_autotuned")]
fn add_autotuned(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let mut output = x.zeros_like()?;
    let n_elements = output.numel();
    add_kernel_autotuned(x, y, &mut output, &n_elements).grid(|config| n_elements.cdiv(config.BLOCK_SIZE as i64)).launch()?;
    Ok(output)
}

/// Runs an op in all forms, and compares the results with each other and with sums of the CPU.
fn run(name: &str, op: fn(&Tensor, &Tensor) -> Result<Tensor>, x: &Tensor, y: &Tensor, device: &Device) -> Result<(), Box<dyn Error>> {
    println!("--- {name} ---");
    let out = op(x, y)?;
    println!("Vector addition of\nX:\t{x}\nY:\t{y}\nis equal to\n{out}\n");

    let n = Dim::new("n", 1..=1 << 24);
    let inputs = ["x", "y"].map(|name| input(name, [&n], Dtype::F32));
    let graph = export(|[x, y]| op(x, y), inputs)?.named("add");
    println!("{graph}");
    let compiled = graph.compile(device)?;
    let packaged = Package::from_bytes(graph.package().to_bytes()?)?.load(device)?;
    for (form, session) in [("compiled", compiled), ("packaged", packaged)] {
        let comparison = ops::compare(&session.run([x, y])?[0], &out)?;
        println!("{form} and eager: {comparison}");
        if !comparison.bit_equal {
            return Err(format!("{name}: the {form} result differs").into());
        }
    }
    let (a, b, sums) = (x.to_vec::<f32>()?, y.to_vec::<f32>()?, out.to_vec::<f32>()?);
    match (0..sums.len()).find(|&i| sums[i].to_bits() != (a[i] + b[i]).to_bits()) {
        Some(i) => Err(format!("{name}: element {i} is {}, and {} + {} is {}", sums[i], a[i], b[i], a[i] + b[i]).into()),
        None => Ok(()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let report::Args { device, len } = report::Args::parse(4)?;
    let mut seed = Seed(0);
    let x = normal(&device, Dtype::F32, &[len], &mut seed)?;
    let y = normal(&device, Dtype::F32, &[len], &mut seed)?;
    run(add::DEF.name, add, &x, &y, &device)?;
    println!();
    run(add_autotuned::DEF.name, add_autotuned, &x, &y, &device)?;

    let mut out = x.zeros_like()?;
    let tuned = add_kernel_autotuned(&x, &y, &mut out, len).grid(|config| cdiv(len, config.BLOCK_SIZE)).report()?;
    print!("\n{tuned}");
    Ok(())
}

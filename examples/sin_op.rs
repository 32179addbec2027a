//! An op with a kernel of its own: called by its function and by its name, with gradients, a function for the CPU and a FLOP formula. The program of PyTorch's recipe
//! for user-defined Triton kernels.
//!
//! ```sh
//! cargo run --release --example sin_op -- --device cpu
//! ```

#[expect(dead_code, reason = "this example compares tensors, and measures nothing")]
mod report;

use galatea::graph::{Level, Session, export, input};
use galatea::ops::{self, Any, GradTolerance, Tensor, compare, gradcheck};
use galatea::prelude::*;
use galatea::{Dim, Dtype, op};
use kernel_library::nn::{Seed, normal};

#[kernel(BLOCK_SIZE = 4)]
fn add_kernel<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    store(out + offsets, load(x + offsets, mask = mask) + load(y + offsets, mask = mask), mask = mask);
}

/// A plain function that launches a kernel.
fn add(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (n, mut out) = (x.numel(), x.zeros_like()?);
    add_kernel::<Any, 4>(x, y, &mut out, &n).grid(n.cdiv(4)).launch()?;
    Ok(out)
}

#[autotune(
    configs = [
        Config { BLOCK_SIZE: 128, num_warps: 4 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 1024, num_warps: 8 },
    ],
    key = [],
)]
#[kernel]
fn add_kernel_autotuned<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    store(out + offsets, load(x + offsets, mask = mask) + load(y + offsets, mask = mask), mask = mask);
}

#[kernel(BLOCK_SIZE = 1024)]
fn sin_kernel<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, out: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    store(out + offsets, sin(load(x + offsets, mask = mask)), mask = mask);
}

#[kernel(BLOCK_SIZE = 1024)]
fn cos_kernel<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, out: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    store(out + offsets, cos(load(x + offsets, mask = mask)), mask = mask);
}

/// sin, elementwise. The gradient is `grad * cos(x)`; a call counts an operation for each element.
#[op("mylib::sin", backward(x) = sin_backward, flops = |x| x.numel())]
fn mysin(x: &Tensor) -> Result<Tensor> {
    let (n, mut out) = (x.numel(), x.empty_like()?);
    sin_kernel::<Any, 1024>(x, &mut out, &n).grid(n.cdiv(1024)).launch()?;
    Ok(out)
}

/// A gradient calls ops, and their kernels.
fn sin_backward(grad: &Tensor, x: &Tensor) -> Result<Tensor> {
    kernel_library::ops::mul(grad, &mycos(x)?)
}

#[op("mylib::cos")]
fn mycos(x: &Tensor) -> Result<Tensor> {
    let (n, mut out) = (x.numel(), x.empty_like()?);
    cos_kernel::<Any, 1024>(x, &mut out, &n).grid(n.cdiv(1024)).launch()?;
    Ok(out)
}

/// [`mysin`] with a function of its own for the CPU. Without one, the CPU runs the kernel.
#[op("mylib::sin_with_fallback", cpu = sin_on_cpu, backward(x) = sin_backward)]
fn sin_with_fallback(x: &Tensor) -> Result<Tensor> {
    mysin(x)
}

/// The sines that the standard library computes, for `f32`.
fn sin_on_cpu(x: &Tensor) -> Result<Tensor> {
    let sines: Vec<f32> = x.to_vec::<f32>()?.into_iter().map(f32::sin).collect();
    Tensor::from_numbers(&Device::cpu(), Dtype::F32, x.dims(), &sines)
}

/// Returns whether the elements are those of a function, but for a relative error of 1e-5 and an absolute one of 1e-6.
fn is_close(found: &Tensor, expected: impl IntoIterator<Item = f32>) -> Result<bool> {
    let found = found.to_vec::<f32>()?;
    Ok(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= 1e-6 + 1e-5 * expected.abs()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, .. } = report::Args::parse(0)?;
    let mut seed = Seed(1);

    println!("--- Basic usage ---");
    let [x, y] = [normal(&device, Dtype::F32, &[4], &mut seed)?, normal(&device, Dtype::F32, &[4], &mut seed)?];
    let compiled = export(|[x, y]| add(x, y), [input("x", [4], Dtype::F32), input("y", [4], Dtype::F32)])?.compile(&device)?;
    let out = compiled.run([&x, &y])?.remove(0);
    println!("Vector addition of\nX:\t{x}\nY:\t{y}\nis equal to\n{out}");
    let sums: Vec<f32> = x.to_vec::<f32>()?.iter().zip(y.to_vec::<f32>()?).map(|(x, y)| x + y).collect();
    assert_eq!(out.to_vec::<f32>()?, sums);

    println!("\n--- Advanced usage: autotuning ---");
    let mut tuned = device.empty::<f32>(4)?;
    add_kernel_autotuned(x.view::<f32>()?, y.view::<f32>()?, &mut tuned, 4).grid(|config| cdiv(4, config.BLOCK_SIZE)).launch()?;
    println!("Vector addition of\nX:\t{x}\nY:\t{y}\nis equal to\n{tuned}");
    assert_eq!(tuned.to_vec()?, sums);

    println!("\n--- The op ---\n{}", mysin::DEF.schema);
    let x = normal(&device, Dtype::F32, &[3], &mut seed)?;
    let sines: Vec<f32> = x.to_vec::<f32>()?.into_iter().map(f32::sin).collect();
    let y = mysin(&x)?;
    let z = ops::get("mylib::sin")?.call([(&x).into()])?.remove(0);
    println!("mysin(x):                {y}\nget(\"mylib::sin\"):       {z}");
    assert!(is_close(&y, sines.iter().copied())? && compare(&y, &z)?.bit_equal);

    println!("\n--- Recorded ---");
    let n = Dim::new("n", 1..=1024);
    let graph = export(|[x]| mysin(x), [input("x", [&n], Dtype::F32)])?.named("model");
    print!("{}{}", graph.text(Level::Ops), graph.text(Level::Kernels));
    let recorded = Session::new(graph.clone(), &device)?.run([&x])?.remove(0);
    println!("recorded equals mysin(x): {}", compare(&recorded, &y)?);
    assert!(compare(&recorded, &y)?.bit_equal);

    println!("\n--- Training support ---");
    let leaf = x.clone().requires_grad()?;
    let gradients = kernel_library::ops::sum(&mysin(&leaf)?)?.backward()?;
    let gradient = gradients.get(&leaf).ok_or("no gradient flows to `x`")?;
    println!("gradient of sum(mysin(x)): {gradient}");
    assert!(is_close(gradient, x.to_vec::<f32>()?.into_iter().map(f32::cos))?);
    let wide = Tensor::from(device.tensor(&[-1.5f64, 0.25, 3.0])?);
    println!("{}", gradcheck(&[wide], GradTolerance::default(), |x| Ok(vec![mysin(&x[0])?]))?);

    println!("\n--- A function for the CPU ---");
    let on_cpu = x.to_device(&Device::cpu())?;
    let kernel_on_cpu = mysin(&on_cpu)?;
    let fallback = sin_with_fallback(&on_cpu)?;
    println!("the kernel on the CPU:    {kernel_on_cpu}\nthe function for the CPU: {fallback}");
    assert!(is_close(&kernel_on_cpu, sines.iter().copied())? && fallback.to_vec::<f32>()? == sines);

    println!("\n--- FLOP formula ---");
    println!("{}", graph.flops_at(&[("n", 3)])?);
    Ok(())
}

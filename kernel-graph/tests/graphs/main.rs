//! Recorded graphs on every device without a GPU: their text, their runs beside the same function without recording, and their errors.

mod errors;
mod kernels;
mod runs;
mod text;

use galatea::ops::Tensor;
use galatea::prelude::*;

/// The CPU, and simulated GPUs of two targets.
fn devices() -> [Device; 3] {
    [Device::cpu(), Device::sim(Target::SM_80).unwrap(), Device::sim(Target::SM_90A).unwrap()]
}

/// A tensor of `n` numbers that differ.
fn numbers(device: &Device, n: usize) -> Tensor {
    let numbers: Vec<f32> = (0..n).map(|i| i as f32 * 0.75 - 3.0).collect();
    device.tensor(&numbers).unwrap().into()
}

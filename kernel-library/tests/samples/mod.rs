//! The devices and the random tensors for the tests of ops.

#![allow(dead_code, reason = "each test uses some of these")]

use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dtype, Target};
use kernel_library::nn::Seed;

/// The CPU, both simulated GPUs, and a GPU if there is one.
pub(crate) fn devices() -> Vec<Device> {
    let sims = [Target::SM_80, Target::SM_90A].map(|target| Device::sim(target).unwrap());
    let cuda = Device::parse("cuda:0").ok();
    [Device::cpu()].into_iter().chain(sims).chain(cuda).collect()
}

/// The elements as f64.
pub(crate) fn values(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        Dtype::F32 => tensor.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
        Dtype::F16 => tensor.to_vec::<f16>().unwrap().into_iter().map(f64::from).collect(),
        Dtype::Bf16 => tensor.to_vec::<bf16>().unwrap().into_iter().map(f64::from).collect(),
        Dtype::F64 => tensor.to_vec::<f64>().unwrap(),
        dtype => panic!("{dtype}"),
    }
}

/// Normal numbers of `f64`, each mapped into a domain.
pub(crate) fn normal_f64(device: &Device, dims: &[usize], seed: &mut Seed, domain: fn(f64) -> f64) -> Tensor {
    let numbers: Vec<f64> = (0..dims.iter().product()).map(|_| domain(f64::from(seed.normal()))).collect();
    device.tensor_from(&numbers, dims).unwrap().into()
}

/// The tensor on a device, rounded to a dtype.
pub(crate) fn rounded(tensor: &Tensor, device: &Device, dtype: Dtype) -> Tensor {
    let dims = tensor.dims();
    if dtype == Dtype::F64 {
        let bytes: Vec<u8> = values(tensor).iter().flat_map(|value| value.to_le_bytes()).collect();
        return Tensor::from_bytes(device, dtype, dims, &bytes).unwrap();
    }
    let numbers: Vec<f32> = values(tensor).into_iter().map(|value| value as f32).collect();
    Tensor::from_numbers(device, dtype, dims, &numbers).unwrap()
}

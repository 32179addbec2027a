//! `Any` where the dtype is not that of an `ops::Tensor`.

use galatea::ops::{self, Any};
use galatea::prelude::*;

#[kernel(T = f32, N = 64)]
fn double<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * N + arange(0, N);
    let mask = offsets < n;
    store(y + offsets, load(x + offsets, mask = mask) * 2.0, mask = mask);
}

// No tensor has the type.
#[kernel(T = f32)]
fn fill<T: Float>(y: PtrMut<f32>, value: T) {
    store(y + arange(0, 64), value as f32);
}

#[kernel(T = f32)]
fn scale<T: Float>(y: PtrMut<T>, a: T) {
    store(y + arange(0, 64), load(y + arange(0, 64)) * a);
}

// A rule needs the type.
#[kernel(T = f32, heuristics(WIDE = size_of::<T>() > 2))]
fn wide<T: Float, const WIDE: bool>(y: PtrMut<T>) {
    store(y + arange(0, 64), WIDE as T);
}

fn main() -> galatea::Result<()> {
    let device = Device::cpu();
    let x = device.zeros::<f32>(64)?;
    let mut y = ops::Tensor::from(device.zeros::<f32>(64)?);
    double::<Any, 64>(&x, &mut y, 64).grid(1).launch()?;
    fill::<Any>(&mut y, 1.0f32).grid(1).launch()?;
    wide::<Any>(&mut y).grid(|_| 1).launch()?;
    scale::<Any>(&mut y, 2u8).grid(1).launch()?;
    scale::<f32>(&mut y, 2.0f64).grid(1).launch()
}

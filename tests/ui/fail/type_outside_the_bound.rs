//! A type that the bound of the kernel does not allow.

use galatea::prelude::*;

#[kernel(T = f32)]
fn half<T: Float>(y: PtrMut<T>) {
    store(y, load(y) * 0.5);
}

fn main() -> galatea::Result<()> {
    let mut y = Device::cpu().zeros::<i32>(64)?;
    half::<i32>(&mut y).grid(1).launch()
}

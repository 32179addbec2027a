//! A kernel without bounds checks is launched in an `unsafe` block.

use galatea::prelude::*;

#[kernel(N = 64, unchecked)]
fn fill<const N: usize>(y: PtrMut<f32>) {
    store(y + arange(0, N), 1.0);
}

fn main() -> galatea::Result<()> {
    let mut y = Device::cpu().zeros::<f32>(64)?;
    fill::<64>(&mut y).grid(1).launch()
}

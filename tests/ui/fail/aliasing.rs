//! A tensor is read and written at once.

use galatea::prelude::*;

#[kernel(N = 64)]
fn double<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * N + arange(0, N);
    let mask = offsets < n;
    store(y + offsets, load(x + offsets, mask = mask) * 2.0, mask = mask);
}


fn main() -> galatea::Result<()> {
    let device = Device::cpu();
    let mut x = device.zeros::<f32>(100)?;
    double::<64>(&x, &mut x, 100).grid(2).launch()?;
    Ok(())
}

//! A tensor of another element type.

use galatea::prelude::*;

#[kernel(N = 64)]
fn double<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * N + arange(0, N);
    let mask = offsets < n;
    store(y + offsets, load(x + offsets, mask = mask) * 2.0, mask = mask);
}


fn main() -> galatea::Result<()> {
    let device = Device::cpu();
    let x = device.zeros::<f64>(100)?;
    let mut y = device.zeros::<f32>(100)?;
    double::<64>(&x, &mut y, 100).grid(2).launch()?;
    Ok(())
}

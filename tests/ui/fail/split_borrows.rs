//! A tensor is used while one of its halves is.

use galatea::prelude::*;

#[kernel(N = 64)]
fn exchange<const N: usize>(x: PtrMut<f32>, y: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * N + arange(0, N);
    let mask = offsets < n;
    let (first, second) = (load(x + offsets, mask = mask), load(y + offsets, mask = mask));
    store(x + offsets, second, mask = mask);
    store(y + offsets, first, mask = mask);
}

fn main() -> galatea::Result<()> {
    let device = Device::cpu();
    let mut x = device.zeros::<f32>(100)?;
    let (mut top, mut bottom) = x.split_at_mut(50)?;
    exchange::<64>(&mut top, &mut bottom, 50).grid(1).launch()?;
    drop(top);
    exchange::<64>(&mut x, &mut bottom, 50).grid(1).launch()?;
    Ok(())
}

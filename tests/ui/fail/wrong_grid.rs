//! Grids that are none.

use galatea::prelude::*;

#[kernel(N = 64)]
fn fill<const N: usize>(y: PtrMut<f32>) {
    store(y + program_id(0) * N + arange(0, N), 1.0);
}

fn main() -> galatea::Result<()> {
    let device = Device::cpu();
    let mut y = device.zeros::<f32>(100)?;
    fill::<64>(&mut y).grid(|_| 2).launch()?;
    fill::<64>(&mut y).grid(2i64).launch()?;
    fill::<64>(&mut y).grid((1, 1, 1, 1)).launch()
}

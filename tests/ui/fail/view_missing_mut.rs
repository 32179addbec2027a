//! A tensor that the kernel writes by blocks is passed to read, and memory without a shape as one with a shape.

use galatea::prelude::*;

#[kernel]
fn copy<const N: usize>(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    y.store([0, 0], x.load([0, 0], [N, N]));
}

fn main() -> galatea::Result<()> {
    let device = Device::cpu();
    let x = device.zeros::<f32>([8, 8])?;
    let y = device.zeros::<f32>([8, 8])?;
    copy::<8>(&x, &y).grid(1).launch()?;
    Ok(())
}

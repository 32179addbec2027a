//! Every mistake of a kernel is shown at once, and its callers still compile.

use galatea::prelude::*;

#[kernel(BLOCK_SIZE = [1024])]
fn silu<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: i32) {
    let offsets = program_id(0) * BLOCK_SIZE + arrange(0, BLOCK_SIZE);
    let index = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let v = load(x + index, msk = index < n) as f32;
    let w = v * load(x + index);
    if v > 0.0 {
        store(x + index, v as T);
    }
    store(y + offsets, sgimoid(w));
}

fn main() -> galatea::Result<()> {
    let device = Device::cpu();
    let x = device.zeros::<f32>(100)?;
    let mut y = device.zeros::<f32>(100)?;
    silu::<f32, 1024>(&x, &mut y, 100).grid(1).launch()
}

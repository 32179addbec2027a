//! The grid of a kernel with configurations is a closure.

use galatea::prelude::*;

#[autotune(configs = [Config { B: 64, num_warps: 4 }, Config { B: 128, num_warps: 4 }], key = [n])]
#[kernel]
fn fill<const B: usize>(y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, 1.0, mask = at < n);
}

#[kernel(heuristics(B = n.next_power_of_two()), B = [64, 128])]
fn clear<const B: usize>(y: PtrMut<f32>, n: usize) {
    store(y + arange(0, B), 0.0, mask = arange(0, B) < n);
}

fn main() -> galatea::Result<()> {
    let device = Device::cpu();
    let mut y = device.zeros::<f32>(100)?;
    fill(&mut y, 100).grid(2).launch()?;
    clear(&mut y, 100).grid((1, 1)).launch()?;
    fill(&mut y, 100).launch()?;
    fill(&mut y, 100).report()?;
    fill(&mut y, 100).grid(|config| cdiv(100, config.B)).launch()
}

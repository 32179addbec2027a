//! A reference that does not take what the kernel does.

use galatea::prelude::*;

#[autotune(configs = [Config { B: 64 }, Config { B: 128 }], key = [], verify = reference)]
#[kernel]
fn scale<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, by: f32, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, by * load(x + at, mask = at < n), mask = at < n);
}

fn reference(x: &[f32], y: &mut [f64], by: f32, n: usize) {
    (0..n).for_each(|i| y[i] = f64::from(by * x[i]));
}

fn main() {}

//! `#[autotune]` on a function that is no kernel.

use galatea::prelude::*;

#[autotune(configs = [Config { N: 64 }], key = [n])]
fn fill<const N: usize>(y: PtrMut<f32>, n: usize) {
    store(y + arange(0, N), 1.0);
}

fn main() {}

//! Heuristics that speak of no argument, that are of another type than their constant, and a closure that returns no boolean.

use galatea::prelude::*;

#[autotune(configs = product(B = [64, 128], num_warps = [2, 4]) if B >= 32 * num_warps, key = [n], prune = |config| config.B)]
#[kernel(heuristics(EVEN = m % B == 0, WIDE = n + B))]
fn fill<const B: usize, const EVEN: bool, const WIDE: i32>(y: PtrMut<f32>, n: usize) {
    store(y + arange(0, B), WIDE as f32, mask = arange(0, B) < n && EVEN);
}

fn main() {}

//! Configurations with an unknown field, a missing constant, and twice the same.

use galatea::prelude::*;

#[autotune(
    configs = [
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { num_warps: 8 },
        Config { BLOCK_SIZE: 2048, num_wraps: 8 },
    ],
    key = [m],
)]
#[kernel]
fn fill<const BLOCK_SIZE: usize>(y: PtrMut<f32>, n: usize) {
    store(y + arange(0, BLOCK_SIZE), 1.0, mask = arange(0, BLOCK_SIZE) < n);
}

fn main() {}

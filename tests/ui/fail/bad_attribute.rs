//! Options that the attribute does not know, and values that it cannot take.

use galatea::prelude::*;

const SIZE: usize = 64;

#[kernel(BLOK_SIZE = [1024], num_warps = 6, N = [SIZE])]
fn fill<const BLOCK_SIZE: usize, const N: usize>(y: PtrMut<f32>) {
    store(y + arange(0, BLOCK_SIZE), SIZE);
}

fn main() {}

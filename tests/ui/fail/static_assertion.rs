//! A static assertion that a listed value breaks.

use galatea::prelude::*;

#[kernel(N = [64, 128])]
fn fill<const N: usize>(y: PtrMut<f32>) {
    static_assert!(N >= 128, "the tile is too small");
    store(y + arange(0, N), 1.0);
}

fn main() {}

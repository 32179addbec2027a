//! A mistake that only some of the listed values make is shown once, with the value.

use galatea::prelude::*;

#[kernel(BLOCK_SIZE = [64, 2097152], T = [f32, f64])]
fn fill<T: Float, const BLOCK_SIZE: usize>(y: PtrMut<T>, value: T) {
    store(y + arange(0, BLOCK_SIZE), value);
}

fn main() {}

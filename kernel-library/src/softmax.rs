//! Softmax of the rows of a matrix.

use galatea::prelude::*;

#[kernel(T = [f32, bf16], BLOCK_SIZE = [1024, 4096])]
pub fn softmax<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
    let start = program_id(0) * columns;
    let column = arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let v = load(x + start + column, mask = mask, other = f32::NEG_INFINITY as T) as f32;
    let e = exp(v - max(v, axis = 0));
    store(y + start + column, (e * (1.0 / sum(e, axis = 0))) as T, mask = mask);
}

//! New axes are written as Triton writes them.

use galatea::prelude::*;

#[kernel(N = 16)]
fn outer<const N: usize>(y: PtrMut<i64>) {
    let i = arange(0, N);
    store(y + i[(.., None)] * N + i[(None, ..)], i[.., None] * i[None, ..]);
}

fn main() {}

//! Two comparisons are combined without parentheses.

use galatea::prelude::*;

#[kernel(N = 16)]
fn middle<const N: usize>(y: PtrMut<i64>, n: i64) {
    let i = arange(0, N);
    store(y + i, i, mask = i > 2 & i < n);
}

fn main() {}

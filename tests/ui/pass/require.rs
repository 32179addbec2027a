//! A kernel that has what it requires, and one whose configurations without that are left out.

use galatea::prelude::*;

#[kernel(M = 64, require(wgmma, tma, specialized))]
fn product<const M: usize>(x: Ptr<bf16>, y: Ptr<bf16>, z: PtrMut<f32>) {
    let at = arange(0, M).col() * M + arange(0, M).row();
    store(z + at, dot(load(x + at), load(y + at)));
}

#[autotune(configs = [Config { M: 64, num_warps: 4 }, Config { M: 64, num_warps: 8 }], key = [])]
#[kernel(require(wgmma))]
fn tuned<const M: usize>(x: Ptr<bf16>, y: Ptr<bf16>, z: PtrMut<f32>) {
    let at = arange(0, M).col() * M + arange(0, M).row();
    store(z + at, dot(load(x + at), load(y + at)));
}

fn main() {}

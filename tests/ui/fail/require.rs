//! Kernels that require the fast path of matrix products, and lose it.

use galatea::prelude::*;

#[kernel(M = 64, require(wgmma))]
fn written_operand<const M: usize>(x: PtrMut<bf16>, y: Ptr<bf16>, z: PtrMut<f32>) {
    let at = arange(0, M).col() * M + arange(0, M).row();
    let a = load(x + at);
    store(x + at, 0.0);
    store(z + at, dot(a, load(y + at)));
}

#[kernel(M = 64, num_warps = 8, require(wgmma, specialized))]
fn too_few_rows<const M: usize>(x: Ptr<bf16>, y: Ptr<bf16>, z: PtrMut<f32>) {
    let at = arange(0, M).col() * M + arange(0, M).row();
    store(z + at, dot(load(x + at), load(y + at)));
}

#[kernel(M = 64, require(tma))]
fn sum_in_memory<const M: usize>(x: Ptr<bf16>, y: Ptr<bf16>, z: PtrMut<f32>) {
    let at = arange(0, M).col() * M + arange(0, M).row();
    store(z + at, load(z + at) + dot(load(x + at), load(y + at)));
}

#[autotune(configs = [Config { M: 16, num_warps: 4 }, Config { M: 64, num_warps: 2 }], key = [])]
#[kernel(require(wgmma))]
fn no_configuration<const M: usize>(x: Ptr<bf16>, y: Ptr<bf16>, z: PtrMut<f32>) {
    let at = arange(0, M).col() * M + arange(0, M).row();
    store(z + at, dot(load(x + at), load(y + at)));
}

fn main() {}

//! Syntax of Python: rustc's own message comes first. Callers of such kernels still compile.

use galatea::prelude::*;

#[kernel(N = 64)]
fn chosen<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N));
    store(y + arange(0, N), where(v > 0.0, v, 0.0));
}

#[kernel(N = 64)]
fn columns<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N));
    store(y, sum(v[:, None]));
}

#[kernel(N = 64)]
fn rows<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N));
    store(y, sum(v[None, :]));
}

#[kernel(N = 64)]
fn cast<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let at = arange(0, N);
    store(y + at, load(x + at), mask = at as i32 < n);
}

#[kernel(N = 64)]
fn operators<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, on: bool, off: bool) {
    let at = arange(0, N);
    store(y + at, load(x + at), mask = on and off);
}

#[kernel(N = 64)]
fn negated<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, on: bool) {
    let at = arange(0, N);
    store(y + at, load(x + at), mask = not on);
}

#[kernel(N = 64)]
fn conditional<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, on: bool) {
    let v = load(x) if on else 0.0;
    store(y, v);
}

#[kernel(N = 64)]
fn block<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, on: bool) {
    if on: store(y, load(x));
}

#[kernel]
fn constant(x: Ptr<f32>, y: PtrMut<f32>, const N: usize) {
    store(y + arange(0, N), load(x + arange(0, N)));
}

#[kernel]
fn untyped(x, y) {
    store(y, load(x));
}

fn main() -> galatea::Result<()> {
    let device = Device::cpu();
    let x = device.tensor(&[1.0f32])?;
    let mut y = device.empty_like(&x)?;
    chosen::<64>(&x, &mut y).grid(1).launch()?;
    block::<64>(&x, &mut y, true).grid(1).launch()
}

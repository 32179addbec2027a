//! The fifteen mistakes of `kernel-lang/tests/mistakes/rows/fifteen.txt` as rustc shows them.

use galatea::prelude::*;

#[kernel]
fn mixed_floats(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    let h = v as f16;
    v + h;
    store(y + at, v);
}

#[kernel]
fn extents_differ(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    v + arange(0, 32) as f32;
    store(y + at, v);
}

#[kernel]
fn inner_extents(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    let w = v.reshape([4, 16]);
    dot(w, w);
    store(y + at, v);
}

#[kernel]
fn unknown_op(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    softplus2(v);
    store(y + at, v);
}

#[kernel]
fn tile_as_condition(x: Ptr<f32>, y: PtrMut<f32>, s: f32) {
    let at = arange(0, 64);
    let v = load(x + at);
    if v > 0.0 { store(y, s); }
    store(y + at, v);
}

#[kernel]
fn read_only(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    store(x + at, v);
    store(y + at, v);
}

#[kernel]
fn matched(x: Ptr<f32>, y: PtrMut<f32>, s: f32) {
    let at = arange(0, 64);
    let v = load(x + at);
    match v { 0.0 => store(y, s), _ => store(y, s) }
    store(y + at, v);
}

#[kernel]
fn a_vector(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    let q = vec![v, v];
    store(y + at, v);
}

#[kernel]
fn returns(x: Ptr<f32>, y: PtrMut<f32>, s: f32, on: bool) {
    let at = arange(0, 64);
    let v = load(x + at);
    if on { return s; }
    store(y + at, v);
}

#[kernel]
fn closure(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    let q = (|p| p + 1.0, 0);
    store(y + at, v);
}

#[kernel]
fn reshaped(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    v.reshape([16, 16]);
    store(y + at, v);
}

#[kernel]
fn no_power_of_two(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    zeros::<f32>([97]).reshape([48, 2]);
    store(y + at, v);
}

#[kernel]
fn exp_of_integer(x: Ptr<f32>, y: PtrMut<f32>, xi: Ptr<i32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    let i = load(xi + at);
    exp(i);
    store(y + at, v);
}

#[kernel]
fn integers_into_floats(x: Ptr<f32>, y: PtrMut<f32>, xi: Ptr<i32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    let w = v.reshape([4, 16]);
    let wi = load(xi + at).reshape([4, 16]);
    dot(wi, trans(wi), w);
    store(y + at, v);
}

#[kernel]
fn no_such_axis(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 64);
    let v = load(x + at);
    let w = v.reshape([4, 16]);
    sum(w, axis = 5);
    store(y + at, v);
}

fn main() {}

use galatea::prelude::*;

#[device]
fn softplus(x: &f32) -> f32 {
    log(1.0 + exp(x))
}

#[device(inline)]
fn max(x: f32, y: f32) -> f32 {
    x?
}

#[device]
struct Pair;

#[kernel]
fn k(y: PtrMut<f32>) {
    store(y, softplus(load(y)));
}

fn main() {}

//! Constants outside of a kernel that are not what the kernel takes them for: rustc says so, at the kernel's tokens.

use galatea::prelude::*;

const WIDE: f64 = 0.5;
const LARGE: u64 = 3;
const NAME: &str = "name";

#[device]
fn twice(x: Value<f32>) -> Value<f32> {
    x + x
}

#[kernel]
fn types(y: PtrMut<f32>, n: usize) {
    store(y, load(y) * WIDE);
    store(y + LARGE, 1.0);
    store(y + n, missing::SCALE);
    store(y, NAME);
}

#[kernel]
fn beside_a_device_function(y: PtrMut<f32>) {
    store(y, twice(load(y)) * WIDE);
}

fn main() {}

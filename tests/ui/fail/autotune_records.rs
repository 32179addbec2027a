//! Files of records that are not there, or are none.

use galatea::prelude::*;

#[autotune(configs = [Config { B: 64 }, Config { B: 128 }], records = "/nowhere/h200.json")]
#[kernel]
fn not_there<const B: usize>(y: PtrMut<f32>) {
    store(y + arange(0, B), 1.0);
}

#[autotune(configs = [Config { B: 64 }, Config { B: 128 }], records = "Cargo.toml")]
#[kernel]
fn no_records<const B: usize>(y: PtrMut<f32>) {
    store(y + arange(0, B), 1.0);
}

fn main() {}

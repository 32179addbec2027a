//! A parameter may have any name, also one that the attributes or the code that they make use.

use galatea::prelude::*;

#[device]
fn scale(x: Value<f32>) -> Value<f32> {
    x * 2.0
}

#[autotune(
    configs = [Config { B: 32 }, Config { B: 64 }],
    key = [config],
    heuristics(EVEN = config % B == 0 && words > 0),
    prune = |c| c.B <= config && kernel > 0,
)]
#[kernel]
fn convolve<const B: usize, const EVEN: bool>(x: PtrMut<f32>, kernel: usize, config: usize, words: usize, host: usize, args: usize) {
    let i = arange(0, B);
    let by = if EVEN { kernel } else { kernel + host + args };
    store(x + i, load(x + i + by + config + words));
}

#[kernel]
#[autotune(configs = [Config { B: 32 }], key = [])]
fn again<const B: usize>(x: PtrMut<f32>, autotune: usize, scale: f32) {
    let i = arange(0, B) + autotune;
    store(x + i, self::scale(load(x + i)) * scale);
}

fn main() {}

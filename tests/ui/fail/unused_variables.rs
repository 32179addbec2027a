//! rustc lints the variables of kernels and of device functions as those of other functions.

#![deny(unused)]

use galatea::prelude::*;

#[device]
mod pairs {
    pub struct Pair {
        pub a: Value<f32>,
        pub b: Value<f32>,
    }
    impl Pair {
        pub fn first(self, other: Pair) -> Value<f32> {
            let spare = self.b;
            self.a
        }
    }
}
use pairs::Pair;

#[device]
fn scaled(x: Value<f32>, by: f32) -> Value<f32> {
    let mut y = x * 2.0;
    y
}

#[kernel(N = 64)]
fn everything<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, left_out: i32) {
    const HALF: usize = N / 2;
    let at = arange(0, N);
    let unread = load(x + at);
    let mut fixed = at < n;
    let (low, high) = (load(x), load(x + 1));
    let Pair { a, b } = Pair { a: low, b: 1.0 };
    let double = |v, spare| v * 2.0;
    let mut acc = zeros::<f32>([N]);
    let mut last = 0.0;
    for i in 0..n {
        acc += double(a, 1.0);
    }
    last = 1.0;
    last = 2.0;
    match n {
        0 => {}
        other => store(y, last),
    }
    store(y + at, scaled(a, 3.0), mask = fixed);
}

#[kernel]
#[allow(unused_variables, unused_mut, unused_assignments, reason = "a test of silencing")]
fn silent(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let mut v = load(x);
    v = 1.0;
    store(y, 2.0);
}

fn main() {}

//! Functions that no kernel calls: what is wrong in every call is said where they are defined.

use galatea::prelude::*;

#[device]
fn half_of(x: f32, n: i32) -> f32 {
    let y = x + n;
    y * (1 / 2)
}

#[device]
fn first<T: Number>(x: Ptr<T>) -> Value<T> {
    load(x, masked = true)
}

#[device]
fn of_every_type<T: Number>(x: Ptr<T>) -> f32 {
    let b = load(x) as f32;
    b << 1
}

/// Right for floats: a call decides.
#[device]
fn of_floats<T: Number>(x: Ptr<T>) -> Value<T> {
    sqrt(load(x))
}

/// Right for tiles of two axes: a call decides.
#[device]
fn of_matrices(x: Value<f32>, y: Value<f32>) -> Value<f32> {
    sum(x * y.row(), axis = 1)
}

#[device]
mod range {
    struct Range {
        low: Value<f32>,
        high: Value<f32>,
    }

    impl Range {
        fn is_wide(self, by: f32) -> bool {
            self.high - self.low > by
        }

        fn shifted(self, by: f32) -> Range {
            let step = by << 1;
            Range { low: self.low + step, high: self.high + step }
        }
    }
}

fn main() {}

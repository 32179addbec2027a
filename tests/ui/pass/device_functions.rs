#![deny(warnings, missing_docs, unreachable_pub, clippy::all)]
//! Device functions leave no warning behind, wherever they are declared and however they are found.

use galatea::prelude::*;

mod helpers {
    use galatea::prelude::*;

    #[device]
    pub(crate) fn twice<T: Number>(x: Value<T>) -> Value<T> {
        self::inner::add(x, x)
    }

    pub(crate) mod inner {
        use galatea::prelude::*;

        #[device]
        pub(in crate::helpers) fn add<T: Number>(x: Value<T>, y: Value<T>) -> Value<T> {
            super::super::joined(x, y)
        }
    }
}

use helpers::twice;

/// Public, and used by nobody here.
#[device]
pub fn shifted(x: Value<i32>, #[option(1)] by: i32) -> Value<i32> {
    x << by
}

// After its first use, and before its own.
#[kernel(N = [64])]
fn double<T: Number, const N: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let offsets = arange(0, N);
    store(y + offsets, twice(load(x + offsets)));
}

#[device]
fn joined<T: Number>(x: Value<T>, y: Value<T>) -> Value<T> {
    x + y
}

#[device]
fn add<T: Number>(x: Value<T>, y: Value<T>) -> Value<T> {
    x + y
}

/// Tuned, and trusted with its indices; a function whose name is a builtin elsewhere is called by its path.
#[autotune(configs = [Config { N: 32 }, Config { N: 64, num_warps: 1 }], key = [n])]
#[kernel(unchecked)]
pub(crate) fn tuned<T: Number, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * N + arange(0, N);
    let mask = offsets < n;
    store(y + offsets, self::add(load(x + offsets, mask = mask), 1), mask = mask);
}

/// Its name is near a builtin's, and is its own all the same. The values that depend on it are unknown until its source is found.
#[device]
fn stor(y: PtrMut<f32>, x: Value<f32>) -> Value<i32> {
    store(y, x);
    1
}

#[kernel]
fn unknown_for_a_while(y: PtrMut<f32>) {
    let mut divisor = 0;
    let mut sum = 0.0;
    for i in 0..stor(y, 2.0) {
        divisor += 1;
        sum += load(y + i);
    }
    divisor = stor(y, sum) * divisor;
    store(y, load(y) / (4 / divisor) as f32);
}

macro_rules! scaling {
    ($name:ident, $kernel:ident, $by:literal) => {
        #[device]
        fn $name(x: Value<f32>) -> Value<f32> {
            x * $by
        }

        #[kernel]
        fn $kernel(x: PtrMut<f32>) {
            store(x, $name(load(x)));
        }
    };
}
scaling!(tripled, triple, 3.0);
scaling!(halved, halve, 0.5);

fn main() -> galatea::Result<()> {
    #[device]
    fn local(x: Value<f32>) -> Value<f32> {
        x - 1.0
    }
    #[kernel]
    fn decrement(x: PtrMut<f32>) {
        store(x, local(load(x)));
    }
    let device = Device::cpu();
    let x = device.tensor(&[1.0f32; 64])?;
    let mut y = device.empty_like(&x)?;
    double::<f32, 64>(&x, &mut y).grid(1).launch()?;
    // SAFETY: the mask keeps the indices inside.
    unsafe { tuned::<f32>(&x, &mut y, 64) }.grid(|config| cdiv(64, config.N)).launch()?;
    triple(&mut y).grid(1).launch()?;
    halve(&mut y).grid(1).launch()?;
    decrement(&mut y).grid(1).launch()?;
    unknown_for_a_while(&mut y).grid(1).launch()?;
    assert_eq!(y.to_vec()?[..2], [0.5, 2.0]);
    Ok(())
}

//! The generated code is safe, documented and silent under strict lints.

#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub, trivial_numeric_casts, unused, nonstandard_style)]

use galatea::{Device, Result, autotune, cdiv, kernel};

/// Doubles, with parameters named as the generated code might name its own.
#[kernel(N = 64)]
pub(crate) fn double<const N: usize>(args: Ptr<f32>, key: PtrMut<f32>, KERNEL: usize) {
    let offsets = program_id(0) * N + arange(0, N);
    let mask = offsets < KERNEL;
    store(key + offsets, load(args + offsets, mask = mask) * 2.0, mask = mask);
}

/// A configuration for every size.
#[kernel]
#[autotune(configs = [Config { N: 32, WIDE: false }, Config { N: 64, WIDE: true, num_warps: 1 }], key = [n])]
pub(crate) fn tuned<const M: i32, const WIDE: bool, const N: usize>(y: PtrMut<i32>, n: usize) {
    let offsets = program_id(0) * N + arange(0, N);
    store(y + offsets, if WIDE { M } else { M }, mask = offsets < n);
}

fn main() -> Result<()> {
    let device = Device::cpu();
    let x = device.tensor(&[1.5f32; 100])?;
    let mut y = device.zeros::<f32>(100)?;
    double::<64>(&x, &mut y, 99).grid(cdiv(100, 64)).launch()?;
    assert_eq!(y.to_vec()?[98..], [3.0, 0.0]);
    let mut z = device.zeros::<i32>(100)?;
    tuned::<-7>(&mut z, 100).grid(|config| cdiv(100, config.N)).launch()?;
    assert_eq!(z.to_vec()?, [-7; 100]);
    Ok(())
}

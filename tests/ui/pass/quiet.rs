//! The generated code is documented and silent under strict lints, and compiles where unsafe code is forbidden.

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

/// Every option of a launch, on a kernel with generics.
#[autotune(
    configs = product(N = [32, 64], num_warps = [1, 2]) if N >= 32 * num_warps,
    key = [bucket(n), extent(x, 1)],
    heuristics(EVEN = n % N == 0, num_stages = if EVEN { 2 } else { 3 }),
    prune = [|config| config.N > 4 * n, top_k(2, |config| f64::from(config.num_warps) + x.len() as f64)],
    reset_to_zero = [total],
    warmup = 1,
    rep = 10,
    pre_hook = |_| (),
    post_hook = |config| assert!(config.N > 0),
)]
#[kernel(T = [f32])]
pub(crate) fn every_option<T: Float, const N: usize, const EVEN: bool>(x: View<T, 2>, total: PtrMut<T>, n: usize, scale: T) {
    let columns = program_id(0) * N + arange(0, N);
    let v = select(columns < n, x.load([0, program_id(0) * N], [1, N]).reshape([N]), 0.0);
    atomic_add(total, sum(if EVEN { v } else { v }) * scale);
}

/// A kernel that is not tuned, and has heuristics.
#[kernel(heuristics(N = n.next_power_of_two()))]
pub(crate) fn whole<const N: usize>(y: PtrMut<i32>, n: usize) {
    store(y + arange(0, N), 5, mask = arange(0, N) < n);
}

/// A scale outside of the kernel.
const SCALE: f64 = 0.5;

/// Every way to read a variable, and every way to say that one is not read.
#[allow(unused_mut, reason = "a test of silencing")]
#[kernel(N = 8)]
pub(crate) fn named<const N: usize>(
    x: Ptr<f32>,
    y: PtrMut<f32>,
    _n: usize,
    #[allow(unused_variables, reason = "a test of silencing")] spare: i32,
    limit: usize,
) {
    const HALF: usize = N / 2;
    let (v, _unread, step) = (load(x + arange(0, HALF)), 1.0, 2);
    #[allow(unused_variables, reason = "a test of silencing")]
    let silent = v;
    let mut needless = arange(0, HALF);
    let base = 4;
    let at = |i| base + i;
    let mut first = 0.0;
    for i in 0..limit {
        if i % step == 1 {
            continue;
        }
        first = i as f32;
        if first > 3.0 {
            break;
        }
    }
    let shown = 3;
    device_assert!(shown < limit + 100, "small");
    store(y + at(needless), v * SCALE as f32 + first, mask = needless < limit);
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
    whole(&mut z, 99).grid(|_| 1).launch()?;
    assert_eq!(z.to_vec()?[97..], [5, 5, -7]);
    let x = device.full([1, 100], 0.5f32)?;
    let mut total = device.zeros::<f32>(1)?;
    every_option(&x, &mut total, 100, 2.0f32).grid(|config| cdiv(100, config.N)).launch()?;
    assert_eq!(total.to_vec()?, [100.0]);
    let mut y = device.zeros::<f32>(8)?;
    named::<8>(&x, &mut y, 0, 0, 3).grid(1).launch()?;
    assert_eq!(y.to_vec()?, [0.0, 0.0, 0.0, 0.0, 2.25, 2.25, 2.25, 0.0]);
    Ok(())
}

//! Constants that a launch computes: from its arguments, its configuration and each other, with and without tuning.

use galatea::prelude::*;

use crate::lab::{Lab, SIZES};
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::FloatValue;

tests![
    a_bool_constant_has_both_variants<f32, f16>,
    a_block_follows_the_row,
    they_follow_each_other_and_every_type,
    they_come_behind_the_configuration,
    tensors_tell_their_extents,
    a_schedule_that_cannot_be_is_an_error,
];

/// A copy that also stores `EVEN`, the constant that the heuristics chose, to `used`.
#[kernel(B = [64, 256], heuristics(EVEN = n % B == 0, num_warps = if B >= 256 { 8 } else { 1 }))]
fn copy<T: Float, const B: usize, const EVEN: bool>(x: Ptr<T>, y: PtrMut<T>, used: PtrMut<i32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    if EVEN {
        store(y + at, load(x + at));
    } else {
        store(y + at, load(x + at, mask = at < n), mask = at < n);
    }
    if program_id(0) == 0 {
        store(used, EVEN as i32);
    }
}

fn a_bool_constant_has_both_variants<T: FloatValue>(lab: &mut Lab) {
    fn run<T: FloatValue, const B: usize>(lab: &mut Lab, n: usize) {
        let data = lab.values::<T>(n);
        let x = lab.input(&data);
        let (mut y, mut used) = (lab.output::<T>(n), lab.output::<i32>(1));
        copy::<T, B>(x.slice(), &mut y.slice(), &mut used.slice(), n).grid(|_| cdiv(n, B)).launch().unwrap();
        check_bits(&y.read(), |i| data[i]);
        if n > 0 {
            check_bits(&used.read(), |_| i32::from(n.is_multiple_of(B)));
        }
    }
    for n in SIZES.into_iter().filter(|n| *n < 10_000).chain([192, 512]) {
        run::<T, 64>(lab, n);
        run::<T, 256>(lab, n);
        // Not listed, and so compiled by this launch.
        run::<T, 32>(lab, n);
    }
}

#[kernel(heuristics(BLOCK = columns.next_power_of_two().max(16), num_warps = if BLOCK >= 512 { 4 } else { 1 }))]
fn total<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, used: PtrMut<i64>, columns: usize) {
    let column = arange(0, BLOCK);
    store(y + program_id(0), sum(load(x + program_id(0) * columns + column, mask = column < columns)));
    if program_id(0) == 0 {
        store(used, BLOCK);
    }
}

fn a_block_follows_the_row(lab: &mut Lab) {
    for columns in [1, 17, 64, 700] {
        let data: Vec<f32> = (0..3 * columns).map(|_| lab.below(100) as f32).collect();
        let x = lab.input(&data);
        let (mut y, mut used) = (lab.output::<f32>(3), lab.output::<i64>(1));
        let seen = std::cell::Cell::new((0, 0));
        let grid = |config: total::Config| {
            seen.set((config.BLOCK, config.num_warps));
            3
        };
        total(x.slice(), &mut y.slice(), &mut used.slice(), columns).grid(grid).launch().unwrap();
        check_bits(&y.read(), |row| data[row * columns..][..columns].iter().sum());
        let block = columns.next_power_of_two().max(16);
        assert_eq!((seen.get(), used.read()[0]), ((block, if block >= 512 { 4 } else { 1 }), block as i64));
    }
}

#[device]
fn apart(a: Value<i64>, b: Value<i64>) -> Value<i64> {
    a * 1000 + b
}

#[kernel(T = [f32], heuristics(
    NEGATIVE = scale < 0.0,
    STEP = if NEGATIVE { step - 1 } else { step },
    WIDE = size_of::<T>() as u32 * u32::from(on) + STEP.unsigned_abs(),
    SAME = T::default() == value,
))]
fn constants_of_heuristics<T: Float, const NEGATIVE: bool, const STEP: i32, const WIDE: u32, const SAME: bool>(
    y: PtrMut<i64>,
    scale: f64,
    step: i32,
    on: bool,
    value: T,
) {
    let sign = if NEGATIVE { -1 } else { 1 };
    let same = if SAME { 7 } else { 5 };
    store(y, apart(apart(sign, STEP), apart(WIDE, same)) + (scale as i64) * 0 + (step as i64) * 0);
    device_assert!(on | true, "the arguments are in use");
    device_assert!((value == value) | true, "all of them");
}

fn they_follow_each_other_and_every_type(lab: &mut Lab) {
    let apart = |a: i64, b: i64| a * 1000 + b;
    for (scale, step, on, value) in [(0.5, 3, true, 0.0f32), (-0.5, 3, false, 1.5), (-2.0, -8, true, -0.0)] {
        let mut y = lab.output::<i64>(1);
        constants_of_heuristics::<f32>(&mut y.slice(), scale, step, on, value).grid(|_| 1).launch().unwrap();
        let negative = scale < 0.0;
        let steps = if negative { step - 1 } else { step };
        let wide = if on { 4 } else { 0 } + i64::from(steps.unsigned_abs());
        let expected = apart(apart(if negative { -1 } else { 1 }, steps.into()), apart(wide, if value == 0.0 { 7 } else { 5 }));
        check_bits(&y.read(), |_| expected);
    }
}

#[autotune(
    configs = [Config { B: 64, num_warps: 1 }, Config { B: 128, num_warps: 2 }, Config { B: 512, num_warps: 4 }],
    key = [bucket(n)],
    prune = |config| config.EVEN && config.B == 512,
    heuristics(EVEN = n % B == 0),
)]
#[kernel(heuristics(LARGE = n > 4 * B, num_stages = if LARGE { 3 } else { 1 }))]
fn behind<const B: usize, const EVEN: bool, const LARGE: bool>(y: PtrMut<i64>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let kind = (if EVEN { 1 } else { 0 }) + (if LARGE { 2 } else { 0 }) + B;
    if EVEN {
        store(y + at, kind);
    } else {
        store(y + at, kind, mask = at < n);
    }
}

fn they_come_behind_the_configuration(lab: &mut Lab) {
    // All of them are of one bucket, so one choice serves all, whatever heuristics say.
    for n in [600, 1024, 640, 513, 1000] {
        for _ in 0..2 {
            let mut y = lab.output::<i64>(n);
            behind(&mut y.slice(), n).grid(|config| cdiv(n, config.B)).launch().unwrap();
            let kinds = y.read();
            let block = kinds[0] & !3;
            assert!([64, 128, 512].contains(&block), "{block}");
            let (even, large) = (n as i64 % block == 0, n as i64 > 4 * block);
            assert!(block != 512 || !even, "what heuristics give is seen by `prune`");
            check_bits(&kinds, |_| block + i64::from(even) + 2 * i64::from(large));
            let report = behind(&mut y.slice(), n).grid(|config| cdiv(n, config.B)).report().unwrap();
            assert_eq!(report.chosen().map(|trial| trial.config.B as i64), Some(block));
        }
    }
}

#[kernel(heuristics(WHOLE = extent(x, 1) % 16 == 0 && y.len() == extent(x, 0), N = extent(x, 1).next_power_of_two()))]
fn rows<const WHOLE: bool, const N: usize>(x: View<f32, 2>, y: PtrMut<f32>) {
    let row = program_id(0);
    let v = x.load([row, 0], [1, N]);
    store(y + row, sum(v) + (if WHOLE { 0.5 } else { 0.25 }));
}

fn tensors_tell_their_extents(lab: &mut Lab) {
    for (m, n, whole) in [(3, 32, true), (3, 33, false), (1, 16, true)] {
        let data: Vec<f32> = (0..m * n).map(|_| lab.below(64) as f32).collect();
        let x = lab.device.tensor_from(&data, [m, n]).unwrap();
        let mut y = lab.output::<f32>(m);
        rows(&x, &mut y.slice()).grid(|_| m).launch().unwrap();
        check_bits(&y.read(), |row| data[row * n..][..n].iter().sum::<f32>() + if whole { 0.5 } else { 0.25 });
    }
}

#[kernel(heuristics(num_warps = warps))]
fn warped(y: PtrMut<f32>, warps: u32) {
    store(y, warps as f32);
}

fn a_schedule_that_cannot_be_is_an_error(lab: &mut Lab) {
    for warps in [1, 4, 3, 8, 64] {
        let mut y = lab.output::<f32>(1);
        let result = warped(&mut y.slice(), warps).grid(|_| 1).launch();
        if lab.device.is_cpu() || [1, 4, 8].contains(&warps) {
            result.unwrap();
            check_bits(&y.read(), |_| warps as f32);
        } else {
            let error = result.unwrap_err();
            assert!(matches!(error, Error::Compile { kernel: "warped", .. }) && error.to_string().contains("num_warps"), "{error}");
        }
    }
}

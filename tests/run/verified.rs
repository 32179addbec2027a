//! Autotuned kernels whose results are compared before a configuration may win: with the CPU's, or with those of a function.

use galatea::prelude::*;
use galatea::tune::{Outcome, Report, TuneConfig};

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits};

tests![
    what_only_a_gpu_gets_wrong_does_not_win,
    what_a_configuration_leaves_out_is_missed,
    a_function_says_what_is_right,
    errors_are_allowed_as_said,
    in_place_and_from_zeros,
    where_all_are_wrong_the_launch_says_so,
    what_prune_leaves_out_is_no_reference,
];

/// Tests of what is found while a key is tuned, and of nothing else.
const OF_TUNING: [&str; 3] = ["what_a_configuration_leaves_out_is_missed", "a_function_says_what_is_right", "errors_are_allowed_as_said"];

pub(crate) fn reason_to_skip(test: &str, device: Device) -> Option<&'static str> {
    assert!(OF_TUNING.iter().all(|name| tests().iter().any(|(test, _)| test == name)), "{OF_TUNING:?} are tests");
    (device.is_cpu() && OF_TUNING.contains(&test)).then_some("skipped: the CPU tunes nothing")
}

/// The reason why a configuration failed.
fn reason<C: TuneConfig>(report: &Report<C>, index: usize) -> &str {
    match &report.trials[index].outcome {
        Outcome::Failed(reason) => reason,
        _ => panic!("{report}"),
    }
}

/// One configuration is compiled wrong, for GPUs alone: the fastest.
#[autotune(configs = [Config { B: 32, num_warps: 1 }, Config { B: 256, num_warps: 4 }], key = [], verify = cpu)]
#[kernel]
fn miscompiled<const B: usize>(x: View<f32, 2>, y: PtrMut<f32>, flags: PtrMut<bool>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let v = x.load([0, program_id(0) * B], [1, B]).reshape([B]);
    let off = if target() != 0 && B == 256 { if program_id(0) == 1 { 0.5 } else { 0.0 } } else { 0.0 };
    store(y + at, 2.0 * v + off, mask = at < n);
    store(flags + at, v > 0.0, mask = at < n);
}

fn what_only_a_gpu_gets_wrong_does_not_win(lab: &mut Lab) {
    let n = 1000;
    let values = lab.numbers::<f32>(n, -3.0, 3.0);
    let x = lab.device.tensor_from(&values, [1, n]).unwrap();
    let (mut y, mut flags) = (lab.output::<f32>(n), lab.output::<bool>(n));
    miscompiled(&x, &mut y.slice(), &mut flags.slice(), n).grid(|config| cdiv(n, config.B)).launch().unwrap();
    check_bits(&y.read(), |i| 2.0 * values[i]);
    check_bits(&flags.read(), |i| values[i] > 0.0);
    let report = miscompiled(&x, &mut y.slice(), &mut flags.slice(), n).grid(|config| cdiv(n, config.B)).report().unwrap();
    assert_eq!(report.chosen().map(|trial| trial.config.B), Some(32));
    if !lab.device.is_cpu() {
        let right = 2.0 * values[256];
        let expected = format!("differs from the reference: `y[256]` is {} instead of {right} (256 of {n} elements differ)", right + 0.5);
        assert_eq!(reason(&report, 1), expected);
    }
}

/// The grid of one configuration is too small: what another left there must not count as its own.
fn what_a_configuration_leaves_out_is_missed(lab: &mut Lab) {
    let n = 700;
    let values = lab.numbers::<f32>(n, -3.0, 3.0);
    let x = lab.input(&values);
    let mut y = lab.output::<f32>(n);
    let grid = |config: doubled::Config| if config.B == 256 { 2 } else { cdiv(n, config.B) };
    let report = doubled(x.slice(), &mut y.slice(), 2.0, n).grid(grid).report().unwrap();
    check_bits(&y.read(), |i| y.before()[i]);
    assert!(reason(&report, 1).starts_with("differs from the reference: `y[512]` is "), "{report}");
    assert_eq!(report.chosen().map(|trial| trial.config.B), Some(32));
    doubled(x.slice(), &mut y.slice(), 2.0, n).grid(grid).launch().unwrap();
    check_bits(&y.read(), |i| 2.0 * values[i]);
}

#[autotune(configs = [Config { B: 32, num_warps: 1 }, Config { B: 256, num_warps: 4 }], key = [n], verify(cpu, rtol = 0))]
#[kernel]
fn doubled<T: Float, const B: usize>(x: Ptr<T>, y: PtrMut<T>, scale: T, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, scale * load(x + at, mask = at < n), mask = at < n);
}

/// Right in one configuration, which no device can tell but the function below.
#[autotune(configs = [Config { B: 64 }, Config { B: 128 }], key = [], verify = logistic)]
#[kernel]
fn squash<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, scale: f32) {
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at, mask = at < n) * scale;
    store(y + at, if B == 64 { tanh(v) } else { sigmoid(v) }, mask = at < n);
}

fn logistic(x: &[f32], y: &mut [f32], n: usize, scale: f32) {
    assert_eq!((x.len(), y.len()), (n, n));
    for (y, x) in y.iter_mut().zip(x) {
        *y = 1.0 / (1.0 + (-x * scale).exp());
    }
}

fn a_function_says_what_is_right(lab: &mut Lab) {
    let n = 500;
    let values = lab.numbers::<f32>(n, -2.0, 2.0);
    let x = lab.input(&values);
    let mut y = lab.output::<f32>(n);
    let report = squash(x.slice(), &mut y.slice(), n, 0.5).grid(|config| cdiv(n, config.B)).report().unwrap();
    assert!(reason(&report, 0).starts_with("differs from the reference: `y[0]` is "), "{report}");
    squash(x.slice(), &mut y.slice(), n, 0.5).grid(|config| cdiv(n, config.B)).launch().unwrap();
    check(&y.read(), Class::Math, |i| 1.0 / (1.0 + (-0.5 * f64::from(values[i])).exp()));
}

#[autotune(configs = [Config { B: 64 }, Config { B: 128 }], key = [], verify(rtol = 1e-2))]
#[kernel]
fn nearly<const B: usize>(y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, if target() != 0 && B == 128 { 1.005 } else { 1.0 }, mask = at < n);
}

#[autotune(configs = [Config { B: 64 }, Config { B: 128 }], key = [], verify = cpu)]
#[kernel]
fn nearly_enough<const B: usize>(y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, if target() != 0 && B == 128 { 1.005 } else { 1.0 }, mask = at < n);
}

fn errors_are_allowed_as_said(lab: &mut Lab) {
    let mut y = lab.output::<f32>(300);
    let allowed = nearly(&mut y.slice(), 300).grid(|config| cdiv(300, config.B)).report().unwrap();
    let refused = nearly_enough(&mut y.slice(), 300).grid(|config| cdiv(300, config.B)).report().unwrap();
    assert!(allowed.trials.iter().all(|trial| matches!(trial.outcome, Outcome::Measured { .. })), "{allowed}");
    assert!(reason(&refused, 1).contains("`y[0]` is 1.005 instead of 1 (300 of 300"), "{refused}");
}

/// The reference run starts from the same `y`, which is updated in place, and from zeros in `total`, as the launch does.
#[autotune(
    configs = [Config { B: 64, num_warps: 1 }, Config { B: 256 }],
    key = [],
    reset_to_zero = [total],
    verify = cpu,
)]
#[kernel]
fn accumulate<const B: usize>(x: Ptr<i32>, y: PtrMut<i32>, total: PtrMut<i32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at, mask = at < n);
    store(y + at, load(y + at, mask = at < n) + v, mask = at < n);
    atomic_add(total, sum(v));
}

fn in_place_and_from_zeros(lab: &mut Lab) {
    let n = 900;
    let values: Vec<i32> = (0..n).map(|_| lab.below(100) as i32).collect();
    let x = lab.input(&values);
    let (mut y, mut total) = (lab.in_place(&vec![5i32; n]), lab.in_place(&[0i32]));
    accumulate(x.slice(), &mut y.slice(), &mut total.slice(), n).grid(|config| cdiv(n, config.B)).launch().unwrap();
    check_bits(&y.read(), |i| 5 + values[i]);
    check_bits(&total.read(), |_| values.iter().sum());
    let report = accumulate(x.slice(), &mut y.slice(), &mut total.slice(), n).grid(|config| cdiv(n, config.B)).report().unwrap();
    if !lab.device.is_cpu() {
        assert!(report.trials.iter().all(|trial| matches!(trial.outcome, Outcome::Measured { .. })), "{report}");
    }
}

#[autotune(configs = [Config { B: 64 }, Config { B: 128 }], key = [], verify = cpu)]
#[kernel]
fn wrong<const B: usize>(y: PtrMut<i64>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, at + target(), mask = at < n);
}

fn where_all_are_wrong_the_launch_says_so(lab: &mut Lab) {
    let mut y = lab.output::<i64>(100);
    let outcome = wrong(&mut y.slice(), 100).grid(|config| cdiv(100, config.B)).launch();
    if lab.device.is_cpu() {
        return outcome.unwrap();
    }
    let error = outcome.unwrap_err();
    assert!(matches!(&error, Error::NoConfig { kernel: "wrong", failures, .. } if failures.len() == 2), "{error}");
    assert!(
        error.to_string().contains("`y[0]` is ") && error.to_string().contains(" instead of 0 (100 of 100 elements differ)"),
        "{error}"
    );
    check_bits(&y.read(), |i| y.before()[i]);
}

/// One program for all: a block that is too small computes a part.
#[autotune(configs = [Config { B: 64 }, Config { B: 256 }, Config { B: 512 }], key = [n], prune = |config| config.B < n, verify = cpu)]
#[kernel]
fn doubled_at_once<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = arange(0, B);
    store(y + at, 2.0 * load(x + at, mask = at < n), mask = at < n);
}

fn what_prune_leaves_out_is_no_reference(lab: &mut Lab) {
    let n = 200;
    let values = lab.numbers::<f32>(n, -3.0, 3.0);
    let x = lab.input(&values);
    let mut y = lab.output::<f32>(n);
    doubled_at_once(x.slice(), &mut y.slice(), n).grid(|_| 1).launch().unwrap();
    check_bits(&y.read(), |i| 2.0 * values[i]);
    let report = doubled_at_once(x.slice(), &mut y.slice(), n).grid(|_| 1).report().unwrap();
    assert!(matches!(report.trials[0].outcome, Outcome::Pruned), "{report}");
    assert!(report.trials[1..].iter().all(|trial| !matches!(trial.outcome, Outcome::Failed(_))), "{report}");
}

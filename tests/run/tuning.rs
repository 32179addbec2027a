//! Autotuned kernels: right from the first launch on, and a report that says what was tried.

use galatea::prelude::*;
use galatea::tune::Outcome;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits};
use crate::value::FloatValue;

tests![right_from_the_first_launch<f16, f32>, keys_are_tuned_apart, a_broken_configuration_is_a_record, nothing_works, what_does_not_fit_is_pruned, on_streams_and_checked];

#[autotune(
    configs = [
        Config { B: 64, num_warps: 1 },
        Config { B: 1024, num_warps: 8, num_stages: 2 },
        Config { B: 4096, num_warps: 4 },
        Config { B: 2, num_warps: 4 },
    ],
    key = [n],
)]
#[kernel]
fn add<T: Float, const B: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    store(out + at, load(x + at, mask = mask) + load(y + at, mask = mask), mask = mask);
}

fn right_from_the_first_launch<T: FloatValue>(lab: &mut Lab) {
    for n in [0, 1, 1000, 65_537] {
        let (a, b) = (lab.values::<T>(n), lab.values::<T>(n));
        let (x, y) = (lab.input(&a), lab.input(&b));
        for _ in 0..2 {
            let mut out = lab.output::<T>(n);
            add(x.slice(), y.slice(), &mut out.slice(), n).grid(|config| cdiv(n, config.B)).launch().unwrap();
            check(&out.read(), Class::Rounded, |i| a[i].wide() + b[i].wide());
        }
        if n == 0 {
            continue;
        }
        let mut out = lab.output::<T>(n);
        let report = add(x.slice(), y.slice(), &mut out.slice(), n).grid(|config| cdiv(n, config.B)).report().unwrap();
        assert_eq!((report.kernel, report.device, report.trials.len()), ("add", lab.device, 4));
        assert_eq!(report.trials.iter().map(|trial| trial.config.B).collect::<Vec<_>>(), [64, 1024, 4096, 2]);
        assert_eq!(report.trials.iter().filter(|trial| trial.chosen).count(), 1);
        let on_gpu = lab.device.is_cuda();
        for trial in &report.trials {
            match trial.outcome {
                Outcome::Measured { median_us, samples } => assert!(on_gpu && median_us > 0.0 && samples > 0, "{report}"),
                Outcome::Untimed => assert!(!on_gpu, "{report}"),
                Outcome::Failed(_) | Outcome::Pruned => panic!("{report}"),
            }
        }
        let chosen = report.chosen().expect("one is chosen");
        if !on_gpu {
            assert_eq!((chosen.config.B, chosen.config.num_warps), (64, 1), "without a race the first is taken");
        }
        let text = report.to_string();
        assert!(
            text.starts_with("add on ") && text.lines().count() == 5 && text.lines().filter(|line| line.starts_with('*')).count() == 1,
            "{text}"
        );
    }
}

/// What the configuration was can be read from the output.
#[autotune(configs = [Config { B: 128, num_warps: 2 }, Config { B: 32, num_warps: 1 }], key = [scale, n])]
#[kernel]
fn tag<const B: usize>(y: PtrMut<i64>, used: PtrMut<i64>, scale: i32, n: usize, free: i64) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, at * scale + free, mask = at < n);
    store(used, B);
}

fn keys_are_tuned_apart(lab: &mut Lab) {
    let n = 500;
    let mut reports = Vec::new();
    for (scale, free) in [(1, 0), (1, 77), (-3, 0)] {
        let (mut y, mut used) = (lab.output::<i64>(n), lab.output::<i64>(1));
        tag(&mut y.slice(), &mut used.slice(), scale, n, free).grid(|config| cdiv(n, config.B)).launch().unwrap();
        check_bits(&y.read(), |i| i as i64 * i64::from(scale) + free);
        let used_block = used.read()[0];
        let report = tag(&mut y.slice(), &mut used.slice(), scale, n, free).grid(|config| cdiv(n, config.B)).report().unwrap();
        let chosen = report.chosen().expect("one is chosen").config;
        assert_eq!(used_block, chosen.B as i64, "the launch ran what the report says");
        reports.push(report);
    }
    if lab.device.is_cuda() {
        assert!(std::sync::Arc::ptr_eq(&reports[0], &reports[1]), "`free` is no part of the key");
        assert!(!std::sync::Arc::ptr_eq(&reports[0], &reports[2]), "`scale` is part of the key");
    }
}

#[autotune(configs = [Config { B: 64 }, Config { B: 128 }], key = [])]
#[kernel]
fn half_broken<const B: usize, const LIMIT: usize>(y: PtrMut<f32>, n: usize) {
    static_assert!(B <= LIMIT, "B is beyond the limit");
    let at = program_id(0) * B + arange(0, B);
    store(y + at, 2.5, mask = at < n);
}

fn a_broken_configuration_is_a_record(lab: &mut Lab) {
    let n = 1000;
    let mut y = lab.output::<f32>(n);
    half_broken::<64>(&mut y.slice(), n).grid(|config| cdiv(n, config.B)).launch().unwrap();
    check_bits(&y.read(), |_| 2.5);
    let report = half_broken::<64>(&mut y.slice(), n).grid(|config| cdiv(n, config.B)).report().unwrap();
    assert_eq!(report.chosen().map(|trial| trial.config.B), Some(64));
    if lab.device.is_cuda() {
        assert!(matches!(&report.trials[1].outcome, Outcome::Failed(reason) if reason.contains("B is beyond the limit")), "{report}");
    }
}

fn nothing_works(lab: &mut Lab) {
    let mut y = lab.output::<f32>(100);
    let error = half_broken::<32>(&mut y.slice(), 100).grid(|config| cdiv(100, config.B)).launch().unwrap_err();
    assert!(error.to_string().contains("B is beyond the limit"), "{error}");
    if lab.device.is_cuda() {
        assert!(matches!(&error, Error::NoConfig { kernel: "half_broken", failures, .. } if failures.len() == 2), "{error}");
    }
    check_bits(&y.read(), |i| y.before()[i]);
}

/// A row that must fit the tile; wrong where it does not.
#[autotune(
    configs = [Config { B: 16, num_warps: 1 }, Config { B: 64, num_warps: 2 }, Config { B: 64, num_warps: 4 }, Config { B: 256 }],
    key = [],
    prune = |config| config.B < columns || config.B > 8 * columns,
)]
#[kernel]
fn total<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, used: PtrMut<i64>, columns: usize) {
    let column = arange(0, B);
    let v = load(x + program_id(0) * columns + column, mask = column < columns);
    store(y + program_id(0), sum(v));
    store(used, B);
}

fn what_does_not_fit_is_pruned(lab: &mut Lab) {
    let host: Vec<f32> = (0..3 * 256).map(|_| lab.below(9) as f32).collect();
    let x = lab.input(&host);
    for (columns, fitting) in [(3, vec![16]), (16, vec![16, 64]), (17, vec![64]), (60, vec![64, 256]), (256, vec![256])] {
        let (mut y, mut used) = (lab.output::<f32>(3), lab.output::<i64>(1));
        total(x.slice(), &mut y.slice(), &mut used.slice(), columns).grid(|_| 3).launch().unwrap();
        check_bits(&y.read(), |row| host[row * columns..][..columns].iter().sum());
        assert!(fitting.contains(&(used.read()[0] as usize)), "{columns}: {:?}", used.read());
        let report = total(x.slice(), &mut y.slice(), &mut used.slice(), columns).grid(|_| 3).report().unwrap();
        for trial in &report.trials {
            assert_eq!(trial.outcome != Outcome::Pruned, fitting.contains(&trial.config.B), "{report}");
        }
        assert!(fitting.contains(&report.chosen().expect("one fits").config.B));
    }
    let (mut y, mut used) = (lab.output::<f32>(3), lab.output::<i64>(1));
    let error = total(x.slice(), &mut y.slice(), &mut used.slice(), 257).grid(|_| 3).launch().unwrap_err();
    assert!(matches!(&error, Error::NoConfig { kernel: "total", failures, .. } if failures.len() == 4), "{error}");
    assert!(error.to_string().contains("pruned"), "{error}");
}

fn on_streams_and_checked(lab: &mut Lab) {
    let n = 3000;
    let (a, b) = (lab.values::<f32>(n), lab.values::<f32>(n));
    let (x, y) = (lab.input(&a), lab.input(&b));
    let stream = lab.device.new_stream().unwrap();
    for checked in [false, true] {
        let mut out = lab.output::<f32>(n);
        let mut slice = out.slice();
        let launch = add(x.slice(), y.slice(), &mut slice, n).on(&stream).grid(|config| cdiv(n, config.B));
        if checked { launch.checked().launch() } else { launch.launch() }.unwrap();
        check(&out.read(), Class::Rounded, |i| f64::from(a[i]) + f64::from(b[i]));
    }
    let mut out = lab.output::<f32>(n);
    let error = add(x.slice(), y.slice(), &mut out.slice(), n + 1).grid(|config| cdiv(n + 1, config.B)).checked().launch().unwrap_err();
    assert!(matches!(&error, Error::OutOfBounds(found) if found.index == n as i64 && found.length == n as u64), "{error}");
}

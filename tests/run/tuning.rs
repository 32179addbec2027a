//! Autotuned kernels: right from the first launch on, and a report that says what was tried.

use galatea::prelude::*;
use galatea::tune::{Origin, Outcome};

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits};
use crate::value::FloatValue;

tests![
    right_from_the_first_launch<f16, f32>,
    keys_are_tuned_apart,
    a_broken_configuration_is_a_record,
    nothing_works,
    what_does_not_fit_is_pruned,
    on_streams_and_checked,
    what_is_changed_in_place_is_changed_once<f32, f64>,
    what_is_counted_is_counted_once,
    zeros_are_made_and_values_restored,
    a_product_has_what_its_condition_leaves,
    buckets_and_alignments_are_keys,
    the_likely_are_timed_and_see_the_arguments,
    what_no_gpu_can_run_is_a_record,
    the_recipe_s_four_configurations,
];

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
    for n in [0, 1, 1000, 9001] {
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
        let on_gpu = !lab.device.is_cpu();
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

/// Stores the block size of its configuration to `used`.
#[autotune(configs = [Config { B: 128, num_warps: 2 }, Config { B: 32, num_warps: 1 }], key = [scale, n])]
#[kernel]
fn tag<const B: usize>(y: PtrMut<i64>, used: PtrMut<i64>, scale: i32, n: usize, free: i64) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, at * scale + free, mask = at < n);
    if program_id(0) == 0 {
        store(used, B);
    }
}

fn keys_are_tuned_apart(lab: &mut Lab) {
    let n = 500;
    let mut reports = Vec::new();
    for (scale, free) in [(1, 0), (1, 77), (-3, 0)] {
        // Where a tensor begins is part of the key, too.
        let (mut y, mut used) = (lab.output_at::<i64>(n, 0), lab.output_at::<i64>(1, 0));
        tag(&mut y.slice(), &mut used.slice(), scale, n, free).grid(|config| cdiv(n, config.B)).launch().unwrap();
        check_bits(&y.read(), |i| i as i64 * i64::from(scale) + free);
        let used_block = used.read()[0];
        let report = tag(&mut y.slice(), &mut used.slice(), scale, n, free).grid(|config| cdiv(n, config.B)).report().unwrap();
        let chosen = report.chosen().expect("one is chosen").config;
        assert_eq!(used_block, chosen.B as i64, "the launch ran what the report says");
        reports.push(report);
    }
    if !lab.device.is_cpu() {
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
    if !lab.device.is_cpu() {
        assert!(matches!(&report.trials[1].outcome, Outcome::Failed(reason) if reason.contains("B is beyond the limit")), "{report}");
    }
}

fn nothing_works(lab: &mut Lab) {
    let mut y = lab.output::<f32>(100);
    let error = half_broken::<32>(&mut y.slice(), 100).grid(|config| cdiv(100, config.B)).launch().unwrap_err();
    assert!(error.to_string().contains("B is beyond the limit"), "{error}");
    if !lab.device.is_cpu() {
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
    if program_id(0) == 0 {
        store(used, B);
    }
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

#[device]
fn plus<T: Number>(a: Value<T>, b: Value<T>) -> Value<T> {
    a + b
}

/// Reads what it writes: every run of a tuning would add once more.
#[autotune(configs = product(B = [32, 128, 1024], num_warps = [1, 4]) if 32 * num_warps <= B, key = [n])]
#[kernel]
fn add_to<T: Number, const B: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    store(y + at, plus(load(y + at, mask = mask), load(x + at, mask = mask)), mask = mask);
}

fn what_is_changed_in_place_is_changed_once<T: FloatValue>(lab: &mut Lab) {
    for n in [1, 1000, 5003] {
        let (a, b) = (lab.numbers::<T>(n, -50.0, 50.0), lab.numbers::<T>(n, -50.0, 50.0));
        let x = lab.input(&a);
        let mut y = lab.in_place(&b);
        let mut expected = b.clone();
        for _ in 0..3 {
            add_to(x.slice(), &mut y.slice(), n).grid(|config| cdiv(n, config.B)).launch().unwrap();
            expected = expected.iter().zip(&a).map(|(y, x)| T::near(y.wide() + x.wide())).collect();
            check_bits(&y.read(), |i| expected[i]);
            // It tunes where it must, and changes nothing.
            add_to(x.slice(), &mut y.slice(), n).grid(|config| cdiv(n, config.B)).report().unwrap();
            check_bits(&y.read(), |i| expected[i]);
        }
    }
}

#[autotune(configs = [Config { B: 32, num_warps: 1 }, Config { B: 256, num_warps: 2 }, Config { B: 512 }], key = [])]
#[kernel]
fn count<const B: usize>(x: Ptr<i32>, counts: PtrMut<i32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let bins = load(x + at, mask = at < n);
    atomic_add(counts + bins, 1, mask = at < n, sem = "relaxed");
}

fn what_is_counted_is_counted_once(lab: &mut Lab) {
    let n = 3001;
    let bins: Vec<i32> = (0..n).map(|_| lab.below(7) as i32).collect();
    let x = lab.input(&bins);
    let mut counts = lab.in_place(&[0i32, 10, 20, 30, 40, 50, 60]);
    for iteration in 1..3 {
        count(x.slice(), &mut counts.slice(), n).grid(|config| cdiv(n, config.B)).launch().unwrap();
        check_bits(&counts.read(), |bin| 10 * bin as i32 + iteration * bins.iter().filter(|other| **other == bin as i32).count() as i32);
    }
}

/// Like [`count`], with its counts zeroed; what it writes where nothing was is restored for no reason but that it is asked for.
#[autotune(
    configs = [Config { B: 32, num_warps: 1 }, Config { B: 256, num_warps: 2 }],
    key = [n],
    reset_to_zero = [total],
    restore_value = [last],
    warmup = 1,
    rep = 5,
)]
#[kernel]
fn add_up<const B: usize>(x: Ptr<i32>, total: PtrMut<i32>, last: PtrMut<i32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    atomic_add(total, sum(load(x + at, mask = at < n)));
    store(last + at, at as i32, mask = at == n - 1);
}

fn zeros_are_made_and_values_restored(lab: &mut Lab) {
    let n = 2000;
    let values: Vec<i32> = (0..n).map(|_| lab.below(1000) as i32).collect();
    let sum: i32 = values.iter().sum();
    let x = lab.input(&values);
    let (mut total, mut last) = (lab.in_place(&[0i32]), lab.in_place(&vec![7i32; n]));
    for iteration in 1..3 {
        add_up(x.slice(), &mut total.slice(), &mut last.slice(), n).grid(|config| cdiv(n, config.B)).launch().unwrap();
        check_bits(&total.read(), |_| iteration * sum);
        check_bits(&last.read(), |i| if i == n - 1 { n as i32 - 1 } else { 7 });
    }
}

fn a_product_has_what_its_condition_leaves(lab: &mut Lab) {
    let (x, mut y) = (lab.input(&[1.0f32; 10]), lab.output::<f32>(10));
    let report = add_to(x.slice(), &mut y.slice(), 10).grid(|config| cdiv(10, config.B)).report().unwrap();
    let configs: Vec<_> = report.trials.iter().map(|trial| (trial.config.B, trial.config.num_warps)).collect();
    assert_eq!(configs, [(32, 1), (128, 1), (128, 4), (1024, 1), (1024, 4)]);
}

#[autotune(configs = [Config { B: 64, num_warps: 1 }, Config { B: 256 }], key = [bucket(m), bucket(n, 100), extent(v, 1)])]
#[kernel]
fn fill<const B: usize>(v: View<f32, 2>, y: PtrMut<i64>, m: usize, n: i32) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, at + (m as i64) + (n as i64) + extent(v, 1), mask = at < 500);
}

fn buckets_and_alignments_are_keys(lab: &mut Lab) {
    let v: Tensor<f32> = lab.device.zeros([4, 64]).unwrap();
    let w: Tensor<f32> = lab.device.zeros([8, 32]).unwrap();
    let mut report = |v: &Tensor<f32>, m: usize, n: i32, shift: usize| {
        let mut y = lab.output_at::<i64>(500, shift);
        fill(v, &mut y.slice(), m, n).grid(|config| cdiv(500, config.B)).launch().unwrap();
        check_bits(&y.read(), |i| (i + m + v.shape()[1]) as i64 + i64::from(n));
        fill(v, &mut y.slice(), m, n).grid(|config| cdiv(500, config.B)).report().unwrap()
    };
    let first = report(&v, 300, 101, 0);
    let rows = v.slice(1..3).unwrap();
    assert_eq!(rows.shape(), [2, 64]);
    let alike = [report(&v, 512, 200, 0), report(&v, 257, 150, 0)];
    let others = [report(&v, 513, 101, 0), report(&v, 300, 201, 0), report(&w, 300, 101, 0), report(&v, 300, 101, 1)];
    if !lab.device.is_cpu() {
        assert!(alike.iter().all(|report| std::sync::Arc::ptr_eq(report, &first)));
        assert!(others.iter().all(|report| !std::sync::Arc::ptr_eq(report, &first)));
    }
}

#[autotune(
    configs = product(B = [16, 64, 256], num_warps = 1),
    key = [],
    prune = [|config| config.B == 16 && y.len() > 100, top_k(1, |config| if config.B as f32 > limit { 1.0 } else { 2.0 })],
    pre_hook = |config| assert!(config.B as f32 > limit),
    post_hook = |_| HOOKS.with(|hooks| hooks.set(hooks.get() + 1)),
)]
#[kernel]
fn tag_all<const B: usize>(y: PtrMut<i64>, limit: f32) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, B);
}

thread_local! {
    static HOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn the_likely_are_timed_and_see_the_arguments(lab: &mut Lab) {
    let mut y = lab.output::<i64>(1000);
    let before = HOOKS.get();
    let report = tag_all(&mut y.slice(), 64.5).grid(|config| cdiv(1000, config.B)).report().unwrap();
    let outcome = |index: usize| &report.trials[index].outcome;
    assert_eq!(*outcome(0), Outcome::Pruned);
    if lab.device.is_cpu() {
        assert_eq!((outcome(1), outcome(2)), (&Outcome::Untimed, &Outcome::Untimed));
    } else {
        assert!(*outcome(1) == Outcome::Pruned && matches!(outcome(2), Outcome::Measured { .. }), "{report}");
        assert!(HOOKS.get() > before);
    }
    tag_all(&mut y.slice(), 64.5).grid(|config| cdiv(1000, config.B)).launch().unwrap();
    check_bits(&y.read(), |_| if lab.device.is_cpu() { 64 } else { 256 });
}

/// The build leaves out what no GPU can run: a tile that is too large, and more registers than there are.
#[autotune(
    configs = [Config { B: 64 }, Config { B: 2097152 }, Config { B: 64, num_warps: 32, maxnreg: 128 }],
    key = [],
)]
#[kernel]
fn beyond<const B: usize>(y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, 1.5, mask = at < n);
}

fn what_no_gpu_can_run_is_a_record(lab: &mut Lab) {
    let mut y = lab.output::<f32>(300);
    beyond(&mut y.slice(), 300).grid(|config| cdiv(300, config.B)).launch().unwrap();
    check_bits(&y.read(), |_| 1.5);
    let report = beyond(&mut y.slice(), 300).grid(|config| cdiv(300, config.B)).report().unwrap();
    assert_eq!(report.chosen().map(|trial| trial.config.B), Some(64));
    if !lab.device.is_cpu() {
        let reasons = ["a tile of 2097152 elements is too large", "1024 threads of 128 registers take more than the 65536"];
        for (trial, part) in report.trials[1..].iter().zip(reasons) {
            assert!(matches!(&trial.outcome, Outcome::Failed(reason) if reason.contains(part)), "{report}");
        }
    }
}

/// The kernel of PyTorch's recipe for user-defined Triton kernels, with its four configurations.
#[autotune(
    configs = [
        Config { BLOCK_SIZE: 4, num_stages: 3, num_warps: 8 },
        Config { BLOCK_SIZE: 4, num_stages: 4, num_warps: 4 },
        Config { BLOCK_SIZE: 2, num_stages: 3, num_warps: 8 },
        Config { BLOCK_SIZE: 2, num_stages: 4, num_warps: 4 },
    ],
    key = [],
    verify = cpu,
)]
#[kernel]
fn add_kernel_autotuned<const BLOCK_SIZE: usize>(in_ptr0: Ptr<f32>, in_ptr1: Ptr<f32>, out_ptr: PtrMut<f32>, n_elements: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n_elements;
    let x = load(in_ptr0 + offsets, mask = mask);
    let y = load(in_ptr1 + offsets, mask = mask);
    store(out_ptr + offsets, x + y, mask = mask);
}

fn the_recipe_s_four_configurations(lab: &mut Lab) {
    let n = 1001;
    let (a, b) = (lab.values::<f32>(n), lab.values::<f32>(n));
    let (x, y) = (lab.input(&a), lab.input(&b));
    let mut out = lab.output::<f32>(n);
    add_kernel_autotuned(x.slice(), y.slice(), &mut out.slice(), n).grid(|config| cdiv(n, config.BLOCK_SIZE)).launch().unwrap();
    check(&out.read(), Class::Rounded, |i| f64::from(a[i]) + f64::from(b[i]));
    let report =
        add_kernel_autotuned(x.slice(), y.slice(), &mut out.slice(), n).grid(|config| cdiv(n, config.BLOCK_SIZE)).report().unwrap();
    let table = report.to_string();
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows.len() == 5 && rows[0].starts_with("add_kernel_autotuned on "), "{table}");
    let configs = [(4, 8, 3), (4, 4, 4), (2, 8, 3), (2, 4, 4)];
    for ((row, (block, warps, stages)), trial) in rows[1..].iter().zip(configs).zip(&report.trials) {
        let config = format!("Config {{ BLOCK_SIZE: {block}, num_warps: {warps}, num_stages: {stages} }}");
        assert!(row.ends_with(&config) && row.starts_with('*') == trial.chosen, "{table}");
        assert!(lab.device.is_cpu() || row.contains(" us  "), "{table}");
    }
    let origin = if lab.device.is_cpu() { Origin::Untimed } else { Origin::Timed };
    assert_eq!((report.origin, report.took.is_zero()), (origin, lab.device.is_cpu()));
    assert_eq!(report.runner_up().is_some(), !lab.device.is_cpu());
}

//! Tuning: the fast configuration is found, broken ones are records, and a key is tuned once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kernel_runtime::prelude::*;
use kernel_runtime::private::{Args, AutotunedLaunch, Kernel, KeyPart, Rules, Schedule, TuneConfig, Tuner, Variant};
use kernel_runtime::tune::{Outcome, Report};

use crate::Test;
use crate::allocations::allocations;
use crate::kernels::{ADD, BLOCK, is_simulated};
use crate::tuned::{Config, of, tuned};

pub(crate) const TESTS: &[Test] = &[
    ("the_fastest_configuration_is_chosen", the_fastest_configuration_is_chosen),
    ("threads_tune_a_key_once", threads_tune_a_key_once),
    ("in_place_kernels_are_tuned_right", in_place_kernels_are_tuned_right),
    ("a_tuned_launch_allocates_nothing", a_tuned_launch_allocates_nothing),
    ("if_no_configuration_runs_the_error_lists_every_reason", if_no_configuration_runs_the_error_lists_every_reason),
];

/// How often the launch covers the data: more is slower, and right all the same.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Repeat(usize);

impl TuneConfig for Repeat {
    fn write_key(&self, key: &mut [u64]) {
        key[0] = self.0 as u64;
    }

    fn schedule(&self) -> Schedule {
        Schedule::DEFAULT
    }
}

const fn variant(key: &'static [u64], ptx: &'static str) -> Variant {
    Variant { key, schedule: Schedule::DEFAULT, target: "sm_80", entry: "add", shared_bytes: 0, ptx }
}

const VARIANTS: &[Variant] = &[variant(&[1], ADD), variant(&[8], ADD), variant(&[64], ADD), variant(&[3], "this is no PTX")];

type Add<'a, F = kernel_runtime::NoGrid> = AutotunedLaunch<'a, 7, 1, Repeat, F>;

fn add<'a>(x: &'a Tensor<f32>, out: &'a mut Tensor<f32>, tuner: &'static Tuner<Repeat>) -> Add<'a> {
    static KERNEL: Kernel = crate::trusted::kernel("add", "", Schedule::DEFAULT, &[], VARIANTS);
    let n = x.len();
    let mut args = Args::new(&KERNEL);
    args.pointer("x", x);
    args.pointer("y", x);
    args.pointer_mut("out", out);
    args.scalar(n);
    crate::trusted::autotuned(args, [0], tuner, &Rules::NONE)
}

fn grid(n: usize) -> impl Fn(Repeat) -> usize {
    // Programs beyond the data do nothing.
    move |config| cdiv(n, BLOCK) * config.0
}

/// Of these the second is the fastest, and the third is no PTX.
const REPEATS: &[Repeat] = &[Repeat(64), Repeat(1), Repeat(3), Repeat(8)];

/// The report of a tuned launch. Its record may come from another process.
fn report(device: Device) -> Arc<Report<Repeat>> {
    static TUNER: Tuner<Repeat> = Tuner::new(REPEATS, &[KeyPart::exact(6)]);
    let n = (1 << if is_simulated() { 18 } else { 22 }) + 5;
    let x = device.full(n, 2.0f32).unwrap();
    let mut out = device.zeros::<f32>(n).unwrap();
    add(&x, &mut out, &TUNER).grid(grid(n)).launch().unwrap();
    assert!(out.to_vec().unwrap().iter().all(|&value| value == 4.0));
    let report = add(&x, &mut out, &TUNER).grid(grid(n)).report().unwrap();
    assert_eq!(report.chosen().unwrap().config, REPEATS[1], "{report}");
    report
}

/// The outcome of each configuration.
#[cfg(feature = "cache")]
pub(crate) fn outcomes(device: Device) -> Vec<Outcome> {
    report(device).trials.iter().map(|trial| trial.outcome.clone()).collect()
}

fn the_fastest_configuration_is_chosen(device: Device) {
    let report = report(device);
    println!("{report}");
    assert!(matches!(&report.trials[2].outcome, Outcome::Failed(reason) if reason.contains("PTX")));
    assert!(matches!(report.trials[0].outcome, Outcome::Measured { samples: 1, .. }));

    // Nothing to do is nothing to tune.
    static TUNER: Tuner<Repeat> = Tuner::new(REPEATS, &[KeyPart::exact(6)]);
    let (empty, mut none) = (device.zeros::<f32>(0).unwrap(), device.zeros::<f32>(0).unwrap());
    add(&empty, &mut none, &TUNER).grid(grid(0)).launch().unwrap();
}

fn threads_tune_a_key_once(device: Device) {
    static TUNER: Tuner<Repeat> = Tuner::new(&[Repeat(1), Repeat(8)], &[KeyPart::exact(6)]);
    static GRIDS: AtomicUsize = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                let x = device.full(1000, 2.0f32).unwrap();
                let mut out = device.zeros::<f32>(1000).unwrap();
                let counted = |config| {
                    GRIDS.fetch_add(1, Ordering::Relaxed);
                    grid(1000)(config)
                };
                add(&x, &mut out, &TUNER).grid(counted).launch().unwrap();
            });
        }
    });
    let tuned = GRIDS.load(Ordering::Relaxed);
    assert!(tuned < 4 * 30, "{tuned} runs for one key");
    let x = device.full(1000, 2.0f32).unwrap();
    let (mut a, mut b) = (device.zeros::<f32>(1000).unwrap(), device.zeros::<f32>(1000).unwrap());
    let (first, second) =
        (add(&x, &mut a, &TUNER).grid(grid(1000)).report().unwrap(), add(&x, &mut b, &TUNER).grid(grid(1000)).report().unwrap());
    assert!(Arc::ptr_eq(&first, &second));
}

/// The kernel reads `x` and adds to `y`; tuning runs it dozens of times.
fn in_place_kernels_are_tuned_right(device: Device) {
    const CONFIGS: &[Config] = &[of(32, 2), of(64, 2), of(256, 2)];
    static TUNER: Tuner<Config> = Tuner::new(CONFIGS, &[KeyPart::power_of_two(5)]);
    static ZEROED: Tuner<Config> = Tuner::new(CONFIGS, &[]).zeroing(&[1]);
    let n = 100_003;
    let stream = device.new_stream().unwrap();
    for (tuner, expected) in [(&TUNER, [3.5, 6.5, 9.5]), (&ZEROED, [3.0, 6.0, 9.0])] {
        let (x, mut y) = (device.full(n, 3.0f32).unwrap(), device.full(n, 0.5f32).unwrap());
        for (iteration, expected) in expected.into_iter().enumerate() {
            let launch = tuned(&x, &mut y, tuner, &Rules::NONE).grid(|config| cdiv(n, config.block_size));
            if iteration == 0 { launch.on(&stream).launch() } else { launch.launch() }.unwrap();
            assert!(y.to_vec().unwrap().iter().all(|&value| value == expected), "{expected}");
        }
    }
}

fn a_tuned_launch_allocates_nothing(device: Device) {
    const CONFIGS: &[Config] = &[of(64, 4), of(256, 4)];
    static TUNER: Tuner<Config> = Tuner::new(CONFIGS, &[KeyPart::power_of_two(5), KeyPart::exact(0)]);
    const RULES: &Rules<Config, 6> = &Rules::<Config, 6>::NONE
        .heuristics(|words, config| Config { num_warps: if words[5] > 500 { 4 } else { 2 }, ..config })
        .prune(|words, config| config.block_size as u64 > words[5]);
    let (x, mut y) = (device.zeros::<f32>(1000).unwrap(), device.zeros::<f32>(1000).unwrap());
    let mut launch = || tuned(&x, &mut y, &TUNER, RULES).grid(|config| cdiv(1000, config.block_size)).launch().unwrap();
    launch();
    let before = allocations();
    (0..10).for_each(|_| launch());
    assert_eq!(allocations() - before, 0);
}

fn if_no_configuration_runs_the_error_lists_every_reason(device: Device) {
    static TUNER: Tuner<Repeat> = Tuner::new(&[Repeat(3), Repeat(4)], &[]);
    let x = device.zeros::<f32>(10).unwrap();
    let mut out = device.zeros::<f32>(10).unwrap();
    let error = add(&x, &mut out, &TUNER).grid(grid(10)).launch().unwrap_err();
    println!("{error}");
    assert!(matches!(&error, Error::NoConfig { failures, .. } if failures.len() == 2 && failures[0].contains("Repeat(3)")));
    assert!(error.to_string().contains("Repeat(4): kernel `add` does not compile"), "{error}");

    // One alone is run as it is, and fails as it is.
    static ALONE: Tuner<Repeat> = Tuner::new(&[Repeat(3)], &[]);
    assert!(matches!(add(&x, &mut out, &ALONE).grid(grid(10)).launch(), Err(Error::Jit { .. })));
    assert_eq!(add(&x, &mut out, &ALONE).grid(grid(10)).report().unwrap().trials[0].outcome, Outcome::Untimed);
}

/// Copies that tuning makes, to undo what its runs do, end with it.
pub(crate) fn copies_end_with_tuning(device: Device, fail: impl Fn(&std::ffi::CStr, u32), forgive: impl Fn()) {
    static KERNEL: Kernel = crate::trusted::kernel("add", "", Schedule::DEFAULT, &[], VARIANTS);
    static TUNER: Tuner<Repeat> = Tuner::new(&[Repeat(1), Repeat(8)], &[KeyPart::exact(6)]);
    let other = device.new_stream().unwrap();
    let mut failed = 0;
    for skipped in 0..12 {
        // Each is another key.
        let n = 500 + skipped as usize;
        let [x, mut y, mut out] = [2.0f32, 1.0, 1.0].map(|value| device.full(n, value).unwrap());
        device.synchronize().unwrap();
        let mut args = Args::new(&KERNEL);
        args.pointer::<f32>("x", &x);
        args.pointer_mut::<f32>("y", &mut y);
        args.pointer_mut::<f32>("out", &mut out);
        args.scalar(n);
        let launch: Add<'_> = crate::trusted::autotuned(args, [0], &TUNER, &Rules::NONE);
        fail(c"cuMemcpyDtoDAsync_v2", skipped);
        failed += usize::from(launch.grid(grid(n)).on(&other).launch().is_err());
        forgive();
        out.fill(9.0).unwrap();
        assert_eq!(out.to_vec().unwrap(), vec![9.0; n], "copy {skipped}");
        drop(y);
        let _ = device.stream().synchronize();
        // A copy that is still queued would run now, after its memory was freed.
        let _ = other.synchronize();
        assert_eq!(out.to_vec().unwrap(), vec![9.0; n], "copy {skipped}");
    }
    assert!(failed > 1, "{failed}");
}

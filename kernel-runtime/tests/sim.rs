//! Launches on simulated GPUs: what every device does, and what only a simulation sees.

mod axpy;
mod trusted;
#[path = "axpy/tuned.rs"]
mod tuned;

use std::sync::atomic::{AtomicUsize, Ordering};

use axpy::axpy;
use kernel_runtime::Target;
use kernel_runtime::prelude::*;
use kernel_runtime::private::{Args, Kernel, KeyPart, Param, ParamKind, Rules, Schedule, Tuner, Variant};
use kernel_runtime::sim::FaultKind;
use kernel_runtime::tune::Outcome;
use tuned::{Config, of, tuned};

fn simulated() -> [Device; 2] {
    [Target::SM_80, Target::SM_90A].map(|target| Device::sim(target).unwrap())
}

#[test]
fn a_simulated_gpu_is_a_device_like_any_other() {
    let [a100, h200] = simulated();
    assert_eq!((h200.to_string(), h200.name()), ("sim:sm_90a".to_owned(), "simulated H200 (sm_90a)"));
    assert_eq!((a100.to_string(), a100.name()), ("sim:sm_80".to_owned(), "simulated A100 (sm_80)"));
    assert_eq!((a100.compute_capability(), h200.compute_capability()), (Some((8, 0)), Some((9, 0))));
    assert_eq!((a100.multiprocessors(), h200.multiprocessors()), (108, 132));
    assert!(a100 != h200 && h200 == Device::sim(Target::SM_90A).unwrap() && h200 == "sim".parse().unwrap());
    assert!(h200.is_sim() && !h200.is_cpu() && !h200.is_cuda() && h200.ordinal().is_none() && !Device::cpu().is_sim());

    let (a, b) = (h200.stream(), h200.new_stream().unwrap());
    a.wait_for(&b).unwrap();
    let start = b.record().unwrap();
    a.wait(&start).unwrap();
    assert!(start.elapsed_ms(&a.record().unwrap()).unwrap() >= 0.0);
    assert_eq!(format!("{a:?}"), "Stream(sim:sm_90a)");
    h200.synchronize().unwrap();
    assert!(h200.cuda_context().is_none() && h200.zeros::<f32>(1).unwrap().into_cuda_slice().is_err());
}

#[test]
fn memory_is_counted_and_limited() {
    // No other test uses that much.
    let device = Device::sim(Target::SM_80).unwrap();
    let (_, total) = device.memory().unwrap().unwrap();
    match device.empty::<u8>(total + 1) {
        Err(Error::OutOfMemory { device: full, requested, .. }) => assert_eq!((full, requested), (device, total + 1)),
        other => panic!("{other:?}"),
    }
    let held = device.zeros::<u8>(1 << 26).unwrap();
    let (free, _) = device.memory().unwrap().unwrap();
    assert!(free <= total - (1 << 26), "{free} of {total}");
    drop(held);
}

#[test]
fn ragged_lengths_and_grids_are_right() {
    for device in simulated() {
        for n in [0, 1, 63, 64, 65, 1000, 30_000] {
            let x = device.tensor(&(0..n).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
            let mut y = device.full(n, 0.5f32).unwrap();
            axpy::<f32, 64>(2.0, &x, &mut y, n).grid(cdiv(n, 64)).launch().unwrap();
            let expected = (0..n).map(|i| 2.0 * i as f32 + 0.5);
            assert!(y.to_vec().unwrap().into_iter().eq(expected), "n = {n} on {device}");
        }
    }
}

#[test]
fn types_and_slices_are_chosen_by_the_launch() {
    fn check<T: Float, const BLOCK_SIZE: usize>(two: T, three: T, eight: T) {
        let device = Device::sim(Target::SM_90A).unwrap();
        let (x, mut y) = (device.full(100, three).unwrap(), device.full(100, two).unwrap());
        axpy::<T, BLOCK_SIZE>(two, x.slice(..90).unwrap(), &mut y.slice_mut(7..90).unwrap(), 100)
            .grid(cdiv(100, BLOCK_SIZE))
            .launch()
            .unwrap();
        let got = y.to_vec().unwrap();
        assert!((0..100).all(|i| got[i] == if (7..90).contains(&i) { eight } else { two }), "{got:?}");
    }
    check::<f32, 16>(2.0, 3.0, 8.0);
    check::<f64, 128>(2.0, 3.0, 8.0);
    check::<f16, 32>(f16::from_f32(2.0), f16::from_f32(3.0), f16::from_f32(8.0));
    check::<bf16, 32>(bf16::from_f32(2.0), bf16::from_f32(3.0), bf16::from_f32(8.0));
}

#[test]
fn a_checked_launch_reports_an_access_outside() {
    let device = Device::sim(Target::SM_90A).unwrap();
    let (x, mut y) = (device.full(100, 1.0f32).unwrap(), device.zeros::<f32>(300).unwrap());
    axpy::<f32, 64>(1.0, &x, &mut y, 100).grid(2).checked().launch().unwrap();
    match axpy::<f32, 64>(1.0, &x, &mut y, 300).grid(2).checked().launch() {
        Err(Error::OutOfBounds(found)) => {
            assert_eq!((found.op, found.parameter.as_str(), found.line, found.column), ("load", "x", 5, 13));
            assert!(found.program_id == [1, 0, 0] && (100..128).contains(&found.index) && found.length == 100, "{found}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn devices_are_not_mixed() {
    let [a100, h200] = simulated();
    let (x, mut y) = (a100.full(64, 1.0f32).unwrap(), h200.zeros::<f32>(64).unwrap());
    let error = axpy::<f32, 64>(1.0, &x, &mut y, 64).grid(1).launch().unwrap_err();
    assert!(matches!(error, Error::DeviceMismatch { argument: "x", device, expected, .. } if device == a100 && expected == h200));
    let error = axpy::<f32, 64>(1.0, &x, &mut a100.zeros::<f32>(64).unwrap(), 64).on(h200.stream()).grid(1).launch().unwrap_err();
    assert!(error.to_string().contains("the stream of the launch lives on `sim:sm_90a`"), "{error}");
}

/// Nobody wrote the elements that `empty` gives.
#[test]
fn elements_that_nobody_wrote_are_a_fault_with_its_line() {
    let device = Device::sim(Target::SM_90A).unwrap();
    let (x, mut y) = (device.empty::<f32>(64).unwrap(), device.zeros::<f32>(64).unwrap());
    let mut copy = x.try_clone().unwrap();
    for x in [&x, &copy] {
        let error = axpy::<f32, 64>(1.0, x, &mut y, 64).grid(1).launch().unwrap_err();
        let Error::Fault(fault) = &error else { panic!("{error}") };
        assert!(matches!(fault.kind, FaultKind::UninitialisedMemory { .. }), "{fault}");
        assert_eq!((fault.file.as_deref(), fault.line, fault.column, fault.cta), (Some("src/axpy.rs"), 5, 13, [0; 3]));
        let location = "\n  --> src/axpy.rs:5:13\n   = element 0 of argument `x`\n   = program id (0, 0, 0), thread (";
        assert!(error.to_string().contains(location), "{error}");
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), fault.to_string());
    }
    // The device is as good as before.
    copy.fill(2.0).unwrap();
    axpy::<f32, 64>(1.0, &copy, &mut y, 64).grid(1).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0; 64]);
}

macro_rules! ptx {
    ($target:literal, $body:literal) => {
        concat!(
            ".version 8.0\n.target ",
            $target,
            "\n.address_size 64\n.file 1 \"src/bad.rs\"\n",
            ".visible .entry bad(.param .u64 y, .param .u64 length) {\n",
            ".reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n",
            $body,
            "ret;\n}\n"
        )
    };
}

/// A launch of hand-written PTX that takes a tensor; the IR is not looked at.
fn hand_written<T: Element>(kernel: &'static Kernel, y: &mut Tensor<T>) -> Result<()> {
    let mut args = Args::<2>::new(kernel);
    args.pointer_mut("y", y);
    crate::trusted::launch::<2, 0>(args, []).grid(3).launch()
}

const fn variant(ptx: &'static str) -> Variant {
    Variant { key: &[], schedule: Schedule { num_warps: 1, ..Schedule::DEFAULT }, target: "sm_80", entry: "bad", shared_bytes: 0, ptx }
}

const PARAMS: &[Param] = &[Param { name: "y", kind: ParamKind::PointerMut }];

#[test]
fn a_store_outside_its_tensor_is_a_fault() {
    // Thread 5 of program 2 stores behind the end.
    static STORE: Kernel = crate::trusted::kernel(
        "store",
        "",
        Schedule::DEFAULT,
        PARAMS,
        &[variant(ptx!(
            "sm_80",
            "ld.param.u64 %rd0, [y];\ncvta.to.global.u64 %rd1, %rd0;\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n\
         mad.lo.s32 %r2, %r1, 32, %r0;\nmul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\n.loc 1 7 9\nst.global.u32 [%rd3], %r2;\n"
        ))],
    );
    for device in simulated() {
        let mut y = device.zeros::<u32>(96).unwrap();
        hand_written(&STORE, &mut y).unwrap();
        assert!(y.to_vec().unwrap().into_iter().eq(0..96));
        let mut y = device.zeros::<u32>(69).unwrap();
        let error = hand_written(&STORE, &mut y).unwrap_err();
        let Error::Fault(fault) = &error else { panic!("{error}") };
        assert!(matches!(fault.kind, FaultKind::OutOfBounds { bytes: 4, .. }), "{fault}");
        assert_eq!((fault.line, fault.column, fault.cta, fault.thread), (7, 9, [2, 0, 0], [5, 0, 0]));
        let location = "src/bad.rs:7:9\n   = element 69 of argument `y`, which has 69 elements: 1 after the last\n   = program id (2, 0, 0), thread (5, 0, 0)\n";
        assert!(error.to_string().contains(location), "{error}");
        // A replay knows its arguments, too.
        let mut replay = Replay::capture(device.stream(), || hand_written(&STORE, &mut y)).unwrap();
        assert_eq!(replay.launch(&mut y).unwrap_err().to_string(), error.to_string());
    }
}

#[test]
fn memory_of_a_dropped_tensor_is_a_fault() {
    // The first program writes its tensor's address into the tensor.
    static ADDRESS: Kernel = crate::trusted::kernel(
        "address",
        "",
        Schedule::DEFAULT,
        PARAMS,
        &[variant(ptx!(
            "sm_80",
            ".reg .pred %p0;\nmov.u32 %r0, %ctaid.x;\nsetp.eq.u32 %p0, %r0, 0;\nld.param.u64 %rd0, [y];\n@%p0 st.global.u64 [%rd0], %rd0;\n"
        ))],
    );
    // Reads where the tensor's element points to.
    static FOLLOW: Kernel = crate::trusted::kernel(
        "follow",
        "",
        Schedule::DEFAULT,
        PARAMS,
        &[variant(ptx!("sm_80", "ld.param.u64 %rd0, [y];\nld.global.u64 %rd1, [%rd0];\nld.global.u64 %rd2, [%rd1];\n"))],
    );
    let device = Device::sim(Target::SM_90A).unwrap();
    let (mut x, mut y) = (device.zeros::<u64>(1).unwrap(), device.zeros::<u64>(1).unwrap());
    hand_written(&ADDRESS, &mut x).unwrap();
    y.view_mut().copy_from(&x.view()).unwrap();
    hand_written(&FOLLOW, &mut y).unwrap();
    drop(x);
    // A new allocation gets another address than the freed one.
    let other = device.zeros::<u64>(1).unwrap();
    match hand_written(&FOLLOW, &mut y) {
        Err(Error::Fault(fault)) => assert!(matches!(fault.kind, FaultKind::Freed { bytes: 8, .. }), "{fault}"),
        result => panic!("{result:?}"),
    }
    drop(other);
}

#[test]
fn ptx_that_the_simulator_does_not_know_is_an_error_with_its_line() {
    static UNKNOWN: Kernel =
        crate::trusted::kernel("unknown", "", Schedule::DEFAULT, PARAMS, &[variant(ptx!("sm_80", "frobnicate.u32 %r0, %r1;\n"))]);
    static NO_ENTRY: Kernel =
        crate::trusted::kernel("no_entry", "", Schedule::DEFAULT, PARAMS, &[Variant { entry: "good", ..variant(ptx!("sm_80", "")) }]);
    let mut y = Device::sim(Target::SM_80).unwrap().zeros::<u32>(8).unwrap();
    let text = hand_written(&UNKNOWN, &mut y).unwrap_err().to_string();
    assert!(text.starts_with("kernel `unknown`: `sim:sm_80` cannot load its PTX (`INVALID_PTX`)\n"), "{text}");
    assert!(text.contains("frobnicate.u32 %r0, %r1"), "{text}");
    let text = hand_written(&NO_ENTRY, &mut y).unwrap_err().to_string();
    assert!(text.ends_with("the PTX has no entry `good`"), "{text}");
}

#[test]
fn more_shared_memory_than_there_is_is_refused() {
    static GREEDY: Kernel = crate::trusted::kernel(
        "greedy",
        "",
        Schedule::DEFAULT,
        PARAMS,
        &[Variant { shared_bytes: 200 << 10, ..variant(ptx!("sm_80", "")) }],
    );
    let [a100, h200] = simulated();
    hand_written(&GREEDY, &mut h200.zeros::<u32>(8).unwrap()).unwrap();
    match hand_written(&GREEDY, &mut a100.zeros::<u32>(8).unwrap()) {
        Err(Error::SharedMemory { requested, limit, .. }) => assert!(requested == 200 << 10 && limit < requested),
        other => panic!("{other:?}"),
    }
}

const CONFIGS: &[Config] = &[of(32, 2), of(1024, 4), of(64, 3)];

/// The kernel adds to what it is given, and is run many times before it runs for good.
#[test]
fn tuning_leaves_nothing_behind() {
    // The device's report counts the launches of all tests. This counts only the trials of this tuner.
    static TRIALS: AtomicUsize = AtomicUsize::new(0);
    static TUNER: Tuner<Config> = Tuner::new(CONFIGS, &[KeyPart::exact(5)]);
    const RULES: &Rules<Config, 6> = &Rules::<Config, 6>::NONE.pre_hook(|_, _| {
        TRIALS.fetch_add(1, Ordering::Relaxed);
    });
    let device = Device::sim(Target::SM_90A).unwrap();
    let (x, mut y) = (device.full(1000, 3.0f32).unwrap(), device.full(1000, 0.5f32).unwrap());
    let grid = |config: Config| cdiv(1000, config.block_size);
    tuned(&x, &mut y, &TUNER, RULES).grid(grid).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.5; 1000]);
    tuned(&x, &mut y, &TUNER, RULES).grid(grid).checked().launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [6.5; 1000]);
    assert_eq!(TRIALS.load(Ordering::Relaxed), CONFIGS.len());

    let report = tuned(&x, &mut y, &TUNER, RULES).grid(grid).report().unwrap();
    assert_eq!(y.to_vec().unwrap(), [6.5; 1000], "a report of what is known runs nothing");
    assert_eq!((report.device, report.chosen().unwrap().config), (device, CONFIGS[0]), "{report}");
    assert!(matches!(&report.trials[2].outcome, Outcome::Failed(reason) if reason.contains("num_warps")), "{report}");
    let times = report.trials[..2].iter().map(|trial| match trial.outcome {
        Outcome::Measured { median_us, samples: 1 } => median_us,
        _ => panic!("{report}"),
    });
    assert!(times.is_sorted_by(|a, b| *a > 2.0 && a < b), "one program with all the work takes longer: {report}");

    // A launch that names its configuration runs once, and tunes nothing.
    let (x, mut y) = (device.full(998, 3.0f32).unwrap(), device.full(998, 0.5f32).unwrap());
    tuned(&x, &mut y, &TUNER, RULES).grid(grid).launch_with(|config| *config == CONFIGS[1]).unwrap();
    assert_eq!((y.to_vec().unwrap(), TRIALS.load(Ordering::Relaxed)), (vec![3.5; 998], CONFIGS.len()));

    // A new key, whose launch only asks: the tensor is as it was.
    let (x, mut y) = (device.full(999, 3.0f32).unwrap(), device.full(999, 0.5f32).unwrap());
    tuned(&x, &mut y, &TUNER, RULES).grid(grid).report().unwrap();
    assert_eq!((y.to_vec().unwrap(), TRIALS.load(Ordering::Relaxed)), (vec![0.5; 999], 2 * CONFIGS.len()));
}

/// With `key = []`, too, what is fastest for a few programs decides for a few programs only. A simulated H200 runs 132 * 64 warps at once.
#[test]
fn the_number_of_programs_is_part_of_the_key() {
    static TUNER: Tuner<Config> = Tuner::new(&[of(32, 4), of(64, 2)], &[]);
    let device = Device::sim(Target::SM_90A).unwrap();
    let (x, mut y) = (device.full(100, 3.0f32).unwrap(), device.full(100, 0.5f32).unwrap());
    // Of the first configuration: 2112 programs of 4 warps are a wave. Programs beyond the data do nothing.
    let mut report = |of_first: usize, of_second: usize| {
        let grid = move |config: Config| if config.block_size == 32 { of_first } else { of_second };
        tuned(&x, &mut y, &TUNER, &Rules::NONE).grid(grid).report().unwrap()
    };
    let same = |a: &std::sync::Arc<_>, b: &std::sync::Arc<_>| std::sync::Arc::ptr_eq(a, b);
    let small = report(4, 2);
    assert!(same(&small, &report(2112, 2)), "up to one wave");
    let few = report(2113, 4);
    assert!(!same(&small, &few) && same(&few, &report(8 * 2112, 4)), "a few");
    assert!(same(&few, &report(2113, 2)), "the grid of another configuration does not count");
    let many = report(8 * 2112 + 1, 4);
    assert!(!same(&small, &many) && !same(&few, &many), "many");
    assert!(same(&many, &report(1 << 20, 4)) && same(&small, &report(4, 4)));
}

#[test]
fn zeroed_tensors_are_zero_before_each_run() {
    // Tuners of one process with equal configurations share results, and this one must tune.
    static TUNER: Tuner<Config> = Tuner::new(&[of(64, 3), of(1024, 4)], &[]).zeroing(&[1]);
    let device = Device::sim(Target::SM_80).unwrap();
    let (x, mut y) = (device.full(100, 3.0f32).unwrap(), device.full(100, 0.5f32).unwrap());
    for expected in [3.0, 6.0] {
        tuned(&x, &mut y, &TUNER, &Rules::NONE).grid(|config| cdiv(100, config.block_size)).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [expected; 100], "the launch that tunes starts from zeros, no other does");
    }
}

#[test]
fn hooks_are_called_around_each_run_of_a_likely_configuration() {
    use std::sync::Mutex;
    static CALLS: Mutex<Vec<(char, usize)>> = Mutex::new(Vec::new());
    static TUNER: Tuner<Config> = Tuner::new(CONFIGS, &[]);
    const RULES: &Rules<Config, 6> = &Rules::<Config, 6>::NONE
        .top_k(1, |words, config| (words[5] as f64 - config.block_size as f64).abs())
        .pre_hook(|_, config| CALLS.lock().unwrap().push(('(', config.block_size)))
        .post_hook(|words, config| CALLS.lock().unwrap().push((if words[5] == 900 { ')' } else { '?' }, config.block_size)));
    let device = Device::sim(Target::SM_80).unwrap();
    let (x, mut y) = (device.full(900, 3.0f32).unwrap(), device.full(900, 0.5f32).unwrap());
    let report = tuned(&x, &mut y, &TUNER, RULES).grid(|config| cdiv(900, config.block_size)).report().unwrap();
    assert_eq!(*CALLS.lock().unwrap(), [('(', 1024), (')', 1024)]);
    assert_eq!(report.chosen().map(|trial| trial.config.block_size), Some(1024));
    assert_eq!((&report.trials[0].outcome, &report.trials[2].outcome), (&Outcome::Pruned, &Outcome::Pruned));
}

#[test]
fn if_no_configuration_runs_the_error_lists_every_reason_and_nothing_has_changed() {
    const BROKEN: &[Config] = &[of(64, 3), of(64, 5)];
    static TUNER: Tuner<Config> = Tuner::new(BROKEN, &[]);
    let device = Device::sim(Target::SM_90A).unwrap();
    let (x, mut y) = (device.full(100, 3.0f32).unwrap(), device.full(100, 0.5f32).unwrap());
    let error = tuned(&x, &mut y, &TUNER, &Rules::NONE).grid(|config| cdiv(100, config.block_size)).launch().unwrap_err();
    assert!(matches!(&error, Error::NoConfig { failures, .. } if failures.len() == 2 && failures[1].contains("not 5")), "{error}");
    assert_eq!(y.to_vec().unwrap(), [0.5; 100]);
}

#[test]
fn a_checked_launch_passes_over_what_does_not_fit() {
    static TUNER: Tuner<Config> = Tuner::new(&[of(32, 2), of(64, 3), of(1024, 4)], &[]);
    let device = Device::sim(Target::SM_90A).unwrap();
    let (x, mut y) = (device.full(1000, 3.0f32).unwrap(), device.full(1000, 0.5f32).unwrap());
    let grid = |config: Config| (1, if config.block_size == 32 { 1 << 20 } else { 1 });
    tuned(&x, &mut y, &TUNER, &Rules::NONE).grid(grid).checked().launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.5; 1000]);
    let error = tuned(&x, &mut y, &TUNER, &Rules::NONE).grid(|_| (1, 1 << 20)).checked().launch().unwrap_err();
    assert!(matches!(error, Error::GridTooLarge { axis: 1, .. }), "{error}");
}

/// Heuristics are no part of the tuning key, so the fastest configuration of a key may fail for one launch. That launch uses the next best.
#[test]
fn a_winner_that_does_not_run_is_replaced_for_that_launch() {
    static TUNER: Tuner<Config> = Tuner::new(&[of(32, 2), of(512, 4)], &[]);
    const RULES: &Rules<Config, 6> = &Rules::<Config, 6>::NONE.heuristics(|words, config| Config {
        num_warps: if words[5] == 99 && config.block_size == 32 { 3 } else { config.num_warps },
        ..config
    });
    let device = Device::sim(Target::SM_90A).unwrap();
    for (n, block_size) in [(100, 32), (99, 512), (100, 32), (99, 512), (100, 32)] {
        let (x, mut y) = (device.full(n, 3.0f32).unwrap(), device.full(n, 0.5f32).unwrap());
        let used = std::cell::Cell::new(0);
        let grid = |config: Config| {
            used.set(config.block_size);
            cdiv(n, config.block_size)
        };
        tuned(&x, &mut y, &TUNER, RULES).grid(grid).launch().unwrap();
        assert_eq!((y.to_vec().unwrap(), used.get()), (vec![3.5; n], block_size));
    }
}

#[test]
fn threads_tune_a_key_once() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    static TUNER: Tuner<Config> = Tuner::new(CONFIGS, &[KeyPart::multiple(5, 100)]);
    const RULES: &Rules<Config, 6> = &Rules::<Config, 6>::NONE.pre_hook(|_, _| {
        RUNS.fetch_add(1, Ordering::Relaxed);
    });
    let device = Device::sim(Target::SM_90A).unwrap();
    std::thread::scope(|scope| {
        for n in [71, 81, 91, 100] {
            scope.spawn(move || {
                let (x, mut y) = (device.full(n, 3.0f32).unwrap(), device.full(n, 0.5f32).unwrap());
                tuned(&x, &mut y, &TUNER, RULES).grid(|config| cdiv(n, config.block_size)).launch().unwrap();
                assert_eq!(y.to_vec().unwrap(), vec![3.5; n]);
            });
        }
    });
    assert_eq!(RUNS.load(Ordering::Relaxed), CONFIGS.len());
}

/// A hook that launches a tuned kernel would wait for itself.
#[test]
fn a_launch_inside_a_tuning_does_not_wait() {
    static TUNER: Tuner<Config> = Tuner::new(CONFIGS, &[]);
    static INNER: Tuner<Config> = Tuner::new(CONFIGS, &[]);
    const RULES: &Rules<Config, 6> = &Rules::<Config, 6>::NONE.pre_hook(|_, _| {
        let device = Device::sim(Target::SM_90A).unwrap();
        let (x, mut y) = (device.full(10, 3.0f32).unwrap(), device.full(10, 0.5f32).unwrap());
        tuned(&x, &mut y, &INNER, &Rules::NONE).grid(|_| 1).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.5; 10]);
    });
    let device = Device::sim(Target::SM_90A).unwrap();
    let (x, mut y) = (device.full(10, 3.0f32).unwrap(), device.full(10, 0.5f32).unwrap());
    tuned(&x, &mut y, &TUNER, RULES).grid(|_| 1).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.5; 10]);
}

#[test]
fn another_order_of_warps_gives_the_same_result() {
    let device = Device::sim(Target::SM_80).unwrap();
    for seed in [0, 1, 7] {
        device.set_sim_seed(seed);
        let (x, mut y) = (device.full(5000, 3.0f32).unwrap(), device.full(5000, 1.0f32).unwrap());
        axpy::<f32, 256>(2.0, &x, &mut y, 5000).grid(cdiv(5000, 256)).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [7.0; 5000]);
    }
    device.set_sim_seed(0);
}

#[test]
fn threads_launch_and_free_beside_each_other() {
    let device = Device::sim(Target::SM_90A).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for iteration in 0..10 {
                    let value = (10 * thread + iteration) as f32;
                    let (x, mut y) = (device.full(300, value).unwrap(), device.full(300, 1.0f32).unwrap());
                    axpy::<f32, 64>(2.0, &x, &mut y, 300).grid(5).launch().unwrap();
                    assert_eq!(y.to_vec().unwrap(), [2.0 * value + 1.0; 300]);
                }
            });
        }
    });
}

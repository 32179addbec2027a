//! Launches on the CPU, through launchers as `#[kernel]` makes them, and what can be counted without a GPU.

mod allocations;
mod axpy;
mod trusted;
#[path = "axpy/tuned.rs"]
mod tuned;

use allocations::allocations;
use axpy::{AXPY, axpy};
use kernel_runtime::prelude::*;
use kernel_runtime::private::{Args, AutotunedLaunch, Kernel, KeyPart, Rules, Schedule, Tuner};
use kernel_runtime::tune::Outcome;
use tuned::{Config, of, tuned};

fn cpu() -> Device {
    Device::cpu()
}

#[test]
fn ragged_lengths_and_grids_are_right() {
    for n in [0, 1, 63, 64, 65, 1000, 300_000] {
        let x = cpu().tensor(&(0..n).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
        let mut y = cpu().full(n, 0.5f32).unwrap();
        axpy::<f32, 64>(2.0, &x, &mut y, n).grid(cdiv(n, 64)).launch().unwrap();
        let expected = (0..n).map(|i| 2.0 * i as f32 + 0.5);
        assert!(y.to_vec().unwrap().into_iter().eq(expected), "n = {n}");
    }
}

#[test]
fn types_and_constants_are_chosen_by_the_launch() {
    fn check<T: Float, const BLOCK_SIZE: usize>(two: T, three: T, eight: T) {
        let (x, mut y) = (cpu().full(100, three).unwrap(), cpu().full(100, two).unwrap());
        // Variables that are references already are arguments too.
        let (x, mut y) = (&x, &mut y);
        axpy::<T, BLOCK_SIZE>(two, &x, &mut y, 100).grid(cdiv(100, BLOCK_SIZE)).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [eight; 100]);
    }
    check::<f32, 16>(2.0, 3.0, 8.0);
    check::<f64, 128>(2.0, 3.0, 8.0);
    check::<f16, 32>(f16::from_f32(2.0), f16::from_f32(3.0), f16::from_f32(8.0));
    check::<bf16, 32>(bf16::from_f32(2.0), bf16::from_f32(3.0), bf16::from_f32(8.0));
}

#[test]
fn slices_stay_inside_their_part() {
    let x = cpu().full(10, 1.0f32).unwrap();
    let mut y = cpu().zeros::<f32>(10).unwrap();
    // The kernel is told of more elements than the slice has: those outside are not touched.
    axpy::<f32, 16>(1.0, x.slice(2..).unwrap(), &mut y.slice_mut(4..7).unwrap(), 10).grid(1).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a_checked_launch_reports_the_first_access_outside() {
    let (x, mut y) = (cpu().full(100, 1.0f32).unwrap(), cpu().zeros::<f32>(300).unwrap());
    axpy::<f32, 64>(1.0, &x, &mut y, 100).grid(2).checked().launch().unwrap();
    let error = axpy::<f32, 64>(1.0, &x, &mut y, 300).grid(5).checked().launch().unwrap_err();
    assert_eq!(
        error.to_string(),
        "out of bounds in kernel `axpy`: load at index 100 of `x`, which has 100 elements\n  \
         --> src/axpy.rs:5:13\n   = program id (1, 0, 0)\nhelp: mask the access, as in `mask = offsets < n`"
    );
    // Found by whichever thread, it is the first in the order of programs.
    let mut y = cpu().zeros::<f32>(1 << 20).unwrap();
    match axpy::<f32, 64>(1.0, &x, &mut y, 1 << 20).grid(1 << 14).checked().launch() {
        Err(Error::OutOfBounds(violation)) => assert_eq!(violation.program_id, [1, 0, 0]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn constants_that_do_not_compile_are_an_error() {
    let (x, mut y) = (cpu().zeros::<f32>(1).unwrap(), cpu().zeros::<f32>(1).unwrap());
    for _ in 0..2 {
        let error = axpy::<f32, 0>(1.0, &x, &mut y, 1).grid(1).launch().unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("kernel `axpy` does not compile for `T = f32, BLOCK_SIZE = 0`\nerror: "), "{text}");
        assert!(text.contains("positive number") && text.contains("src/axpy.rs:3:40"), "{text}");
    }
}

#[test]
fn broken_ir_is_an_error() {
    static BROKEN: Kernel = crate::trusted::kernel("broken", "kernel @broken(", Schedule::DEFAULT, &[], &[]);
    let error = crate::trusted::launch::<0, 0>(Args::new(&BROKEN), []).on(cpu().stream()).grid(1).launch().unwrap_err();
    assert!(matches!(&error, Error::Compile { diagnostics, .. } if diagnostics.contains("embedded IR")), "{error}");
}

#[test]
fn a_wrong_launcher_is_an_error() {
    let mut args = Args::<1>::new(&AXPY);
    args.scalar(1);
    let error = crate::trusted::launch::<1, 2>(args, [f32::CODE, 64]).on(cpu().stream()).grid(1).launch().unwrap_err();
    assert!(matches!(error, Error::ArgumentCount { expected: 6, given: 1, .. }), "{error}");
}

#[test]
fn mistakes_of_a_launch_come_before_its_work() {
    let (x, mut y) = (cpu().zeros::<f32>(4).unwrap(), cpu().zeros::<f32>(4).unwrap());
    let error = axpy::<f32, 64>(1.0, &x, &mut y, usize::MAX).grid(0).launch().unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `axpy`: argument 4 is 18446744073709551615, which is more than `i64::MAX`, the largest index of a kernel"
    );
    let error = axpy::<f32, 64>(1.0, &x, &mut y, 4).grid((1, 65_536)).launch().unwrap_err();
    assert!(matches!(error, Error::GridTooLarge { axis: 1, limit: 65_535, .. }));
    axpy::<f32, 64>(1.0, &x, &mut y, 4).grid([1, 0, 1]).launch().unwrap();
}

#[test]
fn launches_nest_in_threads_of_rayon() {
    use rayon::prelude::*;
    let sums: Vec<f32> = (0..64)
        .into_par_iter()
        .map(|i| {
            let (x, mut y) = (cpu().full(5000, i as f32).unwrap(), cpu().zeros::<f32>(5000).unwrap());
            axpy::<f32, 64>(1.0, &x, &mut y, 5000).grid(cdiv(5000, 64)).launch().unwrap();
            y.to_vec().unwrap().into_iter().sum()
        })
        .collect();
    assert!(sums.into_iter().enumerate().all(|(i, sum)| sum == 5000.0 * i as f32));
}

/// The smallest blocks are pruned, and how many warps there are follows from the length.
fn pruned<'a>(x: &'a Tensor<f32>, y: &'a mut Tensor<f32>) -> AutotunedLaunch<'a, 6, 2, Config> {
    const CONFIGS: &[Config] = &[of(16, 0), of(32, 0), of(64, 0)];
    static TUNER: Tuner<Config> = Tuner::new(CONFIGS, &[KeyPart::power_of_two(5)]);
    const RULES: &Rules<Config, 6> = &Rules::<Config, 6>::NONE
        .heuristics(|words, config| Config { num_warps: if words[5] > 100 { 2 } else { 1 }, ..config })
        .prune(|_, config| config.block_size < 16 * config.num_warps as usize || config.block_size == 16);
    tuned(x, y, &TUNER, RULES)
}

#[test]
fn the_cpu_runs_the_first_configuration() {
    let (x, mut y) = (cpu().full(1000, 3.0f32).unwrap(), cpu().zeros::<f32>(1000).unwrap());
    let grid = |config: Config| cdiv(1000, config.block_size);
    pruned(&x, &mut y).grid(grid).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; 1000]);
    let report = pruned(&x, &mut y).grid(grid).report().unwrap();
    assert_eq!(report.chosen().unwrap().config, of(32, 2));
    assert!(report.trials[1..].iter().all(|trial| trial.outcome == Outcome::Untimed));
    assert_eq!(
        report.to_string(),
        "axpy on cpu (CPU)\n      pruned               Config { block_size: 16, num_warps: 2 }\n\
         *    untimed               Config { block_size: 32, num_warps: 2 }\n     untimed               Config { block_size: 64, num_warps: 2 }\n"
    );
    let empty = cpu().zeros::<f32>(0).unwrap();
    let mut none = cpu().zeros::<f32>(0).unwrap();
    pruned(&empty, &mut none).grid(|config| cdiv(0, config.block_size)).launch().unwrap();
}

#[test]
fn a_launch_may_name_its_configuration() {
    let (x, mut y) = (cpu().full(1000, 3.0f32).unwrap(), cpu().zeros::<f32>(1000).unwrap());
    let ran = std::cell::Cell::new(None);
    let grid = |config: Config| {
        ran.set(Some(config));
        cdiv(1000, config.block_size)
    };
    pruned(&x, &mut y).grid(grid).launch_with(|config| config.block_size > 32).unwrap();
    assert_eq!((ran.get(), y.to_vec().unwrap()), (Some(of(64, 2)), vec![3.0; 1000]));
    pruned(&x, &mut y).grid(grid).launch_with(|_| true).unwrap();
    assert_eq!((ran.take(), y.to_vec().unwrap()), (Some(of(32, 2)), vec![6.0; 1000]), "the first one is pruned");
    let error = pruned(&x, &mut y).grid(grid).launch_with(|config| config.block_size == 16).unwrap_err().to_string();
    assert!(error.contains("Config { block_size: 16, num_warps: 2 }: pruned for these arguments"), "{error}");
    assert!(error.contains("Config { block_size: 64, num_warps: 2 }: not wanted by the launch"), "{error}");
    assert_eq!((ran.get(), y.to_vec().unwrap()), (None, vec![6.0; 1000]));
}

#[test]
fn the_cpu_passes_over_what_does_not_fit_in_a_grid() {
    static TUNER: Tuner<Config> = Tuner::new(&[of(16, 1), of(64, 1), of(32, 1)], &[]);
    let (x, mut y) = (cpu().full(40, 3.0f32).unwrap(), cpu().zeros::<f32>(40).unwrap());
    let ran = std::cell::Cell::new(0);
    let mut launch = |most: usize| {
        let grid = |config: Config| {
            ran.set(config.block_size);
            (1, if config.block_size > most { 1 } else { 1 << 20 })
        };
        tuned(&x, &mut y, &TUNER, &Rules::NONE).grid(grid).launch()
    };
    launch(16).unwrap();
    assert_eq!(ran.get(), 64, "the first that can");
    launch(0).unwrap();
    assert_eq!(ran.get(), 16);
    assert!(matches!(launch(64), Err(Error::GridTooLarge { axis: 1, .. })), "none can");
    assert_eq!(y.to_vec().unwrap()[..16], [6.0; 16]);
}

#[test]
fn a_launch_of_one_program_allocates_nothing() {
    let (x, mut y) = (cpu().zeros::<f32>(32).unwrap(), cpu().zeros::<f32>(32).unwrap());
    let mut launch = || {
        axpy::<f32, 64>(1.0, x.slice(..).unwrap(), &mut y.slice_mut(..).unwrap(), 32).grid(1).launch().unwrap();
        pruned(&x, &mut y).grid(|config| cdiv(32, config.block_size)).launch().unwrap();
    };
    launch();
    let before = allocations();
    (0..10).for_each(|_| launch());
    assert_eq!(allocations() - before, 0);
}

#[test]
fn programs_that_fit_one_thread_allocate_nothing() {
    let (x, mut y) = (cpu().zeros::<f32>(64).unwrap(), cpu().zeros::<f32>(64).unwrap());
    let mut launch = || {
        let before = allocations();
        axpy::<f32, 16>(1.0, &x, &mut y, 64).grid(4).launch().unwrap();
        allocations() - before
    };
    launch();
    // The other launches may be interrupted for so long that they use other threads, which allocates.
    assert_eq!((0..100).map(|_| launch()).min(), Some(0));
}

#[test]
fn a_launch_of_a_replay_allocates_nothing() {
    let (x, mut y) = (cpu().zeros::<f32>(64).unwrap(), cpu().zeros::<f32>(64).unwrap());
    let work = |y: &mut Tensor<f32>| (0..5).try_for_each(|_| axpy::<f32, 64>(1.0, &x, &mut *y, 64).grid(1).launch());
    let mut replay = Replay::capture(cpu().stream(), || work(&mut y)).unwrap();
    replay.launch((&x, &mut y)).unwrap();
    let before = allocations();
    (0..10).for_each(|_| replay.launch((&x, &mut y)).unwrap());
    assert_eq!(allocations() - before, 0);
    // Other tensors, or in another order, are looked at once.
    replay.launch((&mut y, &x)).unwrap();
    assert_ne!(allocations() - before, 0);
}

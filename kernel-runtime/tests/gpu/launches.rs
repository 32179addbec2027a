//! Launches: results, and every way in which one can fail.

use kernel_runtime::prelude::*;
use kernel_runtime::private::{Args, Kernel, Schedule, Variant};

use crate::Test;
use crate::allocations::allocations;
use crate::axpy::axpy;
use crate::kernels::{self, BLOCK, add};

pub(crate) const TESTS: &[Test] = &[
    ("adds_ragged_lengths", adds_ragged_lengths),
    ("a_variant_that_is_not_embedded_is_compiled", a_variant_that_is_not_embedded_is_compiled),
    ("a_checked_launch_names_the_access", a_checked_launch_names_the_access),
    ("slices_and_views_are_arguments", slices_and_views_are_arguments),
    ("every_width_of_scalar_arrives", every_width_of_scalar_arrives),
    ("large_shared_memory_is_reserved", large_shared_memory_is_reserved),
    ("the_drivers_log_is_in_the_error", the_drivers_log_is_in_the_error),
    ("a_missing_entry_is_named", a_missing_entry_is_named),
    ("code_without_its_entry_leaves_no_memory_taken", code_without_its_entry_leaves_no_memory_taken),
    ("too_much_shared_memory_is_refused", too_much_shared_memory_is_refused),
    ("a_refused_launch_names_the_kernel", a_refused_launch_names_the_kernel),
    ("an_out_of_memory_error_names_the_bytes", an_out_of_memory_error_names_the_bytes),
    ("devices_must_agree", devices_must_agree),
    ("a_launch_allocates_nothing", a_launch_allocates_nothing),
    ("many_threads_launch_one_kernel", many_threads_launch_one_kernel),
    ("a_crash_is_reported_as_earlier_work", a_crash_is_reported_as_earlier_work),
];

fn adds_ragged_lengths(device: Device) {
    for n in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 1 << 20, (1 << 20) + 3] {
        let host: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let (x, y) = (device.tensor(&host).unwrap(), device.full(n, 0.5f32).unwrap());
        let mut out = device.empty_like(&x).unwrap();
        add(&x, &y, &mut out, n).grid(cdiv(n, BLOCK)).launch().unwrap();
        assert!(out.to_vec().unwrap().iter().zip(&host).all(|(out, x)| *out == x + 0.5), "n = {n}");
    }
}

/// The GPU runs PTX that is compiled in this process, and agrees with the CPU to the bit.
fn a_variant_that_is_not_embedded_is_compiled(device: Device) {
    fn check<T: Float>(device: Device, values: &[T; 3]) {
        for n in [0, 1, 127, 1000, 100_003] {
            let host: Vec<T> = values.iter().copied().cycle().take(n).collect();
            let results = [Device::cpu(), device].map(|device| {
                let (x, mut y) = (device.tensor(&host).unwrap(), device.full(n, values[0]).unwrap());
                axpy::<T, 256>(values[1], &x, &mut y, n).grid(cdiv(n, 256)).launch().unwrap();
                y.to_vec().unwrap()
            });
            assert!(results[0] == results[1], "{} n = {n}", T::DTYPE);
        }
    }
    check(device, &[0.1f32, -2.7, 1e10]);
    check(device, &[0.1f64, -2.7, 1e10]);
    check(device, &[0.1, -2.7, 300.0].map(f16::from_f32));
    check(device, &[0.1, -2.7, 1e10].map(bf16::from_f32));
    let (x, mut y) = (device.zeros::<f32>(1).unwrap(), device.zeros::<f32>(1).unwrap());
    let error = axpy::<f32, 0>(1.0, &x, &mut y, 1).grid(1).launch().unwrap_err();
    assert!(matches!(error, Error::Compile { .. }), "{error}");
}

fn a_checked_launch_names_the_access(device: Device) {
    let (x, mut y) = (device.full(100, 1.0f32).unwrap(), device.zeros::<f32>(300).unwrap());
    axpy::<f32, 64>(1.0, &x, &mut y, 100).grid(2).checked().launch().unwrap();
    assert_eq!(y.to_vec().unwrap().iter().sum::<f32>(), 100.0);
    for stream in [device.stream().clone(), device.new_stream().unwrap()] {
        let error = axpy::<f32, 64>(1.0, &x, &mut y, 300).grid(5).on(&stream).checked().launch().unwrap_err();
        println!("{error}");
        let Error::OutOfBounds(found) = error else { panic!("{error}") };
        assert_eq!((found.op, found.parameter.as_str(), found.length), ("load", "x", 100));
        assert_eq!((found.file.as_str(), found.line, found.column), ("src/axpy.rs", 5, 13));
        assert!((100..300).contains(&found.index) && found.program_id[0] as i64 == found.index / 64, "{found:?}");
    }
}

fn slices_and_views_are_arguments(device: Device) {
    let x = device.tensor(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let mut out = device.zeros::<f32>(6).unwrap();
    add(x.slice(1..3).unwrap(), x.view().slice(2..).unwrap(), &mut out.slice_mut(3..5).unwrap(), 2).grid(1).launch().unwrap();
    assert_eq!(out.to_vec().unwrap(), [0.0, 0.0, 0.0, 5.0, 7.0, 0.0]);
    assert!(format!("{out:?}").starts_with("Tensor<f32>[6] on cuda:0 [0.0, 0.0, 0.0, 5.0"));
}

fn every_width_of_scalar_arrives(device: Device) {
    let mut out = device.zeros::<f32>(6).unwrap();
    kernels::scalars(&mut out, true, -3, 65_535, -70_000, 1.25, -2.5).grid(1).launch().unwrap();
    assert_eq!(out.to_vec().unwrap(), [1.0, -3.0, 65_535.0, -70_000.0, 1.25, -2.5]);
}

fn large_shared_memory_is_reserved(device: Device) {
    let mut out = device.zeros::<f32>(1).unwrap();
    kernels::shared(&mut out).grid(1).launch().unwrap();
    assert_eq!(out.to_vec().unwrap(), [7.0]);
}

const BROKEN: Variant = Variant {
    key: &[],
    schedule: Schedule::DEFAULT,
    target: "sm_80",
    entry: "broken",
    shared_bytes: 0,
    ptx: ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry broken() {\n    fly.to.moon %r0;\n    ret;\n}\n",
};

fn the_drivers_log_is_in_the_error(device: Device) {
    static KERNEL: Kernel = crate::trusted::kernel("broken", "", Schedule::DEFAULT, &[], &[BROKEN]);
    for _ in 0..2 {
        let launch = crate::trusted::launch::<0, 0>(Args::new(&KERNEL), []);
        let error = launch.on(device.stream()).grid(1).launch().unwrap_err();
        println!("{error}");
        let Error::Jit { kernel: "broken", log, .. } = &error else { panic!("{error}") };
        assert!(log.contains("line 5"), "{log}");
    }
}

fn a_missing_entry_is_named(device: Device) {
    static KERNEL: Kernel =
        crate::trusted::kernel("lost", "", Schedule::DEFAULT, &[], &[Variant { entry: "lost", ptx: kernels::NOTHING, ..BROKEN }]);
    let error = crate::trusted::launch::<0, 0>(Args::new(&KERNEL), []).on(device.stream()).grid(1).launch().unwrap_err();
    assert!(error.to_string().contains("no entry `lost`"), "{error}");
}

fn code_without_its_entry_leaves_no_memory_taken(device: Device) {
    static KERNEL: Kernel =
        crate::trusted::kernel("lost", "", Schedule::DEFAULT, &[], &[Variant { entry: "lost", ptx: kernels::NOTHING, ..BROKEN }]);
    let free = || {
        let refused = crate::trusted::launch::<0, 0>(Args::new(&KERNEL), []).on(device.stream()).grid(1).launch();
        assert!(matches!(refused, Err(Error::Jit { .. })));
        device.memory().unwrap().unwrap().0
    };
    let before = free();
    let mut after = before;
    for _ in 0..20 {
        after = free();
    }
    assert!(after >= before, "{before} bytes were free, and {after} are");
}

fn too_much_shared_memory_is_refused(device: Device) {
    static KERNEL: Kernel =
        crate::trusted::kernel("greedy", "", Schedule::DEFAULT, &[], &[Variant { shared_bytes: 1 << 20, ptx: kernels::NOTHING, ..BROKEN }]);
    let error = crate::trusted::launch::<0, 0>(Args::new(&KERNEL), []).on(device.stream()).grid(1).launch().unwrap_err();
    assert!(matches!(error, Error::SharedMemory { requested: 0x10_0000, .. }), "{error}");
}

fn a_refused_launch_names_the_kernel(device: Device) {
    let error = kernels::crowded().on(device.stream()).grid(1).launch().unwrap_err();
    println!("{error}");
    assert!(matches!(error, Error::LaunchRefused { kernel: "crowded", threads: 2048, .. }));
    device.synchronize().unwrap();
}

fn an_out_of_memory_error_names_the_bytes(device: Device) {
    let error = device.zeros::<u8>(1 << 45).unwrap_err();
    println!("{error}");
    assert!(matches!(error, Error::OutOfMemory { requested, .. } if requested == 1 << 45));
    let (free, total) = device.memory().unwrap().unwrap();
    assert!(0 < free && free <= total);
    device.zeros::<u8>(1 << 20).unwrap();
}

fn devices_must_agree(device: Device) {
    let (x, y) = (device.zeros::<f32>(4).unwrap(), Device::cpu().zeros::<f32>(4).unwrap());
    let mut out = device.zeros::<f32>(4).unwrap();
    let error = add(&x, &y, &mut out, 4).grid(1).launch().unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `add`: argument `y` lives on `cpu` but argument `x` lives on `cuda:0`\nhelp: move it with `y.to_device(..)`"
    );
    let error = add(&x, &x, &mut out, 4).on(Device::cpu().stream()).grid(1).launch().unwrap_err();
    assert!(error.to_string().contains("but the stream of the launch lives on `cpu`"), "{error}");
}

fn a_launch_allocates_nothing(device: Device) {
    let (x, y) = (device.zeros::<f32>(1024).unwrap(), device.zeros::<f32>(1024).unwrap());
    let mut out = device.zeros::<f32>(1024).unwrap();
    let mut launch = || add(&x, &y, &mut out.slice_mut(..512).unwrap(), 512).grid(4).launch().unwrap();
    launch();
    let before = allocations();
    (0..100).for_each(|_| launch());
    assert_eq!(allocations() - before, 0);
}

fn many_threads_launch_one_kernel(device: Device) {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                let x = device.full(1000, thread as f32).unwrap();
                for _ in 0..50 {
                    let mut out = device.empty_like(&x).unwrap();
                    add(&x, &x, &mut out, 1000).grid(cdiv(1000, BLOCK)).launch().unwrap();
                    assert_eq!(out.to_vec().unwrap(), [2.0 * thread as f32; 1000]);
                }
            });
        }
    });
}

/// Set in the process that is meant to crash its GPU context.
pub(crate) const CRASH: &str = "KERNEL_RUNTIME_TEST_CRASH";

fn a_crash_is_reported_as_earlier_work(_: Device) {
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(program).env(CRASH, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{output:?}");
}

/// A wild store, and what comes to light afterwards. Dropping what the lost device held must not panic.
pub(crate) fn crash() {
    let device = Device::cuda(0).unwrap();
    let mut out = device.zeros::<f32>(1).unwrap();
    kernels::wild(&mut out).grid(1).launch().unwrap();
    let error = out.to_vec().unwrap_err();
    assert!(matches!(error, Error::Asynchronous { .. }), "{error}");
    println!("{error}");
    assert!(matches!(device.zeros::<f32>(1), Err(Error::Asynchronous { .. })));
    println!("{out:?}");
}

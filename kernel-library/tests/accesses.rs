//! The widths of accesses, which a simulated GPU counts. This is a process of its own, because the counters are those of all launches.

use galatea::prelude::*;
use kernel_library::kernels;

/// The part of the bytes of a kernel that accesses of 16 bytes move.
fn wide_part(device: Device, kernel: &str, launch: impl FnOnce() -> Result<()>) -> f64 {
    device.reset_sim_report();
    launch().expect("the launch is right");
    let report = device.sim_report().expect("the device is simulated");
    let global = report.kernel(kernel).expect("it was launched").total().global;
    global.bytes_by_width[4] as f64 / global.bytes_by_width.iter().sum::<u64>() as f64
}

fn holds<T: Float>(device: Device) {
    // Rows that begin at multiples of 16 elements, and at others.
    for (rows, n) in [(1, 100_003), (2, 65_536), (3, 65_537)] {
        let groups = 3;
        let x = device.zeros::<T>(rows * n).unwrap();
        let (mut sums, mut largest) = (device.empty::<f32>(rows * groups).unwrap(), device.empty::<T>(rows * groups).unwrap());
        let sum = wide_part(device, "block_sum", || {
            kernels::block_sum(&x, &mut sums, n).grid(|_| (groups, rows)).launch_with(|config| config.BLOCK_SIZE == 2048)
        });
        let max = wide_part(device, "block_max", || {
            kernels::block_max(&x, &mut largest, n).grid(|_| (groups, rows)).launch_with(|config| config.BLOCK_SIZE == 2048)
        });
        let mut columns = device.empty::<i64>(rows * groups).unwrap();
        let argmax = wide_part(device, "block_argmax", || {
            let launch = kernels::block_argmax(&x, &mut largest, &mut columns, n).grid(|_| (groups, rows));
            launch.launch_with(|config| config.BLOCK_SIZE == 2048)
        });
        assert!(sum.min(max).min(argmax) > 0.95, "{} on {device}, {rows} rows of {n}: {sum}, {max}, {argmax}", T::DTYPE);
    }
    let (matrices, rows, columns) = (3, 300, 512);
    let x = device.zeros::<T>(matrices * rows * columns).unwrap();
    let (mut sums, mut largest) = (device.empty::<f32>(matrices * columns).unwrap(), device.empty::<T>(matrices * columns).unwrap());
    let sum = wide_part(device, "column_sum", || {
        kernels::column_sum(&x, &mut sums, rows, columns)
            .grid(|config| (cdiv(columns, config.BLOCK_SIZE), 1, matrices))
            .launch_with(|config| config.BLOCK_SIZE == 128)
    });
    let max = wide_part(device, "column_max", || {
        kernels::column_max(&x, &mut largest, rows, columns)
            .grid(|config| (cdiv(columns, config.BLOCK_SIZE), 1, matrices))
            .launch_with(|config| config.BLOCK_SIZE == 128)
    });
    assert!(sum > 0.95 && max > 0.95, "{} on {device}, columns: {sum}, {max}", T::DTYPE);
}

#[test]
fn loads_of_reductions_are_wide() {
    for target in [Target::SM_80, Target::SM_90A] {
        let device = Device::sim(target).unwrap();
        holds::<f32>(device);
        holds::<bf16>(device);
    }
}

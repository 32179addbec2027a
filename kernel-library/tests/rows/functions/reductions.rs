//! Sums and maxima.

use galatea::prelude::*;
use kernel_library::{Keep, column_sum, max_over, mean_over, row_argmax, row_max, row_sum, sum, sum_over};

use super::{SHAPES, agree, devices, extents, in_both_calls, of_every_type, sample};
use crate::Real;

/// The shapes of all, and one that is summed in two launches.
const OF_SUMS: [&[usize]; 5] = [SHAPES[0], SHAPES[1], SHAPES[2], SHAPES[3], &[11_003, 3]];

fn reductions<T: Real>(shapes: &[&[usize]]) {
    for device in devices() {
        for shape in shapes {
            let (n, rows, columns) = extents(shape);
            let leading = &shape[..shape.len() - 1];
            let (x, host) = sample::<T>(device, shape, 3.0);
            let row = |i: usize| host[i * columns..][..columns].iter().map(|v| v.wide());
            let size = |count: usize| 3.0 * (count as f64).sqrt();
            agree(device, &column_sum(&x).unwrap(), &[columns], size(rows), |j| {
                host.iter().skip(j).step_by(columns).map(|v| v.wide()).sum()
            });
            agree(device, &sum(&x).unwrap(), &[], size(n), |_| host.iter().map(|v| v.wide()).sum());
            // Many short rows take the simulator long, and are no other case.
            if rows < 100 {
                agree(device, &row_sum(&x).unwrap(), leading, size(columns), |i| row(i).sum());
                agree(device, &row_max(&x).unwrap(), leading, 0.0, |i| row(i).fold(f64::NEG_INFINITY, f64::max));
            }
        }
    }
}

#[test]
fn reductions_of_tensors() {
    of_every_type!(reductions, OF_SUMS);
}

/// Long rows around the threshold of two launches, and above it.
fn long_rows<T: Real>(shapes: &[&[usize]]) {
    for device in devices() {
        for shape in shapes {
            let (n, rows, columns) = extents(shape);
            let leading = &shape[..shape.len() - 1];
            let (x, host) = sample::<T>(device, shape, 3.0);
            let row = |i: usize| host[i * columns..][..columns].iter().map(|v| v.wide());
            let size = |count: usize| 3.0 * (count as f64).sqrt();
            agree(device, &in_both_calls(|| row_sum(&x)), leading, size(columns), |i| row(i).sum());
            agree(device, &in_both_calls(|| row_max(&x)), leading, 0.0, |i| row(i).fold(f64::NEG_INFINITY, f64::max));
            if rows == 1 {
                agree(device, &in_both_calls(|| sum(&x)), &[], size(n), |_| row(0).sum());
            }
        }
    }
}

#[test]
fn rows_in_two_launches() {
    long_rows::<f32>(&[&[32_767], &[1, 32_768], &[3, 40_003]]);
    long_rows::<f16>(&[&[2, 33_001]]);
    long_rows::<bf16>(&[&[2, 33_001]]);
}

/// The kernels and grids of the second call on this thread, after the first has tuned: `block_sum 2x3x1, block_sum 1x3x1`.
fn launches<T: Element>(call: impl Fn() -> Result<Tensor<T>>) -> String {
    call().expect("the first call is right");
    let profile = galatea::profile::Profile::start();
    call().expect("the second call is right");
    let trace = profile.finish();
    // Other tests launch on other threads.
    let thread = std::thread::current().name().unwrap_or_default().to_owned();
    let own = trace.launches().iter().filter(|launch| launch.thread == thread);
    own.map(|launch| format!("{} {}x{}x{}", launch.kernel, launch.grid[0], launch.grid[1], launch.grid[2])).collect::<Vec<_>>().join(", ")
}

/// Few long rows are divided into groups of at least 16,384 elements, and the rows of a matrix into groups of at least 256.
#[test]
fn launches_of_reductions() {
    for target in [Target::SM_80, Target::SM_90A] {
        let device = Device::sim(target).unwrap();
        let of = |shape: &[usize]| device.full(shape, 1.0f32).unwrap();
        let (short, long, three) = (of(&[32_767]), of(&[32_768]), of(&[3, 50_000]));
        assert_eq!(launches(|| row_sum(&short)), "row_sum 1x1x1");
        assert_eq!(launches(|| row_max(&short)), "row_max 1x1x1");
        assert_eq!(launches(|| sum(&short)), "block_sum 1x1x1");
        assert_eq!(launches(|| row_sum(&long)), "block_sum 2x1x1, block_sum 1x1x1");
        assert_eq!(launches(|| row_max(&long)), "block_max 2x1x1, row_max 1x1x1");
        assert_eq!(launches(|| sum(&long)), "block_sum 2x1x1, block_sum 1x1x1");
        assert_eq!(launches(|| row_sum(&three)), "block_sum 3x3x1, block_sum 1x3x1");
        assert_eq!(launches(|| row_max(&three)), "block_max 3x3x1, row_max 3x1x1");
        assert_eq!(launches(|| row_argmax(&short)), "row_argmax 1x1x1");
        assert_eq!(launches(|| row_argmax(&three)), "block_argmax 3x3x1, group_argmax 3x1x1");
        assert_eq!(launches(|| sum_over(&three, &[1], Keep::No)), "block_sum 3x3x1, block_sum 1x3x1");
        assert_eq!(launches(|| mean_over(&three, &[1], Keep::No)), "block_sum 3x3x1, block_sum 1x3x1, quotients 1x1x1");

        let few = of(&[2, 511, 3]);
        assert_grid(&launches(|| sum_over(&few, &[1], Keep::No)), &["column_sum x1x2"]);
        assert_grid(&launches(|| max_over(&few, &[1], Keep::No)), &["column_max x1x2"]);
        let many = of(&[2, 512, 3]);
        assert_grid(&launches(|| sum_over(&many, &[1], Keep::No)), &["column_sum x2x2", "column_sum x1x2"]);
        assert_grid(&launches(|| max_over(&many, &[1], Keep::No)), &["column_max x2x2", "column_max x1x2"]);
        // The larger extent first.
        assert_grid(&launches(|| sum_over(&of(&[5, 4, 3]), &[0, 2], Keep::No)), &["column_sum x1x1", "block_sum x4x1"]);
        assert_grid(&launches(|| sum_over(&of(&[3, 4, 5]), &[0, 2], Keep::No)), &["block_sum x12x1", "column_sum x1x1"]);
    }
}

/// Compares kernels and grids, but for the first extents of the grids, which depend on configurations.
#[track_caller]
fn assert_grid(launches: &str, expected: &[&str]) {
    let without_first = |launch: &str| {
        let (kernel, grid) = launch.split_once(' ').expect("a kernel and its grid");
        format!("{kernel} x{}", grid.split_once('x').expect("three extents").1)
    };
    assert_eq!(launches.split(", ").map(without_first).collect::<Vec<_>>(), expected);
}

/// NaN counts as `-inf`, also at the beginning of a row that is reduced in two launches.
#[test]
fn special_values_in_two_launches() {
    const N: usize = 40_003;
    for device in devices() {
        let mut host = vec![-1.0f32; 4 * N];
        host[..N].fill(f32::NAN);
        host[N] = f32::NAN;
        host[2 * N] = f32::INFINITY;
        host[4 * N - 1] = f32::NEG_INFINITY;
        let x = device.tensor_from(&host, [4, N]).unwrap();
        assert_eq!(row_max(&x).unwrap().to_vec().unwrap(), [f32::NEG_INFINITY, -1.0, f32::INFINITY, -1.0], "{device}");
        let sums = row_sum(&x).unwrap().to_vec().unwrap();
        assert!(sums[0].is_nan() && sums[1].is_nan(), "{device}: {sums:?}");
        assert_eq!(sums[2..], [f32::INFINITY, f32::NEG_INFINITY], "{device}");
    }
}

//! Launches of a kernel with a persistent entry on simulated GPUs: which entry runs, with which tensor maps.

mod blocks;
mod trusted;

use blocks::{Matrix, copy_large_blocks};
use kernel_runtime::Target;
use kernel_runtime::prelude::*;

fn hopper() -> Device {
    Device::sim(Target::SM_90A).unwrap()
}

#[test]
fn the_launch_selects_the_entry() {
    let device = hopper();
    for (shape, start, ctas) in [
        // Whole blocks, a ragged last block, few columns, and rows with a distance.
        ([64, 32, 32], 0, [0, 8]),
        ([61, 32, 32], 0, [0, 8]),
        ([17, 5, 36], 4, [0, 3]),
        ([1, 1, 4], 0, [0, 1]),
        // An address, then strides that no tensor map has.
        ([64, 32, 32], 1, [8, 0]),
        ([17, 5, 37], 0, [3, 0]),
        ([17, 5, 6], 2, [3, 0]),
    ] {
        let matrix = Matrix::new(device, shape, start, 7);
        assert_eq!(matrix.check(|out, count| matrix.copy(out, count)), ctas, "{shape:?} at {start}");
    }
}

/// A multiprocessor holds one CTA, and a simulated H200 has 132 of them.
#[test]
fn a_persistent_launch_has_as_many_ctas_as_the_device_holds() {
    for (blocks, ctas) in [(131, 131), (132, 132), (133, 132), (300, 132)] {
        let matrix = Matrix::new(hopper(), [8 * blocks - 3, 20, 20], 0, blocks);
        assert_eq!(matrix.check(|out, count| matrix.copy(out, count)), [0, ctas]);
    }
}

#[test]
fn launches_of_two_tensors_alternate() {
    let matrices = [0, 1].map(|number| Matrix::new(hopper(), [20, 32, 32], 32 * number, number));
    for matrix in matrices.iter().cycle().take(10) {
        assert_eq!(matrix.check(|out, count| matrix.copy(out, count)), [0, 3]);
    }
}

#[test]
fn a_replay_runs_the_entry_of_its_arguments() {
    let device = hopper();
    let [aligned, other, unaligned] = [0, 4, 1].map(|start| Matrix::new(device, [20, 32, 40], start, start));
    let (mut out, mut count) = (aligned.out(), device.zeros::<u32>(2).unwrap());
    let mut replay = Replay::capture(device.stream(), || aligned.copy(&mut out, &mut count)).unwrap();
    let mut ctas = [0, 0];
    for (matrix, entry) in [(&aligned, 1), (&unaligned, 0), (&other, 1), (&unaligned, 0), (&aligned, 1)] {
        replay.update(|| matrix.copy(&mut out, &mut count)).unwrap();
        replay.launch((&matrix.x, &mut out, &mut count)).unwrap();
        ctas[entry] += 3;
        assert!(out.to_vec().unwrap() == matrix.expected);
        assert_eq!(count.to_vec().unwrap(), ctas);
    }
}

#[test]
fn without_its_shared_memory_the_usual_entry_runs() {
    let matrix = Matrix::new(hopper(), [64, 32, 32], 0, 7);
    let copy = |out: &mut Tensor<f32>, count: &mut Tensor<u32>| copy_large_blocks(&matrix.x, out, count, matrix.shape).grid(8).launch();
    assert_eq!(matrix.check(copy), [8, 0]);
}

/// The kernel has one name in a report, whatever entry ran.
#[test]
fn a_report_names_the_kernel() {
    let device = hopper();
    let matrix = Matrix::new(device, [64, 32, 32], 0, 7);
    matrix.check(|out, count| matrix.copy(out, count));
    let report = device.sim_report().unwrap();
    let names: Vec<&str> = report.kernels.iter().map(|kernel| kernel.kernel).collect();
    assert_eq!(names, ["copy_blocks"]);
}

//! A kernel with a persistent entry, which takes a tensor map: the entry that the driver is asked to run, in launches and as a node of a graph, and when the driver loads it.

use std::ffi::c_void;
use std::time::Instant;

use kernel_runtime::Update;
use kernel_runtime::cudarc::driver::sys::CUresult;
use kernel_runtime::prelude::*;
use kernel_runtime::profile::Profile;

use crate::Test;
use crate::allocations::allocations;
use crate::blocks::{Matrix, copy_blocks, copy_large_blocks, unloaded, with_mistake_in_persistent_entry};
use crate::failures::{fail, forgive, of_driver};

pub(crate) const TESTS: &[Test] = &[
    ("the_launch_selects_the_entry", the_launch_selects_the_entry),
    ("a_persistent_launch_has_as_many_ctas_as_the_gpu_holds", a_persistent_launch_has_as_many_ctas_as_the_gpu_holds),
    ("a_node_of_a_graph_changes_its_entry", a_node_of_a_graph_changes_its_entry),
    ("an_entry_with_too_much_shared_memory_is_left_out", an_entry_with_too_much_shared_memory_is_left_out),
    ("a_persistent_launch_allocates_nothing", a_persistent_launch_allocates_nothing),
    ("threads_launch_persistent_entries", threads_launch_persistent_entries),
    ("a_persistent_launch_costs_little_more", a_persistent_launch_costs_little_more),
];

/// Tests of the simulated driver, which fails where it is told to, and counts.
pub(crate) const PLANTED: &[Test] = &[
    ("a_refused_tensor_map_leaves_the_usual_entry", a_refused_tensor_map_leaves_the_usual_entry),
    ("tensor_maps_are_encoded_once", tensor_maps_are_encoded_once),
    ("an_entry_is_loaded_by_its_first_launch", an_entry_is_loaded_by_its_first_launch),
    ("a_refused_tensor_map_loads_the_usual_entry_alone", a_refused_tensor_map_loads_the_usual_entry_alone),
    ("a_node_of_a_graph_loads_its_entry", a_node_of_a_graph_loads_its_entry),
    ("threads_load_an_entry_once", threads_load_an_entry_once),
    ("an_entry_that_does_not_load_is_an_error_of_its_launch", an_entry_that_does_not_load_is_an_error_of_its_launch),
    ("a_mistake_in_one_entry_leaves_the_other", a_mistake_in_one_entry_leaves_the_other),
    ("loading_is_not_part_of_the_time_of_a_launch", loading_is_not_part_of_the_time_of_a_launch),
];

fn the_launch_selects_the_entry(device: Device) {
    for (shape, start, ctas) in
        [([61, 32, 32], 0, [0, 8]), ([17, 5, 36], 4, [0, 3]), ([61, 32, 32], 1, [8, 0]), ([17, 5, 37], 0, [3, 0]), ([17, 5, 6], 2, [3, 0])]
    {
        let matrix = Matrix::new(device, shape, start, 7);
        assert_eq!(matrix.check(|out, count| matrix.copy(out, count)), ctas, "{shape:?} at {start}");
    }
}

fn a_persistent_launch_has_as_many_ctas_as_the_gpu_holds(device: Device) {
    let most = device.multiprocessors();
    for blocks in [most - 1, most + 1, 3 * most] {
        let matrix = Matrix::new(device, [8 * blocks - 3, 20, 20], 0, blocks);
        assert_eq!(matrix.check(|out, count| matrix.copy(out, count)), [0, blocks.min(most) as u32]);
    }
}

fn a_node_of_a_graph_changes_its_entry(device: Device) {
    let [aligned, other, unaligned] = [0, 4, 1].map(|start| Matrix::new(device, [20, 32, 40], start, start));
    let (mut out, mut count) = (aligned.out(), device.zeros::<u32>(2).unwrap());
    let mut replay = Replay::capture(device.stream(), || aligned.copy(&mut out, &mut count)).unwrap();
    replay.launch((&aligned.x, &mut out, &mut count)).unwrap();
    let mut ctas = [0, 3];
    for (matrix, entry) in [(&unaligned, 0), (&other, 1), (&aligned, 1), (&unaligned, 0), (&aligned, 1)] {
        assert_eq!(replay.update(|| matrix.copy(&mut out, &mut count)).unwrap(), Update::InPlace { changed: 1 });
        for _ in 0..2 {
            replay.launch((&matrix.x, &mut out, &mut count)).unwrap();
            ctas[entry] += 3;
        }
        assert!(out.to_vec().unwrap() == matrix.expected);
        assert_eq!(count.to_vec().unwrap(), ctas);
    }
}

fn an_entry_with_too_much_shared_memory_is_left_out(device: Device) {
    let matrix = Matrix::new(device, [64, 32, 32], 0, 7);
    let copy = |out: &mut Tensor<f32>, count: &mut Tensor<u32>| copy_large_blocks(&matrix.x, out, count, matrix.shape).grid(8).launch();
    assert_eq!(matrix.check(copy), [8, 0]);
}

fn a_persistent_launch_allocates_nothing(device: Device) {
    let matrices = [0, 1, 2].map(|number| Matrix::new(device, [20, 32, 32], 32 * number, number));
    let (mut out, mut count) = (matrices[0].out(), device.zeros::<u32>(2).unwrap());
    let mut launch_all = || matrices.iter().for_each(|matrix| matrix.copy(&mut out, &mut count).unwrap());
    launch_all();
    let before = allocations();
    (0..50).for_each(|_| launch_all());
    assert_eq!(allocations() - before, 0);
    assert_eq!(count.to_vec().unwrap(), [0, 51 * 9]);
}

fn threads_launch_persistent_entries(device: Device) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let matrix = Matrix::new(device, [20 + thread, 32, 32], 0, thread);
                for _ in 0..20 {
                    assert_eq!(matrix.check(|out, count| matrix.copy(out, count)), [0, 3]);
                }
            });
        }
    });
}

/// A launch of the persistent entry takes at most 0.3 us longer to queue than one of the usual entry of the same kernel.
fn a_persistent_launch_costs_little_more(device: Device) {
    let [aligned, unaligned] = [0, 1].map(|start| Matrix::new(device, [8, 32, 32], start, 7));
    let (mut out, mut count) = (aligned.out(), device.zeros::<u32>(2).unwrap());
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..51 {
        for (matrix, times) in [&unaligned, &aligned].into_iter().zip(&mut times) {
            let x = matrix.x.slice(matrix.start..).unwrap();
            device.synchronize().unwrap();
            let start = Instant::now();
            (0..200).for_each(|_| copy_blocks(x, &mut out, &mut count, matrix.shape).grid(1).launch().unwrap());
            times.push(start.elapsed().as_secs_f64() * 1e9 / 200.0);
        }
    }
    let [usual, persistent] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!("usual entry {usual:.0} ns, persistent entry {persistent:.0} ns, difference {:.0} ns", persistent - usual);
    assert!(persistent < usual + 300.0, "usual entry {usual} ns, persistent entry {persistent} ns");
}

fn a_refused_tensor_map_leaves_the_usual_entry(device: Device) {
    let [refused, later] = [5, 6].map(|number| Matrix::new(device, [20, 32, 32], 0, number));
    fail(c"cuTensorMapEncodeTiled", 0, CUresult::CUDA_ERROR_NOT_SUPPORTED);
    for _ in 0..2 {
        // The refusal is known from then on.
        assert_eq!(refused.check(|out, count| refused.copy(out, count)), [3, 0]);
    }
    forgive();
    assert_eq!(later.check(|out, count| later.copy(out, count)), [0, 3]);
}

fn tensor_maps_are_encoded_once(device: Device) {
    let matrices = [11, 12, 13, 14].map(|number| Matrix::new(device, [20, 32, 32], 0, number));
    let before = encoded();
    for matrix in matrices.iter().cycle().take(20) {
        assert_eq!(matrix.check(|out, count| matrix.copy(out, count)), [0, 3]);
    }
    assert_eq!(encoded() - before, matrices.len());
}

fn an_entry_is_loaded_by_its_first_launch(device: Device) {
    let [aligned, other, unaligned] = [0, 4, 1].map(|start| Matrix::new(device, [20, 32, 40], start, start));
    for order in [[&aligned, &other, &unaligned, &aligned, &unaligned], [&unaligned, &unaligned, &aligned, &other, &unaligned]] {
        let (kernel, before) = (unloaded(), modules());
        let loaded = order.map(|matrix| {
            let ctas = if matrix.start == 1 { [3, 0] } else { [0, 3] };
            assert_eq!(matrix.check(|out, count| matrix.copy_by(kernel, out, count)), ctas);
            modules() - before
        });
        assert_eq!(loaded, [1, 1, 2, 2, 2]);
    }
}

fn a_refused_tensor_map_loads_the_usual_entry_alone(device: Device) {
    let (kernel, matrix) = (unloaded(), Matrix::new(device, [20, 32, 32], 0, 7));
    let before = modules();
    fail(c"cuTensorMapEncodeTiled", 0, CUresult::CUDA_ERROR_NOT_SUPPORTED);
    assert_eq!(matrix.check(|out, count| matrix.copy_by(kernel, out, count)), [3, 0]);
    forgive();
    assert_eq!(modules() - before, 1);
}

fn a_node_of_a_graph_loads_its_entry(device: Device) {
    let [aligned, unaligned] = [0, 1].map(|start| Matrix::new(device, [20, 32, 40], start, start));
    let (mut out, mut count) = (aligned.out(), device.zeros::<u32>(2).unwrap());
    let (kernel, before) = (unloaded(), modules());
    let mut replay = Replay::capture(device.stream(), || aligned.copy_by(kernel, &mut out, &mut count)).unwrap();
    replay.launch((&aligned.x, &mut out, &mut count)).unwrap();
    assert_eq!((modules() - before, count.to_vec().unwrap()), (1, vec![0, 3]));
    assert!(out.to_vec().unwrap() == aligned.expected);
    // A load that fails leaves the replay as it was. An update tries to change the graph, then to make another.
    (0..2).for_each(|_| fail(c"cuModuleLoadData", 0, CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    assert!(matches!(replay.update(|| unaligned.copy_by(kernel, &mut out, &mut count)), Err(Error::Jit { .. })));
    replay.launch((&aligned.x, &mut out, &mut count)).unwrap();
    assert_eq!((modules() - before, count.to_vec().unwrap()), (1, vec![0, 6]));
    for (matrix, ctas) in [(&unaligned, [3, 6]), (&aligned, [3, 9])] {
        assert_eq!(replay.update(|| matrix.copy_by(kernel, &mut out, &mut count)).unwrap(), Update::InPlace { changed: 1 });
        replay.launch((&matrix.x, &mut out, &mut count)).unwrap();
        assert!(out.to_vec().unwrap() == matrix.expected);
        assert_eq!((modules() - before, count.to_vec().unwrap()), (2, ctas.to_vec()));
    }
}

fn threads_load_an_entry_once(device: Device) {
    let (kernel, unaligned) = (unloaded(), Matrix::new(device, [20, 32, 32], 1, 7));
    unaligned.check(|out, count| unaligned.copy_by(kernel, out, count));
    let before = modules();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                let matrix = Matrix::new(device, [20, 32, 32], 0, thread);
                assert_eq!(matrix.check(|out, count| matrix.copy_by(kernel, out, count)), [0, 3]);
            });
        }
    });
    assert_eq!(modules() - before, 1);
}

fn an_entry_that_does_not_load_is_an_error_of_its_launch(device: Device) {
    let [aligned, unaligned] = [0, 1].map(|start| Matrix::new(device, [20, 32, 40], start, start));
    for (first, second) in [(&aligned, &unaligned), (&unaligned, &aligned)] {
        let kernel = unloaded();
        let (mut out, mut count) = (aligned.out(), device.zeros::<u32>(2).unwrap());
        first.copy_by(kernel, &mut out, &mut count).unwrap();
        fail(c"cuModuleLoadData", 0, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let error = second.copy_by(kernel, &mut out, &mut count).unwrap_err();
        assert!(matches!(&error, Error::Jit { kernel: "copy_blocks", code, .. } if code == "CUDA_ERROR_OUT_OF_MEMORY"), "{error}");
        first.copy_by(kernel, &mut out, &mut count).unwrap();
        // The next launch tries again.
        second.copy_by(kernel, &mut out, &mut count).unwrap();
        assert!(out.to_vec().unwrap() == second.expected);
    }
}

fn a_mistake_in_one_entry_leaves_the_other(device: Device) {
    let [aligned, unaligned] = [0, 1].map(|start| Matrix::new(device, [20, 32, 40], start, start));
    let kernel = with_mistake_in_persistent_entry();
    assert_eq!(unaligned.check(|out, count| unaligned.copy_by(kernel, out, count)), [3, 0]);
    let (mut out, mut count) = (aligned.out(), device.zeros::<u32>(2).unwrap());
    let error = aligned.copy_by(kernel, &mut out, &mut count).unwrap_err();
    assert!(matches!(&error, Error::Jit { log, .. } if log.contains("bar.mistake")), "{error}");
}

/// The time of a launch is the distance of two events, of which the first must not be recorded before the entry is loaded.
fn loading_is_not_part_of_the_time_of_a_launch(device: Device) {
    let (kernel, matrix) = (unloaded(), Matrix::new(device, [20, 32, 40], 0, 7));
    let (mut out, mut count) = (matrix.out(), device.zeros::<u32>(2).unwrap());
    let profile = Profile::start();
    // The clock of the GPU is ready after this launch.
    matrix.copy(&mut out, &mut count).unwrap();
    device.synchronize().unwrap();
    fail(c"cuModuleLoadData", 0, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    fail(c"cuEventRecord", 0, CUresult::CUDA_ERROR_UNKNOWN);
    assert!(matches!(matrix.copy_by(kernel, &mut out, &mut count), Err(Error::Jit { .. })));
    assert!(device.stream().record().is_err(), "the launch has recorded no event");
    forgive();
    drop(profile);
}

/// How many modules the driver has loaded, and not unloaded.
fn modules() -> usize {
    type Modules = unsafe extern "C" fn(*mut usize) -> CUresult;
    // SAFETY: the simulated driver's function has this signature.
    let modules = unsafe { std::mem::transmute::<*mut c_void, Modules>(of_driver(c"simDriverModules")) };
    let mut loaded = 0;
    // SAFETY: the number can be written.
    assert_eq!(unsafe { modules(&mut loaded) }, CUresult::CUDA_SUCCESS);
    loaded
}

/// How many tensor maps the driver has encoded.
fn encoded() -> usize {
    type Encoded = unsafe extern "C" fn(*mut usize) -> CUresult;
    // SAFETY: the simulated driver's function has this signature.
    let encoded = unsafe { std::mem::transmute::<*mut c_void, Encoded>(of_driver(c"simDriverEncoded")) };
    let mut maps = 0;
    // SAFETY: the number can be written.
    assert_eq!(unsafe { encoded(&mut maps) }, CUresult::CUDA_SUCCESS);
    maps
}

//! Memory and streams of cudarc's, in both directions.

use std::sync::Arc;

use kernel_runtime::cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use kernel_runtime::prelude::*;

use crate::Test;
use crate::kernels::{BLOCK, add, slow_copy};

pub(crate) const TESTS: &[Test] = &[
    ("slices_are_arguments", slices_are_arguments),
    ("tensors_come_from_slices_and_become_slices", tensors_come_from_slices_and_become_slices),
    ("tracked_slices_stay_in_order", tracked_slices_stay_in_order),
    ("a_foreign_stream_runs_launches", a_foreign_stream_runs_launches),
    ("per_thread_streams_are_not_shared", per_thread_streams_are_not_shared),
    ("every_fill_width_is_right", every_fill_width_is_right),
    ("slices_of_our_context_are_tracked", slices_of_our_context_are_tracked),
    ("a_slice_given_away_knows_its_last_write", a_slice_given_away_knows_its_last_write),
    ("a_slice_taken_over_knows_its_last_use", a_slice_taken_over_knows_its_last_use),
];

const N: usize = 1000;

fn stream() -> Arc<CudaStream> {
    CudaContext::new(0).unwrap().new_stream().unwrap()
}

/// A slice full of a value. cudarc does not wait until the host's memory has been read.
fn upload(stream: &Arc<CudaStream>, value: f32) -> CudaSlice<f32> {
    let host = vec![value; N];
    let slice = stream.clone_htod(&host).unwrap();
    stream.synchronize().unwrap();
    slice
}

fn slices_are_arguments(device: Device) {
    for stream in [stream(), CudaContext::new(0).unwrap().default_stream()] {
        let x = upload(&stream, 1.0);
        let mut out = stream.alloc_zeros::<f32>(N).unwrap();
        add(&x, &x.slice(..), &mut out, N).grid(cdiv(N, BLOCK)).launch().unwrap();
        assert_eq!(stream.clone_dtoh(&out).unwrap(), [2.0; N]);
        add(&x, &x, &mut out.slice_mut(N / 2..), N / 2).on(device.stream()).grid(cdiv(N, BLOCK)).launch().unwrap();
        // A tensor and a slice in one launch, at home on two streams.
        let y = device.full(N, 5.0f32).unwrap();
        add(&x, &y, &mut out, N).grid(cdiv(N, BLOCK)).launch().unwrap();
        assert_eq!(stream.clone_dtoh(&out).unwrap(), [6.0; N]);
    }
}

fn tensors_come_from_slices_and_become_slices(device: Device) {
    let stream = stream();
    let slice = upload(&stream, 1.0);
    let x = Tensor::from_cuda_slice(slice).unwrap();
    assert_eq!((x.device(), x.shape(), x.stream().cuda_stream()), (device, &[N][..], Some(&stream)));
    let mut y = device.zeros::<f32>(N).unwrap();
    add(&x, &x, &mut y, N).grid(cdiv(N, BLOCK)).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0; N]);
    let slice = y.into_cuda_slice().unwrap();
    assert_eq!(slice.stream().clone_dtoh(&slice).unwrap(), [2.0; N]);
    let z = Tensor::from_cuda_slice(slice).unwrap();
    assert_eq!((z.stream(), z.to_vec().unwrap()), (device.stream(), vec![2.0; N]));
}

/// cudarc's own copies on a second stream wait for our launches on a first, and the other way round.
fn tracked_slices_stay_in_order(device: Device) {
    let context = CudaContext::new(0).unwrap();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    assert!(context.is_managing_stream_synchronization());
    let ours = Stream::from_cuda(b.clone()).unwrap();
    let x = upload(&a, 3.0);
    let mut y = a.alloc_zeros::<f32>(N).unwrap();
    for on in [&ours, device.stream()] {
        a.memset_zeros(&mut y).unwrap();
        slow_copy(&x, &mut y, 5_000_000).on(on).grid(cdiv(N, BLOCK)).launch().unwrap();
        assert_eq!(context.new_stream().unwrap().clone_dtoh(&y).unwrap(), [3.0; N]);
    }
}

fn a_foreign_stream_runs_launches(device: Device) {
    let theirs = stream();
    let ours = Stream::from_cuda(theirs.clone()).unwrap();
    assert_eq!((ours.device(), ours.cuda_stream()), (device, Some(&theirs)));
    let x = device.full(N, 3.0f32).unwrap();
    let mut y = device.zeros::<f32>(N).unwrap();
    slow_copy(&x, &mut y, 1_000_000).on(&ours).grid(cdiv(N, BLOCK)).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; N]);
}

fn per_thread_streams_are_not_shared(_: Device) {
    let stream = CudaContext::new(0).unwrap().per_thread_stream();
    assert!(matches!(Stream::from_cuda(stream.clone()), Err(Error::PerThreadStream)));
    // Launches may use it, as they are of one thread; a tensor moves home.
    let x = upload(&stream, 1.0);
    let mut out = stream.alloc_zeros::<f32>(N).unwrap();
    add(&x, &x, &mut out, N).grid(cdiv(N, BLOCK)).launch().unwrap();
    let out = Tensor::from_cuda_slice(out).unwrap();
    assert_eq!(std::thread::spawn(move || out.to_vec().unwrap()).join().unwrap(), [2.0; N]);
}

fn every_fill_width_is_right(device: Device) {
    let mut x = device.zeros::<u64>(N).unwrap();
    x.slice_mut(1..N - 1).unwrap().fill(0x0123_4567_89ab_cdef).unwrap();
    let host = x.to_vec().unwrap();
    assert_eq!((host[0], host[N - 1]), (0, 0));
    assert!(host[1..N - 1].iter().all(|&value| value == 0x0123_4567_89ab_cdef));
    let halves = device.full(N, f16::from_f32(1.5)).unwrap();
    assert_eq!(halves.slice(1..4).unwrap().to_vec().unwrap(), [f16::from_f32(1.5); 3]);
}

/// The context is handed out to safe code, which counts on cudarc to order what it does on two streams.
fn slices_of_our_context_are_tracked(device: Device) {
    let context = device.cuda_context().unwrap();
    assert!(context.is_managing_stream_synchronization());
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let x = upload(&a, 3.0);
    let mut y = a.alloc_zeros::<f32>(N).unwrap();
    a.synchronize().unwrap();
    slow_copy(&x, &mut y, 5_000_000).on(&Stream::from_cuda(a.clone()).unwrap()).grid(cdiv(N, BLOCK)).launch().unwrap();
    assert_eq!(b.clone_dtoh(&y).unwrap(), [3.0; N]);
    a.memcpy_dtod(&x, &mut y).unwrap();
    assert_eq!(b.clone_dtoh(&y).unwrap(), [3.0; N]);
}

fn a_slice_given_away_knows_its_last_write(device: Device) {
    let (home, other) = (device.new_stream().unwrap(), device.cuda_context().unwrap().new_stream().unwrap());
    let x = device.full(N, 3.0f32).unwrap();
    for on in [&home, device.stream()] {
        let mut y = device.zeros::<f32>(N).unwrap();
        y.set_stream(&home).unwrap();
        device.synchronize().unwrap();
        slow_copy(&x, &mut y, 5_000_000).on(on).grid(cdiv(N, BLOCK)).launch().unwrap();
        let slice = y.into_cuda_slice().unwrap();
        assert_eq!(other.clone_dtoh(&slice).unwrap(), [3.0; N]);
    }
}

/// The last use was on another stream than the slice's own.
fn a_slice_taken_over_knows_its_last_use(_: Device) {
    let context = CudaContext::new(0).unwrap();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let (x, mut y) = (upload(&a, 3.0), upload(&a, 1.0));
    b.memcpy_dtod(&x, &mut y).unwrap();
    let y = Tensor::from_cuda_slice(y).unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; N]);
}

//! Streams that somebody else captures into a graph: a graph would keep the addresses of memory that is only borrowed, so nothing of ours goes into one.

use std::sync::Arc;

use kernel_runtime::cudarc::driver::sys::{CUgraphInstantiate_flags as Flags, CUstreamCaptureMode as CaptureMode};
use kernel_runtime::cudarc::driver::{CudaContext, CudaStream};
use kernel_runtime::prelude::*;

use crate::Test;
use crate::kernels::{BLOCK, add, slow_copy};

pub(crate) const TESTS: &[Test] = &[
    ("nothing_is_queued_into_a_foreign_capture", nothing_is_queued_into_a_foreign_capture),
    ("memory_is_not_freed_into_a_foreign_capture", memory_is_not_freed_into_a_foreign_capture),
    ("our_streams_do_not_join_a_foreign_capture", our_streams_do_not_join_a_foreign_capture),
];

const N: usize = 300;

/// Captures a stream with nobody forbidden anything, while `work` runs; what is captured then runs twice.
fn capturing(stream: &Arc<CudaStream>, work: impl FnOnce()) {
    stream.begin_capture(CaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
    work();
    let graph = stream.end_capture(Flags(0)).unwrap().unwrap();
    for _ in 0..2 {
        graph.launch().unwrap();
        stream.synchronize().unwrap();
    }
}

fn is_refused<T>(outcome: Result<T>) {
    match outcome {
        Err(Error::StreamCaptured { .. }) => {}
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was captured"),
    }
}

fn nothing_is_queued_into_a_foreign_capture(device: Device) {
    let mine = device.new_stream().unwrap();
    let theirs = CudaContext::new(0).unwrap().new_stream().unwrap();
    for stream in [Stream::from_cuda(theirs).unwrap(), mine] {
        let raw = stream.cuda_stream().unwrap().clone();
        let x = device.full(N, 3.0f32).unwrap();
        let mut y = device.zeros::<f32>(N).unwrap();
        y.set_stream(&stream).unwrap();
        let mut graph = Replay::capture(device.stream(), || y.fill(5.0)).unwrap();
        capturing(&raw, || {
            is_refused(slow_copy(&x, &mut y, 0).grid(cdiv(N, BLOCK)).launch());
            is_refused(slow_copy(&x, &mut y, 0).on(&stream).grid(cdiv(N, BLOCK)).launch());
            is_refused(slow_copy(&x, &mut y, 0).on(device.stream()).grid(cdiv(N, BLOCK)).launch());
            is_refused(graph.launch(&mut y));
            is_refused(graph.launch_on(&stream, &mut y));
            is_refused(y.fill(7.0));
            is_refused(y.copy_from_slice(&[7.0; N]));
            is_refused(y.view_mut().copy_from(&x.view()));
            is_refused(y.to_vec());
            is_refused(y.set_stream(device.stream()));
            is_refused(stream.record());
            is_refused(stream.synchronize());
            is_refused(stream.wait_for(device.stream()));
            is_refused(device.stream().wait_for(&stream));
            let event = device.stream().record().unwrap();
            is_refused(stream.wait(&event));
        });
        assert_eq!(y.to_vec().unwrap(), [0.0; N]);
        slow_copy(&x, &mut y, 0).on(&stream).grid(cdiv(N, BLOCK)).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.0; N]);
    }
}

/// Neither into the graph, which would free it at each launch, nor while it is used, nor never.
fn memory_is_not_freed_into_a_foreign_capture(device: Device) {
    let stream = device.new_stream().unwrap();
    let raw = stream.cuda_stream().unwrap().clone();
    let free = || {
        device.synchronize().unwrap();
        device.memory().unwrap().unwrap().0
    };
    let mut x = device.full(1 << 20, 3.0f32).unwrap();
    x.set_stream(&stream).unwrap();
    let slice = device.full(N, 3.0f32).unwrap();
    let before = free();
    capturing(&raw, || drop(x));
    drop(slice);
    // The next that is made finds what was left.
    drop(device.zeros::<f32>(1).unwrap());
    if crate::kernels::is_simulated() {
        assert!(free() >= before + (4 << 20), "{before} bytes were free, and {} are", free());
    }
}

/// A slice that was written in a capture: to wait for it is to join.
fn our_streams_do_not_join_a_foreign_capture(device: Device) {
    let theirs = CudaContext::new(0).unwrap();
    let (a, b) = (theirs.new_stream().unwrap(), theirs.new_stream().unwrap());
    // SAFETY: it is written before it is read.
    let mut slice = unsafe { a.alloc::<f32>(N) }.unwrap();
    device.synchronize().unwrap();
    let (mut y, z) = (device.zeros::<f32>(N).unwrap(), device.full(N, 3.0f32).unwrap());
    let ours = device.new_stream().unwrap();
    b.begin_capture(CaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
    b.memset_zeros(&mut slice).unwrap();
    is_refused(add(&slice, &slice, &mut y, N).on(&ours).grid(cdiv(N, BLOCK)).launch());
    is_refused(Tensor::from_cuda_slice(slice));
    slow_copy(&z, &mut y, 0).on(&ours).grid(cdiv(N, BLOCK)).launch().unwrap();
    // The slice's own stream has joined, and does not come back: a driver may call that a mistake.
    let graph = b.end_capture(Flags(0));
    assert_eq!(y.to_vec().unwrap(), [3.0; N]);
    y.fill(9.0).unwrap();
    if let Ok(Some(graph)) = graph {
        graph.launch().unwrap();
        b.synchronize().unwrap();
    }
    assert_eq!(y.to_vec().unwrap(), [9.0; N]);
}

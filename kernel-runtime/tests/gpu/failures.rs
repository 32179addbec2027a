//! Calls of the driver that fail at the wrong moment. Whatever fails, work that uses borrowed memory is ordered or over when a call returns.
//!
//! The simulated driver fails where it is told to, and is lazy: what was queued and is in no order comes last.

use std::ffi::{CStr, c_char, c_void};

use kernel_runtime::cudarc::driver::sys::{self, CUresult};
use kernel_runtime::prelude::*;

use crate::Test;
use crate::allocations::allocations;
use crate::kernels::{BLOCK, add, slow_copy};

pub(crate) const TESTS: &[Test] = &[
    ("the_host_is_free_when_a_copy_returns", the_host_is_free_when_a_copy_returns),
    ("a_launch_that_cannot_be_ordered_is_over", a_launch_that_cannot_be_ordered_is_over),
    ("a_replay_that_cannot_be_ordered_is_over", a_replay_that_cannot_be_ordered_is_over),
    ("a_copy_that_cannot_be_ordered_is_over", a_copy_that_cannot_be_ordered_is_over),
    ("an_error_of_another_slice_orders_all_the_same", an_error_of_another_slice_orders_all_the_same),
    ("a_slice_whose_use_cannot_be_recorded_is_over", a_slice_whose_use_cannot_be_recorded_is_over),
    ("a_buffer_that_cannot_be_ordered_is_not_freed_early", a_buffer_that_cannot_be_ordered_is_not_freed_early),
    ("a_slice_that_cannot_be_made_is_an_error", a_slice_that_cannot_be_made_is_an_error),
    ("copies_of_a_tuning_that_fails_are_over", copies_of_a_tuning_that_fails_are_over),
    ("an_ordinary_program_makes_no_call_that_fails", an_ordinary_program_makes_no_call_that_fails),
    ("readers_are_forgotten", readers_are_forgotten),
    ("errors_of_earlier_work_are_asynchronous_errors", errors_of_earlier_work_are_asynchronous_errors),
    ("the_code_of_a_refused_launch_selects_the_message", the_code_of_a_refused_launch_selects_the_message),
    ("a_launch_on_another_stream_allocates_nothing", a_launch_on_another_stream_allocates_nothing),
];

const N: usize = 300;
const UNKNOWN: CUresult = CUresult::CUDA_ERROR_UNKNOWN;

/// A function that only the simulated driver has.
pub(crate) fn of_driver(name: &CStr) -> *mut c_void {
    let mut found = std::ptr::null_mut();
    // SAFETY: the driver is loaded, the name is terminated, and the pointer is valid for writes.
    let code = unsafe { sys::cuGetProcAddress_v2(name.as_ptr(), &mut found, 0, 0, std::ptr::null_mut()) };
    assert_eq!(code, CUresult::CUDA_SUCCESS, "{name:?}");
    found
}

/// Makes the call after the next `skipped` of a function fail.
pub(crate) fn fail(function: &CStr, skipped: u32, code: CUresult) {
    type Fail = unsafe extern "C" fn(*const c_char, u32, CUresult) -> CUresult;
    // SAFETY: the simulated driver's function has this signature.
    let plant = unsafe { std::mem::transmute::<*mut c_void, Fail>(of_driver(c"simDriverFail")) };
    // SAFETY: the name is terminated.
    assert_eq!(unsafe { plant(function.as_ptr(), skipped, code) }, CUresult::CUDA_SUCCESS);
}

pub(crate) fn forgive() {
    // SAFETY: the simulated driver's function has this signature.
    let forgive = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> CUresult>(of_driver(c"simDriverForgive")) };
    forgive();
}

/// How many streams and events there are, and how many calls have failed.
fn count() -> [usize; 3] {
    type Count = unsafe extern "C" fn(*mut usize, *mut usize, *mut usize) -> CUresult;
    // SAFETY: the simulated driver's function has this signature.
    let count = unsafe { std::mem::transmute::<*mut c_void, Count>(of_driver(c"simDriverCount")) };
    let [mut streams, mut events, mut failed] = [0; 3];
    // SAFETY: all can be written.
    assert_eq!(unsafe { count(&mut streams, &mut events, &mut failed) }, CUresult::CUDA_SUCCESS);
    [streams, events, failed]
}

/// The driver's functions that order streams. One use of memory calls each of them at most `MOST` times.
const ORDERING: [&CStr; 3] = [c"cuEventCreate", c"cuEventRecord", c"cuStreamWaitEvent"];
const MOST: u32 = 10;

/// Everything that is queued, in the order that forgives least: the other stream last.
fn settle(device: Device, other: &Stream) {
    forgive();
    // A failed call may have left an error in the context. These calls return the error, and it is ignored.
    let _ = (device.stream().synchronize(), other.synchronize(), device.synchronize());
}

fn the_host_is_free_when_a_copy_returns(device: Device) {
    for stream in [device.stream().clone(), device.new_stream().unwrap()] {
        let mut x = device.zeros::<f32>(N).unwrap();
        x.set_stream(&stream).unwrap();
        let mut host = vec![1.0; N];
        x.copy_from_slice(&host).unwrap();
        host.fill(2.0);
        assert_eq!(x.to_vec().unwrap(), [1.0; N]);
        // The memory of the host is free as well where the driver does not wait at first.
        fail(c"cuStreamSynchronize", 0, UNKNOWN);
        let outcome = x.copy_from_slice(&host);
        host.fill(3.0);
        settle(device, &stream);
        let now = x.to_vec().unwrap();
        assert!(now == [2.0; N] || outcome.is_err() && now == [1.0; N], "{outcome:?}, {}", now[0]);
    }
}

fn a_launch_that_cannot_be_ordered_is_over(device: Device) {
    let other = device.new_stream().unwrap();
    let x = device.full(N, 3.0f32).unwrap();
    let mut failed = 0;
    for function in ORDERING {
        for skipped in 0..MOST {
            let mut y = device.zeros::<f32>(N).unwrap();
            device.synchronize().unwrap();
            fail(function, skipped, UNKNOWN);
            let outcome = slow_copy(&x, &mut y, 0).on(&other).grid(cdiv(N, BLOCK)).launch();
            forgive();
            failed += usize::from(outcome.is_err());
            y.fill(9.0).unwrap();
            settle(device, &other);
            assert_eq!(y.to_vec().unwrap(), [9.0; N], "{function:?}, call {skipped}: {outcome:?}");
        }
    }
    assert!(failed >= 4, "{failed}");
    // A reader is remembered, or has read.
    let mut x = device.full(N, 3.0f32).unwrap();
    let mut y = device.zeros::<f32>(N).unwrap();
    y.set_stream(&other).unwrap();
    for function in ORDERING {
        for skipped in 0..MOST {
            x.fill(3.0).unwrap();
            y.fill(0.0).unwrap();
            device.synchronize().unwrap();
            fail(function, skipped, UNKNOWN);
            let outcome = slow_copy(&x, &mut y, 0).on(&other).grid(cdiv(N, BLOCK)).launch();
            forgive();
            x.fill(9.0).unwrap();
            // Home first: nobody waits for the reader but home itself.
            assert_eq!(x.to_vec().unwrap(), [9.0; N]);
            settle(device, &other);
            let want = if outcome.is_ok() { 3.0 } else { y.to_vec().unwrap()[0] };
            assert!(want == 0.0 || want == 3.0, "{function:?}, call {skipped}: {want}");
            assert_eq!(y.to_vec().unwrap(), [want; N], "{function:?}, call {skipped}: {outcome:?}");
        }
    }
}

fn a_replay_that_cannot_be_ordered_is_over(device: Device) {
    let other = device.new_stream().unwrap();
    let x = device.full(N, 3.0f32).unwrap();
    let mut y = device.zeros::<f32>(N).unwrap();
    let mut replay = Replay::capture(device.stream(), || slow_copy(&x, &mut y, 0).grid(cdiv(N, BLOCK)).launch()).unwrap();
    let mut failed = 0;
    for function in ORDERING {
        for skipped in 0..MOST {
            y.fill(0.0).unwrap();
            device.synchronize().unwrap();
            fail(function, skipped, UNKNOWN);
            let outcome = replay.launch_on(&other, (&x, &mut y));
            forgive();
            failed += usize::from(outcome.is_err());
            y.fill(9.0).unwrap();
            settle(device, &other);
            assert_eq!(y.to_vec().unwrap(), [9.0; N], "{function:?}, call {skipped}: {outcome:?}");
        }
    }
    assert!(failed >= 4, "{failed}");
}

fn a_copy_that_cannot_be_ordered_is_over(device: Device) {
    let other = device.new_stream().unwrap();
    let mut target = device.zeros::<f32>(N).unwrap();
    target.set_stream(&other).unwrap();
    for function in ORDERING {
        for skipped in 0..MOST {
            let mut x = device.full(N, 3.0f32).unwrap();
            target.fill(0.0).unwrap();
            device.synchronize().unwrap();
            fail(function, skipped, UNKNOWN);
            let outcome = target.view_mut().copy_from(&x.view());
            forgive();
            x.fill(9.0).unwrap();
            assert_eq!(x.to_vec().unwrap(), [9.0; N]);
            settle(device, &other);
            let now = target.to_vec().unwrap();
            assert!(now == [3.0; N] || outcome.is_err() && now == [0.0; N], "{function:?}, call {skipped}: {outcome:?}, {}", now[0]);
        }
    }
}

fn an_error_of_another_slice_orders_all_the_same(device: Device) {
    let (other, context) = (device.new_stream().unwrap(), device.cuda_context().unwrap());
    let leave_an_error = || {
        let slice = context.new_stream().unwrap().alloc_zeros::<f32>(N).unwrap();
        fail(c"cuMemFreeAsync", 0, UNKNOWN);
        drop(slice);
    };
    let (x, mut y) = (device.full(N, 3.0f32).unwrap(), device.zeros::<f32>(N).unwrap());
    leave_an_error();
    slow_copy(&x, &mut y, 0).on(&other).grid(cdiv(N, BLOCK)).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; N]);
    // It has not been lost.
    let error = other.synchronize().unwrap_err().to_string();
    assert!(error.contains("CUDA_ERROR_UNKNOWN"), "{error}");
    other.synchronize().unwrap();

    // A slice whose last write cudarc's own events know alone: an error in the launch's context keeps cudarc from waiting for it.
    let theirs = kernel_runtime::cudarc::driver::CudaContext::new(0).unwrap();
    let (a, b) = (theirs.new_stream().unwrap(), theirs.new_stream().unwrap());
    let (from, mut slice) = (b.alloc_zeros::<f32>(N).unwrap(), a.alloc_zeros::<f32>(N).unwrap());
    device.synchronize().unwrap();
    let mut from = Tensor::from_cuda_slice(from).unwrap();
    from.fill(3.0).unwrap();
    let from = from.into_cuda_slice().unwrap();
    b.memcpy_dtod(&from, &mut slice).unwrap();
    leave_an_error();
    let first = add(&slice, &slice, &mut y, N).on(&other).grid(cdiv(N, BLOCK)).launch();
    if first.is_err() {
        add(&slice, &slice, &mut y, N).on(&other).grid(cdiv(N, BLOCK)).launch().unwrap();
    }
    assert_eq!(y.to_vec().unwrap(), [6.0; N], "{first:?}");
    settle(device, &other);
}

fn a_slice_whose_use_cannot_be_recorded_is_over(device: Device) {
    let context = kernel_runtime::cudarc::driver::CudaContext::new(0).unwrap();
    let (a, b) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let ours = Stream::from_cuda(a.clone()).unwrap();
    let x = device.full(N, 3.0f32).unwrap();
    for function in [c"cuEventRecord", c"cuStreamWaitEvent"] {
        for skipped in 0..MOST {
            let mut slice = a.alloc_zeros::<f32>(N).unwrap();
            device.synchronize().unwrap();
            // On the stream of the slice, where cudarc's event alone tells its other streams.
            let launch = slow_copy(&x, &mut slice, 0).on(&ours).grid(cdiv(N, BLOCK));
            fail(function, skipped, UNKNOWN);
            let outcome = launch.launch();
            forgive();
            let now = b.clone_dtoh(&slice).or_else(|_| b.clone_dtoh(&slice)).unwrap();
            let was_queued = {
                a.synchronize().unwrap();
                b.clone_dtoh(&slice).unwrap()
            };
            assert!(now == was_queued, "{function:?}, call {skipped}: {outcome:?}, {} and then {}", now[0], was_queued[0]);
            settle(device, &ours);
        }
    }
}

fn a_buffer_that_cannot_be_ordered_is_not_freed_early(device: Device) {
    let other = device.new_stream().unwrap();
    for function in ORDERING {
        let (x, mut y) = (device.full(N, 3.0f32).unwrap(), device.zeros::<f32>(N).unwrap());
        y.set_stream(&other).unwrap();
        device.synchronize().unwrap();
        slow_copy(&x, &mut y, 0).on(&other).grid(cdiv(N, BLOCK)).launch().unwrap();
        fail(function, 0, UNKNOWN);
        drop(x);
        device.stream().synchronize().or_else(|_| device.stream().synchronize()).unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.0; N]);
        settle(device, &other);
    }
}

fn a_slice_that_cannot_be_made_is_an_error(device: Device) {
    for function in ORDERING {
        for skipped in 0..3 {
            let x = device.full(N, 3.0f32).unwrap();
            fail(function, skipped, UNKNOWN);
            if let Ok(slice) = x.into_cuda_slice() {
                assert_eq!(slice.stream().clone_dtoh(&slice).unwrap(), [3.0; N]);
            }
            settle(device, device.stream());
        }
    }
}

fn readers_are_forgotten(device: Device) {
    let x = device.full(N, 3.0f32).unwrap();
    let before = count();
    for _ in 0..300 {
        let stream = device.new_stream().unwrap();
        let mut y = device.zeros::<f32>(N).unwrap();
        y.set_stream(&stream).unwrap();
        slow_copy(&x, &mut y, 0).on(&stream).grid(cdiv(N, BLOCK)).launch().unwrap();
    }
    let after = count();
    assert!(after[0] <= before[0] + 1 && after[1] <= before[1] + 100, "{before:?}, {after:?} streams and events");
    drop(x);
}

fn a_launch_on_another_stream_allocates_nothing(device: Device) {
    let other = device.new_stream().unwrap();
    let (x, y) = (device.zeros::<f32>(N).unwrap(), device.zeros::<f32>(N).unwrap());
    let mut out = device.zeros::<f32>(N).unwrap();
    let mut launch = || {
        add(&x, &y, &mut out, N).on(&other).grid(cdiv(N, BLOCK)).launch().unwrap();
        add(&x, &y, &mut out, N).grid(cdiv(N, BLOCK)).launch().unwrap();
    };
    (0..3).for_each(|_| launch());
    // Nor does the driver make anything.
    fail(c"cuEventCreate", 0, UNKNOWN);
    let before = allocations();
    (0..100).for_each(|_| launch());
    assert_eq!(allocations() - before, 0);
    forgive();
}

/// Codes that come of earlier work, whatever call returns them.
fn errors_of_earlier_work_are_asynchronous_errors(device: Device) {
    let x = device.full(N, 3.0f32).unwrap();
    for code in [
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
        CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE,
        CUresult::CUDA_ERROR_CONTAINED,
        CUresult::CUDA_ERROR_EXTERNAL_DEVICE,
        CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK,
        CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED,
        CUresult::CUDA_ERROR_MPS_RPC_FAILURE,
    ] {
        fail(c"cuStreamSynchronize", 0, code);
        let error = x.to_vec().unwrap_err();
        assert!(matches!(error, Error::Asynchronous { .. }), "{error}");
        fail(c"cuLaunchKernel", 0, code);
        let mut out = device.zeros::<f32>(N).unwrap();
        let error = slow_copy(&x, &mut out, 0).grid(cdiv(N, BLOCK)).launch().unwrap_err();
        assert!(matches!(error, Error::Asynchronous { .. }), "{error}");
    }
    fail(c"cuStreamSynchronize", 0, CUresult::CUDA_ERROR_ILLEGAL_STATE);
    assert_eq!(x.to_vec().unwrap(), [3.0; N]);
}

fn the_code_of_a_refused_launch_selects_the_message(device: Device) {
    let x = device.full(N, 3.0f32).unwrap();
    let mut out = device.zeros::<f32>(N).unwrap();
    let mut refused = |code| {
        fail(c"cuLaunchKernel", 0, code);
        slow_copy(&x, &mut out, 0).grid(cdiv(N, BLOCK)).launch().unwrap_err().to_string()
    };
    let error = refused(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    assert!(error.contains("128 threads") && error.contains("help: use fewer warps"), "{error}");
    for code in [CUresult::CUDA_ERROR_INVALID_HANDLE, CUresult::CUDA_ERROR_INVALID_VALUE, CUresult::CUDA_ERROR_NOT_SUPPORTED] {
        let error = refused(code);
        assert!(error.starts_with("kernel `slow_copy` cannot start: `CUDA_ERROR_") && !error.contains("warps"), "{error}");
    }
}

fn copies_of_a_tuning_that_fails_are_over(device: Device) {
    crate::tuning::copies_end_with_tuning(device, |function, skipped| fail(function, skipped, UNKNOWN), forgive);
}

/// compute-sanitizer reports each call that returns an error, whatever it was asked for.
fn an_ordinary_program_makes_no_call_that_fails(device: Device) {
    let other = device.new_stream().unwrap();
    let [.., before] = count();
    let host: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let x = device.tensor(&host).unwrap();
    let mut y = device.full(N, 1u64).unwrap();
    y.copy_from_slice(&[7; N]).unwrap();
    let mut out = device.empty_like(&x).unwrap();
    for stream in [device.stream(), &other] {
        let start = stream.record().unwrap();
        add(&x, &x, &mut out, N).on(stream).grid(cdiv(N, BLOCK)).launch().unwrap();
        assert!(start.elapsed_ms(&stream.record().unwrap()).is_ok());
    }
    let mut replay = Replay::capture(device.stream(), || slow_copy(&x, &mut out, 0).grid(cdiv(N, BLOCK)).launch()).unwrap();
    replay.launch((&x, &mut out)).unwrap();
    assert_eq!(out.to_vec().unwrap(), host);
    let slice = out.try_clone().unwrap().into_cuda_slice().unwrap();
    drop((Tensor::from_cuda_slice(slice).unwrap(), replay, x, y, out));
    device.synchronize().unwrap();
    other.synchronize().unwrap();
    let [.., after] = count();
    assert_eq!(after - before, 0, "calls that failed");
}

//! Benchmarks and profiles of a real GPU: timings, the roof, and captures that a profile must not disturb.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use kernel_runtime::Dtype;
use kernel_runtime::bench::{Bound, Roof, Verdict, Work, do_bench, do_bench_paired};
use kernel_runtime::cudarc::driver::sys::{CUgraphInstantiate_flags as Flags, CUstreamCaptureMode as CaptureMode};
use kernel_runtime::prelude::*;
use kernel_runtime::profile::{Profile, span};
use serde_json::Value;

use crate::Test;
use crate::kernels::{BLOCK, add, is_simulated, slow_copy};

pub(crate) const TESTS: &[Test] = &[
    ("a_kernel_is_as_fast_as_itself", a_kernel_is_as_fast_as_itself),
    ("the_roof_is_above_what_is_reached", the_roof_is_above_what_is_reached),
    ("kernels_of_a_profile_follow_each_other", kernels_of_a_profile_follow_each_other),
    ("a_profile_leaves_captures_alone", a_profile_leaves_captures_alone),
];

/// Some milliseconds of GPU time.
const SLOW: i64 = 10_000_000;
const N: usize = 1000;

fn a_kernel_is_as_fast_as_itself(device: Device) {
    let n = 1 << if is_simulated() { 14 } else { 22 };
    let (x, y) = (device.full(n, 1.0f32).unwrap(), device.full(n, 2.0f32).unwrap());
    let out = RefCell::new(device.empty_like(&x).unwrap());
    let run = |n: usize| add(&x, &y, &mut *out.borrow_mut(), n).grid(cdiv(n, BLOCK)).launch();
    let same = do_bench_paired(&device, || run(n), || run(n)).unwrap();
    let half = do_bench_paired(&device, || run(n), || run(n / 2)).unwrap();
    println!("itself: {same}; half the work: {half}");
    assert_eq!((same.verdict(), half.verdict()), (Verdict::NoDifference, Verdict::SecondIsFaster));
    assert!(same.low > 0.97 && same.high < 1.03, "{same}");
}

fn the_roof_is_above_what_is_reached(device: Device) {
    let roof = Roof::of(&device).expect("the test is skipped where the driver tells no clocks");
    let (x, mut y) = (device.full(1 << 27, 1.0f32).unwrap(), device.empty::<f32>(1 << 27).unwrap());
    let stats = do_bench(&device, || y.view_mut().copy_from(&x.view())).unwrap();
    let reached = roof.achieved(&Work::bytes(8 << 27), &stats).unwrap();
    println!("{:.0} GB/s, {:?} TFLOP/s of f32; a copy: {reached:?}", roof.gb_per_s(), roof.tflops(Dtype::F32));
    assert!(reached.bound == Bound::Memory && reached.part > 0.5 && reached.part < 1.05, "{reached:?}");
}

fn kernels_of_a_profile_follow_each_other(device: Device) {
    let streams = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let x = device.full(N, 3.0f32).unwrap();
    let outs = [0, 1].map(|_| RefCell::new(device.zeros::<f32>(N).unwrap()));
    let copy =
        |from: &Tensor<f32>, to: usize| slow_copy(from, &mut *outs[to].borrow_mut(), SLOW).on(&streams[to]).grid(1).launch().unwrap();
    copy(&x, 0);
    device.synchronize().unwrap();

    let profile = Profile::start();
    let start = Instant::now();
    {
        let _span = span("copies");
        copy(&x, 0);
        copy(&x, 1);
        copy(&x, 0);
        // Waits for what the other stream writes: no part of its own time.
        copy(&outs[0].borrow(), 1);
    }
    device.synchronize().unwrap();
    let done = start.elapsed();
    let trace = profile.finish();

    let ran = trace.launches().iter().map(|launch| launch.ran.clone().unwrap()).collect::<Vec<_>>();
    println!("{ran:?}, done after {done:?}");
    assert_eq!(trace.launches().iter().map(|launch| launch.track).collect::<Vec<_>>(), [0, 1, 0, 1]);
    let lengths: Vec<f64> = ran.iter().map(|ran| (ran.end - ran.start).as_secs_f64()).collect();
    assert!(lengths.iter().all(|length| *length > 1e-3 && (length / lengths[0] - 1.0).abs() < 0.2), "{lengths:?}");
    assert!(ran[0].end <= ran[2].start && ran[1].end <= ran[3].start && ran[2].end <= ran[3].start + Duration::from_micros(50));
    // By the host's clock: the first began when it was launched, and the host saw the last end.
    let near = |a: Duration, b: Duration| a.abs_diff(b) < Duration::from_micros(500);
    assert!(near(ran[0].start, trace.launches()[0].enqueued.end) && near(ran[3].end, done), "{ran:?} {done:?}");
    // Before the first launch the clocks are compared.
    assert!(trace.launches()[1..].iter().all(|launch| launch.enqueued.end - launch.enqueued.start < Duration::from_millis(1)));

    let json: Value = serde_json::from_str(&trace.to_json()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let count = |key: &str, value: &str| events.iter().filter(|event| event[key] == value).count();
    assert_eq!((count("cat", "kernel"), count("ph", "s"), count("ph", "f"), count("cat", "user_annotation")), (4, 4, 4, 1));
}

fn a_profile_leaves_captures_alone(device: Device) {
    let stream = device.new_stream().unwrap();
    let (mut x, mut out) = (device.full(N, 3.0f32).unwrap(), device.zeros::<f32>(N).unwrap());
    x.set_stream(&stream).unwrap();
    out.set_stream(&stream).unwrap();
    slow_copy(&x, &mut out, 0).on(&stream).grid(cdiv(N, BLOCK)).launch().unwrap();
    out.fill(0.0).unwrap();
    device.synchronize().unwrap();

    let profile = Profile::start();
    let raw = stream.cuda_stream().unwrap().clone();
    raw.begin_capture(CaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    let refused = slow_copy(&x, &mut out, 0).on(&stream).grid(cdiv(N, BLOCK)).launch();
    // No event of the profile has gone into the capture, or made it invalid.
    let replay = raw.end_capture(Flags(0)).unwrap();
    assert!(matches!(refused, Err(Error::StreamCaptured { .. })), "{refused:?}");
    replay.iter().for_each(|replay| replay.launch().unwrap());
    stream.synchronize().unwrap();
    let trace = profile.finish();
    assert!(trace.launches().is_empty(), "{trace:?}");
    assert_eq!(out.to_vec().unwrap(), [0.0; N]);
}

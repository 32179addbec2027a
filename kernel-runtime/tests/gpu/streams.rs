//! Streams: safe code sees its writes in order, whatever streams it uses, and independent work overlaps.

use kernel_runtime::bench::do_bench;
use kernel_runtime::prelude::*;

use crate::Test;
use crate::kernels::{BLOCK, slow_copy};

pub(crate) const TESTS: &[Test] = &[
    ("a_write_elsewhere_is_seen_at_home", a_write_elsewhere_is_seen_at_home),
    ("home_waits_for_readers_before_it_writes", home_waits_for_readers_before_it_writes),
    ("memory_is_not_reused_while_it_is_read", memory_is_not_reused_while_it_is_read),
    ("a_write_on_a_third_stream_waits_for_readers", a_write_on_a_third_stream_waits_for_readers),
    ("readers_and_homes_overlap", readers_and_homes_overlap),
    ("events_time_the_gpu", events_time_the_gpu),
    ("benchmarks_see_the_bandwidth", benchmarks_see_the_bandwidth),
];

/// Some milliseconds of GPU time.
const SLOW: i64 = 10_000_000;
const N: usize = 1000;

fn copy_slowly(from: &Tensor<f32>, to: &mut Tensor<f32>, stream: &Stream) {
    slow_copy(from, to, SLOW).on(stream).grid(cdiv(N, BLOCK)).launch().unwrap();
}

fn a_write_elsewhere_is_seen_at_home(device: Device) {
    let other = device.new_stream().unwrap();
    let x = device.full(N, 3.0f32).unwrap();
    let mut y = device.zeros::<f32>(N).unwrap();
    copy_slowly(&x, &mut y, &other);
    assert_eq!(y.to_vec().unwrap(), [3.0; N]);
}

fn home_waits_for_readers_before_it_writes(device: Device) {
    let other = device.new_stream().unwrap();
    let mut x = device.full(N, 3.0f32).unwrap();
    let mut y = device.zeros::<f32>(N).unwrap();
    y.set_stream(&other).unwrap();
    copy_slowly(&x, &mut y, &other);
    x.fill(4.0).unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; N]);
    copy_slowly(&x, &mut y, &other);
    x.copy_from_slice(&[5.0; N]).unwrap();
    assert_eq!(y.to_vec().unwrap(), [4.0; N]);
}

fn memory_is_not_reused_while_it_is_read(device: Device) {
    let other = device.new_stream().unwrap();
    let mut y = device.zeros::<f32>(N).unwrap();
    y.set_stream(&other).unwrap();
    for round in 0..4 {
        let x = device.full(N, round as f32).unwrap();
        copy_slowly(&x, &mut y, &other);
        drop(x);
        // The pool would hand the same memory out again at once.
        let thief = device.full(N, -1.0f32).unwrap();
        assert_eq!(y.to_vec().unwrap(), [round as f32; N]);
        drop(thief);
    }
}

fn a_write_on_a_third_stream_waits_for_readers(device: Device) {
    let (reader, writer) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut x = device.full(N, 3.0f32).unwrap();
    let minus = device.full(N, -1.0f32).unwrap();
    let mut y = device.zeros::<f32>(N).unwrap();
    y.set_stream(&reader).unwrap();
    copy_slowly(&x, &mut y, &reader);
    slow_copy(&minus, &mut x, 0).on(&writer).grid(cdiv(N, BLOCK)).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; N]);
    assert_eq!(x.to_vec().unwrap(), [-1.0; N]);
}

/// Two slow launches that read the same tensor, each writing one at home on its own stream.
fn readers_and_homes_overlap(device: Device) {
    let streams = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let x = device.full(N, 3.0f32).unwrap();
    let mut outs = streams.each_ref().map(|stream| {
        let mut out = device.zeros::<f32>(N).unwrap();
        out.set_stream(stream).unwrap();
        out
    });
    let mut time = |count: usize| {
        device.synchronize().unwrap();
        let start = std::time::Instant::now();
        for (out, stream) in outs.iter_mut().zip(&streams).take(count) {
            copy_slowly(&x, out, stream);
        }
        device.synchronize().unwrap();
        start.elapsed().as_secs_f64() * 1e3
    };
    time(2);
    let (one, two) = (time(1), time(2));
    println!("one launch {one:.2} ms, two on two streams {two:.2} ms");
    assert!(two < 1.5 * one, "{one} ms, {two} ms");
}

fn events_time_the_gpu(device: Device) {
    let stream = device.new_stream().unwrap();
    let x = device.full(N, 3.0f32).unwrap();
    let mut y = device.zeros::<f32>(N).unwrap();
    copy_slowly(&x, &mut y, &stream);
    let start = stream.record().unwrap();
    copy_slowly(&x, &mut y, &stream);
    let end = stream.record().unwrap();
    let ms = start.elapsed_ms(&end).unwrap();
    println!("{SLOW} cycles take {ms:.3} ms");
    assert!(ms > 1.0 && end.elapsed_ms(&start).unwrap() < 0.0);
    assert!(matches!(Event::new(device).unwrap().elapsed_ms(&end), Err(Error::EventNotRecorded)));
    assert!(matches!(Event::new(Device::cpu()).unwrap().record(&stream), Err(Error::WrongDevice { .. })));
    device.stream().wait(&end).unwrap();
}

fn benchmarks_see_the_bandwidth(device: Device) {
    let mut x = device.empty::<f32>(1 << 28).unwrap();
    let stats = do_bench(&device, || x.fill(1.0)).unwrap();
    println!("{stats:?}: {:.0} GB/s", stats.gb_per_s(4 << 28));
    assert!(stats.samples > 10 && stats.p20_us <= stats.median_us && stats.gb_per_s(4 << 28) > 100.0);
}

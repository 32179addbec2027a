//! Replays as the driver runs them, launches that overlap, and launches of many threads on all GPUs.

use std::time::Instant;

use kernel_runtime::prelude::*;
use kernel_runtime::private::{Args, Kernel, Launch, PtrArg, PtrMutArg, Schedule};
use kernel_runtime::{Update, cudarc::driver::CudaContext};

use crate::Test;
use crate::allocations::allocations;
use crate::axpy::axpy;
use crate::kernels::{BLOCK, add, crowded, early_and_slow, is_simulated, nothing, slow_copy};

pub(crate) const TESTS: &[Test] = &[
    ("a_replay_is_ordered_with_all_other_uses", a_replay_is_ordered_with_all_other_uses),
    ("the_driver_changes_nodes_in_place", the_driver_changes_nodes_in_place),
    ("an_update_that_the_driver_refuses_changes_nothing", an_update_that_the_driver_refuses_changes_nothing),
    ("copies_and_fills_are_nodes", copies_and_fills_are_nodes),
    ("a_capture_disturbs_nobody", a_capture_disturbs_nobody),
    ("slices_are_captured", slices_are_captured),
    ("large_shared_memory_is_captured", large_shared_memory_is_captured),
    ("clusters_are_captured", clusters_are_captured),
    ("a_replay_that_is_dropped_while_it_runs_completes", a_replay_that_is_dropped_while_it_runs_completes),
    ("a_replay_allocates_nothing", a_replay_allocates_nothing),
    ("a_replay_costs_less_than_its_launches", a_replay_costs_less_than_its_launches),
    ("replays_of_many_threads", replays_of_many_threads),
    ("an_early_launch_waits_before_it_reads", an_early_launch_waits_before_it_reads),
    ("early_launches_cost_less_and_are_right", early_launches_cost_less_and_are_right),
];

/// Tests that want two GPUs.
pub(crate) const OF_TWO: &[Test] = &[("two_gpus_work_at_the_same_time", two_gpus_work_at_the_same_time)];

const N: usize = 1000;
/// Some milliseconds of GPU time.
const SLOW: i64 = 10_000_000;

fn full(device: Device, value: f32) -> Tensor<f32> {
    device.full(N, value).unwrap()
}

#[track_caller]
fn check(tensor: &Tensor<f32>, value: f32) {
    assert_eq!(tensor.to_vec().unwrap(), [value; N]);
}

fn plus(x: &Tensor<f32>, y: &Tensor<f32>, out: &mut Tensor<f32>) -> Result<()> {
    add(x, y, out, N).grid(cdiv(N, BLOCK)).launch()
}

fn copy_slowly(from: &Tensor<f32>, to: &mut Tensor<f32>) -> Result<()> {
    slow_copy(from, to, SLOW).grid(cdiv(N, BLOCK)).launch()
}

fn a_replay_is_ordered_with_all_other_uses(device: Device) {
    let streams = [device.new_stream().unwrap(), device.new_stream().unwrap()];
    let (mut x, mut y, mut z) = (full(device, 1.0), full(device, 0.0), full(device, 0.0));
    y.set_stream(&streams[0]).unwrap();
    let mut replay = Replay::capture(&streams[1], || {
        copy_slowly(&x, &mut y)?;
        plus(&y, &x, &mut z)
    })
    .unwrap();
    for iteration in 1..4u8 {
        // A slow write of what the replay reads, at home; the replay on a stream of its own; a write behind it, and reads.
        let value = full(device, f32::from(iteration));
        copy_slowly(&value, &mut x).unwrap();
        if iteration == 3 { replay.launch_on(&streams[0], (&x, &mut y, &mut z)) } else { replay.launch((&x, &mut y, &mut z)) }.unwrap();
        x.fill(-1.0).unwrap();
        check(&y, f32::from(iteration));
        check(&z, 2.0 * f32::from(iteration));
    }
    // Memory that a replay reads is not handed out while it runs.
    replay.launch((&x, &mut y, &mut z)).unwrap();
    drop(x);
    let thief = full(device, 9.0);
    check(&z, -2.0);
    drop(thief);
    assert!(matches!(replay.launch((&mut y, &mut z)), Err(Error::NotLent { argument: "x", .. })));
}

fn the_driver_changes_nodes_in_place(device: Device) {
    let (x, mut y, mut z) = (full(device, 1.0), full(device, 0.0), full(device, 0.0));
    let scaled = |a: f32, y: &mut Tensor<f32>, grid: usize| axpy::<f32, 64>(a, &x, y, N).grid(grid).launch();
    let grid = cdiv(N, 64);
    // `axpy` is launched for the first time in a capture: it is compiled and loaded there.
    let mut replay = Replay::capture(device.stream(), || scaled(1.0, &mut y, grid).and_then(|()| z.fill(1.0))).unwrap();
    replay.launch((&x, &mut y, &mut z)).unwrap();
    assert_eq!(replay.update(|| scaled(2.0, &mut y, grid).and_then(|()| z.fill(2.0))).unwrap(), Update::InPlace { changed: 2 });
    replay.launch((&x, &mut y, &mut z)).unwrap();
    check(&y, 3.0);
    check(&z, 2.0);
    assert_eq!(replay.update(|| scaled(5.0, &mut z, grid).and_then(|()| y.fill(7.0))).unwrap(), Update::InPlace { changed: 2 });
    replay.launch((&x, &mut y, &mut z)).unwrap();
    check(&y, 7.0);
    check(&z, 7.0);
    assert_eq!(replay.update(|| scaled(1.0, &mut z, 1).and_then(|()| y.fill(7.0))).unwrap(), Update::InPlace { changed: 1 });
    replay.launch((&x, &mut y, &mut z)).unwrap();
    let host = z.to_vec().unwrap();
    assert!(host[..64].iter().all(|&z| z == 8.0) && host[64..].iter().all(|&z| z == 7.0));
    assert_eq!(replay.update(|| scaled(1.0, &mut z, grid)).unwrap(), Update::Rebuilt);
    replay.launch((&x, &mut z)).unwrap();
    assert_eq!(z.to_vec().unwrap()[N - 1], 8.0);
}

fn an_update_that_the_driver_refuses_changes_nothing(device: Device) {
    let (x, mut y) = (full(device, 2.0), full(device, 0.0));
    let mut replay = Replay::capture(device.stream(), || axpy::<f32, 64>(1.0, &x, &mut y, N).grid(cdiv(N, 64)).launch()).unwrap();
    for iteration in 1..3u8 {
        assert!(replay.update(|| crowded().on(device.stream()).grid(1).launch()).is_err());
        replay.launch((&x, &mut y)).unwrap();
        check(&y, 2.0 * f32::from(iteration));
    }
}

fn copies_and_fills_are_nodes(device: Device) {
    fn test<T: Element>(device: Device, first: T, second: T) {
        let (mut x, mut y) = (device.zeros::<T>(N).unwrap(), device.zeros::<T>(N + 9).unwrap());
        let mut replay = None;
        for value in [first, second] {
            let work = |x: &mut Tensor<T>, y: &mut Tensor<T>| {
                x.slice_mut(3..N - 1)?.fill(value)?;
                y.slice_mut(5..N + 5)?.copy_from(&x.view())
            };
            match &mut replay {
                // Halves that differ where they did not are more nodes.
                Some(replay) => println!("{}: {:?}", T::DTYPE, Replay::update(replay, || work(&mut x, &mut y)).unwrap()),
                none => *none = Some(Replay::capture(device.stream(), || work(&mut x, &mut y)).unwrap()),
            }
            replay.as_mut().unwrap().launch((&mut x, &mut y)).unwrap();
            let want = |i: usize| if (8..N + 4).contains(&i) { value } else { T::default() };
            assert_eq!(y.to_vec().unwrap(), (0..N + 9).map(want).collect::<Vec<_>>(), "{}", T::DTYPE);
        }
    }
    test(device, -3i8, 5);
    test(device, f16::from_f32(1.5), f16::from_f32(-1.0));
    test(device, 1.5f32, -1.0);
    test(device, u64::MAX, 0x0123_4567_89ab_cdef);
    test(device, 0x0123_4567_89ab_cdefi64, -7);
}

/// Calls that are refused in a capture leave the streams and the driver as they were. Other threads may make the same calls during the capture.
fn a_capture_disturbs_nobody(device: Device) {
    let (x, mut y) = (full(device, 1.0), full(device, 0.0));
    let mut replay = Replay::capture(device.stream(), || {
        assert!(matches!(device.zeros::<f32>(N), Err(Error::InCapture { .. })));
        assert!(matches!(x.to_vec(), Err(Error::InCapture { .. })));
        assert!(matches!(device.synchronize(), Err(Error::InCapture { .. })));
        let elsewhere = std::thread::scope(|scope| scope.spawn(|| full(device, 4.0).to_vec()).join().unwrap())?;
        assert_eq!(elsewhere, [4.0; N]);
        plus(&x, &x, &mut y)
    })
    .unwrap();
    assert!(std::panic::catch_unwind(|| Replay::capture(device.stream(), || panic!("in a capture"))).is_err());
    check(&y, 0.0);
    replay.launch((&x, &mut y)).unwrap();
    check(&y, 2.0);
}

fn slices_are_captured(device: Device) {
    let stream = CudaContext::new(0).unwrap().new_stream().unwrap();
    let host = vec![3.0f32; N];
    let x = stream.clone_htod(&host).unwrap();
    // cudarc does not wait until the host's memory has been read.
    stream.synchronize().unwrap();
    let mut y = stream.alloc_zeros::<f32>(N).unwrap();
    let mut replay = Replay::capture(device.stream(), || slow_copy(&x, &mut y, SLOW).grid(cdiv(N, BLOCK)).launch()).unwrap();
    assert!(matches!(replay.launch((&x, &y)), Err(Error::NotLent { only_shared: true, .. })));
    replay.launch((&x, &mut y)).unwrap();
    assert_eq!(stream.clone_dtoh(&y).unwrap(), [3.0; N]);
}

fn large_shared_memory_is_captured(device: Device) {
    let mut out = device.zeros::<f32>(1).unwrap();
    let mut replay = Replay::capture(device.stream(), || crate::kernels::shared(&mut out).grid(1).launch()).unwrap();
    replay.launch(&mut out).unwrap();
    assert_eq!(out.to_vec().unwrap(), [7.0]);
}

fn clusters_are_captured(device: Device) {
    let mut out = device.zeros::<f32>(1).unwrap();
    static CLUSTERS: Kernel = crate::trusted::kernel("next", NEXT, Schedule { num_ctas: 4, ..Schedule::DEFAULT }, &[], &[]);
    let (x, mut y) = (full(device, 1.0), full(device, 0.0));
    let mut replay = Replay::capture(device.stream(), || next_of(&CLUSTERS, &x, &mut y, N).grid(cdiv(N, 128)).launch()).unwrap();
    replay.launch((&x, &mut y)).unwrap();
    check(&y, 2.0);
    let mut turned = || next_of(&CLUSTERS, &y, &mut out, 1).grid(1).launch();
    assert_eq!(replay.update(&mut turned).unwrap(), Update::InPlace { changed: 1 });
    replay.launch((&y, &mut out)).unwrap();
    assert_eq!(out.to_vec().unwrap(), [3.0]);
}

fn a_replay_that_is_dropped_while_it_runs_completes(device: Device) {
    let (x, mut y) = (full(device, 3.0), full(device, 0.0));
    let mut replay = Replay::capture(device.stream(), || copy_slowly(&x, &mut y)).unwrap();
    replay.launch((&x, &mut y)).unwrap();
    drop(replay);
    check(&y, 3.0);
}

const CHAIN: usize = 20;

fn chain(x: &Tensor<f32>, y: &Tensor<f32>, out: &mut Tensor<f32>) -> Result<()> {
    (0..CHAIN).try_for_each(|_| nothing(x, y, &mut *out, N).grid(8).launch())
}

/// How often `time` measures; a simulated GPU has no times.
fn samples() -> usize {
    if is_simulated() { 2 } else { 30 }
}

/// Microseconds that one call of `work` takes the host, without waiting, and to the end of the work.
fn time(device: Device, mut work: impl FnMut()) -> (f64, f64) {
    let mut best = (f64::MAX, f64::MAX);
    for _ in 0..samples() {
        device.synchronize().unwrap();
        let start = Instant::now();
        (0..10).for_each(|_| work());
        let queued = start.elapsed().as_secs_f64() * 1e5;
        device.synchronize().unwrap();
        best = (best.0.min(queued), best.1.min(start.elapsed().as_secs_f64() * 1e5));
    }
    best
}

fn a_replay_allocates_nothing(device: Device) {
    let (x, y, mut out) = (full(device, 1.0), full(device, 2.0), full(device, 0.0));
    let mut replay = Replay::capture(device.stream(), || chain(&x, &y, &mut out)).unwrap();
    replay.launch((&x, &y, &mut out)).unwrap();
    let before = allocations();
    for _ in 0..100 {
        replay.launch((&x, &y, &mut out)).unwrap();
    }
    assert_eq!(allocations() - before, 0);
}

fn a_replay_costs_less_than_its_launches(device: Device) {
    let (x, y, mut out) = (full(device, 1.0), full(device, 2.0), full(device, 0.0));
    chain(&x, &y, &mut out).unwrap();
    let launches = time(device, || chain(&x, &y, &mut out).unwrap());
    let mut replay = Replay::capture(device.stream(), || chain(&x, &y, &mut out)).unwrap();
    replay.launch((&x, &y, &mut out)).unwrap();
    let replays = time(device, || replay.launch((&x, &y, &mut out)).unwrap());
    println!(
        "{CHAIN} launches: queued in {:.2} us, done in {:.2} us; as a replay: {:.2} us, {:.2} us",
        launches.0, launches.1, replays.0, replays.1
    );
    assert!(replays.1 < launches.1);
}

fn replays_of_many_threads(device: Device) {
    std::thread::scope(|scope| {
        for thread in 0..8u8 {
            scope.spawn(move || {
                let stream = device.new_stream().unwrap();
                let (x, mut y) = (full(device, f32::from(thread)), full(device, 0.0));
                let mut replay = Replay::capture(&stream, || axpy::<f32, 32>(1.0, &x, &mut y, N).grid(cdiv(N, 32)).launch()).unwrap();
                for iteration in 0..50 {
                    match iteration % 2 {
                        0 => replay.launch((&x, &mut y)).unwrap(),
                        _ => axpy::<f32, 32>(1.0, &x, &mut y, N).grid(cdiv(N, 32)).launch().unwrap(),
                    }
                }
                check(&y, 50.0 * f32::from(thread));
            });
        }
    });
}

/// out = x + 1, in a kernel that only says that the next may begin: the compiler lets it wait.
fn next<'a>(x: impl PtrArg<'a, f32>, out: impl PtrMutArg<'a, f32>, n: usize) -> Launch<'a, 5, 0> {
    static KERNEL: Kernel = crate::trusted::kernel("next", NEXT, Schedule::DEFAULT, &[], &[]);
    next_of(&KERNEL, x, out, n)
}

const NEXT: &str = r#"
kernel @next(%x: ptr<f32>, %out: ptr_mut<f32>, %n: i64) {
    gdc_launch_dependents
    %0 = program_id {axis = 0} : i64
    %1 = const {value = 128} : i64
    %2 = mul %0, %1 : i64
    %3 = arange {start = 0, end = 128} : tile<i64, [128]>
    %4 = broadcast %2 : tile<i64, [128]>
    %5 = add %4, %3 : tile<i64, [128]>
    %6 = broadcast %n : tile<i64, [128]>
    %7 = lt %5, %6 : tile<bool, [128]>
    %8 = load %x, %5 {mask = %7} : tile<f32, [128]>
    %9 = const {value = 1.0} : tile<f32, [128]>
    %10 = add %8, %9 : tile<f32, [128]>
    store %out, %5, %10 {mask = %7}
    return
}
"#;

fn next_of<'a>(kernel: &'static Kernel, x: impl PtrArg<'a, f32>, out: impl PtrMutArg<'a, f32>, n: usize) -> Launch<'a, 5, 0> {
    let mut args = Args::new(kernel);
    args.pointer("x", x);
    args.pointer_mut("out", out);
    args.scalar(n);
    crate::trusted::launch(args, [])
}

fn an_early_launch_waits_before_it_reads(device: Device) {
    let (mut y, mut z) = (full(device, -1.0), full(device, -1.0));
    for iteration in 0..5u8 {
        let x = full(device, f32::from(iteration));
        early_and_slow(&x, &mut y, SLOW).grid(cdiv(N, BLOCK)).launch().unwrap();
        next(&y, &mut z, N).grid(cdiv(N, 128)).overlap_previous().launch().unwrap();
        // It depends on the one before through the other alone.
        next(&z, &mut y, N).grid(cdiv(N, 128)).overlap_previous().launch().unwrap();
        check(&y, f32::from(iteration) + 2.0);
        check(&z, f32::from(iteration) + 1.0);
        // The same in a replay.
        let mut replay = Replay::capture(device.stream(), || {
            early_and_slow(&x, &mut y, SLOW).grid(cdiv(N, BLOCK)).launch()?;
            next(&y, &mut z, N).grid(cdiv(N, 128)).overlap_previous().launch()?;
            next(&z, &mut y, N).grid(cdiv(N, 128)).overlap_previous().launch()
        })
        .unwrap();
        for _ in 0..2 {
            z.fill(-1.0).unwrap();
            replay.launch((&x, &mut y, &mut z)).unwrap();
            check(&y, f32::from(iteration) + 2.0);
            check(&z, f32::from(iteration) + 1.0);
        }
    }
}

fn early_launches_cost_less_and_are_right(device: Device) {
    let (mut x, mut y) = (full(device, 0.0), full(device, 0.0));
    let chain = |x: &mut Tensor<f32>, y: &mut Tensor<f32>, early: bool| {
        for _ in 0..CHAIN / 2 {
            let there = next(&*x, &mut *y, N).grid(cdiv(N, 128));
            if early { there.overlap_previous() } else { there }.launch().unwrap();
            let back = next(&*y, &mut *x, N).grid(cdiv(N, 128));
            if early { back.overlap_previous() } else { back }.launch().unwrap();
        }
    };
    chain(&mut x, &mut y, true);
    let (in_turn, early) = (time(device, || chain(&mut x, &mut y, false)), time(device, || chain(&mut x, &mut y, true)));
    let [plain, overlapping] = [false, true].map(|early| {
        let mut replay = Replay::capture(device.stream(), || {
            chain(&mut x, &mut y, early);
            Ok(())
        });
        let replay = replay.as_mut().unwrap();
        replay.launch((&mut x, &mut y)).unwrap();
        time(device, || replay.launch((&mut x, &mut y)).unwrap())
    });
    println!("{CHAIN} launches in turn: done in {:.2} us; early: {:.2} us", in_turn.1, early.1);
    println!("as replays: {:.2} us; {:.2} us", plain.1, overlapping.1);
    // Before `time`, one chain, and one in each replay; then `time` runs four times.
    check(&x, ((3 + 4 * 10 * samples()) * CHAIN) as f32);
}

fn two_gpus_work_at_the_same_time(_: Device) {
    let devices = [0, 1].map(|ordinal| Device::cuda(ordinal).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..8usize {
            let device = devices[thread % 2];
            scope.spawn(move || {
                let (x, mut y) = (full(device, 1.0), full(device, 0.0));
                let mut replay = Replay::capture(device.stream(), || plus(&x, &x, &mut y)).unwrap();
                for _ in 0..20 {
                    axpy::<f32, 128>(1.0, &x, &mut y, N).grid(cdiv(N, 128)).launch().unwrap();
                    replay.launch((&x, &mut y)).unwrap();
                }
                check(&y, 2.0);
            });
        }
    });
    let (x, mut y) = (full(devices[0], 1.0), full(devices[1], 0.0));
    assert!(matches!(plus(&x, &x, &mut y), Err(Error::DeviceMismatch { .. })));
    assert!(matches!(Replay::capture(devices[0].stream(), || y.fill(1.0)), Err(Error::WrongDevice { .. })));
    // One replay's tensors on one device; a copy between the two stays outside.
    assert!(matches!(Replay::capture(devices[1].stream(), || y.view_mut().copy_from(&x.view())), Err(Error::WrongDevice { .. })));
}

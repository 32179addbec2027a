//! Compiled kernels on a simulated GPU: bytes moved, efficiency of accesses, and the source lines of faults.

use std::time::{Duration, Instant};

use galatea::prelude::*;
use galatea::sim::FaultKind;
use galatea::{Error, Target};

#[kernel(BLOCK_SIZE = 1024)]
fn add<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let sum = load(x + offsets, mask = mask) + load(y + offsets, mask = mask);
    store(out + offsets, sum, mask = mask);
}

/// The time limit of a launch, for a laptop without a GPU. An idle machine takes far less.
const PATIENCE: Duration = Duration::from_secs(15);

#[test]
fn a_million_sums_move_twelve_bytes_each() {
    let device = Device::sim(Target::SM_90A).unwrap();
    let n = 1 << 20;
    let x = device.tensor(&(0..n).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
    let y = device.full(n, 0.5f32).unwrap();
    let mut out = device.empty_like(&x).unwrap();
    let start = Instant::now();
    add::<1024>(&x, &y, &mut out, n).grid(cdiv(n, 1024)).launch().unwrap();
    let took = start.elapsed();
    assert!(out.to_vec().unwrap().into_iter().enumerate().all(|(i, sum)| sum == i as f32 + 0.5));

    let report = device.sim_report().unwrap();
    let moved = report.kernel("add").unwrap();
    let total = moved.total();
    let n = n as u64;
    assert_eq!((moved.launches, total.global.load_bytes, total.global.store_bytes), (1, 8 * n, 4 * n), "{report}");
    assert_eq!(total.global.efficiency(), 1.0, "{report}");
    assert_eq!(total.shared.requests, 0, "{report}");
    // Of a request, each thread has 16 bytes.
    assert_eq!(total.global.requests, 12 * n / (32 * 16), "{report}");
    assert!(report.to_string().contains("tests/sim.rs"), "{report}");
    println!("{took:?}\n{report}");
    assert!(took < PATIENCE, "{took:?}");
}

#[kernel(B = 64)]
fn halve<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at, mask = at < n); // the read
    store(y + at, v * 0.5, mask = at < n);
}

#[test]
fn elements_that_nobody_wrote_are_found_on_their_line() {
    for target in [Target::SM_80, Target::SM_90A] {
        let device = Device::sim(target).unwrap();
        let (x, mut y) = (device.empty::<f32>(100).unwrap(), device.zeros::<f32>(100).unwrap());
        let error = halve::<64>(&x, &mut y, 100).grid(2).launch().unwrap_err();
        let Error::Fault(fault) = &error else { panic!("{error}") };
        let line = include_str!("sim.rs").lines().position(|line| line.ends_with("// the read")).unwrap() as u32 + 1;
        assert!(fault.file.as_deref().is_some_and(|file| file.ends_with("tests/sim.rs")), "{error}");
        assert_eq!((fault.line, fault.cta, fault.thread[0] / 32), (line, [0; 3], 0), "{error}");
        assert!(error.to_string().contains("is read before it is written\n  --> "), "{error}");
    }
}

#[kernel]
fn take(lock: PtrMut<i32>, taken: PtrMut<i32>) {
    while atomic_cas(lock + 3, 0, 1) == 1 {} // the lock
    atomic_add(taken, 1);
}

#[kernel(num_warps = 8)]
fn take_and_count(lock: PtrMut<i32>, taken: PtrMut<i32>) {
    let mut attempts = 0;
    while atomic_cas(lock + 3, 0, 1) == 1 {
        attempts += 1;
    }
    atomic_add(taken, attempts as i32);
}

#[kernel]
fn meet(flags: PtrMut<i32>) {
    let pid = program_id(0);
    while atomic_load(flags + (1 - pid)) == 0 {} // the flag
    atomic_store(flags + pid, 1);
}

/// The first line of the fault of a launch that never ends, and the source line of the fault.
#[track_caller]
fn never_ends(launch: impl FnOnce() -> galatea::Result<()>) -> (String, u32) {
    let start = Instant::now();
    let error = launch().unwrap_err();
    let Error::Fault(fault) = &error else { panic!("{error}") };
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}: {error}", start.elapsed());
    let text = error.to_string();
    (text.lines().next().unwrap_or_default().to_owned(), fault.line)
}

/// The source line that ends with this comment.
fn line_of(comment: &str) -> u32 {
    include_str!("sim.rs").lines().position(|line| line.ends_with(comment)).unwrap() as u32 + 1
}

#[test]
fn a_lock_that_nobody_frees_is_named() {
    for target in [Target::SM_80, Target::SM_90A] {
        let device = Device::sim(target).unwrap();
        for seed in [0, 5] {
            device.set_sim_seed(seed);
            let (mut lock, mut taken) = (device.tensor(&[0, 0, 0, 1]).unwrap(), device.zeros::<i32>(1).unwrap());
            let (text, line) = never_ends(|| take(&mut lock, &mut taken).grid(40).launch());
            assert_eq!(line, line_of("// the lock"), "{text}");
            let part = "each of the 40 programs from [0, 0, 0] to [39, 0, 0] asks again and again at line";
            assert!(text.contains(part) && text.contains("for element 3 of argument `lock`, which stays 1"), "{text}");
            lock.fill(0).unwrap();
            take(&mut lock, &mut taken).grid(1).launch().unwrap();
            assert_eq!(taken.to_vec().unwrap(), [1]);
        }
        device.set_sim_seed(0);
    }
    // The attempts that it counts are stored only behind the loop.
    let device = Device::sim(Target::SM_90A).unwrap();
    let (mut lock, mut taken) = (device.tensor(&[0, 0, 0, 1]).unwrap(), device.zeros::<i32>(1).unwrap());
    let (text, _) = never_ends(|| take_and_count(&mut lock, &mut taken).grid(3).launch());
    assert!(text.contains("for element 3 of argument `lock`, which stays 1"), "{text}");
}

#[test]
fn programs_that_wait_for_each_other_are_named() {
    for target in [Target::SM_80, Target::SM_90A] {
        let device = Device::sim(target).unwrap();
        let mut flags = device.zeros::<i32>(2).unwrap();
        let (text, line) = never_ends(|| meet(&mut flags).grid(2).launch());
        assert_eq!(line, line_of("// the flag"), "{text}");
        for (program, element) in [(0, 1), (1, 0)] {
            assert!(text.contains(&format!("program [{program}, 0, 0] asks again and again at line {line}")), "{text}");
            assert!(text.contains(&format!("for element {element} of argument `flags`, which stays 0")), "{text}");
        }
    }
}

#[kernel(B = 64)]
fn overlapping<const B: usize>(y: PtrMut<f32>, step: usize) {
    let at = program_id(0) * step + arange(0, B);
    store(y + at, full::<f32>([B], 1.0)); // the same element
}

#[test]
fn two_programs_that_write_one_element_race() {
    let device = Device::sim(Target::SM_80).unwrap();
    let mut y = device.zeros::<f32>(256).unwrap();
    overlapping::<64>(&mut y, 64).grid(4).launch().unwrap();
    let error = overlapping::<64>(&mut y, 60).grid(3).launch().unwrap_err();
    let Error::Fault(fault) = &error else { panic!("{error}") };
    let FaultKind::GlobalRace { element, element_bytes, other_cta, other_line, .. } = &fault.kind else { panic!("{error}") };
    let line = line_of("// the same element");
    assert_eq!((fault.line, *other_line, fault.cta, *other_cta), (line, line, [1, 0, 0], [0; 3]), "{error}");
    assert_eq!(element * u64::from(*element_bytes), 240, "{error}");

    device.allow_sim_races(true);
    let outcome = overlapping::<64>(&mut y, 60).grid(3).launch();
    device.allow_sim_races(false);
    outcome.unwrap();
}

#[kernel(B = 128)]
fn locked_sum<const B: usize>(lock: PtrMut<i32>, y: PtrMut<i32>) {
    let at = arange(0, B);
    while atomic_cas(lock, 0, 1, sem = "acquire") == 1 {}
    store(y + at, load(y + at) + 1);
    atomic_xchg(lock, 0, sem = "release");
}

#[kernel(B = 128)]
fn loosely_locked_sum<const B: usize>(lock: PtrMut<i32>, y: PtrMut<i32>) {
    let at = arange(0, B);
    while atomic_cas(lock, 0, 1, sem = "relaxed") == 1 {}
    store(y + at, load(y + at) + 1);
    atomic_xchg(lock, 0, sem = "relaxed");
}

#[test]
fn a_lock_orders_if_it_acquires_and_releases() {
    for target in [Target::SM_80, Target::SM_90A] {
        let device = Device::sim(target).unwrap();
        let (mut lock, mut y) = (device.zeros::<i32>(1).unwrap(), device.zeros::<i32>(128).unwrap());
        locked_sum::<128>(&mut lock, &mut y).grid(50).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [50; 128]);
        let error = loosely_locked_sum::<128>(&mut lock, &mut y).grid(50).launch().unwrap_err();
        assert!(matches!(&error, Error::Fault(fault) if matches!(fault.kind, FaultKind::GlobalRace { .. })), "{error}");
    }
}

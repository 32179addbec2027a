//! `device_print!`: every line, in order, on every device.

use galatea::prelude::*;
use galatea::{Error, capture_prints};

use crate::lab::Lab;
use crate::tests;
use crate::value::Value;

tests![
    elements<bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, f8e4m3, f8e5m2>,
    blocks,
    control_flow,
    functions,
    overflow,
    nothing,
    beside_mistakes,
    trusted_indices,
];

/// The line of a `device_print!`: so many below the beginning of the kernel's item, which the caller names.
fn prefix(line: u32) -> String {
    format!("{}:{line}: program", file!())
}

/// Runs a launch that works; its lines.
#[track_caller]
fn lines(launch: impl FnOnce() -> galatea::Result<()>) -> Vec<String> {
    let (result, lines) = capture_prints(launch);
    result.unwrap();
    lines
}

const ELEMENTS: u32 = line!() + 5;
#[kernel(B = 32)]
fn print_elements<T: Element, const B: usize>(x: Ptr<T>, scale: f32) {
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at);
    device_print!("x[{at}] = {}, {{{v:x}}}, {scale}", v);
}

fn elements<T: Value>(lab: &mut Lab) {
    let programs = 5;
    let host = lab.values::<T>(32 * programs);
    let x = lab.input(&host);
    let got = lines(|| print_elements::<T, 32>(x.slice(), 1.1).grid(programs).launch());
    let want: Vec<String> = (0..host.len())
        .map(|i| {
            let bits = host[i].bits();
            let digits = 2 * size_of::<T>();
            // One digit shows a boolean.
            let digits = if size_of::<T>() == 1 && T::DTYPE.bits() == 1 { 1 } else { digits };
            format!(
                "{} ({}, 0, 0), element [{}]: x[{i}] = {:?}, {{{bits:#0width$x}}}, 1.1",
                prefix(ELEMENTS),
                i / 32,
                i % 32,
                host[i],
                width = digits + 2
            )
        })
        .collect();
    assert_eq!(got, want);
}

const BLOCKS: u32 = line!() + 5;
#[kernel(M = 3, N = 5)]
fn print_blocks<const M: usize, const N: usize>(x: Ptr<i64>) {
    let (rows, columns) = (arange(0, M), arange(0, N));
    let at = rows[(.., None)] * 10 + columns[(None, ..)];
    let sums = at + load(x) * (program_id(0) + 10 * program_id(1) + 100 * program_id(2));
    device_print!("{sums}");
    device_print!("{}, {}", rows[(.., None)], columns[(None, ..)] as f32);
}

fn blocks(lab: &mut Lab) {
    let x = lab.input(&[1000i64]);
    let got = lines(|| print_blocks::<3, 5>(x.slice()).grid((2, 1, 2)).launch());
    let mut want = Vec::new();
    for (z, x) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let line = |below: u32, i: i64, j: i64| format!("{} ({x}, 0, {z}), element [{i}, {j}]: ", prefix(BLOCKS + below));
        let cells = || (0..3).flat_map(|i| (0..5).map(move |j| (i, j)));
        want.extend(cells().map(|(i, j)| format!("{}{}", line(1, i, j), 10 * i + j + 1000 * (x + 100 * z))));
        want.extend(cells().map(|(i, j)| format!("{}{i}, {j}.0", line(2, i, j))));
    }
    assert_eq!(got, want);
}

const CONTROL_FLOW: u32 = line!() + 3;
#[kernel(N = 4, DEBUG = [true, false])]
fn print_control_flow<const N: usize, const DEBUG: bool>(x: Ptr<i32>, y: PtrMut<i32>) {
    device_print!("program {}", program_id(0));
    let mut sum = zeros::<i32>([N]);
    for i in 0..3 {
        sum += load(x + arange(0, N)) * (i as i32);
        if i > 0 {
            device_print!("after {i}: {sum}");
        }
    }
    if DEBUG {
        let mut left = load(x);
        while left > 0 {
            device_print!("{left} left");
            left -= 2;
        }
    }
    store(y + program_id(0) * N + arange(0, N), sum);
}

fn control_flow(lab: &mut Lab) {
    let host = [5, 6, 7, 8];
    let x = lab.input(&host);
    for is_debug in [true, false] {
        let mut y = lab.output::<i32>(12);
        let got = lines(|| match is_debug {
            true => print_control_flow::<4, true>(x.slice(), &mut y.slice()).grid(3).launch(),
            false => print_control_flow::<4, false>(x.slice(), &mut y.slice()).grid(3).launch(),
        });
        let mut want = Vec::new();
        for program in 0..3 {
            let line = |below: u32| format!("{} ({program}, 0, 0)", prefix(CONTROL_FLOW + below));
            want.push(format!("{}: program {program}", line(0)));
            for (i, factor) in [(1, 1), (2, 3)] {
                want.extend((0..4).map(|j| format!("{}, element [{j}]: after {i}: {}", line(5), host[j] * factor)));
            }
            if is_debug {
                want.extend([5, 3, 1].map(|left| format!("{}: {left} left", line(11))));
            }
        }
        assert_eq!(got, want);
        assert_eq!(y.read(), [host.map(|x| 3 * x); 3].concat());
    }
}

const FUNCTION: u32 = line!() + 3;
#[device]
fn traced<T: Float>(x: Value<T>) -> Value<T> {
    device_print!("tracing {x}");
    x * 2.0
}

#[kernel(N = 2)]
fn print_functions<const N: usize>(x: Ptr<f16>, y: PtrMut<f16>) {
    store(y + arange(0, N), traced(load(x + arange(0, N))));
    store(y + N, traced(load(x + N)));
}

fn functions(lab: &mut Lab) {
    let x = lab.input(&[1.5, -2.0, 0.1].map(f16::from_f32));
    let mut y = lab.output::<f16>(3);
    let got = lines(|| print_functions::<2>(x.slice(), &mut y.slice()).grid(1).launch());
    let at = format!("{} (0, 0, 0)", prefix(FUNCTION));
    let third = format!("{at}: tracing {}", f16::from_f32(0.1));
    assert_eq!(got, [format!("{at}, element [0]: tracing 1.5"), format!("{at}, element [1]: tracing -2.0"), third]);
    assert_eq!(y.read(), [3.0, -4.0, 0.2].map(f16::from_f32));
}

const OVERFLOW: u32 = line!() + 4;
#[kernel(N = 1000)]
fn print_much<const N: usize>(x: Ptr<i32>, y: PtrMut<i32>) {
    let v = load(x + arange(0, N));
    device_print!("{v}");
    store(y + program_id(0), 1);
}

/// A record of 1000 elements takes 1006 words. What is beside the buffer is the simulator's to watch.
fn overflow(lab: &mut Lab) {
    let host: Vec<i32> = (0..1000).collect();
    let (x, mut y) = (lab.input(&host), lab.output::<i32>(200));
    let got = lines(|| print_much::<1000>(x.slice(), &mut y.slice()).grid(200).launch());
    let fitting = ((1 << 17) - 1) / 1006;
    let (said, got) = got.split_last().unwrap();
    assert_eq!(*said, format!("`print_much` printed {} bytes more than the 1048576 that there is room for", (200 - fitting) * 1006 * 8));
    assert_eq!(got.len(), fitting * 1000);
    for (line, at) in got.iter().zip((0..1000).cycle()) {
        assert!(line.starts_with(&prefix(OVERFLOW)) && line.ends_with(&format!(", element [{at}]: {at}")), "{line}");
    }
    assert_eq!(y.read(), [1; 200], "the launch goes on");
}

#[kernel(LOUD = [true, false])]
fn print_rarely<const LOUD: bool>(y: PtrMut<i32>) {
    if LOUD {
        device_print!("y");
    }
    if program_id(0) == 0 {
        store(y, 1);
    }
}

fn nothing(lab: &mut Lab) {
    let mut y = lab.output::<i32>(1);
    assert_eq!(lines(|| print_rarely::<false>(&mut y.slice()).grid(1).launch()).len(), 0);
    assert_eq!(lines(|| print_rarely::<true>(&mut y.slice()).grid(0).launch()).len(), 0);
    assert_eq!(lines(|| print_rarely::<true>(&mut y.slice()).grid(3).launch()).len(), 3);
    assert_eq!(y.read(), [1]);
}

#[kernel(N = 8)]
fn print_beside_mistakes<const N: usize>(y: PtrMut<i32>, n: usize) {
    let at = arange(0, N);
    device_print!("before");
    device_assert!(n < 7, "n is too large");
    store(y + at, at as i32, mask = at < n);
}

/// A checked launch looks at the user's accesses, and says what was printed before it stopped.
fn beside_mistakes(lab: &mut Lab) {
    for (n, expected) in [(4, None), (6, Some("store")), (7, Some("assert"))] {
        let mut y = lab.output::<i32>(5);
        let (result, lines) = capture_prints(|| print_beside_mistakes::<8>(&mut y.slice(), n).grid(1).checked().launch());
        let found = match result {
            Ok(()) => None,
            Err(Error::OutOfBounds(found)) => Some(found.op),
            Err(Error::AssertionFailed(_)) => Some("assert"),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(found, expected);
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}

#[kernel(unchecked, N = 1024)]
fn print_trusted<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = program_id(0) * N + arange(0, N);
    let v = load(x + at);
    store(y + at, v);
    device_print!("{v}");
}

/// Also where the user's indices are trusted, no printing leaves its buffer.
fn trusted_indices(lab: &mut Lab) {
    let n = 1024 * 140;
    let host = lab.values::<f32>(n);
    let (x, mut y) = (lab.input(&host), lab.output::<f32>(n));
    let mut to = y.slice();
    // SAFETY: there are as many elements as the programs touch.
    let got = lines(|| unsafe { print_trusted::<1024>(x.slice(), &mut to) }.grid(140).launch());
    assert_eq!(got.len(), ((1 << 17) - 1) / 1030 * 1024 + 1);
    for (i, got) in y.read().into_iter().enumerate() {
        assert_eq!(got.to_bits(), host[i].to_bits());
    }
}

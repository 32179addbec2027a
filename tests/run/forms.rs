//! Forms of Rust in a kernel's body: closures with names, `match`, `loop`, `const`, inclusive ranges, infinities of any type.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits};
use crate::value::FloatValue;

tests![bilinear<f16, bf16, f32>, pieces, collatz, thirds, window_maxima<f16, bf16, f32, f64>];

/// Four neighbours of each point, read by a closure that sees the pointer, the row length and the mask.
#[kernel]
fn bilinear_kernel<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, height: usize, width: usize, down: f32, right: f32) {
    let point = program_id(0) * N + arange(0, N);
    let mask = point < height * width;
    let (row, column) = (point / width, point % width);
    let at = |row, column| load(x + min(row, height - 1) * width + min(column, width - 1), mask = mask) as f32;
    let between = |a, b, part| a + (b - a) * part;
    let top = between(at(row, column), at(row, column + 1), right);
    let bottom = between(at(row + 1, column), at(row + 1, column + 1), right);
    store(y + point, between(top, bottom, down) as T, mask = mask);
}

fn bilinear<T: FloatValue>(lab: &mut Lab) {
    for (height, width) in [(1, 1), (7, 1), (1, 7), (31, 33), (17, 61)] {
        let host = lab.numbers::<T>(height * width, 1.0, 8.0);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(host.len());
        let grid = cdiv(host.len(), 64);
        bilinear_kernel::<T, 64>(x.slice(), &mut y.slice(), height, width, 0.25, 0.75).grid(grid).launch().unwrap();
        let at = |row: usize, column: usize| host[row.min(height - 1) * width + column.min(width - 1)].wide();
        check(&y.read(), Class::Chain(16), |i| {
            let (row, column) = (i / width, i % width);
            let top = at(row, column) * 0.25 + at(row, column + 1) * 0.75;
            let bottom = at(row + 1, column) * 0.25 + at(row + 1, column + 1) * 0.75;
            top * 0.75 + bottom * 0.25
        });
    }
}

/// Branches on the program id, on a constant and on a flag.
#[kernel]
fn pieces_kernel<const MODE: usize>(x: Ptr<i32>, y: PtrMut<i32>, on: bool) {
    const SIZE: usize = 32;
    const STEP: i32 = 3;
    let at = program_id(0) * SIZE + arange(0, SIZE);
    let v = load(x + at);
    let r = match program_id(0) {
        0 => v + 1,
        1 | 2 => match MODE {
            0 => v * 2,
            1 => -v,
            _ => v ^ 5,
        },
        3..=5 => {
            let twice = v * 2;
            twice - STEP
        }
        7.. if on => v % 7,
        MODE => v + 100,
        odd if odd % 2 == 1 => v + odd as i32,
        other => v - other as i32,
    };
    match on {
        true => store(y + at, r),
        false => {
            if program_id(0) == 9 {
                return;
            }
            store(y + at, -r);
        }
    }
}

fn pieces(lab: &mut Lab) {
    let host: Vec<i32> = (0..320).map(|i| i * 7919 % 1000 - 500).collect();
    let x = lab.input(&host);
    for mode in [0, 1, 6] {
        for on in [true, false] {
            let mut y = lab.output::<i32>(host.len());
            let before = y.read();
            match mode {
                0 => pieces_kernel::<0>(x.slice(), &mut y.slice(), on).grid(10).launch().unwrap(),
                1 => pieces_kernel::<1>(x.slice(), &mut y.slice(), on).grid(10).launch().unwrap(),
                _ => pieces_kernel::<6>(x.slice(), &mut y.slice(), on).grid(10).launch().unwrap(),
            }
            check_bits(&y.read(), |i| {
                let (v, program) = (host[i], i / 32);
                let r = match (program, mode) {
                    (0, _) => v + 1,
                    (1 | 2, 0) => v * 2,
                    (1 | 2, 1) => -v,
                    (1 | 2, _) => v ^ 5,
                    (3..=5, _) => v * 2 - 3,
                    (7.., _) if on => v % 7,
                    (6, 6) => v + 100,
                    (7 | 9, _) => v + program as i32,
                    _ => v - program as i32,
                };
                if on {
                    r
                } else if program == 9 {
                    before[i]
                } else {
                    -r
                }
            });
        }
    }
}

/// How many steps to 1, of every number; a program takes one.
#[kernel]
fn collatz_kernel(steps: PtrMut<i32>, limit: i32) {
    let mut n = program_id(0) + 1;
    let mut count = 0i32;
    loop {
        if n == 1 {
            break;
        }
        count += 1;
        if count > limit {
            return;
        }
        n = match n % 2 {
            0 => n / 2,
            _ => 3 * n + 1,
        };
    }
    store(steps + program_id(0), count);
}

fn collatz(lab: &mut Lab) {
    let mut y = lab.output::<i32>(100);
    let before = y.read();
    collatz_kernel(&mut y.slice(), 60).grid(100).launch().unwrap();
    check_bits(&y.read(), |i| {
        let (mut n, mut count) = (i + 1, 0);
        while n != 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            count += 1;
        }
        if count > 60 { before[i] } else { count }
    });
}

/// A range that has its end in it, empty ones too.
#[kernel]
fn thirds_kernel(y: PtrMut<i64>, last: i64) {
    let from = program_id(0);
    let mut total = 0i64;
    for i in (from..=last).step_by(3) {
        total += i;
    }
    store(y + from, total);
}

fn thirds(lab: &mut Lab) {
    let mut y = lab.output::<i64>(20);
    thirds_kernel(&mut y.slice(), 15).grid(20).launch().unwrap();
    check_bits(&y.read(), |i| (i as i64..=15).step_by(3).sum());
}

/// The largest of each element and its two neighbours; what is missing is minus infinity in the type of the elements.
#[kernel]
fn window_maxima_kernel<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    let mut largest = full::<T>([N], f32::NEG_INFINITY);
    for shift in -1..=1 {
        let from = at + shift;
        largest = max(largest, load(x + from, mask = from >= 0 && from < n, other = f32::NEG_INFINITY));
    }
    let v = select(largest == T::INFINITY, f64::NAN, largest);
    store(y + at, max(v, T::NEG_INFINITY), mask = at < n);
}

fn window_maxima<T: FloatValue>(lab: &mut Lab) {
    for n in [1, 7, 1000, 1023] {
        let host = lab.numbers::<T>(n, -8.0, -1.0);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(n);
        window_maxima_kernel::<T, 64>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
        check_bits(&y.read(), |i| {
            let neighbours = i.saturating_sub(1)..=(i + 1).min(n - 1);
            neighbours.map(|j| host[j]).reduce(|a, b| if b.wide() > a.wide() { b } else { a }).unwrap()
        });
    }
}

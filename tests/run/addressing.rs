//! Addressing: any alignment, indices beyond either end, loaded indices, strides.

use galatea::prelude::*;

use crate::lab::{Lab, SIZES};
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::Value;

tests![
    copies<bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64>,
    copies_at_every_offset<bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64>,
    lengths_inside_the_tensor<bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64>,
    lengths_beyond_the_tensor<bool, u8, f16, f32, f64>,
    shifted_by_a_distance,
    gathers<u8, bf16, f32, i64>,
    scatters<u8, bf16, f32, i64>,
    strided,
    transposed,
    elements_of_two_sizes_are_stored_by_whole_sectors,
];

/// A step with momentum: weights of 16 bits, moments of 32.
#[kernel]
fn momentum(w: PtrMut<bf16>, m: PtrMut<f32>, v: PtrMut<f32>, n: usize) {
    let at = program_id(0) * 1024 + arange(0, 1024);
    let mask = at < n;
    let x = load(w + at, mask = mask) as f32;
    let first = load(m + at, mask = mask) * 0.5 + x;
    let second = load(v + at, mask = mask) * 0.5 + x * x;
    store(m + at, first, mask = mask);
    store(v + at, second, mask = mask);
    store(w + at, (x - first * 0.25) as bf16, mask = mask);
}

fn elements_of_two_sizes_are_stored_by_whole_sectors(lab: &mut Lab) {
    const N: usize = 4096;
    let w = lab.numbers::<bf16>(N, 0.0, 4.0);
    let (m, v) = (lab.numbers::<f32>(N, 0.0, 4.0), lab.numbers::<f32>(N, 0.0, 4.0));
    let (mut w_out, mut m_out, mut v_out) = (lab.in_place_at(&w, 0), lab.in_place_at(&m, 0), lab.in_place_at(&v, 0));
    momentum(&mut w_out.slice(), &mut m_out.slice(), &mut v_out.slice(), N).grid(N / 1024).launch().unwrap();
    check_bits(&m_out.read(), |i| m[i] * 0.5 + w[i].to_f32());
    check_bits(&v_out.read(), |i| v[i] * 0.5 + w[i].to_f32() * w[i].to_f32());
    check_bits(&w_out.read(), |i| bf16::from_f32(w[i].to_f32() - (m[i] * 0.5 + w[i].to_f32()) * 0.25));
    if let Some(report) = lab.device.sim_report() {
        let total = report.kernel("momentum").expect("it was launched").total().global;
        assert_eq!(total.store_sectors, (N * (2 + 4 + 4) / 32) as u64);
    }
}

#[kernel(B = [64, 1024])]
fn copy<T: Element, const B: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    store(y + at, load(x + at, mask = mask), mask = mask);
}

fn copies<T: Value>(lab: &mut Lab) {
    for n in SIZES {
        let host = lab.values::<T>(n);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(n);
        copy::<T, 1024>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 1024)).launch().unwrap();
        check_bits(&y.read(), |i| host[i]);
    }
}

fn copies_at_every_offset<T: Value>(lab: &mut Lab) {
    let n = 64 * 3 + 7;
    for from in 0..=4 {
        for to in 0..=4 {
            let host = lab.values::<T>(n);
            let x = lab.input_at(&host, from);
            let mut y = lab.output_at::<T>(n, to);
            copy::<T, 64>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
            check_bits(&y.read(), |i| host[i]);
        }
    }
}

/// The mask alone keeps what lies behind `n`; the inputs hold more than is asked for.
fn lengths_inside_the_tensor<T: Value>(lab: &mut Lab) {
    for n in SIZES {
        let more = lab.below(3000);
        let host = lab.values::<T>(n + more);
        let x = lab.input(&host);
        let (mut y, mut z) = (lab.output::<T>(n + more), lab.output::<T>(n + more));
        copy::<T, 1024>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 1024) + 1).launch().unwrap();
        copy::<T, 64>(x.slice(), &mut z.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
        check_bits(&y.read(), |i| if i < n { host[i] } else { y.before()[i] });
        check_bits(&z.read(), |i| if i < n { host[i] } else { z.before()[i] });
    }
}

/// A kernel that believes in more elements than there are: it reads 0 there, and writes nothing.
fn lengths_beyond_the_tensor<T: Value>(lab: &mut Lab) {
    for (inputs, outputs, claimed) in
        [(0, 65, 65), (1, 64, 1000), (100, 333, 333), (1500, 1000, 5000), (1024, 2048, 1 << 40), (2048, 1024, usize::MAX >> 1)]
    {
        let host = lab.values::<T>(inputs);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(outputs);
        copy::<T, 1024>(x.slice(), &mut y.slice(), claimed).grid(5).launch().unwrap();
        check_bits(&y.read(), |i| {
            if i >= claimed.min(5 * 1024) {
                y.before()[i]
            } else if i < inputs {
                host[i]
            } else {
                T::from_bits(0)
            }
        });
    }
}

#[kernel(B = 256)]
fn shift<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, from: isize, to: isize, missing: f32) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at + to, load(x + from + at, other = missing));
}

fn shifted_by_a_distance(lab: &mut Lab) {
    let n = 1000i64;
    let far = [0, 1, -1, 3, -64, 257, -999, 1000, -5000, 1 << 31, -(1 << 31), 1 << 61, i64::MIN, i64::MAX];
    for from in far {
        for to in [0, -2, 700, far[lab.below(far.len())]] {
            let host = lab.values::<f32>(n as usize);
            let x = lab.input(&host);
            let mut y = lab.output::<f32>(n as usize);
            shift::<256>(x.slice(), &mut y.slice(), from as isize, to as isize, 7.5).grid(5).launch().unwrap();
            check_bits(&y.read(), |i| {
                let lane = (i as i64).wrapping_sub(to);
                if !(0..5 * 256).contains(&lane) {
                    return y.before()[i];
                }
                let source = lane.wrapping_add(from);
                if (0..n).contains(&source) { host[source as usize] } else { 7.5 }
            });
        }
    }
}

#[kernel(B = 128)]
fn gather<T: Element, const B: usize>(x: Ptr<T>, index: Ptr<i32>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let from = load(index + at, mask = mask, other = -1);
    store(y + at, load(x + from), mask = mask);
}

fn gathers<T: Value>(lab: &mut Lab) {
    for n in [1, 65, 5000] {
        let host = lab.values::<T>(n);
        let mut wild = |_| lab.random() as i32 >> lab.below(32);
        let indices: Vec<i32> = (0..2 * n).map(&mut wild).collect();
        let indices: Vec<i32> = indices.iter().map(|&index| if index & 1 == 0 { index.rem_euclid(n as i32) } else { index }).collect();
        let (x, index) = (lab.input(&host), lab.input(&indices));
        let mut y = lab.output::<T>(2 * n);
        gather::<T, 128>(x.slice(), index.slice(), &mut y.slice(), 2 * n).grid(cdiv(2 * n, 128)).launch().unwrap();
        check_bits(&y.read(), |i| usize::try_from(indices[i]).ok().and_then(|at| host.get(at).copied()).unwrap_or(T::from_bits(0)));
    }
}

#[kernel(B = 128)]
fn scatter<T: Element, const B: usize>(x: Ptr<T>, index: Ptr<i64>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    store(y + load(index + at, mask = mask), load(x + at, mask = mask), mask = mask);
}

fn scatters<T: Value>(lab: &mut Lab) {
    for n in [1usize, 65, 5000] {
        // Where to: each index once, in any order, and indices outside.
        let mut indices: Vec<i64> = (0..n as i64).map(|i| if i % 5 == 3 { i + n as i64 } else { i }).collect();
        (1..n).for_each(|i| indices.swap(i, lab.below(i + 1)));
        for i in (0..n).step_by(7) {
            let outside = [-1, n as i64, i64::MIN, i64::MAX, -(n as i64), 1 << 32, 1 << 62];
            indices[i] = outside[lab.below(outside.len())];
        }
        let host = lab.values::<T>(n);
        let (x, index) = (lab.input(&host), lab.input(&indices));
        let mut y = lab.output::<T>(n);
        scatter::<T, 128>(x.slice(), index.slice(), &mut y.slice(), n).grid(cdiv(n, 128)).launch().unwrap();
        let mut want = y.before().to_vec();
        for (&index, &value) in indices.iter().zip(&host) {
            if let Some(element) = usize::try_from(index).ok().and_then(|at| want.get_mut(at)) {
                *element = value;
            }
        }
        check_bits(&y.read(), |i| want[i]);
    }
}

#[kernel(B = 64)]
fn every<const B: usize>(x: Ptr<i32>, y: PtrMut<i32>, stride: isize, start: isize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at * 3, load(x + start + at * stride, other = -7));
}

fn strided(lab: &mut Lab) {
    let n = 1000i64;
    let host = lab.values::<i32>(n as usize);
    for (stride, start) in [(1, 0), (2, 1), (-1, 999), (-3, 500), (0, 17), (7, -70), (1 << 33, 0), (i64::MAX / 3, 5)] {
        let x = lab.input(&host);
        let mut y = lab.output::<i32>(400);
        every::<64>(x.slice(), &mut y.slice(), stride as isize, start as isize).grid(2).launch().unwrap();
        check_bits(&y.read(), |i| {
            let lane = i as i64 / 3;
            if i % 3 != 0 || lane >= 128 {
                return y.before()[i];
            }
            let from = lane.wrapping_mul(stride).wrapping_add(start);
            if (0..n).contains(&from) { host[from as usize] } else { -7 }
        });
    }
}

/// A row of programs, each a column: reads with a stride, writes without.
#[kernel(B = 32)]
fn transpose<const B: usize>(x: Ptr<u16>, y: PtrMut<u16>, rows: usize, columns: usize) {
    let row = program_id(1) * B + arange(0, B);
    let column = program_id(0);
    let mask = row < rows;
    let v = load(x + row * columns + column, mask = mask);
    store(y + column * rows + row, v, mask = mask);
}

fn transposed(lab: &mut Lab) {
    for (rows, columns) in [(1, 1), (33, 7), (64, 32), (100, 101)] {
        let host = lab.values::<u16>(rows * columns);
        let x = lab.input(&host);
        let mut y = lab.output::<u16>(rows * columns);
        transpose::<32>(x.slice(), &mut y.slice(), rows, columns).grid((columns, cdiv(rows, 32))).launch().unwrap();
        check_bits(&y.read(), |i| host[i % rows * columns + i / rows]);
    }
}

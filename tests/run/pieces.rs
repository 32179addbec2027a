//! Tiles put together, taken apart and turned around: every element must be where the builtin puts it.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{check_bits, check_ints};
use crate::value::{IntValue, Value};

tests![
    flips<bool, u8, bf16, i32, f64>,
    flips_along_an_axis<u16, f32, i64>,
    offsets_that_run_backwards,
    joins_and_splits<bool, i8, f16, f32, u64>,
    interleaves<u8, bf16, i32, f64>,
    cats<bool, f16, i32, i64>,
    creations<i16, u64>,
    pairs_of_scalars,
    squeezes,
];

#[kernel]
fn flip_kernel<T: Element, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    store(y + at, flip(load(x + at, mask = at < n)), mask = at < n);
}

fn flips<T: Value>(lab: &mut Lab) {
    fn check<T: Value, const N: usize>(lab: &mut Lab, n: usize) {
        let host = lab.values::<T>(n);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(n);
        flip_kernel::<T, N>(x.slice(), &mut y.slice(), n).grid(cdiv(n, N)).launch().unwrap();
        let zero = T::from_bits(0);
        check_bits(&y.read(), |i| host.get(i / N * N + N - 1 - i % N).copied().unwrap_or(zero));
    }
    for n in [0, 1, 4096, 5003] {
        check::<T, 1>(lab, n.min(40));
        check::<T, 2>(lab, n.min(77));
        check::<T, 32>(lab, n);
        check::<T, 128>(lab, n);
        check::<T, 1024>(lab, n);
        check::<T, 8192>(lab, n);
    }
}

#[kernel]
fn flip_axes_kernel<T: Element, const A: usize, const B: usize, const C: usize>(x: Ptr<T>, y: PtrMut<T>, z: PtrMut<T>, w: PtrMut<T>) {
    let at = arange(0, A)[(.., None, None)] * (B * C) + arange(0, B)[(None, .., None)] * C + arange(0, C)[(None, None, ..)];
    let v = load(x + at);
    store(y + at, v.flip(axis = 0));
    store(z + at, flip(v, axis = 1));
    store(w + at, flip(flip(v, axis = -1), axis = 0));
}

fn flips_along_an_axis<T: Value>(lab: &mut Lab) {
    let (a, b, c) = (8, 16, 32);
    let host = lab.values::<T>(a * b * c);
    let x = lab.input(&host);
    let [mut y, mut z, mut w] = [0; 3].map(|_| lab.output::<T>(a * b * c));
    flip_axes_kernel::<T, 8, 16, 32>(x.slice(), &mut y.slice(), &mut z.slice(), &mut w.slice()).grid(1).launch().unwrap();
    let at = |i: usize, j: usize, k: usize| host[(i * b + j) * c + k];
    let split = |index: usize| (index / (b * c), index / c % b, index % c);
    check_bits(&y.read(), |index| {
        let (i, j, k) = split(index);
        at(a - 1 - i, j, k)
    });
    check_bits(&z.read(), |index| {
        let (i, j, k) = split(index);
        at(i, b - 1 - j, k)
    });
    check_bits(&w.read(), |index| {
        let (i, j, k) = split(index);
        at(a - 1 - i, j, c - 1 - k)
    });
}

/// Indices are turned around without moving anything, and so are their masks.
#[kernel]
fn backwards_kernel<const N: usize>(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    let back = flip(at);
    let v = load(x + back, mask = flip(at < n));
    store(y + at, v + 1, mask = flip(back) < n);
}

fn offsets_that_run_backwards(lab: &mut Lab) {
    for n in [0, 5, 64, 1000] {
        let host = lab.numbers::<i32>(n, -1000.0, 1000.0);
        let x = lab.input(&host);
        let mut y = lab.output::<i32>(n);
        backwards_kernel::<64>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
        check_ints(&y.read(), |i| i128::from(host.get(i / 64 * 64 + 63 - i % 64).copied().unwrap_or(0)) + 1);
    }
}

#[kernel]
fn join_kernel<T: Element, const M: usize, const N: usize>(a: Ptr<T>, b: Ptr<T>, pairs: PtrMut<T>, first: PtrMut<T>, second: PtrMut<T>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let both = join(load(a + at), load(b + at));
    store(pairs + (at[(.., .., None)] * 2 + arange(0, 2)[(None, None, ..)]), both);
    let (p, q) = split(both.permute([1, 0, 2]));
    store(first + trans(at), p);
    store(second + trans(at), q);
}

fn joins_and_splits<T: Value>(lab: &mut Lab) {
    fn check<T: Value, const M: usize, const N: usize>(lab: &mut Lab) {
        let (left, right) = (lab.values::<T>(M * N), lab.values::<T>(M * N));
        let (a, b) = (lab.input(&left), lab.input(&right));
        let mut pairs = lab.output::<T>(2 * M * N);
        let (mut p, mut q) = (lab.output::<T>(M * N), lab.output::<T>(M * N));
        let (pairs_out, first, second) = (&mut pairs.slice(), &mut p.slice(), &mut q.slice());
        join_kernel::<T, M, N>(a.slice(), b.slice(), pairs_out, first, second).grid(1).launch().unwrap();
        check_bits(&pairs.read(), |i| if i % 2 == 0 { left[i / 2] } else { right[i / 2] });
        check_bits(&p.read(), |i| left[i]);
        check_bits(&q.read(), |i| right[i]);
    }
    check::<T, 1, 2>(lab);
    check::<T, 4, 16>(lab);
    check::<T, 64, 32>(lab);
}

#[kernel]
fn interleave_kernel<T: Element, const N: usize>(a: Ptr<T>, b: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    let both = interleave(load(a + at, mask = at < n), load(b + at, mask = at < n));
    let out = program_id(0) * (2 * N) + arange(0, 2 * N);
    store(y + out, both, mask = out < 2 * n);
}

fn interleaves<T: Value>(lab: &mut Lab) {
    for n in [0, 1, 255, 2048, 3001] {
        let (left, right) = (lab.values::<T>(n), lab.values::<T>(n));
        let (a, b) = (lab.input(&left), lab.input(&right));
        let (mut y, mut z) = (lab.output::<T>(2 * n), lab.output::<T>(2 * n));
        interleave_kernel::<T, 512>(a.slice(), b.slice(), &mut y.slice(), n).grid(cdiv(n, 512)).launch().unwrap();
        interleave_kernel::<T, 16>(a.slice(), b.slice(), &mut z.slice(), n).grid(cdiv(n, 16)).launch().unwrap();
        for got in [y.read(), z.read()] {
            check_bits(&got, |i| if i % 2 == 0 { left[i / 2] } else { right[i / 2] });
        }
    }
}

#[kernel]
fn cat_kernel<T: Element, const M: usize, const N: usize>(a: Ptr<T>, b: Ptr<T>, below: PtrMut<T>, beside: PtrMut<T>) {
    let rows = arange(0, M);
    let columns = arange(0, N);
    let at = rows[(.., None)] * N + columns[(None, ..)];
    let (v, w) = (load(a + at), load(b + at));
    store(below + (arange(0, 2 * M)[(.., None)] * N + columns[(None, ..)]), cat(v, w));
    store(beside + (rows[(.., None)] * (2 * N) + arange(0, 2 * N)[(None, ..)]), v.cat(w, axis = -1));
}

fn cats<T: Value>(lab: &mut Lab) {
    fn check<T: Value, const M: usize, const N: usize>(lab: &mut Lab) {
        let (left, right) = (lab.values::<T>(M * N), lab.values::<T>(M * N));
        let (a, b) = (lab.input(&left), lab.input(&right));
        let (mut below, mut beside) = (lab.output::<T>(2 * M * N), lab.output::<T>(2 * M * N));
        cat_kernel::<T, M, N>(a.slice(), b.slice(), &mut below.slice(), &mut beside.slice()).grid(1).launch().unwrap();
        check_bits(&below.read(), |i| if i < M * N { left[i] } else { right[i - M * N] });
        check_bits(&beside.read(), |i| {
            let (row, column) = (i / (2 * N), i % (2 * N));
            if column < N { left[row * N + column] } else { right[row * N + column - N] }
        });
    }
    check::<T, 1, 1>(lab);
    check::<T, 8, 4>(lab);
    check::<T, 32, 64>(lab);
}

#[kernel]
fn creation_kernel<T: Number, const N: usize>(x: Ptr<T>, y: PtrMut<T>, a: T) {
    let at = arange(0, N);
    let v = load(x + at);
    store(y + at, zeros_like(v) + ones::<T>([N]) + full_like(v, a) + full_like(v, 3) + v - full_like(v, a));
    store(y + N + at, select((at < 4) & full_like(at < 4, true), v, zeros_like(v)));
}

fn creations<T: IntValue + galatea::Number>(lab: &mut Lab) {
    let host = lab.numbers::<T>(64, 0.0, 50.0);
    let x = lab.input(&host);
    let mut y = lab.output::<T>(128);
    creation_kernel::<T, 64>(x.slice(), &mut y.slice(), host[5]).grid(1).launch().unwrap();
    check_ints(&y.read(), |i| match i {
        64.. if i - 64 >= 4 => 0,
        64.. => host[i - 64].wide(),
        _ => host[i].wide() + 4,
    });
}

#[kernel]
fn scalar_pair_kernel(y: PtrMut<i64>, a: i64, b: i32) {
    let both = join(a, b);
    let (first, second) = split(both);
    store(y, first * 10 + second);
    store(y + 1 + arange(0, 2), flip(interleave(b, a)));
}

fn pairs_of_scalars(lab: &mut Lab) {
    let mut y = lab.output::<i64>(3);
    scalar_pair_kernel(&mut y.slice(), 7, 5).grid(1).launch().unwrap();
    assert_eq!(y.read(), [75, 7, 5]);
}

#[kernel]
fn squeeze_kernel<const N: usize>(x: Ptr<i32>, y: PtrMut<i32>) {
    let v = load(x + arange(0, N))[(None, .., None)];
    let row = squeeze(v, -1);
    store(y + arange(0, N), row.squeeze(0) + 1);
    store(y + N, squeeze(row.sum(axis = 1), 0));
}

fn squeezes(lab: &mut Lab) {
    let host = lab.numbers::<i32>(32, -9.0, 9.0);
    let x = lab.input(&host);
    let mut y = lab.output::<i32>(33);
    squeeze_kernel::<32>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    let sum: i32 = host.iter().sum();
    check_ints(&y.read(), |i| i128::from(if i == 32 { sum } else { host[i] + 1 }));
}

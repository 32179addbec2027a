//! Elements that go where data says: gathers, histograms, sorts and the largest elements.

#![allow(clippy::modulo_one, reason = "extents of 1 are among the cases")]

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::{IntValue, Value};

tests![
    gathers_along_one_axis<bool, i8, f16, i32, f64>,
    gathers_of_two_axes<u8, bf16, i64>,
    counts<i8, u8, i32, u64>,
    counts_of_a_matrix,
    programs_count_together,
    sorted<bool, i8, u16, i32, u32, i64, u64, f16, bf16, f32, f64>,
    sorted_rows_and_columns<i16, f16, f32, i64>,
    largest<u8, bf16, f64>,
    largest_of_columns,
    a_sort_between_masked_accesses,
];

#[kernel(T = [bool, i8, f16, i32, f64], N = 64, K = 32)]
fn pick<T: Element, const N: usize, const K: usize>(x: Ptr<T>, index: Ptr<i32>, y: PtrMut<T>, z: PtrMut<T>) {
    let (from, to) = (arange(0, N), program_id(0) * K + arange(0, K));
    let (v, at) = (load(x + from), load(index + to));
    store(y + to, gather(v, at, 0));
    // Twice, and of an index that is computed.
    store(z + to, v.gather(N - 1 - from, 0).gather(at as isize + 1, -1));
}

fn gathers_along_one_axis<T: Value>(lab: &mut Lab) {
    macro_rules! shapes {
        ($(($n:literal, $k:literal)),*) => {$({
            let host = lab.values::<T>($n);
            let index: Vec<i32> = (0..3 * $k).map(|_| if lab.below(9) == 0 { lab.random() as i32 } else { lab.below($n) as i32 }).collect();
            let (x, i) = (lab.input(&host), lab.input(&index));
            let (mut y, mut z) = (lab.output::<T>(3 * $k), lab.output::<T>(3 * $k));
            pick::<T, $n, $k>(x.slice(), i.slice(), &mut y.slice(), &mut z.slice()).grid(3).launch().unwrap();
            let at = |index: i64| usize::try_from(index).ok().and_then(|at| host.get(at).copied()).unwrap_or(T::from_bits(0));
            let back = |index: i64| if (0..$n).contains(&index) { at($n - 1 - index) } else { T::from_bits(0) };
            check_bits(&y.read(), |k| at(index[k].into()));
            check_bits(&z.read(), |k| back(i64::from(index[k]) + 1));
        })*};
    }
    shapes!((1, 1), (2, 64), (64, 32), (64, 512), (512, 1), (1024, 256), (96, 64), (5, 7), (100, 1), (64, 48));
}

#[kernel(T = [u8, bf16, i64], M = 16, N = 8, K = 64, num_warps = 2)]
fn pick_rows_and_columns<T: Element, const M: usize, const N: usize, const K: usize>(
    x: Ptr<T>,
    rows: Ptr<u8>,
    columns: Ptr<u32>,
    by_row: PtrMut<T>,
    by_column: PtrMut<T>,
) {
    let (i, j, k) = (arange(0, M), arange(0, N), arange(0, K));
    let v = load(x + ((i * N)[(.., None)] + j[(None, ..)]));
    let tall = (k * N)[(.., None)] + j[(None, ..)];
    let wide = (i * K)[(.., None)] + k[(None, ..)];
    store(by_row + tall, gather(v, load(rows + tall), 0));
    store(by_column + wide, gather(v, load(columns + wide), 1));
}

fn gathers_of_two_axes<T: Value>(lab: &mut Lab) {
    macro_rules! shapes {
        ($(($m:literal, $n:literal, $k:literal)),*) => {$({
            let host = lab.values::<T>($m * $n);
            let rows: Vec<u8> = (0..$k * $n).map(|_| lab.below($m + 2) as u8).collect();
            let columns: Vec<u32> = (0..$m * $k).map(|_| if lab.below(9) == 0 { lab.random() as u32 } else { lab.below($n) as u32 }).collect();
            let (x, r, c) = (lab.input(&host), lab.input(&rows), lab.input(&columns));
            let (mut y, mut z) = (lab.output::<T>($k * $n), lab.output::<T>($m * $k));
            pick_rows_and_columns::<T, $m, $n, $k>(x.slice(), r.slice(), c.slice(), &mut y.slice(), &mut z.slice()).grid(1).launch().unwrap();
            let at = |i: usize, j: usize| if i < $m && j < $n { host[i * $n + j] } else { T::from_bits(0) };
            check_bits(&y.read(), |index| at(rows[index].into(), index % $n));
            check_bits(&z.read(), |index| at(index / $k, columns[index] as usize));
        })*};
    }
    shapes!((16, 8, 64), (1, 4, 2), (4, 1, 8), (32, 64, 4), (3, 5, 7), (12, 96, 5), (7, 8, 16));
}

#[kernel(T = [i8, u8, i32, u64], N = [32, 1024], BINS = [1, 16, 512])]
fn count<T: Int, const N: usize, const BINS: usize>(x: Ptr<T>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    let (v, bins) = (load(x + at), program_id(0) * BINS + arange(0, BINS));
    store(y + bins, histogram(v, BINS, mask = at < n));
    store(z + bins, histogram(v, BINS));
}

fn counts<T: IntValue>(lab: &mut Lab) {
    macro_rules! shapes {
        ($(($n:literal, $bins:literal)),*) => {$({
            let (n, programs) = (2 * $n - lab.below($n), 2);
            // Some are negative, and some beyond the bins.
            let host: Vec<T> = (0..n).map(|_| T::wrap(if lab.below(4) == 0 { lab.random() as i128 } else { lab.below($bins + 3) as i128 })).collect();
            let x = lab.input(&host);
            let (mut y, mut z) = (lab.output::<i32>(programs * $bins), lab.output::<i32>(programs * $bins));
            count::<T, $n, $bins>(x.slice(), &mut y.slice(), &mut z.slice(), n).grid(programs).launch().unwrap();
            let of = |program: usize, bin: usize| {
                let own = host[(program * $n).min(n)..((program + 1) * $n).min(n)].iter();
                own.filter(|value| value.wide() == bin as i128).count() as i32
            };
            check_bits(&y.read(), |index| of(index / $bins, index % $bins));
            // Loads outside the tensor give 0, which counts in bin 0.
            let zeros = 2 * $n - n;
            check_bits(&z.read(), |index| of(index / $bins, index % $bins) + if index == $bins { zeros as i32 } else { 0 });
        })*};
    }
    shapes!((32, 1), (32, 512), (1024, 16), (1, 4), (256, 64), (100, 16), (32, 100), (96, 3), (7, 1));
}

#[kernel(M = 8, N = 32)]
fn count_matrix<const M: usize, const N: usize>(x: Ptr<u8>, flags: Ptr<bool>, y: PtrMut<i32>) {
    let at = (arange(0, M) * N)[(.., None)] + arange(0, N)[(None, ..)];
    let counts = histogram(load(x + at), 32, mask = load(flags + at));
    store(y + arange(0, 32), counts);
}

fn counts_of_a_matrix(lab: &mut Lab) {
    fn check<const M: usize, const N: usize>(lab: &mut Lab) {
        let host: Vec<u8> = (0..M * N).map(|_| lab.below(34) as u8).collect();
        let flags = lab.values::<bool>(M * N);
        let (x, f) = (lab.input(&host), lab.input(&flags));
        let mut y = lab.output::<i32>(32);
        count_matrix::<M, N>(x.slice(), f.slice(), &mut y.slice()).grid(1).launch().unwrap();
        check_bits(&y.read(), |bin| (0..M * N).filter(|i| flags[*i] && usize::from(host[*i]) == bin).count() as i32);
    }
    check::<8, 32>(lab);
    check::<6, 20>(lab);
}

/// A histogram of a tensor: counts of programs are added up.
#[kernel(N = 256, BINS = 64)]
fn count_all<const N: usize, const BINS: usize>(x: Ptr<u8>, y: PtrMut<i32>, n: usize) {
    let mut counts = zeros::<i32>([BINS]);
    for start in range(program_id(0) * N, n, num_programs(0) * N) {
        let at = start + arange(0, N);
        counts += histogram(load(x + at) / 4, BINS, mask = at < n);
    }
    atomic_add(y + arange(0, BINS), counts, sem = "relaxed");
}

fn programs_count_together(lab: &mut Lab) {
    for (n, programs) in [(0, 1), (1, 2), (5000, 3), (1000, 9)] {
        let host = lab.values::<u8>(n);
        let x = lab.input(&host);
        let mut y = lab.in_place(&[0i32; 64]);
        count_all::<256, 64>(x.slice(), &mut y.slice(), n).grid(programs).launch().unwrap();
        check_bits(&y.read(), |bin| host.iter().filter(|value| usize::from(**value / 4) == bin).count() as i32);
    }
}

/// The rank of an element in the order of its type, that of IEEE 754 for floats.
fn rank<T: Value>(value: T) -> i128 {
    let bits = i128::from(value.bits());
    let name = T::DTYPE.name();
    let width = 8 * size_of::<T>() as u32;
    let is_negative = bits >> (width - 1) & 1 == 1;
    match &name[..1] {
        "f" | "b" if name != "bool" && is_negative => -1 - (bits - (1 << (width - 1))),
        "i" if is_negative => bits - (1 << width),
        _ => bits,
    }
}

fn ordered<T: Value>(mut values: Vec<T>, descending: bool) -> Vec<T> {
    values.sort_by_key(|value| rank(*value));
    if descending {
        values.reverse();
    }
    values
}

#[kernel(T = [bool, i8, u16, i32, u32, i64, u64, f16, bf16, f32, f64], N = [2, 32, 256])]
fn sort_all<T: Element, const N: usize>(x: Ptr<T>, up: PtrMut<T>, down: PtrMut<T>) {
    let at = program_id(0) * N + arange(0, N);
    let v = load(x + at);
    store(up + at, sort(v));
    store(down + at, v.sort(descending = true));
}

fn sorted<T: Value>(lab: &mut Lab) {
    macro_rules! extents {
        ($($n:literal),*) => {$({
            let host = lab.values::<T>(3 * $n);
            let x = lab.input(&host);
            let (mut up, mut down) = (lab.output::<T>(3 * $n), lab.output::<T>(3 * $n));
            sort_all::<T, $n>(x.slice(), &mut up.slice(), &mut down.slice()).grid(3).launch().unwrap();
            let run = |i: usize, descending| ordered(host[i / $n * $n..][..$n].to_vec(), descending)[i % $n];
            check_bits(&up.read(), |i| run(i, false));
            check_bits(&down.read(), |i| run(i, true));
        })*};
    }
    extents!(1, 2, 32, 256, 3, 7, 96, 100);
}

#[kernel(T = [i16, f16, f32, i64], M = 16, N = 32, num_warps = 4)]
fn sort_matrix<T: Element, const M: usize, const N: usize>(x: Ptr<T>, rows: PtrMut<T>, columns: PtrMut<T>) {
    let at = (arange(0, M) * N)[(.., None)] + arange(0, N)[(None, ..)];
    let v = load(x + at);
    store(rows + at, sort(v, axis = 1));
    store(columns + at, sort(v, axis = 0, descending = true));
}

fn sorted_rows_and_columns<T: Value>(lab: &mut Lab) {
    macro_rules! shapes {
        ($(($m:literal, $n:literal)),*) => {$({
            let host = lab.values::<T>($m * $n);
            let x = lab.input(&host);
            let (mut rows, mut columns) = (lab.output::<T>($m * $n), lab.output::<T>($m * $n));
            sort_matrix::<T, $m, $n>(x.slice(), &mut rows.slice(), &mut columns.slice()).grid(1).launch().unwrap();
            let row = |i: usize| ordered(host[i * $n..][..$n].to_vec(), false);
            let column = |j: usize| ordered((0..$m).map(|i| host[i * $n + j]).collect(), true);
            check_bits(&rows.read(), |at| row(at / $n)[at % $n]);
            check_bits(&columns.read(), |at| column(at % $n)[at / $n]);
        })*};
    }
    shapes!((16, 32), (64, 2), (1, 128), (8, 1), (5, 12), (96, 3));
}

#[kernel(T = [u8, bf16, f64], N = 64, K = [1, 4, 64])]
fn first_of<T: Element, const N: usize, const K: usize>(x: Ptr<T>, y: PtrMut<T>) {
    store(y + program_id(0) * K + arange(0, K), topk(load(x + program_id(0) * N + arange(0, N)), K));
}

fn largest<T: Value>(lab: &mut Lab) {
    macro_rules! shapes {
        ($(($n:literal, $k:literal)),*) => {$({
            let host = lab.values::<T>(2 * $n);
            let x = lab.input(&host);
            let mut y = lab.output::<T>(2 * $k);
            first_of::<T, $n, $k>(x.slice(), &mut y.slice()).grid(2).launch().unwrap();
            check_bits(&y.read(), |i| ordered(host[i / $k * $n..][..$n].to_vec(), true)[i % $k]);
        })*};
    }
    shapes!((64, 1), (64, 4), (64, 64), (1, 1), (512, 8), (96, 8), (96, 5), (64, 3), (100, 100), (7, 2));
}

#[kernel(M = 32, N = 4)]
fn first_of_columns<const M: usize, const N: usize>(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>) {
    let v = load(x + ((arange(0, M) * N)[(.., None)] + arange(0, N)[(None, ..)]));
    store(y + ((arange(0, 8) * N)[(.., None)] + arange(0, N)[(None, ..)]), topk(v, 8, axis = 0));
    store(z + ((arange(0, M) * 2)[(.., None)] + arange(0, 2)[(None, ..)]), topk(v, 2, axis = -1));
}

fn largest_of_columns(lab: &mut Lab) {
    fn check<const M: usize, const N: usize>(lab: &mut Lab) {
        let host = lab.values::<i32>(M * N);
        let x = lab.input(&host);
        let (mut y, mut z) = (lab.output::<i32>(8 * N), lab.output::<i32>(2 * M));
        first_of_columns::<M, N>(x.slice(), &mut y.slice(), &mut z.slice()).grid(1).launch().unwrap();
        check_bits(&y.read(), |at| ordered((0..M).map(|i| host[N * i + at % N]).collect(), true)[at / N]);
        check_bits(&z.read(), |at| ordered(host[at / 2 * N..][..N].to_vec(), true)[at % 2]);
    }
    check::<32, 4>(lab);
    check::<12, 3>(lab);
    check::<24, 5>(lab);
}

#[kernel(B = 128)]
fn sort_first<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, scale: f32) {
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at, mask = at < n, other = f32::INFINITY);
    store(y + at, sort(v * scale) + 1.0, mask = at < n);
}

fn a_sort_between_masked_accesses(lab: &mut Lab) {
    for n in [0, 1, 100, 128, 300, 512] {
        let host = lab.numbers::<f32>(n, -9.0, 9.0);
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(n);
        sort_first::<128>(x.slice(), &mut y.slice(), n, 2.0).grid(cdiv(n, 128)).launch().unwrap();
        check_bits(&y.read(), |i| ordered(host[i / 128 * 128..(i / 128 * 128 + 128).min(n)].to_vec(), false)[i % 128] * 2.0 + 1.0);
    }
}

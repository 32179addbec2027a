//! Tiles that shared memory does not hold whole: what moves their elements does it in parts.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::Value;

tests![gathers_from_large_tiles<f32, f64>, gathers_of_large_rows, counts_of_many_bins, large_transposes<f32, f64>, large_sorts];

/// Elements of a tile, looked up one after the other and twice.
#[kernel(num_warps = 16)]
fn pick<T: Element, const N: usize, const K: usize>(x: Ptr<T>, index: Ptr<i32>, y: PtrMut<T>) {
    let at = load(index + arange(0, K));
    store(y + arange(0, K), gather(load(x + arange(0, N)), at, 0));
}

fn gathers_from_large_tiles<T: Value>(lab: &mut Lab) {
    const N: usize = 1 << 16;
    const K: usize = 1000;
    let host = lab.values::<T>(N);
    let index: Vec<i32> = (0..K).map(|_| if lab.below(9) == 0 { lab.random() as i32 } else { lab.below(N) as i32 }).collect();
    let (x, i) = (lab.input(&host), lab.input(&index));
    let mut y = lab.output::<T>(K);
    pick::<T, N, K>(x.slice(), i.slice(), &mut y.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |k| usize::try_from(index[k]).ok().and_then(|at| host.get(at).copied()).unwrap_or(T::from_bits(0)));
}

/// Rows of 96 elements, which are kept as 128: 256 KiB of which a program gathers along both axes.
#[kernel(num_warps = 8)]
fn pick_rows<const M: usize, const N: usize>(x: Ptr<i64>, index: Ptr<i32>, by_row: PtrMut<i64>, by_column: PtrMut<i64>) {
    let (i, j, k) = (arange(0, M), arange(0, N), arange(0, 4));
    let v = load(x + (i[(.., None)] * N + j[(None, ..)]));
    let (rows, columns) = (k[(.., None)] * N + j[(None, ..)], i[(.., None)] * 4 + k[(None, ..)]);
    store(by_row + rows, gather(v, load(index + rows), 0));
    store(by_column + columns, gather(v, load(index + columns), 1));
}

fn gathers_of_large_rows(lab: &mut Lab) {
    const M: usize = 256;
    const N: usize = 96;
    let host = lab.values::<i64>(M * N);
    let index: Vec<i32> = (0..4 * M).map(|_| lab.below(N + 9) as i32 - 2).collect();
    let (x, i) = (lab.input(&host), lab.input(&index));
    let (mut by_row, mut by_column) = (lab.output::<i64>(4 * N), lab.output::<i64>(4 * M));
    pick_rows::<M, N>(x.slice(), i.slice(), &mut by_row.slice(), &mut by_column.slice()).grid(1).launch().unwrap();
    let at = |row: i32, column: i32| {
        let inside = (0..M as i32).contains(&row) && (0..N as i32).contains(&column);
        if inside { host[row as usize * N + column as usize] } else { 0 }
    };
    check_bits(&by_row.read(), |i| at(index[i], (i % N) as i32));
    check_bits(&by_column.read(), |i| at((i / 4) as i32, index[i]));
}

#[kernel(num_warps = 8)]
fn count<const N: usize, const BINS: usize>(x: Ptr<u16>, y: PtrMut<i32>, n: usize) {
    let at = arange(0, N);
    store(y + arange(0, BINS), histogram(load(x + at), BINS, mask = at < n));
}

fn counts_of_many_bins(lab: &mut Lab) {
    const N: usize = 4096;
    const BINS: usize = 60_000;
    let host: Vec<u16> = (0..N - 5).map(|at| if at % 3 == 0 { 59_999 } else { lab.random() as u16 }).collect();
    let x = lab.input(&host);
    let mut y = lab.output::<i32>(BINS);
    count::<N, BINS>(x.slice(), &mut y.slice(), host.len()).grid(1).launch().unwrap();
    let mut wanted = vec![0; 1 << 16];
    host.iter().for_each(|value| wanted[usize::from(*value)] += 1);
    check_bits(&y.read(), |bin| wanted[bin]);
}

#[kernel(num_warps = 8)]
fn transpose<T: Element, const M: usize, const N: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let (i, j) = (arange(0, M), arange(0, N));
    let v = load(x + (i[(.., None)] * N + j[(None, ..)]));
    store(y + (j[(.., None)] * M + i[(None, ..)]), v.trans());
}

fn large_transposes<T: Value>(lab: &mut Lab) {
    const M: usize = 256;
    const N: usize = 256;
    let host = lab.values::<T>(M * N);
    let x = lab.input(&host);
    let mut y = lab.output::<T>(M * N);
    transpose::<T, M, N>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| host[i % M * N + i / M]);
}

#[kernel(num_warps = 16)]
fn sorted<const N: usize>(x: Ptr<f64>, y: PtrMut<f64>) {
    store(y + arange(0, N), sort(load(x + arange(0, N))));
}

fn large_sorts(lab: &mut Lab) {
    const N: usize = 1 << 15;
    let host: Vec<f64> = (0..N).map(|_| lab.below(1 << 20) as f64 - 500_000.0).collect();
    let x = lab.input(&host);
    let mut y = lab.output::<f64>(N);
    sorted::<N>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    let mut wanted = host;
    wanted.sort_by(f64::total_cmp);
    check_bits(&y.read(), |i| wanted[i]);
}

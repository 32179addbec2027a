//! Tiles whose extents are no powers of two: elements that do not exist are never read, written or combined.

use galatea::prelude::*;

use crate::lab::{Lab, SIZES};
use crate::tests;
use crate::tolerance::{Class, check, check_bits, check_ints};
use crate::value::{FloatValue, Value};

tests![
    copies<bool, u8, bf16, i32, f64>,
    rows_of_odd_length<u8, f16, f32, i64>,
    transposes<u16, f32>,
    reshapes<f16, i32>,
    reshapes_that_move<bool, u8, bf16, f32, i64>,
    pieces<bool, f32>,
    flips<bool, u8, f16, i64>,
    one_behind_the_other<bool, i16, f32, u64>,
    loops_carry_odd_tiles,
    softmax_of_rows<bf16, f32>,
    checked_launches_see_elements_only,
    nan_propagates_on_request,
    one_element_writes_once,
];

#[kernel]
fn copy_kernel<T: Element, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    store(y + at, load(x + at, mask = at < n), mask = at < n);
}

/// Programs stand side by side without a gap: what one would write into the next one's elements is seen.
fn copies<T: Value>(lab: &mut Lab) {
    fn check<T: Value, const N: usize>(lab: &mut Lab, n: usize) {
        let host = lab.values::<T>(n);
        // At an aligned address, where full tiles are copied with wide accesses, and beside one.
        for shift in [0, 1] {
            let x = lab.input_at(&host, shift);
            let mut y = lab.output_at::<T>(n, shift);
            copy_kernel::<T, N>(x.slice(), &mut y.slice(), n).grid(cdiv(n, N)).launch().unwrap();
            check_bits(&y.read(), |i| host[i]);
        }
    }
    for n in SIZES {
        check::<T, 3>(lab, n.min(100));
        check::<T, 96>(lab, n.min(5000));
        check::<T, 1000>(lab, n);
        check::<T, 3072>(lab, n);
    }
}

/// Several rows of a matrix, whose length is a constant of the kernel: no mask along the row.
#[kernel]
fn rows_kernel<T: Element, const M: usize, const N: usize>(x: Ptr<T>, y: PtrMut<T>, rows: usize) {
    let row = program_id(0) * M + arange(0, M);
    let at = row[(.., None)] * N + arange(0, N)[(None, ..)];
    store(y + at, load(x + at), mask = (row < rows)[(.., None)]);
}

fn rows_of_odd_length<T: Value>(lab: &mut Lab) {
    fn check<T: Value, const M: usize, const N: usize>(lab: &mut Lab) {
        for rows in [0, 1, 3, 16, 31] {
            let host = lab.values::<T>(rows * N);
            let x = lab.input(&host);
            let mut y = lab.output::<T>(rows * N);
            rows_kernel::<T, M, N>(x.slice(), &mut y.slice(), rows).grid(cdiv(rows, M)).launch().unwrap();
            check_bits(&y.read(), |i| host[i]);
        }
    }
    check::<T, 1, 80>(lab);
    check::<T, 3, 96>(lab);
    check::<T, 5, 7>(lab);
    check::<T, 4, 257>(lab);
}

#[kernel]
fn transpose_kernel<T: Element, const M: usize, const N: usize>(x: Ptr<T>, y: PtrMut<T>, m: usize, n: usize) {
    let rows = program_id(0) * M + arange(0, M);
    let columns = program_id(1) * N + arange(0, N);
    let mask = (rows < m)[(.., None)] & (columns < n)[(None, ..)];
    let tile = load(x + rows[(.., None)] * n + columns[(None, ..)], mask = mask);
    store(y + columns[(.., None)] * m + rows[(None, ..)], trans(tile), mask = trans(mask));
}

fn transposes<T: Value>(lab: &mut Lab) {
    for (m, n) in [(0, 5), (1, 1), (48, 40), (50, 100), (97, 131)] {
        let host = lab.values::<T>(m * n);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(m * n);
        transpose_kernel::<T, 24, 40>(x.slice(), &mut y.slice(), m, n).grid((cdiv(m, 24), cdiv(n, 40))).launch().unwrap();
        check_bits(&y.read(), |i| host[i % m * n + i / m]);
    }
}

/// Reshapes that keep the padding behind everything, one into the other.
#[kernel]
fn reshape_kernel<T: Element, const N: usize>(x: Ptr<T>, y: PtrMut<T>) {
    let v = load(x + arange(0, N));
    let pairs = v.reshape([N / 4, 4]).reshape([N / 8, 8]);
    let swapped = trans(pairs).reshape([8, N / 8, 1]);
    let at = arange(0, 8)[(.., None)] + arange(0, N / 8)[(None, ..)] * 8;
    store(y + at, swapped.squeeze(2));
}

fn reshapes<T: Value>(lab: &mut Lab) {
    let host = lab.values::<T>(96);
    let x = lab.input(&host);
    let mut y = lab.output::<T>(96);
    reshape_kernel::<T, 96>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| host[i]);
}

/// Reshapes that move elements: in a line, behind rows that stay and in front of columns that stay, of values and of masks.
#[kernel]
fn moving_kernel<T: Element, const M: usize, const N: usize, const K: usize>(x: Ptr<T>, y: PtrMut<T>, z: PtrMut<i32>, n: usize) {
    let at = arange(0, M * N * K);
    let v = load(x + at, mask = at < n);
    // Each element remembers its number: the same moves of both must agree.
    let (rows, number) = (v.reshape([M, N, K]), at.reshape([M, N, K]));
    store(y + number, rows, mask = reshape(at < n, [M, N, K]));
    let (columns, moved) = (rows.reshape([N * M, K]).reshape([K, M * N]), number.reshape([M, K * N]).reshape([K, M * N]));
    store(y + M * N * K + moved, columns);
    let middle = number.reshape([M, K, N]).reshape([M * K, N]);
    store(z + reshape(middle, [M * N * K]), full::<i32>([M * N * K], sum(sum(middle, axis = 0).reshape([1, N])) as i32));
}

fn reshapes_that_move<T: Value>(lab: &mut Lab) {
    fn check<T: Value, const M: usize, const N: usize, const K: usize>(lab: &mut Lab) {
        let len = M * N * K;
        let n = len - 2;
        let host = lab.values::<T>(len);
        let x = lab.input(&host);
        let (mut y, mut z) = (lab.output::<T>(2 * len), lab.output::<i32>(len));
        moving_kernel::<T, M, N, K>(x.slice(), &mut y.slice(), &mut z.slice(), n).grid(1).launch().unwrap();
        let before = y.before().to_vec();
        check_bits(&y.read(), |i| match i {
            _ if i < n => host[i],
            _ if i < len => before[i],
            _ if i - len < n => host[i - len],
            _ => T::from_bits(0),
        });
        let total = (len * (len - 1) / 2) as i32;
        check_bits(&z.read(), |_| total);
    }
    check::<T, 2, 3, 5>(lab);
    check::<T, 4, 6, 1>(lab);
    check::<T, 3, 32, 3>(lab);
    check::<T, 8, 5, 4>(lab);
    check::<T, 1, 96, 7>(lab);
}

#[kernel]
fn pieces_kernel<T: Element, const N: usize>(a: Ptr<T>, b: Ptr<T>, y: PtrMut<T>, z: PtrMut<T>) {
    let at = arange(0, N);
    let both = interleave(load(a + at), load(b + at));
    store(y + arange(0, 2 * N), both);
    let (first, second) = split(both.reshape([N, 2]));
    store(z + (at[(.., None)] + arange(0, 2)[(None, ..)] * N), join(second, first));
}

fn pieces<T: Value>(lab: &mut Lab) {
    let (left, right) = (lab.values::<T>(88), lab.values::<T>(88));
    let (a, b) = (lab.input(&left), lab.input(&right));
    let (mut y, mut z) = (lab.output::<T>(176), lab.output::<T>(176));
    pieces_kernel::<T, 88>(a.slice(), b.slice(), &mut y.slice(), &mut z.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| if i % 2 == 0 { left[i / 2] } else { right[i / 2] });
    check_bits(&z.read(), |i| if i < 88 { right[i] } else { left[i - 88] });
}

#[kernel]
fn flip_kernel<T: Element, const M: usize, const N: usize>(x: Ptr<T>, rows: PtrMut<T>, columns: PtrMut<T>, line: PtrMut<T>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let v = load(x + at);
    store(rows + at, flip(v, axis = 0));
    store(columns + at, flip(v, axis = 1));
    store(line + arange(0, N), flip(load(x + arange(0, N))));
}

fn flips<T: Value>(lab: &mut Lab) {
    fn check<T: Value, const M: usize, const N: usize>(lab: &mut Lab) {
        let host = lab.values::<T>(M * N);
        let x = lab.input(&host);
        let (mut rows, mut columns, mut line) = (lab.output::<T>(M * N), lab.output::<T>(M * N), lab.output::<T>(N));
        flip_kernel::<T, M, N>(x.slice(), &mut rows.slice(), &mut columns.slice(), &mut line.slice()).grid(1).launch().unwrap();
        check_bits(&rows.read(), |at| host[(M - 1 - at / N) * N + at % N]);
        check_bits(&columns.read(), |at| host[at / N * N + N - 1 - at % N]);
        check_bits(&line.read(), |at| host[N - 1 - at]);
    }
    check::<T, 6, 10>(lab);
    check::<T, 8, 96>(lab);
    check::<T, 3, 1>(lab);
}

#[kernel]
fn cat_kernel<T: Element, const M: usize, const N: usize>(x: Ptr<T>, y: Ptr<T>, tall: PtrMut<T>, wide: PtrMut<T>) {
    let at = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let (a, b) = (load(x + at), load(y + at));
    store(tall + (arange(0, 2 * M)[(.., None)] * N + arange(0, N)[(None, ..)]), cat(a, b));
    store(wide + (arange(0, M)[(.., None)] * (2 * N) + arange(0, 2 * N)[(None, ..)]), cat(a, b, axis = 1));
}

fn one_behind_the_other<T: Value>(lab: &mut Lab) {
    fn check<T: Value, const M: usize, const N: usize>(lab: &mut Lab) {
        let (first, second) = (lab.values::<T>(M * N), lab.values::<T>(M * N));
        let (x, y) = (lab.input(&first), lab.input(&second));
        let (mut tall, mut wide) = (lab.output::<T>(2 * M * N), lab.output::<T>(2 * M * N));
        cat_kernel::<T, M, N>(x.slice(), y.slice(), &mut tall.slice(), &mut wide.slice()).grid(1).launch().unwrap();
        check_bits(&tall.read(), |at| if at < M * N { first[at] } else { second[at - M * N] });
        check_bits(&wide.read(), |at| {
            let (row, column) = (at / (2 * N), at % (2 * N));
            if column < N { first[row * N + column] } else { second[row * N + column - N] }
        });
    }
    check::<T, 3, 10>(lab);
    check::<T, 6, 4>(lab);
    check::<T, 8, 24>(lab);
    check::<T, 1, 7>(lab);
}

#[kernel]
fn loop_kernel<const M: usize, const N: usize>(x: Ptr<i64>, y: PtrMut<i64>, count: usize) {
    let here = arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)];
    let mut at = here;
    let mut total = zeros::<i64>([M, N]);
    let mut lows = full([M], i64::MAX);
    for i in 0..count {
        let v = load(x + at);
        if i % 2 == 0 {
            total += v;
        } else {
            total -= v;
        }
        lows = min(lows, min(total, axis = 1));
        at += M * N;
    }
    store(y + here, total);
    store(y + M * N + arange(0, M), lows);
}

fn loops_carry_odd_tiles(lab: &mut Lab) {
    const M: usize = 3;
    const N: usize = 20;
    for count in [0, 1, 6] {
        let host = lab.numbers::<i64>(count * M * N, -1000.0, 1000.0);
        let x = lab.input(&host);
        let mut y = lab.output::<i64>(M * N + M);
        loop_kernel::<M, N>(x.slice(), &mut y.slice(), count).grid(1).launch().unwrap();
        let total = |at: usize, count: usize| (0..count).map(|i| host[i * M * N + at] * if i % 2 == 0 { 1 } else { -1 }).sum::<i64>();
        check_ints(&y.read(), |i| {
            if i < M * N {
                return total(i, count).into();
            }
            let row = i - M * N;
            let lows = (1..=count).flat_map(|count| (0..N).map(move |column| total(row * N + column, count)));
            lows.min().unwrap_or(i64::MAX).into()
        });
    }
}

#[kernel]
fn softmax_kernel<T: Float, const N: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let column = arange(0, N);
    let v = load(x + program_id(0) * n + column, mask = column < n, other = f32::NEG_INFINITY as T) as f32;
    let e = exp(v - max(v));
    store(y + program_id(0) * n + column, (e / sum(e)) as T, mask = column < n);
}

fn softmax_of_rows<T: FloatValue>(lab: &mut Lab) {
    for n in [1, 95, 768] {
        let host = lab.numbers::<T>(4 * n, -5.0, 5.0);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(4 * n);
        softmax_kernel::<T, 768>(x.slice(), &mut y.slice(), n).grid(4).launch().unwrap();
        let class = if T::DIGITS < 24 { Class::Math } else { Class::Chain(40) };
        check(&y.read(), class, |i| {
            let row = host[i / n * n..][..n].iter().map(|value| value.wide());
            let largest = row.clone().fold(f64::NEG_INFINITY, f64::max);
            libm::exp(host[i].wide() - largest) / row.map(|value| libm::exp(value - largest)).sum::<f64>()
        });
    }
}

/// A launch that looks for accesses outside sees none in the padding, and the first one in the elements.
fn checked_launches_see_elements_only(lab: &mut Lab) {
    let host = lab.values::<i32>(96);
    let x = lab.input(&host);
    let mut y = lab.output::<i32>(96);
    rows_kernel::<i32, 1, 96>(x.slice(), &mut y.slice(), 1).grid(1).checked().launch().unwrap();
    check_bits(&y.read(), |i| host[i]);
    let outside = rows_kernel::<i32, 1, 96>(x.slice(), &mut y.slice(), 2).grid(2).checked().launch().unwrap_err().to_string();
    assert!((96..192).any(|index| outside.contains(&format!("load at index {index} of `x`"))), "{outside}");
}

#[kernel]
fn nan_kernel<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, N));
    store(y, max(v, axis = 0, propagate_nan = true));
    store(y + 1, v.min(propagate_nan = true));
    store(y + 2, max(v));
    store(y + 3, min(v));
    store(y + 4, sum(v));
}

fn nan_propagates_on_request(lab: &mut Lab) {
    let mut host = lab.numbers::<f32>(48, -3.0, -1.0);
    let mut check = |host: &[f32], want: [f64; 5]| {
        let x = lab.input(host);
        let mut y = lab.output::<f32>(5);
        nan_kernel::<48>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
        check(&y.read(), Class::Chain(8), |i| want[i]);
    };
    let of = |host: &[f32], start: f32, f: fn(f32, f32) -> f32| f64::from(host.iter().copied().fold(start, f));
    let (low, high) = (of(&host, f32::NAN, f32::min), of(&host, f32::NAN, f32::max));
    check(&host, [high, low, high, low, host.iter().map(|value| f64::from(*value)).sum()]);
    host[47] = f32::NAN;
    let (low, high) = (of(&host, f32::NAN, f32::min), of(&host, f32::NAN, f32::max));
    check(&host, [f64::NAN, f64::NAN, high, low, f64::NAN]);
    check(&[f32::NAN; 48], [f64::NAN; 5]);
    check(&[-0.0; 48], [-0.0; 5]);
}

/// A tile smaller than a warp, at every offset of a tensor that ends right behind it.
#[kernel]
fn small_kernel<const N: usize>(y: PtrMut<u8>, value: u8) {
    store(y + arange(0, N), full([N], value));
}

fn one_element_writes_once(lab: &mut Lab) {
    fn check<const N: usize>(lab: &mut Lab) {
        let mut y = lab.output::<u8>(N);
        small_kernel::<N>(&mut y.slice(), 7).grid(1).launch().unwrap();
        check_bits(&y.read(), |_| 7);
        let mut y = lab.output::<u8>(N + 1);
        small_kernel::<N>(&mut y.slice(), 9).grid(1).launch().unwrap();
        let last = y.before()[N];
        check_bits(&y.read(), |i| if i < N { 9 } else { last });
    }
    check::<1>(lab);
    check::<3>(lab);
    check::<7>(lab);
    check::<31>(lab);
    check::<129>(lab);
}

//! Matrices whose strides are arguments: aligned and not, larger than a row, 0 and negative ones, with numbers up to the ends of `i64`. Nothing
//! outside of the tensors is touched, and every element inside is right.

use std::collections::HashMap;

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check};
use crate::value::Value;

tests![
    rows_of_any_stride<u8, bf16, f32, i64>,
    columns_of_any_stride<f16, f32>,
    turned<u8, f32, f64>,
    any_strides<i32>,
    without_masks<bf16, i32>,
    numbers_near_the_ends<i16, f32>,
    atomics_on_matrices,
    sums_of_rows,
    sums_of_columns,
    softmax_of_several_rows,
    blocks_of_four_axes,
];

/// The part of a matrix that a kernel accesses: rows from `i` to before `m`, and columns from `j` to before `n`.
#[derive(Clone, Copy, Debug)]
struct Region {
    i: i64,
    j: i64,
    m: i64,
    n: i64,
}

/// The index of the first element and the distances between rows and between columns.
#[derive(Clone, Copy, Debug)]
struct Strides {
    start: i64,
    row: i64,
    column: i64,
}

impl Strides {
    fn index(self, row: i64, column: i64) -> i64 {
        self.start.wrapping_add(row.wrapping_mul(self.row)).wrapping_add(column.wrapping_mul(self.column))
    }

    /// Would two lanes of the 2 x 2 programs of `anywhere_kernel` store to one element?
    fn has_races(self, region: Region, len: usize) -> bool {
        let rows = (0..8).map(|row| region.i.wrapping_add(row)).filter(|row| *row < region.m);
        let columns = || (0..64).map(|column| region.j.wrapping_add(column)).filter(|column| *column < region.n);
        let indices = rows.flat_map(|row| columns().map(move |column| self.index(row, column)));
        let mut seen = vec![false; len];
        let mut stored = indices.filter_map(|index| usize::try_from(index).ok().filter(|index| *index < len));
        stored.any(|index| std::mem::replace(&mut seen[index], true))
    }

    fn of<T: Copy>(self, all: &[T], row: i64, column: i64) -> Option<T> {
        usize::try_from(self.index(row, column)).ok().and_then(|index| all.get(index)).copied()
    }
}

/// Is what a copy by tiles has written what the elements say, one by one? Where several elements go to one index, it is one of them.
#[track_caller]
fn check_copy<T: Value>(
    [written, before, x]: [&[T]; 3],
    [from, to]: [Strides; 2],
    region: Region,
    shape: [i64; 2],
    grid: [i64; 2],
    other: T,
) {
    let mut wanted: HashMap<i64, Vec<u64>> = HashMap::new();
    for (row, column) in (0..shape[0] * grid[0]).flat_map(|row| (0..shape[1] * grid[1]).map(move |column| (row, column))) {
        let (row, column) = (region.i.wrapping_add(row), region.j.wrapping_add(column));
        if row < region.m && column < region.n {
            let value = from.of(x, row, column).unwrap_or(other);
            wanted.entry(to.index(row, column)).or_default().push(value.bits());
        }
    }
    for (index, value) in written.iter().enumerate() {
        match wanted.get(&(index as i64)) {
            Some(values) => assert!(values.contains(&value.bits()), "[{index}] is {value:?}: {from:?} {to:?} {region:?}"),
            None => assert!(value.bits() == before[index].bits(), "[{index}] was written: {from:?} {to:?} {region:?}"),
        }
    }
}

#[kernel]
fn copy_kernel<T: Element, const M: usize, const N: usize>(x: Ptr<T>, y: PtrMut<T>, m: usize, n: usize, s: isize, t: isize) {
    let rows = program_id(0) * M + arange(0, M);
    let columns = program_id(1) * N + arange(0, N);
    let mask = (rows < m)[(.., None)] & (columns < n)[(None, ..)];
    let v = load(x + rows[(.., None)] * s + columns[(None, ..)], mask = mask);
    store(y + rows[(.., None)] * t + columns[(None, ..)], v, mask = mask);
}

/// Extents around a whole number of tiles.
fn extents(lab: &mut Lab) -> [usize; 2] {
    [lab.below(3) * 16 + [0, 0, 1, 7, 15][lab.below(5)], lab.below(3) * 64 + [0, 0, 0, 16, 33, 63][lab.below(6)]]
}

fn rows_of_any_stride<T: Value>(lab: &mut Lab) {
    for case in 0..12 {
        let [m, n] = extents(lab);
        let [s, t] = [0; 2].map(|_| n + [0, 0, 16, 48, 1, 5][lab.below(6)]);
        // Aligned now and then, so that tiles are full.
        let shift = if case % 2 == 0 { 0 } else { lab.below(5) };
        let host = lab.values::<T>(m * s);
        let (x, mut y) = (lab.input_at(&host, shift), lab.output_at::<T>(m * t, shift));
        let grid = [cdiv(m, 16), cdiv(n, 64)];
        copy_kernel::<T, 16, 64>(x.slice(), &mut y.slice(), m, n, s as isize, t as isize).grid((grid[0], grid[1])).launch().unwrap();
        let strides = [s, t].map(|row| Strides { start: 0, row: row as i64, column: 1 });
        let region = Region { i: 0, j: 0, m: m as i64, n: n as i64 };
        check_copy([&y.read(), y.before(), &host], strides, region, [16, 64], grid.map(|count| count as i64), T::from_bits(0));
    }
}

#[kernel]
fn columns_kernel<T: Element, const M: usize, const N: usize>(x: Ptr<T>, y: PtrMut<T>, m: usize, n: usize, s: isize, t: isize) {
    let rows = program_id(0) * M + arange(0, M);
    let columns = program_id(1) * N + arange(0, N);
    let mask = (rows < m)[(.., None)] & (columns < n)[(None, ..)];
    let v = load(x + rows[(.., None)] + columns[(None, ..)] * s, mask = mask);
    store(y + rows[(.., None)] + columns[(None, ..)] * t, v, mask = mask);
}

/// Matrices that are stored by columns.
fn columns_of_any_stride<T: Value>(lab: &mut Lab) {
    for case in 0..8 {
        let [n, m] = extents(lab);
        let [s, t] = [0; 2].map(|_| m + [0, 0, 16, 1][lab.below(4)]);
        let shift = if case % 2 == 0 { 0 } else { lab.below(5) };
        let host = lab.values::<T>(n * s);
        let (x, mut y) = (lab.input_at(&host, shift), lab.output_at::<T>(n * t, shift));
        let grid = [cdiv(m, 64), cdiv(n, 16)];
        columns_kernel::<T, 64, 16>(x.slice(), &mut y.slice(), m, n, s as isize, t as isize).grid((grid[0], grid[1])).launch().unwrap();
        let strides = [s, t].map(|column| Strides { start: 0, row: 1, column: column as i64 });
        let region = Region { i: 0, j: 0, m: m as i64, n: n as i64 };
        check_copy([&y.read(), y.before(), &host], strides, region, [64, 16], grid.map(|count| count as i64), T::from_bits(0));
    }
}

#[kernel]
fn turn_kernel<T: Element, const M: usize, const N: usize>(x: Ptr<T>, y: PtrMut<T>, m: usize, n: usize, s: usize, t: usize) {
    let rows = program_id(0) * M + arange(0, M);
    let columns = program_id(1) * N + arange(0, N);
    let v = load(x + rows[(.., None)] * s + columns[(None, ..)], mask = (rows < m)[(.., None)] & (columns < n)[(None, ..)]);
    let to = columns[(.., None)] * t + rows[(None, ..)];
    store(y + to, trans(v), mask = (columns < n)[(.., None)] & (rows < m)[(None, ..)]);
}

fn turned<T: Value>(lab: &mut Lab) {
    for case in 0..8 {
        let [m, n] = [0; 2].map(|_| lab.below(3) * 32 + [0, 0, 16, 5][lab.below(4)]);
        let (s, t) = (n + [0, 16, 3][lab.below(3)], m + [0, 16, 1][lab.below(3)]);
        let shift = if case % 2 == 0 { 0 } else { lab.below(5) };
        let host = lab.values::<T>(m * s);
        let (x, mut y) = (lab.input_at(&host, shift), lab.output_at::<T>(n * t, shift));
        let grid = [cdiv(m, 32), cdiv(n, 32)];
        turn_kernel::<T, 32, 32>(x.slice(), &mut y.slice(), m, n, s, t).grid((grid[0], grid[1])).launch().unwrap();
        let strides = [Strides { start: 0, row: s as i64, column: 1 }, Strides { start: 0, row: 1, column: t as i64 }];
        let region = Region { i: 0, j: 0, m: m as i64, n: n as i64 };
        check_copy([&y.read(), y.before(), &host], strides, region, [32, 32], grid.map(|count| count as i64), T::from_bits(0));
    }
}

/// Any start, any strides, any region.
#[kernel]
fn anywhere_kernel<T: Element, const M: usize, const N: usize>(
    x: Ptr<T>,
    y: PtrMut<T>,
    i: i64,
    j: i64,
    m: i64,
    n: i64,
    x_start: i64,
    x_row: i64,
    x_column: i64,
    y_start: i64,
    y_row: i64,
    y_column: i64,
    other: T,
) {
    let rows = i + program_id(0) * M + arange(0, M);
    let columns = j + program_id(1) * N + arange(0, N);
    let mask = (rows < m)[(.., None)] & (columns < n)[(None, ..)];
    let from = x_start + rows[(.., None)] * x_row + columns[(None, ..)] * x_column;
    let to = y_start + rows[(.., None)] * y_row + columns[(None, ..)] * y_column;
    store(y + to, load(x + from, mask = mask, other = other), mask = mask);
}

#[track_caller]
fn run_anywhere<T: Value>(lab: &mut Lab, [x_len, y_len]: [usize; 2], [from, to]: [Strides; 2], region: Region) {
    if to.has_races(region, y_len) {
        return;
    }
    let host = lab.values::<T>(x_len);
    let (x, mut y) = (lab.input(&host), lab.output::<T>(y_len));
    let Region { i, j, m, n } = region;
    let other = T::near(3.0);
    anywhere_kernel::<T, 4, 32>(
        x.slice(),
        &mut y.slice(),
        i,
        j,
        m,
        n,
        from.start,
        from.row,
        from.column,
        to.start,
        to.row,
        to.column,
        other,
    )
    .grid((2, 2))
    .launch()
    .unwrap();
    check_copy([&y.read(), y.before(), &host], [from, to], region, [4, 32], [2, 2], other);
}

fn any_strides<T: Value>(lab: &mut Lab) {
    for _ in 0..40 {
        let (m, n) = (lab.below(10) as i64, lab.below(70) as i64);
        let mut draw = |len: i64| {
            let step = |lab: &mut Lab| [1, 1, 0, -1, n, n + 4, -n, 2, 7, m, -m][lab.below(11)];
            let (row, column) = (step(lab), step(lab));
            let start = [0, 0, len / 2, len - 1, -3][lab.below(5)];
            Strides { start, row, column }
        };
        let strides = [draw(400), draw(600)];
        run_anywhere::<T>(lab, [400, 600], strides, Region { i: 0, j: 0, m, n });
    }
}

fn numbers_near_the_ends<T: Value>(lab: &mut Lab) {
    const FAR: [i64; 12] =
        [0, 1 << 31, -(1 << 31), 1 << 32, (1 << 40) - 1, 1 << 40, 1 << 61, 1 << 62, -(1 << 62), i64::MAX, i64::MIN, 1 << 63 >> 3];
    for _ in 0..40 {
        let mut far = |usual: i64| match lab.below(3) {
            0 => FAR[lab.below(FAR.len())].wrapping_add(lab.below(80) as i64 - 40),
            _ => usual,
        };
        let region = Region { i: far(0), j: far(0), m: far(7), n: far(50) };
        let mut strides = [0; 2].map(|_| Strides { start: far(0), row: far(50), column: far(1) });
        // Where rows and columns are far away, half of the matrices begin so that they come back.
        if lab.below(2) == 0 {
            strides = strides
                .map(|strides| Strides { start: strides.start.wrapping_mul(2).wrapping_sub(strides.index(region.i, region.j)), ..strides });
        }
        run_anywhere::<T>(lab, [400, 400], strides, region);
    }
}

#[kernel]
fn bare_kernel<T: Element, const M: usize, const N: usize>(x: Ptr<T>, y: PtrMut<T>, s: usize, i: i64) {
    let rows = i + program_id(0) * M + arange(0, M);
    let at = rows[(.., None)] * s + arange(0, N)[(None, ..)];
    store(y + at, load(x + at));
}

/// Kernels may lean on the bounds: what is outside reads as 0 and is not written.
fn without_masks<T: Value>(lab: &mut Lab) {
    for (m, s, i) in [(16, 32, 0), (16, 32, -3), (11, 48, 0), (5, 33, -1), (9, 35, 2), (0, 32, 0)] {
        let (x_len, y_len) = (m * s + lab.below(3), m * s + lab.below(40));
        let host = lab.values::<T>(x_len);
        let (x, mut y) = (lab.input(&host), lab.output::<T>(y_len));
        bare_kernel::<T, 8, 32>(x.slice(), &mut y.slice(), s, i).grid(2).launch().unwrap();
        let strides = Strides { start: 0, row: s as i64, column: 1 };
        let region = Region { i, j: 0, m: i64::MAX, n: i64::MAX };
        check_copy([&y.read(), y.before(), &host], [strides; 2], region, [8, 32], [2, 1], T::from_bits(0));
    }
}

#[kernel]
fn count_kernel<const M: usize, const N: usize>(y: PtrMut<i32>, old: PtrMut<i32>, m: usize, n: usize, s: usize) {
    let rows = program_id(0) * M + arange(0, M);
    let columns = arange(0, N);
    let mask = (rows < m)[(.., None)] & (columns < n)[(None, ..)];
    let before = atomic_add(y + rows[(.., None)] * s + columns[(None, ..)], 1 as i32, mask = mask);
    store(old + rows[(.., None)] * N + columns[(None, ..)], before, mask = mask);
}

fn atomics_on_matrices(lab: &mut Lab) {
    for (m, n, s) in [(8, 32, 40), (13, 20, 20), (5, 32, 0), (3, 1, 100)] {
        let host: Vec<i32> = lab.values(m * s + 32);
        let (mut y, mut old) = (lab.in_place(&host), lab.output::<i32>(16 * 32));
        count_kernel::<8, 32>(&mut y.slice(), &mut old.slice(), m, n, s).grid(2).launch().unwrap();
        let hits = |index: usize| (0..m * n).filter(|at| at / n * s + at % n == index).count() as i32;
        let after = y.read();
        (0..host.len()).for_each(|index| assert_eq!(after[index], host[index].wrapping_add(hits(index)), "[{index}] {m} {n} {s}"));
        let old = old.read();
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let (found, first) = (old[row * 32 + column], host[row * s + column]);
            assert!((0..hits(row * s + column)).contains(&found.wrapping_sub(first)), "[{row}, {column}] {m} {n} {s}");
        }
    }
}

#[kernel]
fn row_sums_kernel<const M: usize, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, m: usize, n: usize, s: usize) {
    let rows = program_id(0) * M + arange(0, M);
    let columns = arange(0, N);
    let mask = (rows < m)[(.., None)] & (columns < n)[(None, ..)];
    store(y + rows, sum(load(x + rows[(.., None)] * s + columns[(None, ..)], mask = mask), axis = 1), mask = rows < m);
}

fn sums_of_rows(lab: &mut Lab) {
    for (m, n, s) in [(16, 256, 256), (16, 200, 208), (21, 256, 300), (7, 33, 37), (1, 1, 1)] {
        let host = lab.numbers::<f32>(m * s, 0.0, 1.0);
        let (x, mut y) = (lab.input_at(&host, 0), lab.output::<f32>(m));
        row_sums_kernel::<8, 256>(x.slice(), &mut y.slice(), m, n, s).grid(cdiv(m, 8)).launch().unwrap();
        check(&y.read(), Class::Chain(20), |row| host[row * s..][..n].iter().map(|value| f64::from(*value)).sum());
    }
}

#[kernel]
fn column_sums_kernel<const M: usize, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, m: usize, n: usize, s: usize) {
    let columns = program_id(0) * N + arange(0, N);
    let mut total = zeros::<f32>([M, N]);
    for start in (0..m).step_by(M) {
        let rows = start + arange(0, M);
        let mask = (rows < m)[(.., None)] & (columns < n)[(None, ..)];
        total += load(x + rows[(.., None)] * s + columns[(None, ..)], mask = mask);
    }
    store(y + columns, sum(total, axis = 0), mask = columns < n);
}

fn sums_of_columns(lab: &mut Lab) {
    for (m, n, s) in [(32, 128, 128), (40, 130, 144), (9, 64, 67), (1, 1, 1), (0, 5, 8)] {
        let host = lab.numbers::<f32>(m * s, 0.0, 1.0);
        let (x, mut y) = (lab.input_at(&host, 0), lab.output::<f32>(n));
        column_sums_kernel::<16, 64>(x.slice(), &mut y.slice(), m, n, s).grid(cdiv(n, 64)).launch().unwrap();
        check(&y.read(), Class::Chain(20), |column| (0..m).map(|row| f64::from(host[row * s + column])).sum());
    }
}

#[kernel]
fn softmax_kernel<const M: usize, const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, m: usize, n: usize, s: usize) {
    let rows = program_id(0) * M + arange(0, M);
    let columns = arange(0, N);
    let mask = (rows < m)[(.., None)] & (columns < n)[(None, ..)];
    let at = rows[(.., None)] * s + columns[(None, ..)];
    let v = load(x + at, mask = mask, other = -1.0e30);
    let e = exp(v - max(v, axis = 1, keep_dims = true));
    store(y + at, e / sum(e, axis = 1, keep_dims = true), mask = mask);
}

fn softmax_of_several_rows(lab: &mut Lab) {
    for (m, n, s) in [(8, 128, 128), (10, 100, 116), (5, 77, 79)] {
        let host = lab.numbers::<f32>(m * s, -10.0, 10.0);
        let (x, mut y) = (lab.input_at(&host, 0), lab.output_at::<f32>(m * s, 0));
        softmax_kernel::<4, 128>(x.slice(), &mut y.slice(), m, n, s).grid(cdiv(m, 4)).launch().unwrap();
        let before = y.before().to_vec();
        let y = y.read();
        let at = |index: usize| (index / n) * s + index % n;
        let inside: Vec<f32> = (0..m * n).map(|index| y[at(index)]).collect();
        check(&inside, Class::Chain(40), |index| {
            let row = &host[index / n * s..][..n];
            let exp = |value: f32| f64::from(value).exp();
            exp(host[at(index)]) / row.iter().map(|value| exp(*value)).sum::<f64>()
        });
        for index in (0..m * s).filter(|index| index % s >= n) {
            assert_eq!(y[index].to_bits(), before[index].to_bits(), "element {index} beside the rows was written");
        }
    }
}

/// Heads of a batch: `[b, s, h, d]` to `[b, h, s, d]`.
#[kernel]
fn heads_kernel<const S: usize, const H: usize, const D: usize>(x: View<i32, 4>, y: ViewMut<i32, 4>) {
    let (b, s) = (program_id(0), program_id(1) * S);
    for h in (0..extent(x, 2)).step_by(H) {
        y.store([b, h, s, 0], permute(x.load([b, s, h, 0], [1, S, H, D]), [0, 2, 1, 3]));
    }
}

fn blocks_of_four_axes(lab: &mut Lab) {
    for (b, s, h, d) in [(2, 8, 4, 32), (1, 7, 3, 20), (3, 4, 5, 17)] {
        let host = lab.values::<i32>(b * s * h * d);
        let x = lab.device.tensor(&host).unwrap().reshape([b, s, h, d]).unwrap();
        let mut y = lab.device.tensor(&vec![7; b * s * h * d]).unwrap().reshape([b, h, s, d]).unwrap();
        heads_kernel::<4, 2, 32>(&x, &mut y).grid((b, cdiv(s, 4))).launch().unwrap();
        for (index, value) in y.to_vec().unwrap().into_iter().enumerate() {
            let (i, k, j, l) = (index / (h * s * d), index / (s * d) % h, index / d % s, index % d);
            assert_eq!(value, host[((i * s + j) * h + k) * d + l], "[{i}, {k}, {j}, {l}] of {b} {s} {h} {d}");
        }
    }
}

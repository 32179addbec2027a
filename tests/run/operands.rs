//! Operands of matrix products that go through shared memory: trip counts around the number of slots, ragged ends, operands that are shared, and tensors that the kernel
//! also writes. `dots.rs` and `dot_types.rs` have the products themselves.
//!
//! Elements are multiples of 1/8, so that sums in any order are exact.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::products::{eighths, product};
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::{FloatValue, Value};

tests![
    trip_counts<f16, bf16>,
    stages<bf16>,
    ragged_ends<bf16>,
    operands_that_begin_anywhere<f16>,
    wide_and_narrow_types,
    two_products_share_an_operand<f16, bf16>,
    tiles_times_their_transposes<f16>,
    batches_in_a_loop<bf16>,
    loops_in_a_loop<f16>,
    operands_that_the_kernel_writes<f16>,
    volatile_operands<bf16>,
    chains_in_a_loop<f16>,
];

/// `z = a * b`, where the rows of `a` and `b` are as far from each other as `a_stride` and `b_stride` say.
#[kernel]
fn product_kernel<
    T: Float,
    const TRANSPOSED_A: bool,
    const TRANSPOSED_B: bool,
    const M: usize,
    const N: usize,
    const K: usize,
    const STAGES: usize,
>(
    x: Ptr<T>,
    y: Ptr<T>,
    z: PtrMut<f32>,
    rows: usize,
    columns: usize,
    inner: usize,
    a_stride: usize,
    b_stride: usize,
) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * N + arange(0, N)).row();
    let mut total = zeros::<f32>([M, N]);
    for first in range(0, inner, K, num_stages = STAGES) {
        let k = first + arange(0, K);
        let at = if TRANSPOSED_A { k.row() * a_stride + row } else { row * a_stride + k.row() };
        let a = load(x + at, mask = (row < rows) & (k.row() < inner));
        let at = if TRANSPOSED_B { column * b_stride + k.col() } else { k.col() * b_stride + column };
        let b = load(y + at, mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
    }
    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
}

/// Launches the kernel for operands whose rows are `slack` elements longer than needed and begin `shift` elements behind a multiple of 16 bytes.
macro_rules! check_product {
    ($ty:ty, $a:literal, $b:literal, [$m:literal, $n:literal, $k:literal], $stages:literal, $lab:ident, $extents:expr, $slack:expr, $shift:expr) => {{
        let [m, n, k]: [usize; 3] = $extents;
        let strides = [if $a { m } else { k } + $slack, if $b { k } else { n } + $slack];
        let rows = [if $a { k } else { m }, if $b { n } else { k }];
        let host = [0, 1].map(|of| eighths::<$ty>($lab, rows[of] * strides[of]));
        let (x, y) = ($lab.input_at(&host[0], $shift), $lab.input_at(&host[1], $shift));
        let mut z = $lab.output::<f32>(m * n);
        product_kernel::<$ty, $a, $b, $m, $n, $k, $stages>(x.slice(), y.slice(), &mut z.slice(), m, n, k, strides[0], strides[1])
            .grid((m.div_ceil($m), n.div_ceil($n)))
            .launch()
            .unwrap();
        check_bits(&z.read(), |i| {
            let left = |at: usize| host[0][if $a { at * strides[0] + i / n } else { i / n * strides[0] + at }];
            let right = |at: usize| host[1][if $b { i % n * strides[1] + at } else { at * strides[1] + i % n }];
            product(left, right, k) as f32
        });
    }};
}

/// With three slots: no iteration, and one to five, each with and without a part of another one.
fn trip_counts<T: FloatValue>(lab: &mut Lab) {
    for k in [0, 8, 32, 40, 64, 96, 104, 128, 160] {
        check_product!(T, false, false, [32, 32, 32], 3, lab, [32, 64, k], 0, 0);
        check_product!(T, true, true, [32, 32, 32], 3, lab, [64, 32, k], 0, 0);
    }
}

fn stages<T: FloatValue>(lab: &mut Lab) {
    for k in [64, 128, 192, 320] {
        check_product!(T, false, false, [32, 64, 64], 1, lab, [32, 64, k], 0, 0);
        check_product!(T, false, false, [32, 64, 64], 2, lab, [32, 64, k], 0, 0);
        check_product!(T, false, true, [32, 64, 64], 4, lab, [32, 64, k], 0, 0);
        check_product!(T, true, false, [64, 32, 64], 5, lab, [64, 32, k], 0, 0);
    }
}

/// Rows, columns and sums that end within a tile, at multiples of 16 and of 8 bytes, of 4 bytes, and anywhere.
fn ragged_ends<T: FloatValue>(lab: &mut Lab) {
    for [m, n, k] in [[40, 72, 136], [36, 68, 132], [34, 66, 130], [33, 65, 131]] {
        check_product!(T, false, false, [32, 64, 64], 3, lab, [m, n, k], 0, 0);
        check_product!(T, true, false, [32, 64, 64], 3, lab, [m, n, k], 0, 0);
        check_product!(T, false, true, [32, 64, 64], 3, lab, [m, n, k], 0, 0);
        check_product!(T, true, true, [32, 64, 64], 3, lab, [m, n, k], 0, 0);
    }
}

fn operands_that_begin_anywhere<T: FloatValue>(lab: &mut Lab) {
    for (slack, shift) in [(8, 0), (0, 1), (1, 0), (4, 4), (2, 3)] {
        check_product!(T, false, false, [64, 32, 64], 3, lab, [64, 64, 128], slack, shift);
        check_product!(T, true, true, [64, 32, 64], 3, lab, [64, 64, 128], slack, shift);
    }
}

/// Elements of 8, 32 and 64 bits, contiguous along the sums and across them.
fn wide_and_narrow_types(lab: &mut Lab) {
    #[kernel]
    fn typed<T: Element, S: Number, const TRANSPOSED: bool, const K: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<S>, inner: usize) {
        let (row, column) = (arange(0, 32).col(), arange(0, 32).row());
        let mut total = zeros::<S>([32, 32]);
        for first in range(0, inner, K, num_stages = 3) {
            let k = first + arange(0, K);
            let (across, down) = (k.row(), k.col());
            let a = load(x + if TRANSPOSED { across * 32 + row } else { row * inner + across }, mask = across < inner);
            let b = load(y + if TRANSPOSED { column * inner + down } else { down * 32 + column }, mask = down < inner);
            total = dot(a, b, acc = total, acc_type = S);
        }
        store(z + row * 32 + column, total);
    }
    macro_rules! check {
        ($ty:ty, $sum:ty, $transposed:literal, $k:literal, |$number:ident| $wide:expr) => {
            for k in [$k, 3 * $k, 4 * $k + 16] {
                let host =
                    [0, 1].map(|_| lab.numbers::<f64>(32 * k, -3.49, 3.49).into_iter().map(|x| <$ty>::near(x.round())).collect::<Vec<_>>());
                let (x, y) = (lab.input(&host[0]), lab.input(&host[1]));
                let mut z = lab.output::<$sum>(32 * 32);
                typed::<$ty, $sum, $transposed, $k>(x.slice(), y.slice(), &mut z.slice(), k).grid(1).launch().unwrap();
                let wide = |$number: $ty| -> f64 { $wide };
                check_bits(&z.read(), |i| {
                    let (row, column) = (i / 32, i % 32);
                    let terms = (0..k).map(|at| {
                        let (a, b) = if $transposed { (at * 32 + row, column * k + at) } else { (row * k + at, at * 32 + column) };
                        wide(host[0][a]) * wide(host[1][b])
                    });
                    <$sum>::near(terms.sum::<f64>() + 0.0)
                });
            }
        };
    }
    check!(i8, i32, false, 64, |x| x.into());
    check!(i8, i32, true, 128, |x| x.into());
    check!(f64, f64, false, 16, |x| x);
    check!(f64, f64, true, 8, |x| x);
    check!(f8e4m3, f32, false, 128, |x| x.to_f32().into());
    check!(f8e5m2, f32, true, 64, |x| x.to_f32().into());
}

/// Both products read one operand in each iteration.
#[kernel]
fn gated_kernel<T: Float, const M: usize, const N: usize, const K: usize>(
    x: Ptr<T>,
    gate: Ptr<T>,
    up: Ptr<T>,
    z: PtrMut<f32>,
    rows: usize,
    columns: usize,
    inner: usize,
) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * N + arange(0, N)).row();
    let (mut gates, mut ups) = (zeros::<f32>([M, N]), zeros::<f32>([M, N]));
    for first in range(0, inner, K) {
        let k = first + arange(0, K);
        let left = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let (at, mask) = (k.col() * columns + column, (column < columns) & (k.col() < inner));
        gates += dot(left, load(gate + at, mask = mask));
        ups += dot(left, load(up + at, mask = mask));
    }
    let inside = (row < rows) & (column < columns);
    store(z + row * columns + column, gates, mask = inside);
    store(z + (rows + row) * columns + column, ups, mask = inside);
}

fn two_products_share_an_operand<T: FloatValue>(lab: &mut Lab) {
    for [m, n, k] in [[64, 64, 256], [40, 72, 72], [33, 31, 65]] {
        let (a, both) = (eighths::<T>(lab, m * k), [0, 1].map(|_| eighths::<T>(lab, k * n)));
        let (x, gate, up) = (lab.input(&a), lab.input(&both[0]), lab.input(&both[1]));
        let mut z = lab.output::<f32>(2 * m * n);
        gated_kernel::<T, 32, 64, 64>(x.slice(), gate.slice(), up.slice(), &mut z.slice(), m, n, k)
            .grid((m.div_ceil(32), n.div_ceil(64)))
            .launch()
            .unwrap();
        check_bits(&z.read(), |i| {
            let (b, i) = (&both[i / (m * n)], i % (m * n));
            product(|at| a[i / n * k + at], |at| b[at * n + i % n], k) as f32
        });
    }
}

/// `z = a * a^T + a^T * a` for square tiles, which are both operands of both products.
#[kernel]
fn squares_kernel<T: Float, const M: usize>(x: Ptr<T>, z: PtrMut<f32>, count: usize) {
    let at = arange(0, M).col() * M + arange(0, M).row();
    let mut total = zeros::<f32>([M, M]);
    for number in range(0, count) {
        let a = load(x + number * M * M + at);
        total += dot(a, trans(a));
        total += dot(trans(a), a);
    }
    store(z + at, total);
}

fn tiles_times_their_transposes<T: FloatValue>(lab: &mut Lab) {
    fn check<T: FloatValue, const M: usize>(lab: &mut Lab) {
        for count in [0, 1, 4] {
            let host = eighths::<T>(lab, count * M * M);
            let x = lab.input(&host);
            let mut z = lab.output::<f32>(M * M);
            squares_kernel::<T, M>(x.slice(), &mut z.slice(), count).grid(1).launch().unwrap();
            check_bits(&z.read(), |i| {
                let (i, j) = (i / M, i % M);
                let of = |number: usize, row: usize, column: usize| host[(number * M + row) * M + column];
                let sums = (0..count).map(|number| {
                    product(|at| of(number, i, at), |at| of(number, j, at), M) + product(|at| of(number, at, i), |at| of(number, at, j), M)
                });
                // The empty sum of an iterator is -0.
                (0.0 + sums.sum::<f64>()) as f32
            });
        }
    }
    check::<T, 32>(lab);
    check::<T, 64>(lab);
}

/// Two matrices in each iteration.
#[kernel]
fn batches_kernel<T: Float, const M: usize, const K: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, inner: usize) {
    let batch = arange(0, 2)[(.., None, None)];
    let (row, column) = (arange(0, M)[(None, .., None)], arange(0, M)[(None, None, ..)]);
    let mut total = zeros::<f32>([2, M, M]);
    for first in range(0, inner, K) {
        let k = first + arange(0, K);
        let a = load(x + (batch * M + row) * inner + k[(None, None, ..)], mask = k[(None, None, ..)] < inner);
        let b = load(y + (batch * inner + k[(None, .., None)]) * M + column, mask = k[(None, .., None)] < inner);
        total += dot(a, b);
    }
    store(z + (batch * M + row) * M + column, total);
}

fn batches_in_a_loop<T: FloatValue>(lab: &mut Lab) {
    const M: usize = 32;
    for k in [64, 320, 72, 33] {
        let host = [0, 1].map(|_| eighths::<T>(lab, 2 * M * k));
        let (x, y) = (lab.input(&host[0]), lab.input(&host[1]));
        let mut z = lab.output::<f32>(2 * M * M);
        batches_kernel::<T, M, 64>(x.slice(), y.slice(), &mut z.slice(), k).grid(1).launch().unwrap();
        check_bits(&z.read(), |i| {
            let (batch, i, j) = (i / (M * M), i / M % M, i % M);
            product(|at| host[0][(batch * M + i) * k + at], |at| host[1][(batch * k + at) * M + j], k) as f32
        });
    }
}

/// The slots of the inner loop are filled again in each iteration of the outer one, and a sum between threads uses the memory in between.
#[kernel]
fn nested_kernel<T: Float, const M: usize, const K: usize>(x: Ptr<T>, z: PtrMut<f32>, sums: PtrMut<f32>, count: usize, inner: usize) {
    let (row, column) = (arange(0, M).col(), arange(0, M).row());
    for number in range(0, count) {
        let mut total = zeros::<f32>([M, M]);
        for first in range(0, inner, K) {
            let k = first + arange(0, K);
            let a = load(x + (number * M + row) * inner + k.row());
            let b = load(x + (number * M + column) * inner + k.col());
            total += dot(a, b);
        }
        store(z + (number * M + row) * M + column, total);
        store(sums + number * M + arange(0, M), sum(total, axis = 0));
    }
}

fn loops_in_a_loop<T: FloatValue>(lab: &mut Lab) {
    const M: usize = 32;
    for (count, k) in [(3, 128), (4, 32), (2, 0), (3, 256)] {
        let host = eighths::<T>(lab, count * M * k);
        let x = lab.input(&host);
        let (mut z, mut sums) = (lab.output::<f32>(count * M * M), lab.output::<f32>(count * M));
        nested_kernel::<T, M, 32>(x.slice(), &mut z.slice(), &mut sums.slice(), count, k).grid(1).launch().unwrap();
        let of = |number: usize, i: usize, j: usize| {
            let row = |row: usize| (number * M + row) * k;
            product(|at| host[row(i) + at], |at| host[row(j) + at], k)
        };
        check_bits(&z.read(), |i| of(i / (M * M), i / M % M, i % M) as f32);
        check_bits(&sums.read(), |i| (0..M).fold(0.0, |sum, row| sum + of(i / M, row, i % M)) as f32);
    }
}

/// An iteration multiplies what the one before stored.
#[kernel]
fn written_kernel<T: Float, const M: usize>(x: PtrMut<T>, z: PtrMut<f32>, count: usize) {
    let at = arange(0, M).col() * M + arange(0, M).row();
    let mut total = zeros::<f32>([M, M]);
    for number in range(0, count) {
        let a = load(x + number * M * M + at);
        let b = load(x + (count - 1 - number) * M * M + at);
        total += dot(a, b);
        store(x + number * M * M + at, a + a);
    }
    store(z + at, total);
}

fn operands_that_the_kernel_writes<T: FloatValue>(lab: &mut Lab) {
    const M: usize = 32;
    for count in [1, 2, 5] {
        let host = eighths::<T>(lab, count * M * M);
        let mut x = lab.in_place(&host);
        let mut z = lab.output::<f32>(M * M);
        written_kernel::<T, M>(&mut x.slice(), &mut z.slice(), count).grid(1).launch().unwrap();
        check_bits(&z.read(), |i| {
            let sums = (0..count).map(|number| {
                let other = count - 1 - number;
                let scale = if other < number { 2.0 } else { 1.0 };
                scale * product(|at| host[(number * M + i / M) * M + at], |at| host[(other * M + at) * M + i % M], M)
            });
            sums.sum::<f64>() as f32
        });
        check_bits(&x.read(), |i| T::near(2.0 * host[i].wide()));
    }
}

#[kernel]
fn volatile_kernel<T: Float, const M: usize>(x: Ptr<T>, z: PtrMut<f32>, count: usize) {
    let at = arange(0, M).col() * M + arange(0, M).row();
    let mut total = zeros::<f32>([M, M]);
    for number in range(0, count) {
        let a = load(x + number * M * M + at, volatile = true);
        let b = load(x + number * M * M + at);
        total += dot(a, b);
    }
    store(z + at, total);
}

fn volatile_operands<T: FloatValue>(lab: &mut Lab) {
    const M: usize = 32;
    let host = eighths::<T>(lab, 3 * M * M);
    let x = lab.input(&host);
    let mut z = lab.output::<f32>(M * M);
    volatile_kernel::<T, M>(x.slice(), &mut z.slice(), 3).grid(1).launch().unwrap();
    check_bits(&z.read(), |i| {
        let of = |number: usize| product(|at| host[(number * M + i / M) * M + at], |at| host[(number * M + at) * M + i % M], M);
        (0..3).map(of).sum::<f64>() as f32
    });
}

/// The operand of the second product is computed from the first one, as in attention. Only two operands of an iteration are loaded.
#[kernel]
fn chain_kernel<T: Float, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, count: usize) {
    let at = arange(0, M).col() * M + arange(0, M).row();
    let queries = load(x + at);
    let mut total = zeros::<f32>([M, M]);
    for number in range(0, count) {
        let keys = load(x + number * M * M + at);
        let values = load(y + number * M * M + at);
        let scores = dot(queries, trans(keys));
        let signs = select(scores < 0.0, full::<f32>([M, M], -1.0), full::<f32>([M, M], 1.0));
        total += dot(signs as T, values);
    }
    store(z + at, total);
}

fn chains_in_a_loop<T: FloatValue>(lab: &mut Lab) {
    const M: usize = 64;
    for count in [1, 2, 3, 5] {
        let host = [0, 1].map(|_| eighths::<T>(lab, count * M * M));
        let (x, y) = (lab.input(&host[0]), lab.input(&host[1]));
        let mut z = lab.output::<f32>(M * M);
        chain_kernel::<T, M>(x.slice(), y.slice(), &mut z.slice(), count).grid(1).launch().unwrap();
        check_bits(&z.read(), |i| {
            let (row, column) = (i / M, i % M);
            let mut sum = 0.0;
            for number in 0..count {
                for key in 0..M {
                    let score = product(|at| host[0][row * M + at], |at| host[0][(number * M + key) * M + at], M);
                    let value = host[1][(number * M + key) * M + column].wide();
                    sum += if score < 0.0 { -value } else { value };
                }
            }
            sum as f32
        });
    }
}

//! Matrix products. Elements are multiples of 1/8, so that sums in any order are exact.

use galatea::prelude::*;

use crate::lab::{Input, Lab, Output};
use crate::products::{eighths, product, product_kernels};
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::FloatValue;

tests![
    ragged_products<f16, bf16>,
    operands_in_any_order<f16, bf16>,
    every_number_of_warps<bf16>,
    padded_extents<f16, bf16>,
    chains<f16, bf16>,
    sums_go_on<bf16>,
    infinities_and_nan<f16, bf16>,
    batches_of_addresses<f16>,
];

product_kernels! { warps { one(num_warps = 1); two(num_warps = 2); four(num_warps = 4); eight(num_warps = 8); sixteen(num_warps = 16); } }

/// Operands of a product and its result.
struct Matrices<T> {
    host: [Vec<T>; 2],
    a: Input<T>,
    b: Input<T>,
    out: Output<f32>,
    extents: [usize; 3],
}

impl<T: FloatValue> Matrices<T> {
    fn new(lab: &mut Lab, extents: [usize; 3]) -> Matrices<T> {
        let [m, n, k] = extents;
        let host = [m * k, k * n].map(|len| eighths::<T>(lab, len));
        Matrices { a: lab.input(&host[0]), b: lab.input(&host[1]), out: lab.output(m * n), host, extents }
    }

    /// Compares the result, of operands that are stored with rows and columns exchanged where `transposed` says so.
    #[track_caller]
    fn check(&self, transposed: [bool; 2]) {
        let [m, n, k] = self.extents;
        let [a, b] = &self.host;
        check_bits(&self.out.read(), |i| {
            let left = |at: usize| if transposed[0] { a[at * m + i / n] } else { a[i / n * k + at] };
            let right = |at: usize| if transposed[1] { b[i % n * k + at] } else { b[at * n + i % n] };
            product(left, right, k) as f32
        });
    }
}

/// Launches the kernel with that number of warps, and checks the result.
macro_rules! matmul {
    ($warps:ident, $ty:ty, $a:literal, $b:literal, [$m:literal, $n:literal, $k:literal], $lab:ident, $extents:expr) => {{
        let mut of = Matrices::<$ty>::new($lab, $extents);
        let [m, n, k] = of.extents;
        warps::$warps::product_kernel::<$ty, $a, $b, $m, $n, $k>(of.a.slice(), of.b.slice(), &mut of.out.slice(), m, n, k)
            .grid((m.div_ceil($m), n.div_ceil($n)))
            .launch()
            .unwrap();
        of.check([$a, $b]);
    }};
}

fn ragged_products<T: FloatValue>(lab: &mut Lab) {
    for extents in [[16, 8, 16], [1, 1, 1], [33, 17, 65], [64, 64, 64], [50, 100, 7], [40, 72, 0]] {
        matmul!(one, T, false, false, [16, 8, 16], lab, extents);
        matmul!(four, T, false, false, [32, 64, 32], lab, extents);
        matmul!(four, T, false, true, [16, 64, 128], lab, extents);
    }
}

fn operands_in_any_order<T: FloatValue>(lab: &mut Lab) {
    for extents in [[64, 32, 64], [65, 31, 70]] {
        matmul!(four, T, false, false, [32, 32, 64], lab, extents);
        matmul!(four, T, true, false, [32, 32, 64], lab, extents);
        matmul!(four, T, false, true, [32, 32, 64], lab, extents);
        matmul!(four, T, true, true, [32, 32, 64], lab, extents);
    }
}

/// Warps divide rows, then columns, and hold copies where there are more of them than parts.
fn every_number_of_warps<T: FloatValue>(lab: &mut Lab) {
    macro_rules! each {
        ($($warps:ident),*) => {$(
            matmul!($warps, T, false, true, [16, 8, 32], lab, [40, 24, 64]);
            matmul!($warps, T, false, true, [64, 16, 64], lab, [130, 24, 64]);
            matmul!($warps, T, false, false, [16, 128, 16], lab, [20, 260, 48]);
        )*};
    }
    each!(one, two, four, eight, sixteen);
}

/// Tiles of 24 x 48 and 48 x 12 are padded to 32 x 64 and 64 x 16. What padding computes here is infinite, or NaN.
#[kernel]
fn padded_kernel<T: Float, const M: usize, const N: usize, const K: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>) {
    let (row, column, k) = (arange(0, M).col(), arange(0, N).row(), arange(0, K));
    let missing = 1.0 / (select(k < K, 1.0, 0.0)) - 1.0;
    let a = load(x + row * K + k.row()) + missing.row() as T;
    let b = load(y + k.col() * N + column) + missing.col() as T;
    store(z + row * N + column, dot(a, b));
}

fn padded_extents<T: FloatValue>(lab: &mut Lab) {
    padded::<T, 24, 12, 48>(lab);
    padded::<T, 9, 5, 9>(lab);
    padded::<T, 16, 8, 24>(lab);
    padded::<T, 17, 40, 32>(lab);
}

fn padded<T: FloatValue, const M: usize, const N: usize, const K: usize>(lab: &mut Lab) {
    let mut of = Matrices::<T>::new(lab, [M, N, K]);
    padded_kernel::<T, M, N, K>(of.a.slice(), of.b.slice(), &mut of.out.slice()).grid(1).launch().unwrap();
    of.check([false, false]);
}

/// `(x * y) * y`, where the first product is an operand of the second, and `trans(x) * x`.
#[kernel]
fn chain_kernel<T: Float, const M: usize, const K: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<f32>, squares: PtrMut<f32>) {
    let (row, k) = (arange(0, M).col(), arange(0, K));
    let a = load(x + row * K + k.row());
    let b = load(y + k.col() * K + k.row());
    let first = dot(a, b) as T;
    store(z + row * K + k.row(), dot(first, b));
    store(squares + k.col() * K + k.row(), dot(trans(a), a));
}

fn chains<T: FloatValue>(lab: &mut Lab) {
    chain::<T, 16, 16>(lab);
    chain::<T, 32, 32>(lab);
    chain::<T, 64, 32>(lab);
}

fn chain<T: FloatValue, const M: usize, const K: usize>(lab: &mut Lab) {
    // One number in a column of `y`, so that the products are elements of `x`, which the cast keeps.
    let host = eighths::<T>(lab, M * K);
    let y: Vec<T> = (0..K * K).map(|i| T::near(if (i / K + 3) % K == i % K { 2.0 } else { 0.0 })).collect();
    let (a, b) = (lab.input(&host), lab.input(&y));
    let (mut z, mut squares) = (lab.output::<f32>(M * K), lab.output::<f32>(K * K));
    chain_kernel::<T, M, K>(a.slice(), b.slice(), &mut z.slice(), &mut squares.slice()).grid(1).launch().unwrap();
    check_bits(&z.read(), |i| 0.0 + 4.0 * host[i / K * K + (i % K + 2 * K - 6) % K].wide() as f32);
    check_bits(&squares.read(), |i| product(|at| host[at * K + i / K], |at| host[at * K + i % K], M) as f32);
}

/// Sums that begin with something, by the option and by an addition, on both sides.
#[kernel]
fn sums_kernel<T: Float, const M: usize, const N: usize, const K: usize>(x: Ptr<T>, y: Ptr<T>, start: Ptr<f32>, z: PtrMut<f32>) {
    let (row, column, k) = (arange(0, M).col(), arange(0, N).row(), arange(0, K));
    let (a, b) = (load(x + row * K + k.row()), load(y + k.col() * N + column));
    let at = row * N + column;
    let total = load(start + at);
    store(z + at, dot(a, b, acc = total));
    store(z + at + M * N, total + dot(a, b));
    store(z + at + 2 * M * N, dot(a, b) + total);
    store(z + at + 3 * M * N, dot(a, b, acc = 1.0) + total);
    let twice = dot(a, b);
    store(z + at + 4 * M * N, twice + twice);
    store(z + at + 5 * M * N, total - dot(a, b));
}

fn sums_go_on<T: FloatValue>(lab: &mut Lab) {
    const M: usize = 32;
    const N: usize = 16;
    const K: usize = 64;
    let (a, b) = (eighths::<T>(lab, M * K), eighths::<T>(lab, K * N));
    let start = eighths::<f32>(lab, M * N);
    let (x, y, first) = (lab.input(&a), lab.input(&b), lab.input(&start));
    let mut z = lab.output::<f32>(6 * M * N);
    sums_kernel::<T, M, N, K>(x.slice(), y.slice(), first.slice(), &mut z.slice()).grid(1).launch().unwrap();
    check_bits(&z.read(), |i| {
        let (which, i) = (i / (M * N), i % (M * N));
        let product = product(|at| a[i / N * K + at], |at| b[at * N + i % N], K) as f32;
        match which {
            0..=2 => product + start[i],
            3 => product + start[i] + 1.0,
            4 => product + product,
            _ => start[i] - product,
        }
    });
}

/// Infinities and NaN stay in their rows and columns.
fn infinities_and_nan<T: FloatValue>(lab: &mut Lab) {
    const N: usize = 32;
    let mut host = [eighths::<T>(lab, N * N), eighths::<T>(lab, N * N)];
    (host[0][5 * N + 7], host[1][20]) = (T::near(f64::INFINITY), T::near(f64::NAN));
    let (a, b) = (lab.input(&host[0]), lab.input(&host[1]));
    let mut z = lab.output::<f32>(N * N);
    warps::four::product_kernel::<T, false, false, 32, 32, 32>(a.slice(), b.slice(), &mut z.slice(), N, N, N)
        .grid((1, 1))
        .launch()
        .unwrap();
    for (i, sum) in z.read().into_iter().enumerate() {
        let want = product(|at| host[0][i / N * N + at], |at| host[1][at * N + i % N], N) as f32;
        assert!(sum.to_bits() == want.to_bits() || (sum.is_nan() && want.is_nan()), "{i}: {sum}, and {want} is right");
    }
}

/// A product in a loop whose trip count differs between programs, and in a branch that some programs take.
#[kernel]
fn batches_kernel<T: Float, const M: usize>(x: Ptr<T>, counts: Ptr<i32>, z: PtrMut<f32>) {
    let (row, column) = (arange(0, M).col(), arange(0, M).row());
    let count = load(counts + program_id(0));
    let mut total = zeros::<f32>([M, M]);
    for index in range(0, count) {
        let a = load(x + index * M * M + row * M + column);
        total += dot(a, trans(a));
    }
    if count % 2 == 1 {
        let a = load(x + row * M + column);
        total += dot(a, a);
    }
    store(z + program_id(0) * M * M + row * M + column, total);
}

fn batches_of_addresses<T: FloatValue>(lab: &mut Lab) {
    const M: usize = 16;
    let counts = [3, 0, 1, 4];
    let host = eighths::<T>(lab, 4 * M * M);
    let (x, numbers) = (lab.input(&host), lab.input::<i32>(&counts));
    let mut z = lab.output::<f32>(counts.len() * M * M);
    batches_kernel::<T, M>(x.slice(), numbers.slice(), &mut z.slice()).grid(counts.len()).launch().unwrap();
    check_bits(&z.read(), |i| {
        let (count, i, j) = (counts[i / (M * M)], i / M % M, i % M);
        let of = |batch: usize, row: usize, column: usize| host[(batch * M + row) * M + column];
        let sum = (0..count as usize).fold(0.0, |sum, batch| sum + product(|at| of(batch, i, at), |at| of(batch, j, at), M));
        let more = if count % 2 == 1 { product(|at| of(0, i, at), |at| of(0, at, j), M) } else { 0.0 };
        (sum + more) as f32
    });
}

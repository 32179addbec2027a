//! Matrix products of every type, of batches, and to how many bits they are right. `dots.rs` has what does not depend on the type.
//!
//! Elements are small multiples of a power of two, so that sums in any order are exact. Tests of rounding have others.

use galatea::Number;
use galatea::prelude::*;

use crate::lab::{Lab, Output};
use crate::products::{Term, exact};
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::Value;

tests![
    products_of_f32,
    products_of_f64,
    products_of_16_bits,
    products_of_integers,
    products_of_float8,
    every_number_of_warps,
    padded_extents,
    batches,
    chains,
    sums_of_integers_wrap,
    ieee_products_are_exact,
    tf32_rounds_its_operands,
    three_products_of_tf32_are_nearly_exact,
    infinities_and_nan,
];

/// The kernel for each number of warps. `PRECISION` counts `ieee`, `tf32` and `tf32x3`.
macro_rules! warps {
    ($($name:ident: $warps:literal;)*) => {
        mod warps {
            $(pub(super) mod $name {
                use galatea::prelude::*;

                #[kernel(num_warps = $warps)]
                pub(crate) fn product_kernel<
                    A: Element,
                    B: Element,
                    S: Number,
                    const PRECISION: usize,
                    const TRANSPOSED: bool,
                    const BATCH: usize,
                    const M: usize,
                    const N: usize,
                    const K: usize,
                >(
                    x: Ptr<A>,
                    y: Ptr<B>,
                    start: Ptr<S>,
                    z: PtrMut<S>,
                    rows: usize,
                    columns: usize,
                    inner: usize,
                ) {
                    let batch = arange(0, BATCH)[(.., None, None)];
                    let row = (program_id(0) * M + arange(0, M))[(None, .., None)];
                    let column = (program_id(1) * N + arange(0, N))[(None, None, ..)];
                    let at = (batch * rows + row) * columns + column;
                    let is_inside = (row < rows) & (column < columns);
                    let mut total = load(start + at, mask = is_inside);
                    for first in range(0, inner, K) {
                        let k = first + arange(0, K);
                        let (of_row, of_column) = (k[(None, None, ..)], k[(None, .., None)]);
                        let a = load(
                            x + if TRANSPOSED { (batch * inner + of_row) * rows + row } else { (batch * rows + row) * inner + of_row },
                            mask = (row < rows) & (of_row < inner),
                        );
                        let b = load(
                            y + if TRANSPOSED { (batch * columns + column) * inner + of_column } else { (batch * inner + of_column) * columns + column },
                            mask = (column < columns) & (of_column < inner),
                        );
                        let product = if BATCH == 1 {
                            dot(
                                a.reshape([M, K]),
                                b.reshape([K, N]),
                                acc = total.reshape([M, N]),
                                acc_type = S,
                                precision = if PRECISION == 0 { "ieee" } else { if PRECISION == 1 { "tf32" } else { "tf32x3" } },
                            ).reshape([BATCH, M, N])
                        } else {
                            dot(
                                a,
                                b,
                                acc = total,
                                acc_type = S,
                                precision = if PRECISION == 0 { "ieee" } else { if PRECISION == 1 { "tf32" } else { "tf32x3" } },
                            )
                        };
                        total = product;
                    }
                    store(z + at, total, mask = is_inside);
                }
            })*
        }
    };
}
warps! { one: 1; two: 2; four: 4; eight: 8; }

/// Operands of products, what the products are added to, and the result.
struct Products<A: Value, B: Value, S: Value> {
    a: Vec<A>,
    b: Vec<B>,
    start: Vec<S>,
    out: Vec<S>,
    extents: [usize; 4],
    is_transposed: bool,
}

impl<A: Term, B: Term, S: Term> Products<A, B, S> {
    fn new(
        extents: [usize; 4],
        is_transposed: bool,
        lab: &mut Lab,
        mut a: impl FnMut(&mut Lab, usize) -> Vec<A>,
        mut b: impl FnMut(&mut Lab, usize) -> Vec<B>,
    ) -> Self {
        let [batch, m, n, k] = extents;
        let (a, b, start) = (a(lab, batch * m * k), b(lab, batch * k * n), exact::<S>(lab, batch * m * n));
        Products { a, b, start, out: Vec::new(), extents, is_transposed }
    }

    /// The factors of each term of a sum, in `f64`.
    fn terms(&self, at: usize) -> impl Iterator<Item = (f64, f64)> {
        let [_, m, n, k] = self.extents;
        let (batch, row, column) = (at / (m * n), at / n % m, at % n);
        (0..k).map(move |inner| {
            let (left, right) = if self.is_transposed {
                ((batch * k + inner) * m + row, (batch * n + column) * k + inner)
            } else {
                ((batch * m + row) * k + inner, (batch * k + inner) * n + column)
            };
            (self.a[left].number(), self.b[right].number())
        })
    }

    #[track_caller]
    fn check_exact(&self) {
        check_bits(&self.out, |at| {
            let sum = self.terms(at).fold(self.start[at].number(), |sum, (a, b)| sum + a * b);
            S::near(sum)
        });
    }
}

/// Launches the kernel of that number of warps, and gives the operands and the result.
macro_rules! products {
    ($warps:ident, $a:ty, $b:ty, $s:ty, $precision:literal, $transposed:literal, [$batch:literal, $m:literal, $n:literal, $k:literal], $lab:ident, $extents:expr) => {
        products!($warps, $a, $b, $s, $precision, $transposed, [$batch, $m, $n, $k], $lab, $extents, exact::<$a>, exact::<$b>)
    };
    ($warps:ident, $a:ty, $b:ty, $s:ty, $precision:literal, $transposed:literal, [$batch:literal, $m:literal, $n:literal, $k:literal], $lab:ident, $extents:expr, $left:expr, $right:expr) => {{
        let [m, n, k] = $extents;
        let mut of = Products::<$a, $b, $s>::new([$batch, m, n, k], $transposed, $lab, $left, $right);
        let (x, y, start) = ($lab.input(&of.a), $lab.input(&of.b), $lab.input(&of.start));
        let mut z: Output<$s> = $lab.output(of.start.len());
        warps::$warps::product_kernel::<$a, $b, $s, $precision, $transposed, $batch, $m, $n, $k>(
            x.slice(),
            y.slice(),
            start.slice(),
            &mut z.slice(),
            m,
            n,
            k,
        )
        .grid((m.div_ceil($m), n.div_ceil($n)))
        .launch()
        .unwrap();
        of.out = z.read();
        of
    }};
}

/// Products of full and of ragged tiles, in both orders of the operands.
macro_rules! ragged {
    ($lab:ident, $a:ty, $b:ty, $s:ty, $precision:literal) => {
        for extents in [[32, 32, 64], [33, 17, 70], [1, 1, 1], [20, 40, 0]] {
            products!(four, $a, $b, $s, $precision, false, [1, 32, 32, 32], $lab, extents).check_exact();
            products!(four, $a, $b, $s, $precision, true, [1, 16, 64, 64], $lab, extents).check_exact();
        }
    };
}

fn products_of_f32(lab: &mut Lab) {
    ragged!(lab, f32, f32, f32, 0);
    ragged!(lab, f32, f32, f32, 1);
    ragged!(lab, f32, f32, f32, 2);
}

fn products_of_f64(lab: &mut Lab) {
    ragged!(lab, f64, f64, f64, 0);
}

fn products_of_16_bits(lab: &mut Lab) {
    ragged!(lab, f16, f16, f16, 0);
    ragged!(lab, f16, f16, f32, 0);
    ragged!(lab, bf16, bf16, f32, 0);
}

fn products_of_integers(lab: &mut Lab) {
    ragged!(lab, i8, i8, i32, 0);
    ragged!(lab, i8, u8, i32, 0);
    ragged!(lab, u8, i8, i32, 0);
    ragged!(lab, u8, u8, i32, 0);
}

fn products_of_float8(lab: &mut Lab) {
    ragged!(lab, f8e4m3, f8e4m3, f32, 0);
    ragged!(lab, f8e4m3, f8e5m2, f32, 0);
    ragged!(lab, f8e5m2, f8e4m3, f32, 0);
    ragged!(lab, f8e5m2, f8e5m2, f32, 0);
}

fn every_number_of_warps(lab: &mut Lab) {
    macro_rules! each {
        ($($warps:ident),*) => {$(
            products!($warps, f32, f32, f32, 0, false, [1, 64, 16, 32], lab, [130, 24, 40]).check_exact();
            products!($warps, f32, f32, f32, 1, true, [1, 16, 8, 32], lab, [40, 24, 64]).check_exact();
            products!($warps, f64, f64, f64, 0, true, [1, 16, 32, 16], lab, [20, 70, 48]).check_exact();
            products!($warps, u8, i8, i32, 0, true, [1, 64, 32, 64], lab, [70, 40, 64]).check_exact();
        )*};
    }
    each!(one, two, eight);
}

/// The smallest extents, extents that are padded, and more terms than the loop over them writes out.
fn padded_extents(lab: &mut Lab) {
    products!(one, f32, f32, f32, 0, false, [1, 1, 1, 1], lab, [3, 2, 5]).check_exact();
    products!(four, f32, f32, f32, 0, false, [1, 2, 3, 100], lab, [4, 5, 130]).check_exact();
    products!(four, f32, f32, f32, 1, false, [1, 9, 5, 5], lab, [9, 5, 10]).check_exact();
    products!(two, f32, f32, f32, 2, true, [1, 24, 12, 12], lab, [24, 12, 24]).check_exact();
    products!(one, f64, f64, f64, 0, true, [1, 9, 5, 5], lab, [9, 5, 5]).check_exact();
    products!(one, i8, i8, i32, 0, true, [1, 9, 5, 17], lab, [9, 5, 17]).check_exact();
    products!(one, f8e4m3, f8e5m2, f32, 0, false, [1, 20, 12, 24], lab, [20, 12, 48]).check_exact();
}

/// Warps divide the batch, then the matrices.
fn batches(lab: &mut Lab) {
    macro_rules! each {
        ($warps:ident, [$batch:literal, $m:literal, $n:literal, $k:literal]) => {
            products!($warps, f16, f16, f32, 0, false, [$batch, $m, $n, $k], lab, [$m, $n, 2 * $k]).check_exact();
            products!($warps, f32, f32, f32, 0, true, [$batch, $m, $n, $k], lab, [$m + 1, $n, $k - 3]).check_exact();
            products!($warps, i8, u8, i32, 0, true, [$batch, $m, $n, $k], lab, [$m, $n, $k + 1]).check_exact();
        };
    }
    each!(one, [2, 16, 8, 32]);
    each!(four, [2, 32, 16, 32]);
    each!(four, [8, 16, 16, 32]);
    each!(eight, [3, 20, 24, 40]);
    products!(four, f64, f64, f64, 0, false, [2, 16, 16, 16], lab, [16, 16, 16]).check_exact();
    products!(four, f32, f32, f32, 2, false, [4, 16, 16, 16], lab, [16, 16, 16]).check_exact();
    products!(two, f8e5m2, f8e4m3, f32, 0, true, [4, 16, 16, 32], lab, [16, 16, 32]).check_exact();
    products!(two, f16, f16, f16, 0, false, [4, 16, 8, 16], lab, [16, 8, 16]).check_exact();
}

/// `(x * y) * y` and `trans(x) * x`, with something computed in between.
#[kernel]
fn chain_kernel<T: Element, S: Number, const M: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<S>, squares: PtrMut<S>) {
    let (row, column) = (arange(0, M).col(), arange(0, M).row());
    let (a, b) = (load(x + row * M + column), load(y + row * M + column));
    let first = dot(a, b, acc_type = S) as T;
    store(z + row * M + column, dot(first, b, acc_type = S) * 2 as S);
    store(squares + row * M + column, dot(trans(a), a, acc_type = S));
}

fn chains(lab: &mut Lab) {
    chain::<f32, f32>(lab);
    chain::<f64, f64>(lab);
    chain::<f16, f16>(lab);
    chain::<i8, i32>(lab);
    chain::<f8e4m3, f32>(lab);
}

fn chain<T: Term, S: Term + Number>(lab: &mut Lab) {
    const M: usize = 32;
    let host: Vec<T> = lab.numbers::<f64>(M * M, -2.49, 2.49).into_iter().map(|number| T::near(number.round())).collect();
    // One number in a column, so that the first product has elements of `x`, which the cast keeps.
    let y: Vec<T> = (0..M * M).map(|i| T::near(if (i / M + 3) % M == i % M { 2.0 } else { 0.0 })).collect();
    let (a, b) = (lab.input(&host), lab.input(&y));
    let (mut z, mut squares) = (lab.output::<S>(M * M), lab.output::<S>(M * M));
    chain_kernel::<T, S, M>(a.slice(), b.slice(), &mut z.slice(), &mut squares.slice()).grid(1).launch().unwrap();
    check_bits(&z.read(), |i| S::near(0.0 + 8.0 * host[i / M * M + (i % M + 2 * M - 6) % M].number()));
    check_bits(&squares.read(), |i| {
        S::near((0..M).fold(0.0, |sum, at| sum + host[at * M + i / M].number() * host[at * M + i % M].number()))
    });
}

fn sums_of_integers_wrap(lab: &mut Lab) {
    let mut of = products!(four, u8, u8, i32, 0, false, [1, 16, 16, 64], lab, [16, 16, 64]);
    let near_the_end = i32::MAX - 1000;
    of.start.fill(near_the_end);
    of.a.fill(255);
    of.b.fill(254);
    let (x, y, start) = (lab.input(&of.a), lab.input(&of.b), lab.input(&of.start));
    let mut z: Output<i32> = lab.output(of.start.len());
    warps::four::product_kernel::<u8, u8, i32, 0, false, 1, 16, 16, 64>(x.slice(), y.slice(), start.slice(), &mut z.slice(), 16, 16, 64)
        .grid((1, 1))
        .launch()
        .unwrap();
    check_bits(&z.read(), |_| near_the_end.wrapping_add(64 * 255 * 254));
}

/// Numbers of all bits of `f32`.
fn full(lab: &mut Lab, len: usize) -> Vec<f32> {
    lab.numbers::<f32>(len, -2.0, 2.0)
}

/// Compares each sum to that of `f64`, with operands that `round` changes; `bits` of a sum of magnitudes are right.
#[track_caller]
fn check_to(of: &Products<f32, f32, f32>, bits: i32, round: impl Fn(f64) -> f64) {
    for (at, got) in of.out.iter().enumerate() {
        let (mut sum, mut magnitude) = (of.start[at].number(), of.start[at].number().abs());
        for (a, b) in of.terms(at) {
            let product = round(a) * round(b);
            (sum, magnitude) = (sum + product, magnitude + product.abs());
        }
        let (error, allowed) = ((f64::from(*got) - sum).abs(), magnitude * 2f64.powi(-bits));
        assert!(error <= allowed, "{at}: got {got:e}, and {sum:e} is right: an error of {error:e}, allowed {allowed:e}");
    }
}

/// Cancellation shows a product that was rounded before it was added.
fn ieee_products_are_exact(lab: &mut Lab) {
    check_to(&products!(four, f32, f32, f32, 0, false, [1, 32, 32, 32], lab, [32, 32, 64], full, full), 20, |x| x);
    // 1 + 2^-23 squared is 1 + 2^-22 + 2^-46: of the two terms, the last one is left.
    let near_one = f32::from_bits(1f32.to_bits() + 1);
    let row = move |_: &mut Lab, len: usize| (0..len).map(|at| if at % 2 == 0 { -1.0 } else { near_one }).collect();
    let column =
        move |_: &mut Lab, len: usize| (0..len).map(|at| if at / 16 % 2 == 0 { near_one + f32::EPSILON } else { near_one }).collect();
    let mut of = products!(one, f32, f32, f32, 0, false, [1, 16, 16, 2], lab, [16, 16, 2], row, column);
    of.start.fill(0.0);
    let (x, y, start) = (lab.input(&of.a), lab.input(&of.b), lab.input(&of.start));
    let mut z: Output<f32> = lab.output(of.start.len());
    warps::one::product_kernel::<f32, f32, f32, 0, false, 1, 16, 16, 2>(x.slice(), y.slice(), start.slice(), &mut z.slice(), 16, 16, 2)
        .grid((1, 1))
        .launch()
        .unwrap();
    check_bits(&z.read(), |_| 2f32.powi(-46));
}

/// The nearest number of 11 bits, ties away from zero.
fn to_tf32(x: f64) -> f64 {
    let unit = 2f64.powi(x.abs().log2().floor() as i32 - 10);
    if x == 0.0 { 0.0 } else { (x / unit).round() * unit }
}

fn tf32_rounds_its_operands(lab: &mut Lab) {
    let of = products!(four, f32, f32, f32, 1, true, [1, 32, 32, 32], lab, [32, 32, 64], full, full);
    check_to(&of, 19, to_tf32);
    // Ties go away from zero: 1 + 2^-11 becomes 1 + 2^-10.
    let tie = 1.0 + 2f32.powi(-11);
    let ties = |_: &mut Lab, len: usize| (0..len).map(|at| if at % 2 == 0 { tie } else { -tie }).collect();
    let ones = |_: &mut Lab, len: usize| vec![1.0; len];
    let of = products!(one, f32, f32, f32, 1, false, [1, 16, 8, 16], lab, [16, 8, 8], ties, ones);
    check_bits(&of.out, |at| of.start[at] + 0.0);
    let of = products!(one, f32, f32, f32, 1, false, [1, 16, 8, 16], lab, [16, 8, 8], |_: &mut Lab, len: usize| vec![tie; len], ones);
    check_bits(&of.out, |at| of.start[at] + 8.0 * (1.0 + 2f32.powi(-10)));
}

fn three_products_of_tf32_are_nearly_exact(lab: &mut Lab) {
    check_to(&products!(four, f32, f32, f32, 2, false, [1, 32, 32, 32], lab, [32, 32, 64], full, full), 18, |x| x);
    // The sums of tensor cores are truncated, which the product of one term does not show.
    let one_term = |lab: &mut Lab, len: usize| lab.numbers::<f32>(len, 1.0, 2.0);
    let mut of = products!(two, f32, f32, f32, 2, false, [1, 16, 8, 8], lab, [16, 8, 1], one_term, one_term);
    of.start.fill(0.0);
    let (x, y, start) = (lab.input(&of.a), lab.input(&of.b), lab.input(&of.start));
    let mut z: Output<f32> = lab.output(of.start.len());
    warps::two::product_kernel::<f32, f32, f32, 2, false, 1, 16, 8, 8>(x.slice(), y.slice(), start.slice(), &mut z.slice(), 16, 8, 1)
        .grid((1, 1))
        .launch()
        .unwrap();
    of.out = z.read();
    check_to(&of, 21, |x| x);
}

/// Infinities and NaN stay in their rows and columns; of three products of `tf32` those of small parts do not spoil them.
fn infinities_and_nan(lab: &mut Lab) {
    special::<f32, f32, 0>(lab);
    special::<f32, f32, 1>(lab);
    special::<f32, f32, 2>(lab);
    special::<f64, f64, 0>(lab);
    special::<f16, f16, 0>(lab);
    special::<f8e5m2, f32, 0>(lab);
}

fn special<T: Term, S: Term + Number, const PRECISION: usize>(lab: &mut Lab) {
    const M: usize = 32;
    let mut host = [exact::<T>(lab, M * M), exact::<T>(lab, M * M)];
    let nan = T::near(f64::NAN);
    (host[0][5 * M + 7], host[0][6 * M + 3], host[1][20]) = (T::near(f64::INFINITY), T::near(f64::NEG_INFINITY), nan);
    // A cast of an infinity to an 8-bit float saturates.
    if T::DTYPE == galatea::Dtype::F8E5M2 {
        host[0][5 * M + 7] = T::from_bits(0x7c);
        host[0][6 * M + 3] = T::from_bits(0xfc);
    }
    let zeros = vec![S::near(0.0); M * M];
    let (a, b, start) = (lab.input(&host[0]), lab.input(&host[1]), lab.input(&zeros));
    let mut z = lab.output::<S>(M * M);
    warps::four::product_kernel::<T, T, S, PRECISION, false, 1, M, M, M>(a.slice(), b.slice(), start.slice(), &mut z.slice(), M, M, M)
        .grid((1, 1))
        .launch()
        .unwrap();
    for (i, sum) in z.read().into_iter().enumerate() {
        let want = (0..M).fold(0.0, |sum, at| sum + host[0][i / M * M + at].number() * host[1][at * M + i % M].number());
        let got = sum.number();
        assert!(got == want || (got.is_nan() && want.is_nan()), "{}, precision {PRECISION}, {i}: {got}, and {want} is right", T::DTYPE);
    }
}

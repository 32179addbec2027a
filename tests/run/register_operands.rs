//! Matrix products by warpgroups with an operand in registers: one that is computed, one whose neighbours in memory lie across the sum where the instruction takes only those
//! along it, and one that has other uses. Elements are small numbers, so that sums in any order are exact.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::products::{Term, exact};
use crate::roles::Version;
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::Value;

use Version::{Any, Roles, Usual};

tests![
    tf32_in_any_order,
    integers_in_any_order,
    float8_in_any_order,
    converted_weights,
    scaled_operands,
    operands_with_other_uses,
    exact_elements_beside_products,
    chains,
    operands_from_outside_of_the_loop,
    stores_of_swapped_products,
    trip_counts,
    several_programs_of_a_worker,
];

/// A kernel for each schedule.
macro_rules! kernels {
    ($($name:ident($($schedule:ident = $value:literal),*);)*) => {
        mod schedules {
            $(pub(super) mod $name {
                use galatea::prelude::*;

                /// `z = a * b`, each stored with rows and columns exchanged if it is transposed.
                #[kernel($($schedule = $value),*)]
                pub(crate) fn product<
                    A: Element,
                    B: Element,
                    S: Number,
                    const TF32: bool,
                    const TRANSPOSED_A: bool,
                    const TRANSPOSED_B: bool,
                    const M: usize,
                    const N: usize,
                    const K: usize,
                >(
                    x: Ptr<A>,
                    y: Ptr<B>,
                    z: PtrMut<S>,
                    rows: usize,
                    columns: usize,
                    inner: usize,
                ) {
                    let row = (program_id(0) * M + arange(0, M)).col();
                    let column = (program_id(1) * N + arange(0, N)).row();
                    let mut total = zeros::<S>([M, N]);
                    for first in range(0, inner, K) {
                        let k = first + arange(0, K);
                        let a = load(
                            x + if TRANSPOSED_A { k.row() * rows + row } else { row * inner + k.row() },
                            mask = (row < rows) & (k.row() < inner),
                        );
                        let b = load(
                            y + if TRANSPOSED_B { column * inner + k.col() } else { k.col() * columns + column },
                            mask = (column < columns) & (k.col() < inner),
                        );
                        total += dot(a, b, acc_type = S, precision = if TF32 { "tf32" } else { "ieee" });
                    }
                    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
                }

                /// `z = a * b` with weights of another type, which may have a scale for each column.
                #[kernel($($schedule = $value),*)]
                pub(crate) fn converted<
                    T: Float,
                    W: Element,
                    const SCALED: bool,
                    const TRANSPOSED_B: bool,
                    const M: usize,
                    const N: usize,
                    const K: usize,
                >(
                    x: Ptr<T>,
                    y: Ptr<W>,
                    scales: Ptr<T>,
                    z: PtrMut<f32>,
                    rows: usize,
                    columns: usize,
                    inner: usize,
                ) {
                    let row = (program_id(0) * M + arange(0, M)).col();
                    let column = (program_id(1) * N + arange(0, N)).row();
                    let mut total = zeros::<f32>([M, N]);
                    for first in range(0, inner, K) {
                        let k = first + arange(0, K);
                        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
                        let b = load(
                            y + if TRANSPOSED_B { column * inner + k.col() } else { k.col() * columns + column },
                            mask = (column < columns) & (k.col() < inner),
                        ) as T;
                        let b = if SCALED { b * load(scales + (first / K) * columns + column, mask = column < columns) } else { b };
                        total += dot(a, b);
                    }
                    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
                }
            })*
        }
    };
}
kernels! {
    four(num_warps = 4, num_stages = 3);
    eight(num_warps = 8, num_stages = 3);
}

/// What a test multiplies: matrices, each stored with rows and columns exchanged if it is transposed.
struct Factors<A, B> {
    a: Vec<A>,
    b: Vec<B>,
    extents: [usize; 3],
    transposed: [bool; 2],
}

impl<A: Term, B: Term> Factors<A, B> {
    fn new(lab: &mut Lab, extents: [usize; 3], transposed: [bool; 2]) -> Factors<A, B> {
        let [m, n, k] = extents;
        Factors { a: exact(lab, m * k), b: exact(lab, k * n), extents, transposed }
    }

    /// The sum for an element, with a factor for each term.
    fn sum(&self, at: usize, factor: impl Fn(usize, usize) -> f64) -> f64 {
        let ([m, n, k], [a, b]) = (self.extents, self.transposed);
        let (row, column) = (at / n, at % n);
        let left = |inner: usize| self.a[if a { inner * m + row } else { row * k + inner }].number();
        let right = |inner: usize| self.b[if b { column * k + inner } else { inner * n + column }].number();
        (0..k).fold(0.0, |sum, inner| sum + left(inner) * right(inner) * factor(inner, column))
    }

    /// Can tensor copies read them?
    fn version(&self) -> Version {
        let ([m, n, k], [a, b]) = (self.extents, self.transposed);
        let rows = [(if a { m } else { k }) * size_of::<A>(), (if b { k } else { n }) * size_of::<B>()];
        match rows.iter().all(|bytes| bytes.is_multiple_of(16)) {
            true if m * n * k > 0 => Roles,
            true => Any,
            false => Usual,
        }
    }
}

macro_rules! product {
    ($schedule:ident, $a:ty, $b:ty, $s:ty, $tf32:literal, $ta:literal, $tb:literal, [$m:literal, $n:literal, $k:literal], $lab:ident, $extents:expr) => {{
        let of = Factors::<$a, $b>::new($lab, $extents, [$ta, $tb]);
        let [m, n, k] = of.extents;
        let (x, y, mut z) = ($lab.input_at(&of.a, 0), $lab.input_at(&of.b, 0), $lab.output_at::<$s>(m * n, 0));
        $lab.launch("product", of.version(), || {
            schedules::$schedule::product::<$a, $b, $s, $tf32, $ta, $tb, $m, $n, $k>(x.slice(), y.slice(), &mut z.slice(), m, n, k)
                .grid((m.div_ceil($m), n.div_ceil($n)))
                .launch()
        });
        check_bits(&z.read(), |at| <$s>::near(of.sum(at, |_, _| 1.0)));
    }};
}

/// Of `f32`, blocks in shared memory have neighbours along the sum. So one operand of each of the first three comes from registers, where a thread loads it from any block.
fn tf32_in_any_order(lab: &mut Lab) {
    for extents in [[64, 64, 32], [72, 136, 100]] {
        product!(four, f32, f32, f32, true, false, true, [64, 64, 32], lab, extents);
        product!(four, f32, f32, f32, true, false, false, [64, 64, 32], lab, extents);
        product!(four, f32, f32, f32, true, true, true, [64, 64, 32], lab, extents);
    }
    product!(eight, f32, f32, f32, true, false, false, [128, 128, 32], lab, [136, 136, 72]);
    product!(eight, f32, f32, f32, true, true, true, [256, 16, 16], lab, [264, 40, 40]);
    product!(eight, f32, f32, f32, true, false, false, [16, 256, 64], lab, [24, 264, 136]);
}

fn integers_in_any_order(lab: &mut Lab) {
    product!(four, i8, i8, i32, false, false, true, [64, 64, 64], lab, [80, 64, 144]);
    product!(four, i8, u8, i32, false, false, false, [64, 64, 64], lab, [80, 96, 144]);
    product!(four, u8, i8, i32, false, true, true, [64, 64, 32], lab, [80, 64, 144]);
    product!(eight, u8, u8, i32, false, false, false, [16, 128, 64], lab, [32, 144, 80]);
}

fn float8_in_any_order(lab: &mut Lab) {
    product!(four, f8e4m3, f8e4m3, f32, false, false, false, [64, 64, 64], lab, [80, 96, 144]);
    product!(four, f8e5m2, f8e4m3, f32, false, true, true, [64, 128, 32], lab, [80, 144, 144]);
    product!(eight, f8e4m3, f8e5m2, f32, false, false, false, [32, 128, 128], lab, [48, 144, 272]);
}

macro_rules! converted {
    ($schedule:ident, $t:ty, $w:ty, $scaled:literal, $tb:literal, [$m:literal, $n:literal, $k:literal], $lab:ident, $extents:expr) => {{
        let of = Factors::<$t, $w>::new($lab, $extents, [false, $tb]);
        let [m, n, k] = of.extents;
        let scales: Vec<$t> = (0..k.div_ceil($k) * n).map(|at| <$t>::near([0.5, 1.0, 2.0][at % 3])).collect();
        let (x, y, s, mut z) =
            ($lab.input_at(&of.a, 0), $lab.input_at(&of.b, 0), $lab.input_at(&scales, 0), $lab.output_at::<f32>(m * n, 0));
        $lab.launch("converted", of.version(), || {
            schedules::$schedule::converted::<$t, $w, $scaled, $tb, $m, $n, $k>(x.slice(), y.slice(), s.slice(), &mut z.slice(), m, n, k)
                .grid((m.div_ceil($m), n.div_ceil($n)))
                .launch()
        });
        let factor = |inner: usize, column: usize| if $scaled { scales[inner / $k * n + column].number() } else { 1.0 };
        check_bits(&z.read(), |at| of.sum(at, factor) as f32);
    }};
}

fn converted_weights(lab: &mut Lab) {
    converted!(four, bf16, f8e4m3, false, true, [64, 64, 64], lab, [72, 80, 144]);
    converted!(four, f16, i8, false, false, [16, 64, 64], lab, [24, 80, 144]);
    converted!(eight, f16, f8e5m2, false, false, [32, 128, 64], lab, [40, 144, 80]);
    converted!(eight, bf16, f32, false, true, [16, 256, 32], lab, [24, 264, 80]);
}

/// Threads load the scales, which are no block, themselves.
fn scaled_operands(lab: &mut Lab) {
    converted!(four, f16, i8, true, true, [64, 64, 64], lab, [72, 80, 144]);
    converted!(four, bf16, f8e4m3, true, false, [16, 128, 64], lab, [24, 144, 208]);
}

/// `z = a * b`, and the sums of the elements of each row of `a`, which the product takes from shared memory.
#[kernel(num_warps = 4, num_stages = 3)]
fn sums<T: Float, const TRANSPOSED: bool>(
    x: Ptr<T>,
    y: Ptr<T>,
    z: PtrMut<f32>,
    sums: PtrMut<f32>,
    rows: usize,
    columns: usize,
    inner: usize,
) {
    let row = (program_id(0) * 64 + arange(0, 64)).col();
    let column = (program_id(1) * 64 + arange(0, 64)).row();
    let (mut total, mut of_rows) = (zeros::<f32>([64, 64]), zeros::<f32>([64]));
    for first in range(0, inner, 64) {
        let k = first + arange(0, 64);
        let a = if TRANSPOSED {
            trans(load(x + k.col() * rows + trans(row), mask = (trans(row) < rows) & (k.col() < inner)))
        } else {
            load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner))
        };
        let b = load(y + k.col() * columns + column, mask = (column < columns) & (k.col() < inner));
        total += dot(a, b);
        of_rows += sum(a as f32, axis = 1);
    }
    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
    let row = program_id(0) * 64 + arange(0, 64);
    store(sums + row, of_rows, mask = (row < rows) & (program_id(1) == 0));
}

fn operands_with_other_uses(lab: &mut Lab) {
    macro_rules! sums {
        ($transposed:literal) => {{
            let of = Factors::<f16, f16>::new(lab, [72, 136, 200], [$transposed, false]);
            let [m, n, k] = of.extents;
            let (x, y) = (lab.input_at(&of.a, 0), lab.input_at(&of.b, 0));
            let (mut z, mut out) = (lab.output_at::<f32>(m * n, 0), lab.output_at::<f32>(m, 0));
            lab.launch("sums", Roles, || {
                sums::<f16, $transposed>(x.slice(), y.slice(), &mut z.slice(), &mut out.slice(), m, n, k).grid((2, 3)).launch()
            });
            check_bits(&z.read(), |at| of.sum(at, |_, _| 1.0) as f32);
            check_bits(&out.read(), |row| {
                (0..k).fold(0.0, |sum, at| sum + of.a[if $transposed { at * m + row } else { row * k + at }].to_f32())
            });
        }};
    }
    sums!(false);
    sums!(true);
}

/// Of `f32` that other ops use as well, products round the elements, and nothing else does.
fn exact_elements_beside_products(lab: &mut Lab) {
    let [m, n, k] = [72, 136, 64];
    let host: Vec<f32> =
        lab.numbers::<f64>(k * m, -4.49, 4.49).into_iter().map(|number| number.round() as f32 * (1.0 + 2f32.powi(-20))).collect();
    let other: Vec<f32> = exact(lab, k * n);
    let (x, y) = (lab.input_at(&host, 0), lab.input_at(&other, 0));
    let (mut z, mut out) = (lab.output_at::<f32>(m * n, 0), lab.output_at::<f32>(m, 0));
    lab.launch("rounded", Roles, || rounded(x.slice(), y.slice(), &mut z.slice(), &mut out.slice(), m, n, k).grid((2, 3)).launch());
    let product =
        |at: usize| (0..k).fold(0.0, |sum, inner| sum + f64::from(host[inner * m + at / n]).round() * f64::from(other[at % n * k + inner]));
    check_bits(&z.read(), |at| product(at) as f32);
    // A sum has one term for each block, which is exact.
    check_bits(&out.read(), |row| host[row] + host[32 * m + row] + 0.0);
}

/// `z = trans(x) * trans(y)`, and the sums of the first elements of the blocks of `x`.
#[kernel(num_warps = 4, num_stages = 2)]
fn rounded(x: Ptr<f32>, y: Ptr<f32>, z: PtrMut<f32>, sums: PtrMut<f32>, rows: usize, columns: usize, inner: usize) {
    let row = (program_id(0) * 64 + arange(0, 64)).col();
    let column = (program_id(1) * 64 + arange(0, 64)).row();
    let (mut total, mut of_rows) = (zeros::<f32>([64, 64]), zeros::<f32>([64]));
    for first in range(0, inner, 32) {
        let k = first + arange(0, 32);
        let a = load(x + k.row() * rows + row, mask = (row < rows) & (k.row() < inner));
        let b = load(y + column * inner + k.col(), mask = (column < columns) & (k.col() < inner));
        total += dot(a, b, precision = "tf32");
        of_rows += sum(select(arange(0, 32).row() == 0, a, 0.0), axis = 1);
    }
    store(z + row * columns + column, total, mask = (row < rows) & (column < columns));
    let row = program_id(0) * 64 + arange(0, 64);
    store(sums + row, of_rows, mask = (row < rows) & (program_id(1) == 0));
}

/// `z = f16(q * trans(k)) * v` over the rows of `k` and `v`: what attention does without its softmax. The first product's sums are an operand of the second one.
#[kernel(num_warps = 4, num_stages = 2)]
fn chain<const OUTSIDE: bool>(q: Ptr<f16>, k: Ptr<f16>, v: Ptr<f16>, z: PtrMut<f32>, rows: usize, others: usize) {
    let row = (program_id(0) * 64 + arange(0, 64)).col();
    let at = arange(0, 32).row();
    let mut total = zeros::<f32>([64, 32]);
    let query = load(q + row * 32 + at, mask = row < rows);
    for first in range(0, others, 64) {
        let other = (first + arange(0, 64)).col();
        let key = load(k + other * 32 + at, mask = other < others);
        let value = load(v + other * 32 + at, mask = other < others);
        let query = if OUTSIDE { query } else { load(q + row * 32 + at, mask = row < rows) };
        let scores = dot(query, trans(key));
        total += dot(scores as f16, value);
    }
    store(z + row * 32 + at, total, mask = row < rows);
}

fn chain_of<const OUTSIDE: bool>(lab: &mut Lab) {
    let (m, n, d) = (136, 200, 32);
    let ones = |lab: &mut Lab, len: usize| -> Vec<f16> {
        lab.numbers::<f64>(len, -1.49, 1.49).into_iter().map(|number| f16::near(number.round() + 0.0)).collect()
    };
    let [q, k, v] = [m * d, n * d, n * d].map(|len| ones(lab, len));
    let (a, b, c, mut z) = (lab.input_at(&q, 0), lab.input_at(&k, 0), lab.input_at(&v, 0), lab.output_at::<f32>(m * d, 0));
    lab.launch("chain", Roles, || chain::<OUTSIDE>(a.slice(), b.slice(), c.slice(), &mut z.slice(), m, n).grid(m.div_ceil(64)).launch());
    let score = |row: usize, other: usize| (0..d).fold(0.0, |sum, at| sum + q[row * d + at].number() * k[other * d + at].number());
    check_bits(&z.read(), |at| (0..n).fold(0.0, |sum, other| sum + score(at / d, other) * v[other * d + at % d].number()) as f32);
}

fn chains(lab: &mut Lab) {
    chain_of::<false>(lab);
}

fn operands_from_outside_of_the_loop(lab: &mut Lab) {
    chain_of::<true>(lab);
}

/// `z = a * b`, whose operand `b` is in registers, so that the product is swapped, in another type.
#[kernel(num_warps = 4, num_stages = 2)]
fn narrow<O: Float, const M: usize, const N: usize>(x: Ptr<f32>, y: Ptr<f32>, z: PtrMut<O>, rows: usize, columns: usize, inner: usize) {
    let row = (program_id(0) * M + arange(0, M)).col();
    let column = (program_id(1) * N + arange(0, N)).row();
    let mut total = zeros::<f32>([M, N]);
    for first in range(0, inner, 16) {
        let k = first + arange(0, 16);
        let a = load(x + row * inner + k.row(), mask = (row < rows) & (k.row() < inner));
        let b = load(y + k.col() * columns + column, mask = (column < columns) & (k.col() < inner));
        total += dot(a, b, precision = "tf32");
    }
    store(z + row * columns + column, (total + 0.125) as O, mask = (row < rows) & (column < columns));
}

/// Each number of parts in which a warp stores its columns, tiles behind the ends, and rows that are no multiple of 16 bytes, which threads store by element.
fn stores_of_swapped_products(lab: &mut Lab) {
    macro_rules! narrow {
        ($o:ty, [$m:literal, $n:literal], $extents:expr) => {{
            let of = Factors::<f32, f32>::new(lab, $extents, [false, false]);
            let [m, n, k] = of.extents;
            let (x, y, mut z) = (lab.input_at(&of.a, 0), lab.input_at(&of.b, 0), lab.output_at::<$o>(m * n, 0));
            lab.launch("narrow", of.version(), || {
                narrow::<$o, $m, $n>(x.slice(), y.slice(), &mut z.slice(), m, n, k).grid((m.div_ceil($m), n.div_ceil($n))).launch()
            });
            check_bits(&z.read(), |at| <$o>::near(of.sum(at, |_, _| 1.0) + 0.125));
        }};
    }
    narrow!(f32, [16, 64], [40, 136, 16]);
    narrow!(f32, [64, 64], [72, 100, 32]);
    narrow!(f32, [128, 128], [136, 136, 16]);
    narrow!(f16, [16, 64], [40, 136, 16]);
    narrow!(bf16, [64, 64], [72, 104, 32]);
    narrow!(f16, [128, 128], [264, 136, 16]);
    // Rows of `f16` of 100 elements are no multiple of 16 bytes, and those of `f32` are.
    narrow!(f16, [64, 64], [72, 100, 16]);
}

/// No iteration, one, and as many as there are slots, and one less and one more.
fn trip_counts(lab: &mut Lab) {
    for iterations in [0, 1, 2, 3, 4] {
        product!(four, f32, f32, f32, true, false, false, [64, 64, 16], lab, [64, 64, 16 * iterations]);
        converted!(four, f16, i8, true, false, [64, 64, 32], lab, [64, 64, 32 * iterations]);
    }
}

/// A worker keeps its position in the ring from one program to the next.
fn several_programs_of_a_worker(lab: &mut Lab) {
    product!(four, f32, f32, f32, true, false, false, [64, 64, 16], lab, [64 * 24, 64 * 12, 24]);
    converted!(four, f16, i8, false, false, [16, 64, 32], lab, [16 * 24, 64 * 12, 48]);
}

//! Facts of arguments that select a variant: results are those of the kernel as it is written, whatever holds and whatever was compiled.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::Value;

tests![
    matrices_of_any_steps<u8, bf16, f32, i64>,
    a_step_that_is_1_is_read_at_once,
    a_step_of_a_coordinate_that_is_1_is_read_at_once,
    what_is_assumed_holds_or_not,
    nothing_is_known_unasked,
    steps_through_loops_and_functions,
    beside_heuristics,
    beside_tuning,
    in_the_background,
];

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    start: usize,
    row: isize,
    column: isize,
}

impl Matrix {
    /// Of `m` by `n` elements.
    fn new(m: usize, n: usize, row: isize, column: isize) -> Matrix {
        let back = |step: isize, count: usize| step.min(0).unsigned_abs() * count.saturating_sub(1);
        Matrix { start: back(row, m) + back(column, n), row, column }
    }

    fn at(self, i: usize, j: usize) -> usize {
        (self.start as isize + i as isize * self.row + j as isize * self.column) as usize
    }

    fn len(self, m: usize, n: usize) -> usize {
        if m == 0 || n == 0 { 0 } else { self.at(0, 0).max(self.at(m - 1, 0)).max(self.at(0, n - 1)).max(self.at(m - 1, n - 1)) + 1 }
    }
}

#[kernel(BM = [16], BN = [32])]
fn copy<T: Element, const BM: usize, const BN: usize>(
    x: Ptr<T>,
    y: PtrMut<T>,
    m: usize,
    n: usize,
    x_start: usize,
    x_row: isize,
    x_column: isize,
    y_start: usize,
    y_row: isize,
    y_column: isize,
) {
    let i = program_id(0) * BM + arange(0, BM);
    let j = program_id(1) * BN + arange(0, BN);
    let mask = (i < m)[(.., None)] & (j < n)[(None, ..)];
    let v = load(x + x_start + i[(.., None)] * x_row + j[(None, ..)] * x_column, mask = mask);
    store(y + y_start + i[(.., None)] * y_row + j[(None, ..)] * y_column, v, mask = mask);
}

fn matrices_of_any_steps<T: Value>(lab: &mut Lab) {
    for (m, n) in [(1, 1), (16, 32), (37, 50), (5, 64), (64, 3), (0, 8)] {
        let (wide, tall) = (n as isize + 3, m as isize + 5);
        // Rows, columns, both apart, all elements one, turned round; as they are written, no two elements share an index.
        let reads = [(wide, 1), (64, 1), (1, tall), (1, 1), (3 * wide, 3), (0, 1), (1, 0), (-wide, -1), (1, -(m as isize))];
        let writes = [(wide, 1), (64, 1), (1, tall), (2 * wide, 2), (-wide, -1)];
        for (at, read) in reads.into_iter().enumerate() {
            for write in [writes[at % writes.len()], writes[(at + 2) % writes.len()]] {
                let (from, to) = (Matrix::new(m, n, read.0, read.1), Matrix::new(m, n, write.0, write.1));
                let data = lab.values::<T>(from.len(m, n));
                let shift = if at.is_multiple_of(2) { 0 } else { 3 };
                let (x, mut y) = (lab.input_at(&data, shift), lab.output_at::<T>(to.len(m, n), shift));
                copy::<T, 16, 32>(x.slice(), &mut y.slice(), m, n, from.start, from.row, from.column, to.start, to.row, to.column)
                    .grid((cdiv(m, 16), cdiv(n, 32)))
                    .launch()
                    .unwrap();
                let mut want = y.before().to_vec();
                for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    want[to.at(i, j)] = data[from.at(i, j)];
                }
                check_bits(&y.read(), |i| want[i]);
            }
        }
    }
}

#[kernel(N = [1024])]
fn by_argument<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, x_step: usize, y_step: i32) {
    let at = program_id(0) * N + arange(0, N);
    store(y + at * y_step as usize, load(x + at * x_step, mask = at < n), mask = at < n);
}

#[kernel(N = [1024])]
fn by_neighbours<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * N + arange(0, N);
    store(y + at, load(x + at, mask = at < n), mask = at < n);
}

#[kernel(N = [1024], do_not_specialize)]
fn by_argument_only<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, x_step: usize, y_step: i32) {
    let at = program_id(0) * N + arange(0, N);
    store(y + at * y_step as usize, load(x + at * x_step, mask = at < n), mask = at < n);
}

fn a_step_that_is_1_is_read_at_once(lab: &mut Lab) {
    let data = lab.values::<f32>(1024);
    let x = lab.input_at(&data, 0);
    let mut results = Vec::new();
    for kernel in 0..3 {
        let mut y = lab.output_at::<f32>(1024, 0);
        match kernel {
            0 => by_neighbours::<1024>(x.slice(), &mut y.slice(), 1024).grid(1).launch().unwrap(),
            1 => by_argument::<1024>(x.slice(), &mut y.slice(), 1024, 1, 1).grid(1).launch().unwrap(),
            _ => by_argument_only::<1024>(x.slice(), &mut y.slice(), 1024, 1, 1).grid(1).launch().unwrap(),
        }
        results.push(y.read());
    }
    results.iter().for_each(|result| check_bits(result, |i| data[i]));
    if let Some(report) = lab.device.sim_report() {
        let requests = |kernel: &str| report.kernel(kernel).expect("it was launched").total().global.requests;
        assert_eq!(requests("by_argument"), requests("by_neighbours"));
        assert_eq!(requests("by_argument_only"), 4 * requests("by_neighbours"));
    }
}

/// The rows of a matrix, over the flat index of the output. The step of a coordinate may be 1, as the step of an index may.
#[kernel(N = [1024])]
fn rows_by_argument<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, columns: usize, x_row: usize, x_column: usize) {
    let at = program_id(0) * N + arange(0, N);
    store(y + at, load(x + at / columns * x_row + at % columns * x_column, mask = at < n), mask = at < n);
}

#[kernel(N = [1024])]
fn rows_of_neighbours<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, columns: usize, x_row: usize) {
    let at = program_id(0) * N + arange(0, N);
    store(y + at, load(x + at / columns * x_row + at % columns, mask = at < n), mask = at < n);
}

fn a_step_of_a_coordinate_that_is_1_is_read_at_once(lab: &mut Lab) {
    let (rows, columns, row) = (64, 32, 48);
    for column in [1, 2] {
        let data = lab.values::<f32>(column * rows * row);
        let x = lab.input_at(&data, 0);
        let mut y = lab.output_at::<f32>(rows * columns, 0);
        let n = rows * columns;
        rows_by_argument::<1024>(x.slice(), &mut y.slice(), n, columns, column * row, column).grid(cdiv(n, 1024)).launch().unwrap();
        check_bits(&y.read(), |i| data[i / columns * column * row + i % columns * column]);
        if column == 1 {
            rows_of_neighbours::<1024>(x.slice(), &mut y.slice(), n, columns, row).grid(cdiv(n, 1024)).launch().unwrap();
            if let Some(report) = lab.device.sim_report() {
                let requests = |kernel: &str| report.kernel(kernel).expect("it was launched").total().global.requests;
                assert_eq!(requests("rows_by_argument"), requests("rows_of_neighbours"));
            }
        }
    }
}

/// The facts of a variant decide its branches. The result shows the branches taken, so a wrong variant would be noticed.
#[kernel(N = [64], assume(n = 64, shift % 16 == 0), assume(back = -3), assume(on = true, shift % 64 == 0), assume(small = 200))]
fn declared<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: i32, shift: i64, back: i32, on: bool, small: u8) {
    let at = arange(0, N);
    let mut v = load(x + at, mask = at < n as usize);
    if shift % 32 == 0 {
        v += 1000.0;
    }
    if shift % 16 != 0 {
        v -= 500.0;
    }
    // That it is a multiple does not say which.
    if shift > 0 {
        v += 0.25;
    }
    if (n == 64) & on {
        v *= 2.0;
    }
    store(y + at, v + (back * 7 + small as i32) as f32 + (shift % 128) as f32);
}

fn what_is_assumed_holds_or_not(lab: &mut Lab) {
    for n in [64, 0, 63, 65, -64] {
        for (shift, back) in [(0, -3), (16, 3), (64, -3), (-48, 0), (33, -3), (1 << 40, 1)] {
            for (on, small) in [(true, 200), (false, 200), (true, 199)] {
                let data = lab.numbers::<f32>(64, -8.0, 8.0);
                let (x, mut y) = (lab.input(&data), lab.output::<f32>(64));
                declared::<64>(x.slice(), &mut y.slice(), n, shift, back, on, small).grid(1).launch().unwrap();
                check_bits(&y.read(), |i| {
                    // As a kernel counts, a negative number is beyond every index only if it is taken for a large one.
                    let mut v = if (i as i64) < i64::from(n) { data[i] } else { 0.0 };
                    v += if shift % 32 == 0 { 1000.0 } else { 0.0 };
                    v -= if shift % 16 != 0 { 500.0 } else { 0.0 };
                    v += if shift > 0 { 0.25 } else { 0.0 };
                    v *= if n == 64 && on { 2.0 } else { 1.0 };
                    v + (back * 7 + i32::from(small)) as f32 + (shift % 128) as f32
                });
            }
        }
    }
}

#[kernel(do_not_specialize = [step], N = [64])]
fn unasked<T: Element, const N: usize>(x: Ptr<T>, y: PtrMut<T>, step: usize, other: u32) {
    store(y + arange(0, N) * other as usize, load(x + arange(0, N) * step));
}

fn nothing_is_known_unasked(lab: &mut Lab) {
    for (step, other) in [(1, 1), (2, 1), (1, 3), (0, 2)] {
        let data = lab.values::<i16>(64 * 2);
        let (x, mut y) = (lab.input(&data), lab.output::<i16>(64 * 3));
        unasked::<i16, 64>(x.slice(), &mut y.slice(), step, other).grid(1).launch().unwrap();
        let mut want = y.before().to_vec();
        (0..64).for_each(|i| want[i * other as usize] = data[i * step]);
        check_bits(&y.read(), |i| want[i]);
    }
}

#[device]
fn element<T: Element>(x: Ptr<T>, at: Value<usize>, step: usize) -> Value<T> {
    load(x + at * step)
}

/// The kernel is compiled where the function's source is known, behind its launcher.
#[kernel(N = [64])]
fn walk<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, iterations: usize, step: usize, far: usize) {
    let mut at = arange(0, N) * step;
    let mut sum = zeros::<f32>([N]);
    for _ in 0..iterations {
        sum += load(x + at);
        at += far;
    }
    store(y + arange(0, N), sum + element(x, arange(0, N), step));
}

fn steps_through_loops_and_functions(lab: &mut Lab) {
    for (iterations, step, far) in [(0, 1, 64), (3, 1, 64), (5, 2, 1), (4, 1, 1), (2, 0, 7)] {
        let data = lab.numbers::<f32>(64 * 2 + 5 * 64, -1.0, 1.0);
        let (x, mut y) = (lab.input(&data), lab.output::<f32>(64));
        walk::<64>(x.slice(), &mut y.slice(), iterations, step, far).grid(1).launch().unwrap();
        check_bits(&y.read(), |i| (0..iterations).fold(0.0, |sum, iteration| sum + data[i * step + iteration * far]) + data[i * step]);
    }
}

#[kernel(N = [64], T = [f32], heuristics(EVEN = n % N == 0))]
fn chosen<T: Element, const N: usize, const EVEN: bool>(x: Ptr<T>, y: PtrMut<T>, n: usize, step: usize) {
    let at = program_id(0) * N + arange(0, N);
    if EVEN {
        store(y + at, load(x + at * step));
    } else {
        store(y + at, load(x + at * step, mask = at < n), mask = at < n);
    }
}

fn beside_heuristics(lab: &mut Lab) {
    for (n, step) in [(128, 1), (100, 1), (128, 2), (100, 3), (0, 1)] {
        let data = lab.values::<f32>(n * step);
        let (x, mut y) = (lab.input(&data), lab.output::<f32>(n));
        chosen::<f32, 64>(x.slice(), &mut y.slice(), n, step).grid(|_| cdiv(n, 64)).launch().unwrap();
        check_bits(&y.read(), |i| data[i * step]);
    }
}

#[autotune(configs = [Config { B: 64, num_warps: 1 }, Config { B: 128, num_warps: 2 }], key = [n], warmup = 0, rep = 1)]
#[kernel(assume(n % 128 == 0))]
fn raced<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, step: isize) {
    let at = program_id(0) * B + arange(0, B);
    let v = if n % 64 == 0 { load(x + at * step, mask = at < n) } else { load(x + at * step, mask = at < n) + 1.0 };
    store(y + at, v, mask = at < n);
}

fn beside_tuning(lab: &mut Lab) {
    for (n, step) in [(256, 1), (256, 2), (100, 1), (100, 2)] {
        let data = lab.numbers::<f32>(n * 2, -8.0, 8.0);
        let (x, mut y) = (lab.input(&data), lab.output::<f32>(n));
        for _ in 0..2 {
            raced(x.slice(), &mut y.slice(), n, step).grid(|config| cdiv(n, config.B)).compile_in_background().launch().unwrap();
            check_bits(&y.read(), |i| data[i * step as usize] + if n % 64 == 0 { 0.0 } else { 1.0 });
        }
    }
}

#[kernel(N = [64])]
fn later<T: Element, const N: usize>(x: Ptr<T>, y: PtrMut<T>, x_step: usize, y_step: usize, z_step: usize) {
    let v = load(x + arange(0, N) * x_step);
    store(y + arange(0, N) * y_step + z_step, v);
}

fn in_the_background(lab: &mut Lab) {
    // Neither combination is built with the program; unlisted constants have nothing that could serve.
    for (x_step, y_step) in [(1, 2), (2, 1), (1, 2), (2, 1)] {
        for _ in 0..20 {
            let data = lab.values::<f64>(128);
            let (x, mut y) = (lab.input(&data), lab.output::<f64>(128));
            later::<f64, 64>(x.slice(), &mut y.slice(), x_step, y_step, 0).grid(1).compile_in_background().launch().unwrap();
            let mut want = y.before().to_vec();
            (0..64).for_each(|i| want[i * y_step] = data[i * x_step]);
            check_bits(&y.read(), |i| want[i]);
            later::<f64, 32>(x.slice(), &mut y.slice(), x_step, y_step, 0).grid(1).compile_in_background().launch().unwrap();
            check_bits(&y.read(), |i| want[i]);
        }
    }
}

//! `num_stages` and `unroll`: loops that load ahead, or do several iterations at once, give what the loop as it stands gives.
//!
//! Sums are of small integers, so that every order of adding gives the same bits.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::{FloatValue, Value};

tests![
    dots_of_rows<f16, bf16, f32, f64>, dots_of_integers<i8, u8, i16, i32, i64>, schedules, what_is_stored_is_not_read_before,
    gathers, strides_and_others, softmaxes_of_long_rows, rows_in_a_loop, steps_at_run_time, runs_of_a_scan, tiles_of_two_axes, rows_of_any_length, small_tiles, odd_rows, counters_of_32_bits,
    rows_behind_one_mask<f32, i8>, prefetched_elements_that_several_threads_hold<f32, f64, i32>];

/// Sums a tensor into every element of `out`, and overwrites the tensor behind the sum. `OUT` is the number of threads.
#[kernel]
fn sum_and_overwrite<T: Number, const B: usize, const OUT: usize>(y: PtrMut<T>, out: PtrMut<T>, n: usize) {
    let lanes = arange(0, B);
    let mut acc = zeros::<T>([B]);
    for start in range(0, n, B, num_stages = 3) {
        acc += load(y + start + lanes);
    }
    let total = sum(acc);
    for start in range(0, n, B) {
        store(y + start + lanes, full::<T>([B], -1 as T));
    }
    store(out + arange(0, OUT), full::<T>([OUT], total));
}

/// A tile with fewer elements than the program has threads is held several times. A thread that is ahead stores what another has still to read, so
/// one thread reads each element for all.
fn prefetched_elements_that_several_threads_hold<T: Number + Value>(lab: &mut Lab) {
    fn check<T: Number + Value, const B: usize>(lab: &mut Lab) {
        for n in [B, 3 * B, 256] {
            let (numbers, host) = small::<T>(lab, n, 1);
            let mut y = lab.in_place(&host);
            let mut out = lab.output::<T>(128);
            sum_and_overwrite::<T, B, 128>(&mut y.slice(), &mut out.slice(), n).grid(1).launch().unwrap();
            check_bits(&y.read(), |_| T::near(-1.0));
            let total: i64 = numbers.iter().sum();
            check_bits(&out.read(), |_| T::near(total as f64));
        }
    }
    check::<T, 4>(lab);
    check::<T, 32>(lab);
    check::<T, 64>(lab);
    check::<T, 256>(lab);
}

/// A row of `x` times `w`, whose sum is in an integer.
#[kernel]
fn dots<T: Number, const B: usize, const STAGES: usize, const K: usize>(x: Ptr<T>, w: Ptr<T>, y: PtrMut<i64>, n: usize, stride: usize) {
    let row = program_id(0);
    let mut acc = zeros::<i64>([B]);
    for start in range(0, n, B, num_stages = STAGES, unroll = K) {
        let columns = start + arange(0, B);
        let mask = columns < n;
        let a = load(x + row * stride + columns, mask = mask, other = 0 as T);
        acc += (a as i64) * (load(w + columns, mask = mask) as i64);
    }
    store(y + row, sum(acc));
}

/// As above, counted in 32 bits.
#[kernel]
fn counted<const B: usize>(x: Ptr<f32>, w: Ptr<f32>, y: PtrMut<i64>, n: i32, stride: i32) {
    let row = program_id(0);
    let mut acc = zeros::<i64>([B]);
    for start in range(0, n, B) {
        let columns = start + arange(0, B);
        acc += (load(x + row * stride + columns, mask = columns < n) * load(w + columns, mask = columns < n)) as i64;
    }
    store(y + row, sum(acc));
}

fn counters_of_32_bits(lab: &mut Lab) {
    const ROWS: usize = 2;
    for (n, stride) in [(0, 4), (300, 301), (2048, 2048), (2100, 2200)] {
        let (x, host_x) = small::<f32>(lab, ROWS * stride, -3);
        let (w, host_w) = small::<f32>(lab, n, -3);
        let (x_in, w_in) = (lab.input_at(&host_x, 0), lab.input_at(&host_w, 0));
        let mut y = lab.output::<i64>(ROWS);
        counted::<512>(x_in.slice(), w_in.slice(), &mut y.slice(), n as i32, stride as i32).grid(ROWS).launch().unwrap();
        check_bits(&y.read(), |row| (0..n).map(|column| x[row * stride + column] * w[column]).sum());
    }
}

fn small<T: Value>(lab: &mut Lab, len: usize, low: i64) -> (Vec<i64>, Vec<T>) {
    let numbers: Vec<i64> = (0..len).map(|_| lab.below(8) as i64 + low).collect();
    let elements = numbers.iter().map(|number| T::near(*number as f64)).collect();
    (numbers, elements)
}

/// Rows of every alignment, with every rest behind the last full tile, at the end of their tensor.
fn dots_of<T: Number + Value, const B: usize, const STAGES: usize, const K: usize>(lab: &mut Lab, low: i64) {
    const ROWS: usize = 3;
    for (n, stride, shift) in [
        (0, 0, 0),
        (1, 1, 0),
        (B - 1, B, 1),
        (B, B, 0),
        (5 * B, 5 * B, 0),
        (5 * B + 16, 6 * B, 0),
        (3 * B + 7, 3 * B + 9, 0),
        (7 * B - 1, 7 * B, 3),
    ] {
        let (x, host_x) = small::<T>(lab, ROWS * stride, low);
        let (w, host_w) = small::<T>(lab, n, low);
        let (x_in, w_in) = (lab.input_at(&host_x, shift), lab.input_at(&host_w, shift));
        let mut y = lab.output::<i64>(ROWS);
        dots::<T, B, STAGES, K>(x_in.slice(), w_in.slice(), &mut y.slice(), n, stride).grid(ROWS).launch().unwrap();
        check_bits(&y.read(), |row| (0..n).map(|column| x[row * stride + column] * w[column]).sum());
    }
}

fn dots_of_rows<T: FloatValue>(lab: &mut Lab) {
    dots_of::<T, 512, 1, 1>(lab, -3);
    dots_of::<T, 512, 3, 1>(lab, -3);
    dots_of::<T, 1024, 2, 2>(lab, -3);
}

fn dots_of_integers<T: Int + Value>(lab: &mut Lab) {
    dots_of::<T, 1024, 4, 1>(lab, 0);
    dots_of::<T, 64, 2, 3>(lab, 0);
}

fn schedules(lab: &mut Lab) {
    dots_of::<f32, 256, 16, 1>(lab, -3);
    dots_of::<f32, 256, 5, 4>(lab, -3);
    dots_of::<f32, 2048, 2, 1>(lab, -3);
    dots_of::<bf16, 4096, 3, 1>(lab, -3);
}

/// A tile that was stored in one iteration is loaded in the next; and one that is stored where another is loaded.
#[kernel]
fn chain<const B: usize, const STAGES: usize>(y: PtrMut<i32>, z: PtrMut<i32>, n: usize) {
    let at = arange(0, B);
    for start in range(0, n, B, num_stages = STAGES) {
        store(y + start + B + at, load(y + start + at) + 1);
        atomic_add(z + start + 2 * B + at, load(z + start + at) + 1);
    }
}

fn what_is_stored_is_not_read_before(lab: &mut Lab) {
    const B: usize = 256;
    for (n, len) in [(7 * B, 8 * B), (7 * B, 7 * B + 5), (6 * B, 9 * B)] {
        let host = lab.numbers::<i32>(len, -1000.0, 1000.0);
        let (mut y, mut z) = (lab.in_place(&host), lab.in_place(&host));
        chain::<B, 4>(&mut y.slice(), &mut z.slice(), n).grid(1).launch().unwrap();
        let (mut want_y, mut want_z) = (host.clone(), host.clone());
        for start in (0..n).step_by(B) {
            for lane in 0..B {
                let (a, b) = (want_y.get(start + lane).copied().unwrap_or(0), want_z.get(start + lane).copied().unwrap_or(0));
                want_y.get_mut(start + B + lane).into_iter().for_each(|to| *to = a + 1);
                want_z.get_mut(start + 2 * B + lane).into_iter().for_each(|to| *to += b + 1);
            }
        }
        check_bits(&y.read(), |i| want_y[i]);
        check_bits(&z.read(), |i| want_z[i]);
    }
}

/// The indices come ahead; what they lead to is loaded where it stands.
#[kernel]
fn look_up<const B: usize>(table: Ptr<i32>, index: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    let mut acc = zeros::<i32>([B]);
    for start in range(0, n, B, num_stages = 3) {
        let at = start + arange(0, B);
        acc += load(table + load(index + at, mask = at < n, other = -1));
    }
    store(y + arange(0, B), acc);
}

fn gathers(lab: &mut Lab) {
    const B: usize = 128;
    for n in [0, 5, 4 * B, 9 * B + 17] {
        let table = lab.values::<i32>(100);
        let index: Vec<i32> = (0..n).map(|_| lab.below(120) as i32 - 10).collect();
        let (table_in, index_in) = (lab.input(&table), lab.input(&index));
        let mut y = lab.output::<i32>(B);
        look_up::<B>(table_in.slice(), index_in.slice(), &mut y.slice(), n).grid(1).launch().unwrap();
        let at = |i: usize| usize::try_from(index[i]).ok().and_then(|at| table.get(at)).copied().unwrap_or(0);
        check_bits(&y.read(), |lane| (lane..n).step_by(B).map(at).fold(0, i32::wrapping_add));
    }
}

/// Loads that no ring can take: every other element, a number for lanes outside, a stride that is an argument.
#[kernel]
fn scattered<const B: usize, const STAGES: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, stride: usize) {
    let mut acc = zeros::<f32>([B]);
    for start in range(0, n, B, num_stages = STAGES) {
        let at = start + arange(0, B);
        acc += load(x + 2 * at, mask = at < n, other = 3.0) - load(x + at * stride, mask = at < n, other = 1.0);
    }
    store(y + arange(0, B), acc);
}

fn strides_and_others(lab: &mut Lab) {
    const B: usize = 64;
    for (n, stride) in [(0, 1), (10, 3), (4 * B, 1), (6 * B + 3, 2), (5 * B, 0)] {
        let (x, host) = small::<f32>(lab, 2 * n + 1, -3);
        let input = lab.input(&host);
        let (mut y, mut z) = (lab.output::<f32>(B), lab.output::<f32>(B));
        scattered::<B, 2>(input.slice(), &mut y.slice(), n, stride).grid(1).launch().unwrap();
        scattered::<B, 5>(input.slice(), &mut z.slice(), n, stride).grid(1).launch().unwrap();
        // Outside the tensor as outside the mask.
        let element = |at: usize, other: i64| x.get(at).copied().unwrap_or(other);
        let want = |lane: usize| {
            let iteration = |at: usize| if at < n { element(2 * at, 3) - element(at * stride, 1) } else { 2 };
            (lane..n.next_multiple_of(B)).step_by(B).map(iteration).sum::<i64>() as f32
        };
        check_bits(&y.read(), want);
        check_bits(&z.read(), want);
    }
}

/// Three loops over a row, each with a ring: the largest, how many reach it, and the row without it. The maximum is one for all threads in
/// each iteration, through shared memory.
#[kernel]
fn peaks<const B: usize, const STAGES: usize>(x: Ptr<i32>, y: PtrMut<i32>, count: PtrMut<i32>, n: usize) {
    let row = program_id(0);
    let mut top = -1000i32;
    for start in range(0, n, B, num_stages = STAGES) {
        let at = start + arange(0, B);
        top = max(top, max(load(x + row * n + at, mask = at < n, other = -1000, evict = "evict_last")));
    }
    let mut many = zeros::<i32>([B]);
    for start in range(0, n, B, num_stages = STAGES) {
        let at = start + arange(0, B);
        many += (load(x + row * n + at, mask = at < n, other = -1000) == top) as i32;
    }
    store(count + row, sum(many));
    for start in range(0, n, B, num_stages = STAGES, unroll = 2) {
        let at = start + arange(0, B);
        store(y + row * n + at, load(x + row * n + at, mask = at < n, evict = "evict_first") - top, mask = at < n);
    }
}

fn softmaxes_of_long_rows(lab: &mut Lab) {
    const ROWS: usize = 3;
    for n in [1, 256, 1000, 2048, 2051] {
        let (x, host) = small::<i32>(lab, ROWS * n, -5);
        let input = lab.input(&host);
        for stages in [2, 4] {
            let (mut y, mut count) = (lab.output::<i32>(ROWS * n), lab.output::<i32>(ROWS));
            let (y_out, count_out) = (&mut y.slice(), &mut count.slice());
            match stages {
                2 => peaks::<256, 2>(input.slice(), y_out, count_out, n).grid(ROWS).launch().unwrap(),
                _ => peaks::<256, 4>(input.slice(), y_out, count_out, n).grid(ROWS).launch().unwrap(),
            }
            let row = |row: usize| &x[row * n..(row + 1) * n];
            let top: Vec<_> = (0..ROWS).map(|index| row(index).iter().copied().max().unwrap_or(-1000)).collect();
            check_bits(&y.read(), |i| (x[i] - top[i / n]) as i32);
            check_bits(&count.read(), |index| row(index).iter().filter(|value| **value == top[index]).count() as i32);
        }
    }
}

/// A ring around a ring: the outer loop's weights are on their way while the inner one runs.
#[kernel]
fn nested<const B: usize>(x: Ptr<i32>, w: Ptr<i32>, y: PtrMut<i32>, rows: usize, n: usize) {
    let mut all = zeros::<i32>([B]);
    for row in range(0, rows, num_stages = 3) {
        let weight = load(w + row * B + arange(0, B));
        let mut acc = zeros::<i32>([B]);
        for start in range(0, n, B, num_stages = 2) {
            let at = start + arange(0, B);
            acc += load(x + row * n + at, mask = at < n);
        }
        all += acc * weight + sum(acc);
    }
    store(y + arange(0, B), all);
}

fn rows_in_a_loop(lab: &mut Lab) {
    const B: usize = 512;
    for (rows, n) in [(0, 5), (1, B), (4, 3 * B + 4), (7, 2 * B + 1)] {
        let (host, weights) = (lab.numbers::<i32>(rows * n, -99.0, 99.0), lab.numbers::<i32>(rows * B, -9.0, 9.0));
        let (x, w) = (lab.input_at(&host, 0), lab.input_at(&weights, 0));
        let mut y = lab.output::<i32>(B);
        nested::<B>(x.slice(), w.slice(), &mut y.slice(), rows, n).grid(1).launch().unwrap();
        check_bits(&y.read(), |lane| {
            (0..rows)
                .map(|row| {
                    let sum = |from: usize, by: usize| (from..n).step_by(by).map(|at| host[row * n + at]).sum::<i32>();
                    sum(lane, B) * weights[row * B + lane] + sum(0, 1)
                })
                .sum()
        });
    }
}

/// Programs take tiles in turns; and a loop whose step is no step, or the longest that there is.
#[kernel]
fn in_turns<const B: usize>(x: Ptr<i32>, y: PtrMut<i32>, from: isize, n: isize, step: isize) {
    let mut acc = zeros::<i32>([B]);
    let first = from + program_id(0) * B;
    for start in range(first, n, step, num_stages = 4, unroll = 2) {
        let at = start + arange(0, B);
        acc += load(x + at, mask = at < n) + 1;
    }
    store(y + program_id(0) * B + arange(0, B), acc);
}

fn steps_at_run_time(lab: &mut Lab) {
    const B: usize = 64;
    const PROGRAMS: usize = 3;
    let far = i64::MAX;
    for (from, n, step) in [
        (0, 2000, (B * PROGRAMS) as i64),
        (0, 1003, 3 * B as i64),
        (-200, 700, 7),
        (0, 500, 0),
        (0, 500, -3),
        (-5, 640, far),
        (-far, 100, far),
        (far - 300, far, 128),
        (far - 300, far, far),
    ] {
        let host = lab.numbers::<i32>(1000, -99.0, 99.0);
        let x = lab.input(&host);
        let mut y = lab.output::<i32>(B * PROGRAMS);
        in_turns::<B>(x.slice(), &mut y.slice(), from as isize, n as isize, step as isize).grid(PROGRAMS).launch().unwrap();
        check_bits(&y.read(), |i| {
            let mut start = i128::from((from).wrapping_add((i / B * B) as i64));
            let mut sum = 0i32;
            while step > 0 && start < i128::from(n) {
                // The index of a lane wraps; the loop's own does not.
                let at = (start as i64).wrapping_add((i % B) as i64);
                let read = (at < n).then(|| usize::try_from(at).ok().and_then(|at| host.get(at)).copied().unwrap_or(0));
                sum = sum.wrapping_add(read.unwrap_or(0) + 1);
                start += i128::from(step);
            }
            sum
        });
    }
}

/// A scan in each iteration uses shared memory beside the ring, and what it gives goes on to the next iteration.
#[kernel]
fn running<const B: usize>(x: Ptr<i64>, y: PtrMut<i64>, n: usize) {
    let mut before = 0i64;
    for start in range(0, n, B, num_stages = 3) {
        let at = start + arange(0, B);
        let sums = cumsum(load(x + at, mask = at < n), axis = 0) + before;
        store(y + at, sums, mask = at < n);
        before = max(sums * (arange(0, B) == B - 1) as i64);
    }
}

fn runs_of_a_scan(lab: &mut Lab) {
    for n in [0, 1, 256, 1024, 1500] {
        let host: Vec<i64> = (0..n).map(|_| lab.below(1000) as i64).collect();
        let x = lab.input(&host);
        let mut y = lab.output::<i64>(n);
        running::<256>(x.slice(), &mut y.slice(), n).grid(1).launch().unwrap();
        check_bits(&y.read(), |i| host[..=i].iter().sum());
    }
}

/// Programs take rows in turns, whose length is an argument: each row as it was less its sum.
#[kernel]
fn rows_in_turns<const B: usize, const STAGES: usize>(x: Ptr<i32>, y: PtrMut<i32>, rows: usize, n: usize, stride: usize) {
    let columns = arange(0, B);
    for row in range(program_id(0), rows, num_programs(0), num_stages = STAGES) {
        let v = load(x + row * stride + columns, mask = columns < n);
        store(y + row * n + columns, v - sum(v), mask = columns < n);
    }
}

fn rows_of_any_length(lab: &mut Lab) {
    for (rows, n, stride) in [(0, 5, 5), (1, 256, 256), (11, 200, 204), (7, 255, 256), (9, 1, 3), (8, 64, 0), (5, 0, 8), (10, 300, 320)] {
        let host = lab.numbers::<i32>(rows * stride + n, -999.0, 999.0);
        for shift in [0, 1] {
            let x = lab.input_at(&host, shift);
            let (mut y, mut z) = (lab.output_at::<i32>(rows * n, shift), lab.output::<i32>(rows * n));
            rows_in_turns::<256, 4>(x.slice(), &mut y.slice(), rows, n, stride).grid(2).launch().unwrap();
            rows_in_turns::<512, 1>(x.slice(), &mut z.slice(), rows, n, stride).grid(3).launch().unwrap();
            let want = |at: usize, block: usize| {
                let (row, column) = (at / n, at % n);
                let sum: i32 = host[row * stride..row * stride + n.min(block)].iter().sum();
                (column < block).then(|| host[row * stride + column] - sum)
            };
            let before = y.before().to_vec();
            check_bits(&y.read(), |at| want(at, 256).unwrap_or(before[at]));
            check_bits(&z.read(), |at| want(at, 512).unwrap());
        }
    }
}

/// Blocks of rows, and the same of a transposed matrix, whose neighbours lie along the other axis: they cross the threads behind their ring.
#[kernel]
fn across<const BM: usize, const BN: usize, const STAGES: usize>(x: Ptr<i32>, z: Ptr<i32>, y: PtrMut<i32>, rows: usize) {
    let columns = arange(0, BN);
    let mut acc = zeros::<i32>([BM, BN]);
    for first in range(0, rows, BM, num_stages = STAGES) {
        let row = first + arange(0, BM);
        let mask = (row < rows)[(.., None)] & (columns < BN - 4)[(None, ..)];
        let a = load(x + row[(.., None)] * BN + columns[(None, ..)], mask = mask);
        acc += a * load(z + columns[(None, ..)] * 128 + row[(.., None)], mask = mask, other = 1);
    }
    store(y + columns, sum(acc, axis = 0));
}

fn tiles_of_two_axes(lab: &mut Lab) {
    const N: usize = 64;
    for rows in [0, 1, 16, 80, 96, 128] {
        let (host_x, host_z) = (lab.numbers::<i32>(rows * N, -99.0, 99.0), lab.numbers::<i32>(128 * N, -99.0, 99.0));
        for shift in [0, 1] {
            let (x, z) = (lab.input_at(&host_x, shift), lab.input_at(&host_z, 0));
            let (mut y, mut w) = (lab.output::<i32>(N), lab.output::<i32>(N));
            across::<16, N, 3>(x.slice(), z.slice(), &mut y.slice(), rows).grid(1).launch().unwrap();
            across::<32, N, 2>(x.slice(), z.slice(), &mut w.slice(), rows).grid(1).launch().unwrap();
            let want = |column: usize| {
                (0..rows).map(|row| if column < N - 4 { host_x[row * N + column] * host_z[column * 128 + row] } else { 0 }).sum()
            };
            check_bits(&y.read(), want);
            check_bits(&w.read(), want);
        }
    }
}

/// Fewer elements than threads: each is held by several, and each of them has its own copy.
fn small_tiles(lab: &mut Lab) {
    dots_of::<f32, 16, 3, 1>(lab, -3);
    dots_of::<f16, 64, 3, 1>(lab, -3);
    dots_of::<u8, 32, 4, 2>(lab, 0);
    dots_of::<f64, 32, 2, 1>(lab, -3);
}

/// Rows that are no whole number of wide accesses: by their shape, or by a mask that each iteration has. What is fetched in front of the loop, for
/// iterations that there may not be, says nothing about the mask of those that there are.
#[kernel]
fn of_columns<const R: usize, const C: usize, const STAGES: usize>(
    x: Ptr<i32>,
    y: PtrMut<i32>,
    n: usize,
    stride: usize,
    iterations: usize,
) {
    let (rows, columns) = (arange(0, R)[(.., None)], arange(0, C)[(None, ..)]);
    let mut acc = zeros::<i32>([R, C]);
    for k in range(0, iterations, 1, num_stages = STAGES) {
        acc += load(x + rows * stride + columns + k * 16, mask = columns < n, other = 1);
    }
    store(y + rows * C + columns, acc);
}

/// As above, where nothing but the shape masks.
#[kernel]
fn of_whole_rows<const R: usize, const C: usize, const STRIDE: usize, const STAGES: usize>(x: Ptr<i32>, y: PtrMut<i32>, iterations: usize) {
    let (rows, columns) = (arange(0, R)[(.., None)], arange(0, C)[(None, ..)]);
    let mut acc = zeros::<i32>([R, C]);
    for k in range(0, iterations, 1, num_stages = STAGES) {
        acc += load(x + rows * STRIDE + columns + k * 16);
    }
    store(y + rows * C + columns, acc);
}

fn odd_rows(lab: &mut Lab) {
    odd_rows_of::<4, 17, 64, 3>(lab);
    odd_rows_of::<16, 17, 64, 3>(lab);
    odd_rows_of::<16, 33, 128, 2>(lab);
    odd_rows_of::<16, 16, 128, 2>(lab);
    odd_rows_of::<16, 16, 15, 4>(lab);
}

fn odd_rows_of<const R: usize, const C: usize, const STRIDE: usize, const STAGES: usize>(lab: &mut Lab) {
    for (n, iterations) in [(7, 3), (8, 4), (C - 1, 3), (C, 5), (100, 1), (0, 2)] {
        let end = (R - 1) * STRIDE + C + 16 * (iterations - 1);
        for len in [end, end + 3000, end / 2] {
            let host = lab.numbers::<i32>(len, -99.0, 99.0);
            let x = lab.input_at(&host, 0);
            let (mut y, mut z) = (lab.output::<i32>(R * C), lab.output::<i32>(R * C));
            of_columns::<R, C, STAGES>(x.slice(), &mut y.slice(), n, STRIDE, iterations).grid(1).launch().unwrap();
            of_whole_rows::<R, C, STRIDE, STAGES>(x.slice(), &mut z.slice(), iterations).grid(1).launch().unwrap();
            let element = |at: usize, iteration: usize| host.get(at / C * STRIDE + at % C + iteration * 16).copied();
            let sum = |at: usize, other: i32| (0..iterations).map(|iteration| element(at, iteration).unwrap_or(other)).sum();
            check_bits(&y.read(), |at| if at % C < n { sum(at, 1) } else { iterations as i32 });
            check_bits(&z.read(), |at| sum(at, 0));
        }
    }
}

/// Adds rows up behind a mask that is the same for all of them, and ends anywhere.
#[kernel(B = 384)]
fn added_up<T: Number, const B: usize, const STAGES: usize>(x: Ptr<T>, y: PtrMut<T>, rows: usize, stride: usize, low: usize, n: usize) {
    let columns = arange(0, B);
    let mask = columns >= low && columns < n;
    let mut sum = zeros::<T>([B]);
    for row in range(0, rows, 1, num_stages = STAGES) {
        sum += load(x + row * stride + columns, mask = mask, other = 1 as T);
    }
    store(y + columns, sum);
}

fn rows_behind_one_mask<T: Number + Value>(lab: &mut Lab) {
    const B: usize = 384;
    for (rows, stride, low, n) in [(0, 0, 0, 0), (3, 384, 0, 384), (5, 400, 0, 381), (4, 400, 3, 384), (2, 448, 17, 130), (3, 385, 1, 2)] {
        let (x, host) = small::<T>(lab, rows * stride, -3);
        let x_in = lab.input_at(&host, 0);
        let mut y = lab.output::<T>(B);
        added_up::<T, B, 3>(x_in.slice(), &mut y.slice(), rows, stride, low, n).grid(1).launch().unwrap();
        let seen = |row: usize, column: usize| if (low..n).contains(&column) { x[row * stride + column] } else { 1 };
        check_bits(&y.read(), |column| T::near((0..rows).map(|row| seen(row, column)).sum::<i64>() as f64));
    }
}

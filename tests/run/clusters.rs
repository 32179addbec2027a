//! Programs that several CTAs share: every part of a kernel that they can share, in clusters of 2 to 16, and what is said where they cannot.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits, check_ints};
use crate::value::{FloatValue, IntValue};

tests![
    softmax_of_long_rows<f16, f32>,
    sums_of_integers<i32, u8, i64>,
    reductions_along_each_axis<f32, f64>,
    order_is_preserved,
    lookups,
    reductions_in_loops,
    small_tiles_are_shared_by_nobody,
    one_element_is_written_once,
    early_returns,
    devices_without_clusters_say_so,
    checked_launches_have_the_schedule_of_their_configuration,
    moves_between_ctas_are_refused,
];

/// Tests of what is said on devices without clusters.
const ANYWHERE: [&str; 3] =
    ["devices_without_clusters_say_so", "checked_launches_have_the_schedule_of_their_configuration", "moves_between_ctas_are_refused"];

pub(crate) fn reason_to_skip(test: &str, device: Device) -> Option<&'static str> {
    assert!(ANYWHERE.iter().all(|name| tests().iter().any(|(test, _)| test == name)), "{ANYWHERE:?} are tests");
    (!has_clusters(device) && !ANYWHERE.contains(&test)).then_some("skipped: this GPU has no clusters")
}

/// Can the device run clusters? The CPU runs such kernels, too.
fn has_clusters(device: Device) -> bool {
    device.compute_capability().is_none_or(|(major, _)| major >= 9)
}

macro_rules! kernels {
    ($($ctas:literal: $softmax:ident $sums:ident $axes:ident $first:ident $iterations:ident $small:ident $count:ident $leave:ident;)*) => {
        mod kernels {
            use galatea::prelude::*;
            $(
                #[kernel(num_ctas = $ctas, num_warps = 2)]
                pub(super) fn $softmax<T: Float, const B: usize>(x: Ptr<T>, y: PtrMut<T>, columns: usize) {
                    let column = arange(0, B);
                    let at = program_id(0) * columns + column;
                    let v = load(x + at, mask = column < columns, other = f32::NEG_INFINITY as T) as f32;
                    let e = exp(v - max(v));
                    store(y + at, (e / sum(e)) as T, mask = column < columns);
                }

                #[kernel(num_ctas = $ctas, num_warps = 4)]
                pub(super) fn $sums<T: Int, const B: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
                    let at = arange(0, B);
                    let v = load(x + program_id(0) * n + at, mask = at < n);
                    store(y + 3 * program_id(0), sum(v));
                    store(y + 3 * program_id(0) + 1, max(v));
                    store(y + 3 * program_id(0) + 2, xor_sum(v));
                }

                #[kernel(num_ctas = $ctas, num_warps = 2)]
                pub(super) fn $axes<T: Float, const M: usize, const N: usize>(x: Ptr<T>, rows: PtrMut<T>, columns: PtrMut<T>) {
                    let v = load(x + arange(0, M)[(.., None)] * N + arange(0, N)[(None, ..)]);
                    store(rows + arange(0, M), sum(v, axis = 1));
                    store(columns + arange(0, N), v.sum(axis = 0));
                }

                #[kernel(num_ctas = $ctas, num_warps = 1)]
                pub(super) fn $first<const B: usize>(x: Ptr<f32>, best: PtrMut<i32>, last: PtrMut<f32>) {
                    let v = load(x + arange(0, B));
                    store(best, argmax(v, axis = 0) as i32);
                    // Of two, the later: which element that is depends on the order alone.
                    store(last, reduce(v, 0, |_a, b| b));
                }

                #[kernel(num_ctas = $ctas, num_warps = 2)]
                pub(super) fn $iterations<const B: usize>(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
                    let mut total = 0i32;
                    for first in range(0, n, B) {
                        let at = first + arange(0, B);
                        let v = load(x + at, mask = at < n);
                        total = total * 3 + sum(v);
                        if total > 1000 {
                            total -= max(v);
                        }
                    }
                    store(y, total);
                }

                #[kernel(num_ctas = $ctas, num_warps = 4)]
                pub(super) fn $small(x: Ptr<f32>, y: PtrMut<f32>) {
                    let v = load(x + arange(0, 8));
                    store(y + arange(0, 8), v + sum(v));
                }

                #[kernel(num_ctas = $ctas)]
                pub(super) fn $count<const B: usize>(counts: PtrMut<i32>) {
                    atomic_add(counts, 1);
                    atomic_add(counts + 1 + arange(0, B), 1 + program_id(0) as i32);
                    debug_barrier();
                }

                #[kernel(num_ctas = $ctas)]
                pub(super) fn $leave<const B: usize>(x: Ptr<i32>, y: PtrMut<i32>) {
                    let v = load(x + program_id(0) * B + arange(0, B));
                    if sum(v) < 0 {
                        store(y + program_id(0), -1);
                        return;
                    }
                    store(y + program_id(0), max(v));
                }
            )*
        }

        fn softmax_of_long_rows<T: FloatValue>(lab: &mut Lab) {
            for columns in [1, 1000, 2048] {
                let host = lab.numbers::<T>(3 * columns, -5.0, 5.0);
                $(rows_of::<T>(lab, &host, columns, |x, mut y| kernels::$softmax::<T, 2048>(x, &mut y, columns).grid(3).launch());)*
            }
        }

        fn sums_of_integers<T: IntValue>(lab: &mut Lab) {
            for n in [1, 700, 1024] {
                let host = lab.values::<T>(2 * n);
                let x = lab.input(&host);
                $({
                    let mut y = lab.output::<T>(6);
                    kernels::$sums::<T, 1024>(x.slice(), &mut y.slice(), n).grid(2).launch().unwrap();
                    check_ints(&y.read(), |i| {
                        let row = || host[i / 3 * n..][..n].iter().map(|v| v.wide()).chain((n < 1024).then_some(0));
                        match i % 3 {
                            0 => row().sum(),
                            1 => row().max().unwrap(),
                            _ => row().fold(0, |a, b| a ^ b),
                        }
                    });
                })*
            }
        }

        fn reductions_along_each_axis<T: FloatValue>(lab: &mut Lab) {
            $(
                of_shape::<T, 2, 64>(lab, |x, mut a, mut b| kernels::$axes::<T, 2, 64>(x, &mut a, &mut b).grid(1).launch());
                of_shape::<T, 64, 2>(lab, |x, mut a, mut b| kernels::$axes::<T, 64, 2>(x, &mut a, &mut b).grid(1).launch());
                of_shape::<T, 16, 128>(lab, |x, mut a, mut b| kernels::$axes::<T, 16, 128>(x, &mut a, &mut b).grid(1).launch());
                of_shape::<T, 24, 40>(lab, |x, mut a, mut b| kernels::$axes::<T, 24, 40>(x, &mut a, &mut b).grid(1).launch());
            )*
        }

        fn order_is_preserved(lab: &mut Lab) {
            let mut host = lab.numbers::<f32>(4096, -5.0, 5.0);
            // The largest stands there twice; the first is found.
            let index = lab.below(2048);
            (host[index], host[4095 - index / 2]) = (9.0, 9.0);
            let x = lab.input(&host);
            $({
                let (mut best, mut last) = (lab.output::<i32>(1), lab.output::<f32>(1));
                kernels::$first::<4096>(x.slice(), &mut best.slice(), &mut last.slice()).grid(1).launch().unwrap();
                check_ints(&best.read(), |_| index as i128);
                check_bits(&last.read(), |_| host[4095]);
            })*
        }

        fn reductions_in_loops(lab: &mut Lab) {
            for n in [0, 5, 512, 3000] {
                let host: Vec<i32> = (0..n).map(|_| lab.below(1 << 20) as i32 - (1 << 19)).collect();
                let x = lab.input(&host);
                let mut want = 0i32;
                for block in host.chunks(512) {
                    want = want.wrapping_mul(3).wrapping_add(block.iter().sum());
                    if want > 1000 {
                        want = want.wrapping_sub(block.iter().copied().chain((block.len() < 512).then_some(0)).max().unwrap());
                    }
                }
                $({
                    let mut y = lab.output::<i32>(1);
                    kernels::$iterations::<512>(x.slice(), &mut y.slice(), n).grid(1).launch().unwrap();
                    check_bits(&y.read(), |_| want);
                })*
            }
        }

        fn small_tiles_are_shared_by_nobody(lab: &mut Lab) {
            let host: Vec<f32> = (0..8).map(|_| lab.below(100) as f32).collect();
            let x = lab.input(&host);
            $({
                let mut y = lab.output::<f32>(8);
                kernels::$small(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
                check_bits(&y.read(), |i| host[i] + host.iter().sum::<f32>());
            })*
        }

        fn one_element_is_written_once(lab: &mut Lab) {
            $(for programs in [1usize, 5] {
                let mut counts = lab.in_place(&[0i32; 101]);
                kernels::$count::<100>(&mut counts.slice()).grid(programs).launch().unwrap();
                check_ints(&counts.read(), |i| if i == 0 { programs as i128 } else { (programs * (programs + 1) / 2) as i128 });
            })*
        }

        fn early_returns(lab: &mut Lab) {
            let host: Vec<i32> = (0..4 * 256).map(|_| lab.below(1000) as i32 - 500).collect();
            let x = lab.input(&host);
            $({
                let mut y = lab.output::<i32>(4);
                kernels::$leave::<256>(x.slice(), &mut y.slice()).grid(4).launch().unwrap();
                check_bits(&y.read(), |i| {
                    let row = &host[256 * i..][..256];
                    if row.iter().sum::<i32>() < 0 { -1 } else { *row.iter().max().unwrap() }
                });
            })*
        }
    };
}

kernels! {
    2: softmax_2 sums_2 axes_2 first_2 iterations_2 small_2 count_2 leave_2;
    4: softmax_4 sums_4 axes_4 first_4 iterations_4 small_4 count_4 leave_4;
    16: softmax_16 sums_16 axes_16 first_16 iterations_16 small_16 count_16 leave_16;
}

fn rows_of<T: FloatValue>(
    lab: &mut Lab,
    host: &[T],
    columns: usize,
    launch: impl Fn(galatea::TensorView<'_, T>, galatea::TensorViewMut<'_, T>) -> galatea::Result<()>,
) {
    let (x, mut y) = (lab.input(host), lab.output::<T>(host.len()));
    launch(x.slice(), y.slice()).unwrap();
    let totals: Vec<f64> = host.chunks(columns).map(|row| row.iter().map(|v| v.wide().exp()).sum()).collect();
    check(&y.read(), Class::Chain(24), |i| host[i].wide().exp() / totals[i / columns]);
}

fn of_shape<T: FloatValue, const M: usize, const N: usize>(
    lab: &mut Lab,
    launch: impl Fn(galatea::TensorView<'_, T>, galatea::TensorViewMut<'_, T>, galatea::TensorViewMut<'_, T>) -> galatea::Result<()>,
) {
    // Whole numbers, whose sums are exact in any order.
    let host: Vec<T> = (0..M * N).map(|_| T::near(lab.below(64) as f64 - 32.0)).collect();
    let (x, mut rows, mut columns) = (lab.input(&host), lab.output::<T>(M), lab.output::<T>(N));
    launch(x.slice(), rows.slice(), columns.slice()).unwrap();
    check_bits(&rows.read(), |i| T::near((0..N).map(|j| host[i * N + j].wide()).sum()));
    check_bits(&columns.read(), |j| T::near((0..M).map(|i| host[i * N + j].wide()).sum()));
}

fn devices_without_clusters_say_so(lab: &mut Lab) {
    let (x, mut y) = (lab.input(&[1.0f32; 8]), lab.output::<f32>(8));
    let result = kernels::small_2(x.slice(), &mut y.slice()).grid(1).launch();
    if has_clusters(lab.device) {
        return result.unwrap();
    }
    let error = result.unwrap_err().to_string();
    assert!(error.contains("`num_ctas = 2` makes clusters, and sm_80 has none"), "{error}");
}

#[autotune(configs = [Config { B: 64, num_ctas: 2 }], key = [])]
#[kernel]
fn tuned<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, sum(load(x + arange(0, B))));
}

/// A checked launch runs what an unchecked one would.
fn checked_launches_have_the_schedule_of_their_configuration(lab: &mut Lab) {
    let (x, mut y) = (lab.input(&[1.0f32; 64]), lab.output::<f32>(1));
    let result = tuned(x.slice(), &mut y.slice()).grid(|_| 1).checked().launch();
    if has_clusters(lab.device) {
        result.unwrap();
        return check_bits(&y.read(), |_| 64.0);
    }
    let error = result.unwrap_err().to_string();
    assert!(error.contains("sm_80 has none"), "{error}");
}

#[kernel(num_ctas = 2)]
fn running_totals<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y + arange(0, B), cumsum(load(x + arange(0, B)), axis = 0));
}

#[kernel(num_ctas = 2)]
fn tickets<const B: usize>(next: PtrMut<i32>, y: PtrMut<i32>) {
    store(y + arange(0, B), full::<i32>([B], atomic_add(next, 1)));
}

/// Compiled in process, where a mistake of the kernel is an error of the launch.
fn moves_between_ctas_are_refused(lab: &mut Lab) {
    let is_gpu = lab.device.compute_capability().is_some();
    if is_gpu && has_clusters(lab.device) {
        let (mut next, mut y) = (lab.in_place(&[0]), lab.output::<i32>(512));
        let error = tickets::<512>(&mut next.slice(), &mut y.slice()).grid(1).launch().unwrap_err().to_string();
        assert!(error.contains("what an atomic finds is not known between the CTAs of a program"), "{error}");
    }
    let (x, mut y) = (lab.input(&[1.0f32; 512]), lab.output::<f32>(512));
    let result = running_totals::<512>(x.slice(), &mut y.slice()).grid(1).launch();
    if !is_gpu {
        result.unwrap();
        return check_bits(&y.read(), |i| i as f32 + 1.0);
    }
    let error = result.unwrap_err().to_string();
    let wanted = if has_clusters(lab.device) { "a scan cannot go on between the CTAs of a program" } else { "sm_80 has none" };
    assert!(error.contains(wanted), "{error}");
}

/// Rows from the last to the first: which they are is looked up in a tile that every CTA holds.
#[kernel(num_ctas = 2, num_warps = 2)]
fn looked_up(x: Ptr<i32>, y: PtrMut<i32>) {
    let (row, column) = (arange(0, 3).col(), arange(0, 128).row());
    store(y + row * 128 + column, load(x + flip(arange(0, 3)).col() * 128 + column));
}

fn lookups(lab: &mut Lab) {
    let host = lab.values::<i32>(3 * 128);
    let x = lab.input(&host);
    let mut y = lab.output::<i32>(3 * 128);
    looked_up(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |at| host[(2 - at / 128) * 128 + at % 128]);
}

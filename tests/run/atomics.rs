//! Programs that change the same elements: sums, extremes, bits, exchanges, and the old values that they give.
//!
//! Sums are of whole numbers, which every order adds up exactly. What an atomic gives where several meet depends on the order, so it is looked
//! at as a whole: tickets are all different.

use galatea::Number;
use galatea::prelude::*;

use crate::lab::{Lab, SIZES};
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::Value;

tests![
    sums_meet<i32, i64, u32, u64, f16, bf16, f32, f64>,
    scalar_sums<i32, u64, f16, bf16, f32, f64>,
    f32_subnormals_count_as_zeros,
    extremes_meet<i32, i64, u32, u64, f32, f64>,
    bits_meet<i32, i64, u32, u64>,
    numbers_give_what_was<i32, i64, u32, u64, f16, bf16, f32, f64>,
    exchanges_give_what_was<i32, i64, u32, u64, f32, f64>,
    comparisons_give_what_was<i16, u16, f16, bf16, i32, i64, u32, u64, f32, f64>,
    loads_and_stores<bool, i8, u16, bf16, f32, i64>,
    tickets_are_all_different,
    elements_that_many_threads_hold,
    tiles_of_two_axes,
    outside_and_masked_lanes_give_zero,
    constant_masks,
    checked_launches_name_the_builtin,
    what_is_not_needed_does_not_happen,
];

/// A number whose small whole values are exact.
pub(crate) trait Whole: Value + Number {
    fn whole(self) -> i64;
}

macro_rules! whole {
    ($($ty:ident: $to:expr),*) => {$(
        impl Whole for $ty {
            fn whole(self) -> i64 {
                #[allow(clippy::redundant_closure_call, reason = "one shape for all types")]
                ($to)(self)
            }
        }
    )*};
}
whole!(i32: i64::from, i64: |x| x, u32: i64::from, u64: |x: u64| x as i64, f32: |x: f32| x as i64, f64: |x: f64| x as i64);
whole!(f16: |x: f16| x.to_f64() as i64, bf16: |x: bf16| x.to_f64() as i64);

/// Adds each element to the bin that it names.
#[kernel(B = [32, 256], T = [i32, i64, u32, u64, f16, bf16, f32, f64])]
fn scatter_add<T: Number, const B: usize>(bins: Ptr<i32>, x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    atomic_add(y + load(bins + at, mask = mask), load(x + at, mask = mask), mask = mask, sem = "relaxed");
}

fn sums_meet<T: Whole>(lab: &mut Lab) {
    for n in [0, 1, 31, 65, 1000, 4097] {
        // Some bins are none of the tensor. The sums are small enough for a `bf16`.
        let bins: Vec<i32> = (0..n).map(|_| lab.below(44) as i32 - 2).collect();
        let host: Vec<T> = (0..n).map(|_| T::near(lab.below(2) as f64)).collect();
        let start: Vec<T> = (0..40).map(|_| T::near(lab.below(64) as f64)).collect();
        let (b, x) = (lab.input(&bins), lab.input(&host));
        let (mut y, mut z) = (lab.in_place(&start), lab.in_place(&start));
        scatter_add::<T, 256>(b.slice(), x.slice(), &mut y.slice(), n).grid(cdiv(n, 256)).launch().unwrap();
        scatter_add::<T, 32>(b.slice(), x.slice(), &mut z.slice(), n).grid(cdiv(n, 32)).launch().unwrap();
        let sum = |bin: usize| {
            let those = bins.iter().zip(&host).filter(|(own, _)| **own == bin as i32);
            start[bin].whole() + those.map(|(_, value)| value.whole()).sum::<i64>()
        };
        assert!((0..40).all(|bin| sum(bin) < 256), "a `bf16` holds the sums");
        for got in [y.read(), z.read()] {
            (0..40).for_each(|bin| assert_eq!(got[bin].whole(), sum(bin), "bin {bin} of {n}"));
        }
    }
}

/// Programs stride over the elements; each adds what it has in one atomic.
#[kernel(B = 128, T = [i32, u64, f16, bf16, f32, f64])]
fn sum_of_all<T: Number, const B: usize>(x: Ptr<T>, y: PtrMut<T>, before: PtrMut<T>, n: usize) {
    let mut sum = zeros::<T>([B]);
    for start in range(program_id(0) * B, n, num_programs(0) * B) {
        let at = start + arange(0, B);
        sum += load(x + at, mask = at < n);
    }
    let old = atomic_add(y + 1, sum.sum());
    store(before + program_id(0), old);
}

fn scalar_sums<T: Whole>(lab: &mut Lab) {
    for (n, programs) in [(0, 1), (1, 3), (200, 1), (190, 5), (255, 7)] {
        let host: Vec<T> = (0..n).map(|_| T::near(lab.below(2) as f64)).collect();
        let start: Vec<T> = [3.0, 1.0, 4.0].map(T::near).to_vec();
        let x = lab.input(&host);
        let (mut y, mut before) = (lab.in_place(&start), lab.output::<T>(programs));
        sum_of_all::<T, 128>(x.slice(), &mut y.slice(), &mut before.slice(), n).grid(programs).launch().unwrap();
        let total = host.iter().map(|value| value.whole()).sum::<i64>();
        let got: Vec<i64> = y.read().into_iter().map(T::whole).collect();
        assert_eq!(got, [3, 1 + total, 4]);
        // Each found the sum of those that were first.
        let mut olds: Vec<i64> = before.read().into_iter().map(T::whole).collect();
        olds.sort_unstable();
        assert!(olds[0] == 1 && olds.iter().all(|old| *old <= 1 + total), "{olds:?}");
    }
}

#[kernel(B = 32)]
fn add_f32<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, B);
    atomic_add(y + at, load(x + at));
}

fn f32_subnormals_count_as_zeros(lab: &mut Lab) {
    let (tiny, normal) = (f32::from_bits(1), f32::MIN_POSITIVE);
    let cases =
        [(tiny, tiny, 0.0), (-tiny, -0.0, -0.0), (normal, tiny, normal), (normal * 1.5, -normal, 0.0), (1.0, tiny, 1.0), (0.0, -tiny, 0.0)];
    let (y, x): (Vec<f32>, Vec<f32>) = cases.iter().map(|(old, operand, _)| (*old, *operand)).unzip();
    let (x, mut y) = (lab.input(&x), lab.in_place(&y));
    add_f32::<32>(x.slice(), &mut y.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| cases[i].2);
}

#[kernel(B = [64, 512], T = [i32, i64, u32, u64, f32, f64])]
fn extremes<T: Number, const B: usize>(bins: Ptr<u8>, x: Ptr<T>, low: PtrMut<T>, high: PtrMut<T>) {
    let at = program_id(0) * B + arange(0, B);
    let (bin, v) = (load(bins + at, other = 255) as i32, load(x + at));
    atomic_max(high + bin, v, sem = "relaxed");
    atomic_min(low + bin, v, mask = (bin & 1) == 0, sem = "release", scope = "sys");
}

/// The rank of a number in the order of all, the smallest first; none for a NaN.
fn rank<T: Value>(value: T) -> Option<i128> {
    let bits = i128::from(value.bits());
    let turned = |bits: i128, width: u32| if bits >> (width - 1) & 1 == 0 { bits } else { -1 - (bits - (1 << (width - 1))) };
    match format!("{}", T::DTYPE).as_str() {
        "f32" if f32::from_bits(bits as u32).is_nan() => None,
        "f64" if f64::from_bits(bits as u64).is_nan() => None,
        "f32" => Some(turned(bits, 32)),
        "f64" => Some(turned(bits, 64)),
        "i32" => Some((bits as i32).into()),
        "i64" => Some((bits as i64).into()),
        _ => Some(bits),
    }
}

fn extremes_meet<T: Whole>(lab: &mut Lab) {
    for n in SIZES {
        let (host, bins) = (lab.values::<T>(n), (0..n).map(|_| lab.below(14) as u8).collect::<Vec<_>>());
        let start: Vec<T> = lab.values::<T>(100).into_iter().filter(|value| rank(*value).is_some()).take(12).collect();
        let (x, b) = (lab.input(&host), lab.input(&bins));
        let (mut low, mut high) = (lab.in_place(&start), lab.in_place(&start));
        extremes::<T, 64>(b.slice(), x.slice(), &mut low.slice(), &mut high.slice()).grid(cdiv(n, 64)).launch().unwrap();
        extremes::<T, 512>(b.slice(), x.slice(), &mut low.slice(), &mut high.slice()).grid(cdiv(n, 512)).launch().unwrap();
        let all = |bin: usize| {
            let (host, bins) = (&host, &bins);
            let own = (0..n).filter(move |i| usize::from(bins[*i]) == bin);
            own.map(|i| host[i]).chain([start[bin]]).filter(|value| rank(*value).is_some())
        };
        let least = |bin: usize| all(bin).min_by_key(|value| rank(*value)).expect("the start is a number");
        let most = |bin: usize| all(bin).max_by_key(|value| rank(*value)).expect("the start is a number");
        check_bits(&high.read(), most);
        check_bits(&low.read(), |bin| if bin % 2 == 0 { least(bin) } else { start[bin] });
    }
}

#[kernel(B = [64, 512], T = [i32, i64, u32, u64])]
fn bits<T: Int, const B: usize>(bins: Ptr<u8>, x: Ptr<T>, both: PtrMut<T>, any: PtrMut<T>, odd: PtrMut<T>) {
    let at = program_id(0) * B + arange(0, B);
    let (bin, v) = (load(bins + at, other = 255) as i32, load(x + at));
    atomic_and(both + bin, v);
    atomic_or(any + bin, v, sem = "acquire");
    atomic_xor(odd + bin, v, scope = "gpu", sem = "relaxed");
}

fn bits_meet<T: Value + galatea::Int>(lab: &mut Lab) {
    for n in [0, 1, 63, 64, 65, 1000, 4096] {
        let (host, bins) = (lab.values::<T>(n), (0..n).map(|_| lab.below(11) as u8).collect::<Vec<_>>());
        let start = lab.values::<T>(10);
        let (x, b) = (lab.input(&host), lab.input(&bins));
        let [mut both, mut any, mut odd] = [(); 3].map(|()| lab.in_place(&start));
        bits::<T, 64>(b.slice(), x.slice(), &mut both.slice(), &mut any.slice(), &mut odd.slice()).grid(cdiv(n, 64)).launch().unwrap();
        let fold = |bin: usize, f: fn(u64, u64) -> u64| {
            let own = (0..n).filter(|i| usize::from(bins[*i]) == bin).map(|i| host[i].bits());
            T::from_bits(own.fold(start[bin].bits(), f))
        };
        check_bits(&both.read(), |bin| fold(bin, |a, b| a & b));
        check_bits(&any.read(), |bin| fold(bin, |a, b| a | b));
        check_bits(&odd.read(), |bin| fold(bin, |a, b| a ^ b));
    }
}

/// Kernels that change each element once and say what it was.
macro_rules! once {
    ($($name:ident $types:tt: $word:ident($($operand:ident),*) $(, $sem:literal)?;)*) => {
        mod once {
            use galatea::prelude::*;
            $(
                #[kernel(B = [16, 256], T = $types)]
                pub(super) fn $name<T: Element, const B: usize>(x: Ptr<T>, other: Ptr<T>, y: PtrMut<T>, before: PtrMut<T>, n: usize) {
                    let at = program_id(0) * B + arange(0, B);
                    let mask = at < n;
                    let (x, other) = (load(x + at, mask = mask), load(other + at, mask = mask));
                    let old = $word(y + at, $($operand),*, mask = mask & (x == x || other != other) $(, sem = $sem)?);
                    store(before + at, old, mask = mask);
                }
            )*
        }
    };
}
once! {
    add [i32, i64, u32, u64, f16, bf16, f32, f64]: atomic_add(x);
    exchange [i32, i64, u32, u64, f32, f64]: atomic_xchg(x), "acquire";
    compare [i16, u16, f16, bf16, i32, i64, u32, u64, f32, f64]: atomic_cas(other, x), "release";
}

/// Runs a kernel of `once!` with both sizes of tiles, and holds it to what each element becomes; where the mask does not hold, to nothing done.
macro_rules! check_once {
    ($lab:ident, $T:ident, $name:ident, $n:expr, $values:expr, $new:expr) => {{
        let n = $n;
        let [host, start] = [(); 2].map(|()| ($values)($lab, n));
        let other: Vec<$T> = (0..n).map(|i| if $lab.below(2) == 0 { start[i] } else { host[i] }).collect();
        let (x, o) = ($lab.input(&host), $lab.input(&other));
        let [mut y, mut z, mut y_old, mut z_old] = [(); 4].map(|()| $lab.in_place(&start));
        once::$name::<$T, 16>(x.slice(), o.slice(), &mut y.slice(), &mut y_old.slice(), n).grid(cdiv(n, 16)).launch().unwrap();
        once::$name::<$T, 256>(x.slice(), o.slice(), &mut z.slice(), &mut z_old.slice(), n).grid(cdiv(n, 256)).launch().unwrap();
        #[allow(clippy::eq_op, reason = "so NaN is found")]
        let acts = |i: usize| host[i] == host[i] || other[i] != other[i];
        for (got, old) in [(y.read(), y_old.read()), (z.read(), z_old.read())] {
            check_bits(&got, |i| if acts(i) { ($new)(start[i], host[i], other[i]) } else { start[i] });
            check_bits(&old, |i| if acts(i) { start[i] } else { <$T>::from_bits(0) });
        }
    }};
}

fn numbers_give_what_was<T: Whole>(lab: &mut Lab) {
    for n in [0, 1, 15, 300, 1025] {
        let small = |lab: &mut Lab, n: usize| -> Vec<T> { (0..n).map(|_| T::near(lab.below(100) as f64)).collect() };
        check_once!(lab, T, add, n, small, |old: T, x: T, _| T::near((old.whole() + x.whole()) as f64));
    }
}

fn exchanges_give_what_was<T: Value>(lab: &mut Lab) {
    for n in [0, 1, 15, 300, 1025] {
        check_once!(lab, T, exchange, n, |lab: &mut Lab, n| lab.values::<T>(n), |_, x, _| x);
    }
}

fn comparisons_give_what_was<T: Value>(lab: &mut Lab) {
    for n in [0, 1, 15, 300, 1025] {
        check_once!(lab, T, compare, n, |lab: &mut Lab, n| lab.values::<T>(n), |old: T, x, other: T| {
            if old.bits() == other.bits() { x } else { old }
        });
    }
}

#[kernel(B = 64)]
fn copy_by_atomics<T: Element, const B: usize>(x: Ptr<T>, y: PtrMut<T>, last: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    atomic_store(y + at, atomic_load(x + at, mask = at < n), mask = at < n, sem = "relaxed");
    atomic_store(last, atomic_load(x + (n - 1), sem = "relaxed", scope = "cta"));
}

fn loads_and_stores<T: Value>(lab: &mut Lab) {
    for n in SIZES.into_iter().filter(|n| *n > 0) {
        let host = lab.values::<T>(n);
        let x = lab.input(&host);
        let (mut y, mut last) = (lab.output::<T>(n), lab.output::<T>(1));
        copy_by_atomics::<T, 64>(x.slice(), &mut y.slice(), &mut last.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
        check_bits(&y.read(), |i| host[i]);
        check_bits(&last.read(), |_| host[n - 1]);
    }
}

/// Lanes and programs take numbers from counters; a lane stores where its number says: stream compaction.
#[kernel(B = [32, 64, 256])]
fn compact<const B: usize>(x: Ptr<i32>, out: PtrMut<i32>, count: PtrMut<u32>, order: PtrMut<i64>, programs: PtrMut<i64>) {
    let program = atomic_add(programs, 1);
    store(order + program, program_id(0));
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at);
    let kept = v > 0;
    let index = atomic_add(count + (at - at), 1, mask = kept);
    store(out + index, v, mask = kept);
}

fn tickets_are_all_different(lab: &mut Lab) {
    for n in [0, 1, 64, 1000, 4099] {
        for block in [32, 64, 256] {
            let host = lab.values::<i32>(n);
            let mut kept: Vec<i32> = host.iter().copied().filter(|value| *value > 0).collect();
            let grid = cdiv(n, block);
            let x = lab.input(&host);
            let (mut out, mut order) = (lab.output::<i32>(kept.len()), lab.output::<i64>(grid));
            let (mut count, mut programs) = (lab.in_place(&[0u32]), lab.in_place(&[0i64]));
            let kernel = match block {
                32 => compact::<32>,
                64 => compact::<64>,
                _ => compact::<256>,
            };
            kernel(x.slice(), &mut out.slice(), &mut count.slice(), &mut order.slice(), &mut programs.slice()).grid(grid).launch().unwrap();
            assert_eq!((count.read()[0] as usize, programs.read()[0] as usize), (kept.len(), grid));
            let (mut got, mut order) = (out.read(), order.read());
            [&mut got, &mut kept].into_iter().for_each(|list| list.sort_unstable());
            order.sort_unstable();
            assert_eq!(got, kept, "{n} in tiles of {block}");
            assert!(order.iter().enumerate().all(|(at, program)| at as i64 == *program), "{order:?}");
        }
    }
}

/// Tiles with fewer elements than the program has threads, along one axis and along two: every thread must see what one of them found.
#[kernel(M = [1, 2, 8], N = [1, 4, 64], num_warps = 4)]
fn counters<const M: usize, const N: usize>(y: PtrMut<i32>, before: PtrMut<i32>, rows: PtrMut<i32>) {
    let (i, j) = (arange(0, M), arange(0, N));
    let old = atomic_add(y + (i * N)[(.., None)] + j[(None, ..)], 1);
    store(before + program_id(0) * (M * N) + (i * N)[(.., None)] + j[(None, ..)], old);
    let total = sum(old, axis = 1);
    let row = atomic_max(rows + i, total);
    store(before + (num_programs(0) + program_id(0)) * (M * N) + (i * N)[(.., None)] + j[(None, ..)], row[(.., None)] + old * 0);
}

fn elements_that_many_threads_hold(lab: &mut Lab) {
    macro_rules! shapes {
        ($(($m:literal, $n:literal)),*) => {$({
            let programs = 1 + lab.below(6);
            let (mut y, mut rows) = (lab.in_place(&[0; $m * $n]), lab.in_place(&[-1; $m]));
            let mut before = lab.output::<i32>(2 * programs * $m * $n);
            counters::<$m, $n>(&mut y.slice(), &mut before.slice(), &mut rows.slice()).grid(programs).launch().unwrap();
            check_bits(&y.read(), |_| programs as i32);
            let got = before.read();
            for element in 0..$m * $n {
                let mut olds: Vec<i32> = (0..programs).map(|program| got[program * $m * $n + element]).collect();
                olds.sort_unstable();
                assert!(olds.iter().enumerate().all(|(at, old)| at as i32 == *old), "element {element} of {} x {}: {olds:?}", $m, $n);
            }
            // Every column of a row says the same, and one program was the first.
            for row in 0..$m {
                let said = |program: usize, column: usize| got[((programs + program) * $m + row) * $n + column];
                assert!((0..programs).all(|program| (0..$n).all(|column| said(program, column) == said(program, 0))));
                assert_eq!((0..programs).filter(|program| said(*program, 0) == -1).count(), 1);
            }
        })*};
    }
    shapes!((1, 1), (1, 4), (1, 64), (2, 1), (2, 4), (2, 64), (8, 1), (8, 4), (8, 64));
}

/// The gradient of an embedding: each row of `x` goes to the row of `y` that its index names.
#[kernel(M = [1, 16], N = [4, 64], num_warps = 2)]
fn add_rows<const M: usize, const N: usize>(rows: Ptr<i64>, x: Ptr<f32>, y: PtrMut<f32>, count: usize, width: usize) {
    let i = program_id(0) * M + arange(0, M);
    let j = arange(0, N);
    let row = load(rows + i, mask = i < count);
    let mask = (i < count)[(.., None)] & (j < width)[(None, ..)];
    let v = load(x + (i * width)[(.., None)] + j[(None, ..)], mask = mask);
    atomic_add(y + (row * width)[(.., None)] + j[(None, ..)], v, mask = mask, sem = "relaxed");
}

fn tiles_of_two_axes(lab: &mut Lab) {
    for (count, width) in [(0, 3), (1, 1), (5, 4), (100, 3), (33, 50), (64, 64)] {
        let table = 7;
        let rows: Vec<i64> = (0..count).map(|_| lab.below(table) as i64).collect();
        let host: Vec<f32> = (0..count * width).map(|_| lab.below(1000) as f32).collect();
        let (r, x) = (lab.input(&rows), lab.input(&host));
        let (mut y, mut z) = (lab.in_place(&vec![0f32; table * width]), lab.in_place(&vec![0f32; table * width]));
        add_rows::<16, 64>(r.slice(), x.slice(), &mut y.slice(), count, width).grid(cdiv(count, 16)).launch().unwrap();
        let want =
            |at: usize| (0..count).filter(|i| rows[*i] as usize == at / width).fold(0.0, |sum, i| sum + host[i * width + at % width]);
        check_bits(&y.read(), want);
        if width <= 4 {
            add_rows::<1, 4>(r.slice(), x.slice(), &mut z.slice(), count, width).grid(count).launch().unwrap();
            check_bits(&z.read(), want);
        }
    }
}

#[kernel(B = 128)]
fn shifted<const B: usize>(y: PtrMut<i64>, before: PtrMut<i64>, shift: isize, on: bool) {
    let at = program_id(0) * B + arange(0, B);
    store(before + at, atomic_add(y + at + shift, 1, mask = on));
    store(before + num_programs(0) * B + at, atomic_xchg(y + shift, 7, mask = !on));
}

fn outside_and_masked_lanes_give_zero(lab: &mut Lab) {
    for shift in [-300isize, -5, 0, 3, 100, isize::MAX, isize::MIN] {
        for on in [true, false] {
            let (n, lanes) = (200usize, 256usize);
            let start: Vec<i64> = (0..n).map(|_| 1 + lab.below(1000) as i64).collect();
            let (mut y, mut before) = (lab.in_place(&start), lab.output::<i64>(2 * lanes));
            shifted::<128>(&mut y.slice(), &mut before.slice(), shift, on).grid(2).launch().unwrap();
            let inside = |at: isize| usize::try_from(at).ok().filter(|at| *at < n);
            let hit = |lane: usize| inside((lane as isize).wrapping_add(shift));
            let touched = |element: usize| (0..lanes).any(|lane| hit(lane) == Some(element));
            check_bits(&y.read(), |element| match on {
                true => start[element] + i64::from(touched(element)),
                false if inside(shift) == Some(element) => 7,
                false => start[element],
            });
            let got = before.read();
            check_bits(&got[..lanes], |lane| if on { hit(lane).map_or(0, |element| start[element]) } else { 0 });
            // One of the two programs found what was there, the other what the first one left.
            let mut ends = [got[lanes], got[lanes + 128]];
            ends.sort_unstable();
            let want = if on { None } else { inside(shift) };
            let mut wanted = want.map_or([0, 0], |element| [start[element], 7]);
            wanted.sort_unstable();
            assert_eq!(ends, wanted);
            assert!((lanes..2 * lanes).all(|lane| got[lane] == got[lane / 128 * 128]), "a scalar is one");
        }
    }
}

#[kernel(B = 64, ON = [false, true])]
fn constant<const B: usize, const ON: bool>(y: PtrMut<u32>, before: PtrMut<u32>) {
    let at = arange(0, B);
    store(before + at, atomic_or(y + at, 0xff, mask = ON && B == 64));
    atomic_store(y, 5, mask = false);
    atomic_and(y + at, 0, mask = at < 0);
}

fn constant_masks(lab: &mut Lab) {
    let start = lab.values::<u32>(40);
    let [mut y, mut z, mut y_old, mut z_old] =
        [40, 40, 64, 64].map(|len| if len == 40 { lab.in_place(&start) } else { lab.output::<u32>(len) });
    constant::<64, true>(&mut y.slice(), &mut y_old.slice()).grid(1).launch().unwrap();
    constant::<64, false>(&mut z.slice(), &mut z_old.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| start[i] | 0xff);
    check_bits(&z.read(), |i| start[i]);
    check_bits(&y_old.read(), |i| start.get(i).copied().unwrap_or(0));
    check_bits(&z_old.read(), |_| 0);
}

#[kernel(B = 64)]
fn count_up<const B: usize>(y: PtrMut<u32>) {
    let at = program_id(0) * B + arange(0, B);
    atomic_add(y + at, 1);
}

fn checked_launches_name_the_builtin(lab: &mut Lab) {
    let mut y = lab.in_place(&[0u32; 100]);
    count_up::<64>(&mut y.slice()).grid(1).checked().launch().unwrap();
    check_bits(&y.read(), |i| u32::from(i < 64));
    let error = count_up::<64>(&mut y.slice()).grid(2).checked().launch().unwrap_err().to_string();
    assert!(error.contains("atomic_add at index 1") && error.contains("of `y`, which has 100 elements"), "{error}");
}

#[device]
fn ticket(counter: PtrMut<i32>) -> i32 {
    atomic_add(counter, 1)
}

/// Of `&&` and `||` the right side happens only where the left one leaves it open, be it an atomic or a function with one inside.
#[kernel]
fn needed_kernel(counters: PtrMut<i32>, won: PtrMut<bool>, n: usize) {
    let program = program_id(0);
    let first = program % 3 == 0 && atomic_add(counters, 1) < 2;
    let second = program % 2 == 0 || ticket(counters + 1) >= 0;
    store(won + program, first);
    store(won + n + program, second);
}

fn what_is_not_needed_does_not_happen(lab: &mut Lab) {
    for n in [1, 2, 31, 100] {
        let mut counters = lab.in_place(&[0, 0]);
        let mut won = lab.output::<bool>(2 * n);
        needed_kernel(&mut counters.slice(), &mut won.slice(), n).grid(n).launch().unwrap();
        assert_eq!(counters.read(), [n.div_ceil(3) as i32, (n / 2) as i32]);
        let won = won.read();
        assert_eq!(won[..n].iter().filter(|won| **won).count(), n.div_ceil(3).min(2));
        assert!(won[..n].iter().enumerate().all(|(i, won)| !won || i % 3 == 0) && won[n..].iter().all(|won| *won));
    }
}

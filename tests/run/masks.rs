//! Masks of every kind, what masked lanes read, and the other options of accesses.

use galatea::prelude::*;

use crate::lab::{Lab, SIZES};
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::Value;

tests![
    by_data<bool, i8, i32, u64, f16, bf16, f32, f64>,
    rows_by_data<u8, bf16, f32, i64>,
    pages_of_a_table<u8, bf16, f32>,
    both_of_two,
    one_of_two_and_not,
    scalar_mask<u8, f16, f32, f64>,
    constant_masks,
    other_values<bool, i16, u32, bf16, f32, i64>,
    other_is_for_lanes_outside_too,
    cache_and_evict,
    volatile_loads_see_stores,
    of_one_position<u8, f32>,
    of_falling_indices<i8, i32, f64>,
];

/// Copies where a flag is set.
#[kernel(B = 128)]
fn where_flagged<T: Element, const B: usize>(flags: Ptr<bool>, x: Ptr<T>, y: PtrMut<T>) {
    let at = program_id(0) * B + arange(0, B);
    let mask = load(flags + at);
    store(y + at, load(x + at, mask = mask), mask = mask);
}

fn by_data<T: Value>(lab: &mut Lab) {
    for n in SIZES {
        let (flags, host) = (lab.values::<bool>(n), lab.values::<T>(n));
        let (f, x) = (lab.input(&flags), lab.input(&host));
        let mut y = lab.output::<T>(n);
        where_flagged::<T, 128>(f.slice(), x.slice(), &mut y.slice()).grid(cdiv(n, 128)).launch().unwrap();
        check_bits(&y.read(), |i| if flags[i] { host[i] } else { y.before()[i] });
    }
}

/// Copies the rows whose flag is set, of a matrix whose stride is an argument.
#[kernel(N = 64)]
fn flagged_rows<T: Element, const N: usize>(flags: Ptr<bool>, x: Ptr<T>, y: PtrMut<T>, rows: usize, stride: usize) {
    let columns = arange(0, N);
    for first in (0..rows).step_by(8) {
        let row = first + arange(0, 8);
        let keep = load(flags + row, mask = row < rows);
        let at = row[(.., None)] * stride + columns[(None, ..)];
        store(y + at, load(x + at, mask = keep[(.., None)]), mask = keep[(.., None)]);
    }
}

fn rows_by_data<T: Value>(lab: &mut Lab) {
    for (rows, stride, shift) in [(1, 64, 0), (8, 64, 0), (21, 64, 0), (16, 80, 0), (16, 64, 1), (13, 67, 0)] {
        let (flags, host) = (lab.values::<bool>(rows), lab.values::<T>(rows * stride));
        let (f, x) = (lab.input(&flags), lab.input_at(&host, shift));
        let mut y = lab.output_at::<T>(rows * stride, shift);
        flagged_rows::<T, 64>(f.slice(), x.slice(), &mut y.slice(), rows, stride).grid(1).launch().unwrap();
        check_bits(&y.read(), |i| if i % stride < 64 && flags[i / stride] { host[i] } else { y.before()[i] });
    }
}

/// The pages that a table names, one behind the other; of those that are nowhere, or end outside, what is outside is 0.
#[kernel(N = 128, I = [i32, i64])]
fn gather_pages<T: Element, I: Int, const N: usize>(x: Ptr<T>, table: Ptr<I>, y: PtrMut<T>, pages: usize) {
    for page in 0..pages {
        let first = load(table + page) as i64 * N;
        store(y + page * N + arange(0, N), load(x + first + arange(0, N)));
    }
}

fn pages_of_a_table<T: Value>(lab: &mut Lab) {
    for (len, shift) in [(128 * 9, 0), (128 * 5 + 17, 0), (128 * 6, 3), (0, 0)] {
        let host = lab.values::<T>(len);
        let x = lab.input_at(&host, shift);
        let narrow = [3, 0, 4, -1, 8, i32::MAX, 5, i32::MIN, 1];
        let wide = [2, i64::MAX, 0, i64::MIN, 1 << 56, -1, (1 << 57) + 1, 5, i64::MAX / 128];
        let (small, large) = (lab.input(&narrow), lab.input(&wide));
        let [mut y, mut z] = [(); 2].map(|()| lab.output::<T>(128 * 9));
        gather_pages::<T, i32, 128>(x.slice(), small.slice(), &mut y.slice(), 9).grid(1).launch().unwrap();
        gather_pages::<T, i64, 128>(x.slice(), large.slice(), &mut z.slice(), 9).grid(1).launch().unwrap();
        let at = |page: i64, i: usize| {
            let index = page.wrapping_mul(128).wrapping_add(i as i64 % 128);
            usize::try_from(index).ok().and_then(|index| host.get(index)).copied().unwrap_or_else(|| T::from_bits(0))
        };
        check_bits(&y.read(), |i| at(narrow[i / 128].into(), i));
        check_bits(&z.read(), |i| at(wide[i / 128], i));
    }
}

#[kernel(B = [64, 256])]
fn inside_and_small<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, start: usize, end: usize) {
    let at = program_id(0) * B + arange(0, B);
    let inside = at >= start && at < end;
    let v = load(x + at, mask = inside);
    store(y + at, v, mask = inside && v < 1.0);
}

fn both_of_two(lab: &mut Lab) {
    for n in SIZES {
        let host = lab.values::<f32>(n);
        let (start, end) = (lab.below(n + 1), lab.below(n + 70));
        let x = lab.input(&host);
        let (mut y, mut z) = (lab.output::<f32>(n), lab.output::<f32>(n));
        inside_and_small::<64>(x.slice(), &mut y.slice(), start, end).grid(cdiv(n, 64)).launch().unwrap();
        inside_and_small::<256>(x.slice(), &mut z.slice(), start, end).grid(cdiv(n, 256)).launch().unwrap();
        let holds = |i: usize| (start..end).contains(&i) && host[i] < 1.0;
        check_bits(&y.read(), |i| if holds(i) { host[i] } else { y.before()[i] });
        check_bits(&z.read(), |i| if holds(i) { host[i] } else { z.before()[i] });
    }
}

#[kernel(B = 64)]
fn outside_or_odd<const B: usize>(x: Ptr<i32>, y: PtrMut<i32>, z: PtrMut<i32>, n: usize, limit: i32) {
    let at = program_id(0) * B + arange(0, B);
    let outside = !(at < n);
    let v = load(x + at, mask = !outside, other = limit);
    let odd = (v & 1) == 1;
    store(y + at, v, mask = !outside & (odd || v > limit));
    store(z + at, v, mask = !(outside | odd) ^ (v == limit));
}

fn one_of_two_and_not(lab: &mut Lab) {
    for n in SIZES {
        let host = lab.values::<i32>(n);
        let limit = host.first().map_or(2, |value| value & !1);
        let x = lab.input(&host);
        let (mut y, mut z) = (lab.output::<i32>(n), lab.output::<i32>(n));
        outside_or_odd::<64>(x.slice(), &mut y.slice(), &mut z.slice(), n, limit).grid(cdiv(n, 64)).launch().unwrap();
        check_bits(&y.read(), |i| if host[i] & 1 == 1 || host[i] > limit { host[i] } else { y.before()[i] });
        check_bits(&z.read(), |i| if (host[i] & 1 == 0) != (host[i] == limit) { host[i] } else { z.before()[i] });
    }
}

#[kernel(B = 64)]
fn switched<T: Element, const B: usize>(x: Ptr<T>, y: PtrMut<T>, read: bool, write: bool, limit: i32, n: i32) {
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at, mask = read);
    store(y + at, v, mask = write && n < limit);
}

fn scalar_mask<T: Value>(lab: &mut Lab) {
    let n = 1000;
    for case in 0..8 {
        let (read, write, fits) = (case & 1 != 0, case & 2 != 0, case & 4 != 0);
        let host = lab.values::<T>(n);
        let x = lab.input(&host);
        let mut y = lab.output::<T>(n);
        switched::<T, 64>(x.slice(), &mut y.slice(), read, write, if fits { 6 } else { 5 }, 5).grid(cdiv(n, 64)).launch().unwrap();
        check_bits(&y.read(), |i| match (write && fits, read) {
            (false, _) => y.before()[i],
            (true, true) => host[i],
            (true, false) => T::from_bits(0),
        });
    }
}

#[kernel(B = 64, ON = [false, true])]
fn constant<const B: usize, const ON: bool>(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>) {
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at, mask = ON, other = 3.0);
    store(y + at, v, mask = true);
    store(z + at, v, mask = false);
    store(z + at, v, mask = ON && B == 64);
}

fn constant_masks(lab: &mut Lab) {
    let n = 200;
    let host = lab.values::<f32>(n);
    let x = lab.input(&host);
    let [mut y, mut z, mut v, mut w] = [(); 4].map(|()| lab.output::<f32>(n));
    constant::<64, true>(x.slice(), &mut y.slice(), &mut z.slice()).grid(4).launch().unwrap();
    constant::<64, false>(x.slice(), &mut v.slice(), &mut w.slice()).grid(4).launch().unwrap();
    check_bits(&y.read(), |i| host[i]);
    check_bits(&z.read(), |i| host[i]);
    check_bits(&v.read(), |_| 3.0);
    check_bits(&w.read(), |i| w.before()[i]);
}

#[kernel(B = 64)]
fn others<T: Element, const B: usize>(flags: Ptr<bool>, x: Ptr<T>, instead: Ptr<T>, one: PtrMut<T>, all: PtrMut<T>, value: T, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let inside = at < n;
    let mask = load(flags + at, mask = inside);
    store(one + at, load(x + at, mask = mask, other = value), mask = inside);
    store(all + at, load(x + at, mask = mask, other = load(instead + at)), mask = inside);
}

fn other_values<T: Value>(lab: &mut Lab) {
    for n in SIZES {
        let (flags, host, instead) = (lab.values::<bool>(n), lab.values::<T>(n), lab.values::<T>(n));
        let value = lab.values::<T>(1)[0];
        let (f, x, o) = (lab.input(&flags), lab.input(&host), lab.input(&instead));
        let (mut one, mut all) = (lab.output::<T>(n), lab.output::<T>(n));
        others::<T, 64>(f.slice(), x.slice(), o.slice(), &mut one.slice(), &mut all.slice(), value, n).grid(cdiv(n, 64)).launch().unwrap();
        check_bits(&one.read(), |i| if flags[i] { host[i] } else { value });
        check_bits(&all.read(), |i| if flags[i] { host[i] } else { instead[i] });
    }
}

#[kernel(B = 256)]
fn lowest<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, load(x + at, other = f32::NEG_INFINITY));
}

fn other_is_for_lanes_outside_too(lab: &mut Lab) {
    for (inputs, outputs) in [(0, 100), (99, 1000), (256, 512), (255, 257), (700, 600)] {
        let host = lab.values::<f32>(inputs);
        let x = lab.input(&host);
        let mut y = lab.output::<f32>(outputs);
        lowest::<256>(x.slice(), &mut y.slice()).grid(4).launch().unwrap();
        check_bits(&y.read(), |i| host.get(i).copied().unwrap_or(f32::NEG_INFINITY));
    }
}

macro_rules! options {
    ($($name:ident ($load:literal, $load_evict:literal, $store:literal, $store_evict:literal);)*) => {
        mod option {
            use galatea::prelude::*;
            $(
                #[kernel(B = 512, T = [u8, f32, f64])]
                pub(super) fn $name<T: Element, const B: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
                    let at = program_id(0) * B + arange(0, B);
                    let mask = at < n;
                    let v = load(x + at, mask = mask, cache = $load, evict = $load_evict);
                    store(y + at, v, mask = mask, cache = $store, evict = $store_evict);
                }
            )*
        }
        fn cache_and_evict(lab: &mut Lab) {
            fn copies<T: Value>(lab: &mut Lab) {$(
                for n in [1, 511, 4097] {
                    let host = lab.values::<T>(n);
                    let x = lab.input(&host);
                    let mut y = lab.output::<T>(n);
                    option::$name::<T, 512>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 512)).launch().unwrap();
                    check_bits(&y.read(), |i| host[i]);
                }
            )*}
            copies::<u8>(lab);
            copies::<f32>(lab);
            copies::<f64>(lab);
        }
    };
}
options! {
    all_levels("ca", "evict_first", "wb", "evict_first");
    second_level("cg", "evict_last", "cg", "evict_last");
    streaming("cs", "no_allocate", "cs", "no_allocate");
    through("cv", "evict_first", "wt", "evict_first");
}

#[kernel(B = 128)]
fn reread<const B: usize>(x: PtrMut<i32>, y: PtrMut<i32>) {
    let at = program_id(0) * B + arange(0, B);
    let before = load(x + at, volatile = true);
    store(x + at, before + 1);
    let after = load(x + at, volatile = true);
    let again = load(x + at, volatile = true, mask = before > 0, other = 9);
    store(y + at, after - before + again);
}

fn volatile_loads_see_stores(lab: &mut Lab) {
    let n = 1000;
    let host = lab.values::<i32>(n);
    let (mut x, mut y) = (lab.in_place(&host), lab.output::<i32>(n));
    reread::<128>(&mut x.slice(), &mut y.slice()).grid(cdiv(n, 128)).launch().unwrap();
    check_bits(&x.read(), |i| host[i].wrapping_add(1));
    check_bits(&y.read(), |i| (if host[i] > 0 { host[i].wrapping_add(1) } else { 9 }).wrapping_add(1));
}

/// A matrix behind a mask of one position, which is repeated for all elements.
#[kernel(M = [1, 4], N = 64)]
fn if_there_are<T: Element, const M: usize, const N: usize>(x: Ptr<T>, y: PtrMut<T>, rows: usize, columns: usize) {
    let at = arange(0, M).col() * N + arange(0, N).row();
    let there_are = (arange(0, 1) < rows).col() & (arange(0, 1) < columns).row();
    store(y + at, load(x + at, mask = there_are), mask = there_are);
}

fn of_one_position<T: Value>(lab: &mut Lab) {
    for (rows, columns) in [(0, 5), (1, 1), (2, 3), (3, 64), (7, 0)] {
        for len in [256, 100] {
            let host = lab.values::<T>(len);
            let x = lab.input_at(&host, 0);
            let [mut y, mut z] = [(); 2].map(|()| lab.output_at::<T>(len, 0));
            if_there_are::<T, 1, 64>(x.slice(), &mut y.slice(), rows, columns).grid(1).launch().unwrap();
            if_there_are::<T, 4, 64>(x.slice(), &mut z.slice(), rows, columns).grid(1).launch().unwrap();
            let holds = rows > 0 && columns > 0;
            check_bits(&y.read(), |i| if holds && i < 64 { host[i] } else { y.before()[i] });
            check_bits(&z.read(), |i| if holds { host[i] } else { z.before()[i] });
        }
    }
}

/// Copies where an index that falls from element to element is below a number, which may be negative.
#[kernel(B = 64)]
fn where_falling<T: Element, const B: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, end: isize) {
    for start in range(0, n, B) {
        let at = start + arange(0, B);
        let mask = start - arange(0, B) < end;
        store(y + at, load(x + at, mask = mask), mask = mask);
    }
}

fn of_falling_indices<T: Value>(lab: &mut Lab) {
    for n in SIZES.into_iter().filter(|n| *n < 5000) {
        for end in [-64, -63, -5, -1, 0, 1, 70] {
            let host = lab.values::<T>(n);
            let x = lab.input_at(&host, 0);
            let mut y = lab.output_at::<T>(n, 0);
            where_falling::<T, 64>(x.slice(), &mut y.slice(), n, end).grid(1).launch().unwrap();
            let index = |i: usize| (i / 64 * 64) as isize - (i % 64) as isize;
            check_bits(&y.read(), |i| if index(i) < end { host[i] } else { y.before()[i] });
        }
    }
}

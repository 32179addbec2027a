//! Integers: wrapping, division by zero, shifts, and the corners where they differ.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{check_bits, check_ints};
use crate::value::IntValue;

tests![
    arithmetic<i8, i16, i32, i64, u8, u16, u32, u64>,
    bits<i8, i16, i32, i64, u8, u16, u32, u64>,
    comparisons<i8, i16, i32, i64, u8, u16, u32, u64>,
    by_constants<i8, i16, i32, i64, u8, u16, u32, u64>,
    widening,
    counts<i8, i16, i32, i64, u8, u16, u32, u64>,
    upper_halves,
];

#[kernel(B = 128)]
fn arithmetic_kernel<T: Int, const B: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    sum: PtrMut<T>,
    difference: PtrMut<T>,
    product: PtrMut<T>,
    quotient: PtrMut<T>,
    rest: PtrMut<T>,
    up: PtrMut<T>,
    n: usize,
) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let a = load(x + at, mask = mask);
    let b = load(y + at, mask = mask);
    store(sum + at, a + b, mask = mask);
    store(difference + at, a - b, mask = mask);
    store(product + at, a * b, mask = mask);
    store(quotient + at, a / b, mask = mask);
    store(rest + at, a % b, mask = mask);
    store(up + at, cdiv(a, select(b == 0, 1, b)), mask = mask);
}

/// Two columns: every pair of corners, then anything.
fn pairs<T: IntValue>(lab: &mut Lab) -> (Vec<T>, Vec<T>) {
    let (low, high) = (T::wrap(1 << (T::BITS - 1)), T::wrap((1 << (T::BITS - 1)) - 1));
    let corners = [
        T::wrap(0),
        T::wrap(1),
        T::wrap(2),
        T::wrap(3),
        T::wrap(-1),
        T::wrap(-2),
        T::wrap(-3),
        low,
        high,
        T::wrap(7),
        T::wrap(10),
        T::wrap(-10),
    ];
    let mut columns: (Vec<T>, Vec<T>) = corners.iter().flat_map(|&a| corners.iter().map(move |&b| (a, b))).unzip();
    columns.0.extend(lab.values::<T>(4001));
    columns.1.extend(lab.values::<T>(4001));
    columns
}

fn arithmetic<T: IntValue>(lab: &mut Lab) {
    let (a, b) = pairs::<T>(lab);
    let n = a.len();
    let (x, y) = (lab.input(&a), lab.input(&b));
    let [mut sum, mut difference, mut product, mut quotient, mut rest, mut up] = [(); 6].map(|()| lab.output::<T>(n));
    arithmetic_kernel::<T, 128>(
        x.slice(),
        y.slice(),
        &mut sum.slice(),
        &mut difference.slice(),
        &mut product.slice(),
        &mut quotient.slice(),
        &mut rest.slice(),
        &mut up.slice(),
        n,
    )
    .grid(cdiv(n, 128))
    .launch()
    .unwrap();
    let (a, b) = (|i: usize| a[i].wide(), |i: usize| b[i].wide());
    check_ints(&sum.read(), |i| a(i) + b(i));
    check_ints(&difference.read(), |i| a(i) - b(i));
    check_ints(&product.read(), |i| a(i).wrapping_mul(b(i)));
    check_ints(&quotient.read(), |i| if b(i) == 0 { 0 } else { a(i) / b(i) });
    check_ints(&rest.read(), |i| if b(i) == 0 { a(i) } else { a(i) % b(i) });
    // With a positive divisor, minus the floor of minus the dividend.
    check_ints(&up.read(), |i| if b(i) == 0 { a(i) } else { -(-a(i) * b(i).signum()).div_euclid(b(i).abs()) });
}

#[kernel(B = 128)]
fn bits_kernel<T: Int, const B: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    and: PtrMut<T>,
    or: PtrMut<T>,
    xor: PtrMut<T>,
    not: PtrMut<T>,
    left: PtrMut<T>,
    right: PtrMut<T>,
    n: usize,
) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let a = load(x + at, mask = mask);
    let b = load(y + at, mask = mask);
    store(and + at, a & b, mask = mask);
    store(or + at, a | b, mask = mask);
    store(xor + at, a ^ b, mask = mask);
    store(not + at, !a, mask = mask);
    store(left + at, a << b, mask = mask);
    store(right + at, a >> b, mask = mask);
}

fn bits<T: IntValue>(lab: &mut Lab) {
    let n = 5001;
    let a = lab.values::<T>(n);
    // Shifts by less than the width, by the width, and by more; counts are not negative.
    let most = (T::BITS as usize * 2).min(127);
    let b: Vec<T> = (0..n).map(|i| T::wrap(if i % 9 == 0 { T::BITS as i128 } else { lab.below(most) as i128 })).collect();
    let (x, y) = (lab.input(&a), lab.input(&b));
    let [mut and, mut or, mut xor, mut not, mut left, mut right] = [(); 6].map(|()| lab.output::<T>(n));
    bits_kernel::<T, 128>(
        x.slice(),
        y.slice(),
        &mut and.slice(),
        &mut or.slice(),
        &mut xor.slice(),
        &mut not.slice(),
        &mut left.slice(),
        &mut right.slice(),
        n,
    )
    .grid(cdiv(n, 128))
    .launch()
    .unwrap();
    let (a, b) = (|i: usize| a[i].wide(), |i: usize| b[i].wide());
    check_ints(&and.read(), |i| a(i) & b(i));
    check_ints(&or.read(), |i| a(i) | b(i));
    check_ints(&xor.read(), |i| a(i) ^ b(i));
    check_ints(&not.read(), |i| !a(i));
    check_ints(&left.read(), |i| if b(i) < T::BITS as i128 { a(i).wrapping_shl(b(i) as u32) } else { 0 });
    check_ints(&right.read(), |i| a(i) >> b(i).min(100));
}

#[kernel(B = 128)]
fn comparisons_kernel<T: Int, const B: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    flags: PtrMut<u8>,
    low: PtrMut<T>,
    high: PtrMut<T>,
    size: PtrMut<T>,
    less: PtrMut<bool>,
    n: usize,
) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let a = load(x + at, mask = mask);
    let b = load(y + at, mask = mask);
    let order = (a < b) as u8 | ((a <= b) as u8) << 1 | ((a > b) as u8) << 2 | ((a >= b) as u8) << 3;
    store(flags + at, order | ((a == b) as u8) << 4 | ((a != b) as u8) << 5, mask = mask);
    store(low + at, min(a, b), mask = mask);
    store(high + at, max(a, b), mask = mask);
    store(size + at, abs(a), mask = mask);
    store(less + at, a < b, mask = mask);
}

fn comparisons<T: IntValue>(lab: &mut Lab) {
    let (a, b) = pairs::<T>(lab);
    let n = a.len();
    let (x, y) = (lab.input(&a), lab.input(&b));
    let (mut flags, mut less) = (lab.output::<u8>(n), lab.output::<bool>(n));
    let [mut low, mut high, mut size] = [(); 3].map(|()| lab.output::<T>(n));
    comparisons_kernel::<T, 128>(
        x.slice(),
        y.slice(),
        &mut flags.slice(),
        &mut low.slice(),
        &mut high.slice(),
        &mut size.slice(),
        &mut less.slice(),
        n,
    )
    .grid(cdiv(n, 128))
    .launch()
    .unwrap();
    let (a, b) = (|i: usize| a[i].wide(), |i: usize| b[i].wide());
    let holds = |i: usize| [a(i) < b(i), a(i) <= b(i), a(i) > b(i), a(i) >= b(i), a(i) == b(i), a(i) != b(i)];
    check_ints(&flags.read(), |i| holds(i).iter().enumerate().map(|(bit, &holds)| i128::from(holds) << bit).sum());
    check_ints(&low.read(), |i| a(i).min(b(i)));
    check_ints(&high.read(), |i| a(i).max(b(i)));
    check_ints(&size.read(), |i| a(i).abs());
    check_bits(&less.read(), |i| a(i) < b(i));
}

#[kernel(B = 128)]
fn by_constants_kernel<T: Int, const B: usize>(
    x: Ptr<T>,
    tenth: PtrMut<T>,
    digit: PtrMut<T>,
    quarter: PtrMut<T>,
    low: PtrMut<T>,
    shifted: PtrMut<T>,
    scaled: PtrMut<T>,
    n: usize,
) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let v = load(x + at, mask = mask);
    store(tenth + at, v / 10, mask = mask);
    store(digit + at, v % 10, mask = mask);
    store(quarter + at, v / 4, mask = mask);
    store(low + at, v % 8, mask = mask);
    store(shifted + at, (v >> 3) ^ (v << 5), mask = mask);
    store(scaled + at, v * 8 - 1 + v * 1 + v * 0, mask = mask);
}

fn by_constants<T: IntValue>(lab: &mut Lab) {
    let (a, _) = pairs::<T>(lab);
    let n = a.len();
    let x = lab.input(&a);
    let [mut tenth, mut digit, mut quarter, mut low, mut shifted, mut scaled] = [(); 6].map(|()| lab.output::<T>(n));
    by_constants_kernel::<T, 128>(
        x.slice(),
        &mut tenth.slice(),
        &mut digit.slice(),
        &mut quarter.slice(),
        &mut low.slice(),
        &mut shifted.slice(),
        &mut scaled.slice(),
        n,
    )
    .grid(cdiv(n, 128))
    .launch()
    .unwrap();
    let a = |i: usize| a[i].wide();
    check_ints(&tenth.read(), |i| a(i) / 10);
    check_ints(&digit.read(), |i| a(i) % 10);
    check_ints(&quarter.read(), |i| a(i) / 4);
    check_ints(&low.read(), |i| a(i) % 8);
    check_ints(&shifted.read(), |i| (a(i) >> 3) ^ (a(i) << 5));
    check_ints(&scaled.read(), |i| a(i) * 9 - 1);
}

/// Where every value is kept, integers widen by themselves.
#[kernel(B = 64)]
fn widen<const B: usize>(a: Ptr<u8>, b: Ptr<i16>, c: Ptr<u32>, d: Ptr<i64>, y: PtrMut<i64>, z: PtrMut<i32>) {
    let at = program_id(0) * B + arange(0, B);
    let small = load(a + at) * 3 + load(b + at);
    store(y + at, load(c + at) - load(d + at) + small);
    store(z + at, small << 2);
}

fn widening(lab: &mut Lab) {
    let n = 333;
    let (a, b, c, d) = (lab.values::<u8>(n), lab.values::<i16>(n), lab.values::<u32>(n), lab.values::<i64>(n));
    let (pa, pb, pc, pd) = (lab.input(&a), lab.input(&b), lab.input(&c), lab.input(&d));
    let (mut y, mut z) = (lab.output::<i64>(n), lab.output::<i32>(n));
    widen::<64>(pa.slice(), pb.slice(), pc.slice(), pd.slice(), &mut y.slice(), &mut z.slice()).grid(cdiv(n, 64)).launch().unwrap();
    // The product is of u8, the sum of i16.
    let small = |i: usize| i128::from(i16::from(a[i].wrapping_mul(3)).wrapping_add(b[i]));
    check_ints(&y.read(), |i| i128::from(c[i]) - i128::from(d[i]) + small(i));
    check_ints(&z.read(), |i| i128::from((small(i) as i16) << 2));
}

#[kernel(B = 128)]
fn counts_kernel<T: Int, const B: usize>(x: Ptr<T>, ones: PtrMut<T>, ahead: PtrMut<T>, reversed: PtrMut<T>, first: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let a = load(x + at, mask = mask);
    store(ones + at, popc(a), mask = mask);
    store(ahead + at, a.clz(), mask = mask);
    store(reversed + at, brev(a), mask = mask);
    store(first + at, ffs(a), mask = mask);
}

fn counts<T: IntValue>(lab: &mut Lab) {
    let (a, _) = pairs::<T>(lab);
    let n = a.len();
    let x = lab.input(&a);
    let [mut ones, mut ahead, mut reversed, mut first] = [(); 4].map(|()| lab.output::<T>(n));
    counts_kernel::<T, 128>(x.slice(), &mut ones.slice(), &mut ahead.slice(), &mut reversed.slice(), &mut first.slice(), n)
        .grid(cdiv(n, 128))
        .launch()
        .unwrap();
    let digits = |i: usize| (0..T::BITS).map(|bit| a[i].wide() >> bit & 1).collect::<Vec<i128>>();
    check_ints(&ones.read(), |i| digits(i).iter().sum());
    check_ints(&ahead.read(), |i| digits(i).iter().rev().take_while(|digit| **digit == 0).count() as i128);
    check_ints(&first.read(), |i| digits(i).iter().position(|digit| *digit == 1).map_or(0, |at| at as i128 + 1));
    check_ints(&reversed.read(), |i| digits(i).iter().fold(0, |all, digit| all << 1 | digit));
}

#[kernel(B = 128)]
fn upper_halves_kernel<const B: usize>(x: Ptr<u32>, y: Ptr<u64>, z: Ptr<u8>, a: PtrMut<u32>, b: PtrMut<u64>, c: PtrMut<u8>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let (u, v, w) = (load(x + at, mask = mask), load(y + at, mask = mask), load(z + at, mask = mask));
    store(a + at, umulhi(u, 0xcccc_cccd), mask = mask);
    store(b + at, umulhi(v, bitcast::<u64>(at) + v), mask = mask);
    store(c + at, w.umulhi(w), mask = mask);
}

fn upper_halves(lab: &mut Lab) {
    let n = 3001;
    let (u, v, w) = (lab.values::<u32>(n), lab.values::<u64>(n), lab.values::<u8>(n));
    let (x, y, z) = (lab.input(&u), lab.input(&v), lab.input(&w));
    let (mut a, mut b, mut c) = (lab.output::<u32>(n), lab.output::<u64>(n), lab.output::<u8>(n));
    upper_halves_kernel::<128>(x.slice(), y.slice(), z.slice(), &mut a.slice(), &mut b.slice(), &mut c.slice(), n)
        .grid(cdiv(n, 128))
        .launch()
        .unwrap();
    check_ints(&a.read(), |i| (i128::from(u[i]) * 0xcccc_cccd) >> 32);
    check_ints(&b.read(), |i| ((u128::from(v[i]) * u128::from(v[i].wrapping_add(i as u64))) >> 64) as i128);
    check_ints(&c.read(), |i| (i128::from(w[i]) * i128::from(w[i])) >> 8);
}

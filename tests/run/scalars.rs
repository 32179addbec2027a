//! Scalar parameters: every type arrives as it was given, alone and among others.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits};
use crate::value::Value;

tests![alone<bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64>, all_at_once, indices, an_index_beyond_i64_is_refused];

#[kernel(B = 64)]
fn fill<T: Element, const B: usize>(y: PtrMut<T>, value: T, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, value, mask = at < n);
}

fn alone<T: Value>(lab: &mut Lab) {
    for value in lab.values::<T>(40) {
        let n = lab.below(300);
        let mut y = lab.output::<T>(n + 10);
        fill::<T, 64>(&mut y.slice(), value, n).grid(5).launch().unwrap();
        check_bits(&y.read(), |i| if i < n { value } else { y.before()[i] });
    }
}

/// Parameters of one to eight bytes in an order that needs padding, and pointers between them.
#[kernel]
fn spread(
    a: i8,
    wide: PtrMut<f64>,
    b: i64,
    c: bool,
    d: u16,
    e: f64,
    f: u8,
    g: bf16,
    exact: PtrMut<i64>,
    h: u32,
    i: f16,
    j: u64,
    k: i16,
    l: f32,
    m: i32,
    n: usize,
    o: isize,
) {
    store(wide, e);
    store(wide + 1, g as f64);
    store(wide + 2, i as f64);
    store(wide + 3, l as f64);
    store(exact, a);
    store(exact + 1, b);
    store(exact + 2, c as i64);
    store(exact + 3, d as i64);
    store(exact + 4, f as i64);
    store(exact + 5, h as i64);
    store(exact + 6, j as i64);
    store(exact + 7, k);
    store(exact + 8, m);
    store(exact + 9, n);
    store(exact + 10, o);
}

fn all_at_once(lab: &mut Lab) {
    for _ in 0..20 {
        macro_rules! one {
            ($ty:ty) => {
                lab.values::<$ty>(1)[0]
            };
        }
        let (a, b, c, d, e, f, g) = (one!(i8), one!(i64), one!(bool), one!(u16), one!(f64), one!(u8), one!(bf16));
        let (h, i, j, k, l, m) = (one!(u32), one!(f16), one!(u64), one!(i16), one!(f32), one!(i32));
        let (n, o) = (one!(i64) as usize & (usize::MAX >> 1), one!(i64) as isize);
        let (mut wide, mut exact) = (lab.output::<f64>(4), lab.output::<i64>(11));
        spread(a, &mut wide.slice(), b, c, d, e, f, g, &mut exact.slice(), h, i, j, k, l, m, n, o).grid(1).launch().unwrap();
        let floats: [f64; 4] = [e, g.into(), i.into(), l.into()];
        let ints = [a.into(), b, c.into(), d.into(), f.into(), h.into(), j.cast_signed(), k.into(), m.into(), n as i64, o as i64];
        check(&wide.read(), Class::Rounded, |i| floats[i]);
        check_bits(&exact.read(), |i| ints[i]);
    }
}

#[kernel]
fn count(y: PtrMut<i64>, n: usize, delta: isize) {
    store(y, n + delta);
    store(y + 1, n - delta);
    store(y + 2, n * delta);
    store(y + 3, delta / 3);
    store(y + 4, delta % 3);
    store(y + 5, cdiv(n, 64));
}

fn indices(lab: &mut Lab) {
    for (n, delta) in [(0, 0), (1, -1), (1 << 40, -(1 << 41)), (usize::MAX >> 1, isize::MIN), (63, 64), (65, -7)] {
        let mut y = lab.output::<i64>(6);
        count(&mut y.slice(), n, delta).grid(1).launch().unwrap();
        let (n, delta) = (n as i64, delta as i64);
        let up = n / 64 + i64::from(n % 64 != 0);
        let want = [n.wrapping_add(delta), n.wrapping_sub(delta), n.wrapping_mul(delta), delta / 3, delta % 3, up];
        check_bits(&y.read(), |i| want[i]);
    }
}

fn an_index_beyond_i64_is_refused(lab: &mut Lab) {
    let mut y = lab.output::<u8>(10);
    let error = fill::<u8, 64>(&mut y.slice(), 1, usize::MAX).grid(1).launch().unwrap_err();
    assert!(matches!(error, Error::ScalarTooLarge { kernel: "fill", .. }), "{error}");
    check_bits(&y.read(), |i| y.before()[i]);
}

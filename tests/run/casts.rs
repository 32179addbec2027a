//! Casts between all types, which are Rust's `as`; and bits seen as another type.

use galatea::Number;
use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits, check_ints};
use crate::value::{FloatValue, IntValue, Value};

tests![casts<i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64>, bools<i8, u16, i32, u64, f16, bf16, f32, f64>, bitcasts];

/// A number without loss.
#[derive(Clone, Copy)]
enum Exact {
    Int(i128),
    Float(f64),
}

trait Cast: Value + Number {
    fn exact(self) -> Exact;
    fn check(got: &[Self], want: impl Fn(usize) -> Exact);
}

macro_rules! casts {
    (ints $($ty:ident)*; floats $($float:ident)*) => {
        $(impl Cast for $ty {
            fn exact(self) -> Exact {
                Exact::Int(self.wide())
            }
            fn check(got: &[$ty], want: impl Fn(usize) -> Exact) {
                check_ints(got, |i| match want(i) {
                    Exact::Int(value) => value,
                    // Saturates; NaN is 0.
                    Exact::Float(value) => (value as i128).clamp($ty::MIN.wide(), $ty::MAX.wide()),
                });
            }
        })*
        $(impl Cast for $float {
            fn exact(self) -> Exact {
                Exact::Float(self.wide())
            }
            fn check(got: &[$float], want: impl Fn(usize) -> Exact) {
                check(got, Class::Rounded, |i| match want(i) {
                    Exact::Int(value) => value as f64,
                    Exact::Float(value) => value,
                });
            }
        })*
        fn casts<T: Cast>(lab: &mut Lab) {
            $(cast_to::<T, $ty>(lab);)*
            $(cast_to::<T, $float>(lab);)*
        }
    };
}
casts!(ints i8 i16 i32 i64 u8 u16 u32 u64; floats f16 bf16 f32 f64);

#[kernel(B = 256)]
fn cast<T: Number, U: Number, const B: usize>(x: Ptr<T>, y: PtrMut<U>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    store(y + at, load(x + at, mask = mask) as U, mask = mask);
}

fn cast_to<T: Cast, U: Cast>(lab: &mut Lab) {
    let n = 3001;
    let mut host = lab.values::<T>(n);
    // Around the ends of the integer types, and halves.
    for (i, value) in host.iter_mut().enumerate().take(1000) {
        let power = 2f64.powi([0, 7, 8, 15, 16, 31, 32, 63, 64, 128][i % 10]);
        *value = T::near((power + (lab.below(9) as f64 - 4.0) * 0.5) * if i % 20 < 10 { 1.0 } else { -1.0 });
    }
    let x = lab.input(&host);
    let mut y = lab.output::<U>(n);
    cast::<T, U, 256>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 256)).launch().unwrap();
    U::check(&y.read(), |i| host[i].exact());
}

#[kernel(B = 64)]
fn from_bool<T: Number, const B: usize>(x: Ptr<bool>, y: PtrMut<T>, z: PtrMut<bool>) {
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at) as T;
    store(y + at, v);
    store(z + at, v == 0);
}

fn bools<T: Cast>(lab: &mut Lab) {
    let n = 1001;
    let host = lab.values::<bool>(n);
    let x = lab.input(&host);
    let (mut y, mut z) = (lab.output::<T>(n), lab.output::<bool>(n));
    from_bool::<T, 64>(x.slice(), &mut y.slice(), &mut z.slice()).grid(cdiv(n, 64)).launch().unwrap();
    T::check(&y.read(), |i| Exact::Int(host[i].into()));
    check_bits(&z.read(), |i| !host[i]);
}

#[kernel(B = 64)]
fn see_bits<const B: usize>(x: Ptr<f32>, h: Ptr<f16>, d: Ptr<f64>, flipped: PtrMut<f32>, half: PtrMut<u16>, long: PtrMut<i64>) {
    let at = program_id(0) * B + arange(0, B);
    store(flipped + at, bitcast::<f32>(bitcast::<u32>(load(x + at)) ^ 0x8000_0000));
    store(half + at, bitcast::<u16>(load(h + at)));
    store(long + at, bitcast::<i64>(load(d + at)));
}

fn bitcasts(lab: &mut Lab) {
    let n = 1001;
    let (x, h, d) = (lab.values::<f32>(n), lab.values::<f16>(n), lab.values::<f64>(n));
    let (px, ph, pd) = (lab.input(&x), lab.input(&h), lab.input(&d));
    let (mut flipped, mut half, mut long) = (lab.output::<f32>(n), lab.output::<u16>(n), lab.output::<i64>(n));
    see_bits::<64>(px.slice(), ph.slice(), pd.slice(), &mut flipped.slice(), &mut half.slice(), &mut long.slice())
        .grid(cdiv(n, 64))
        .launch()
        .unwrap();
    check_bits(&flipped.read(), |i| f32::from_bits(x[i].to_bits() ^ 0x8000_0000));
    check_bits(&half.read(), |i| h[i].to_bits());
    check_bits(&long.read(), |i| d[i].to_bits().cast_signed());
}

//! Elements of tensors from and to numbers of f64.

use galatea::Dtype;
use galatea::prelude::*;

/// An element that a test makes of a number of f64, and compares as one.
pub(crate) trait Value: Element {
    fn near(number: f64) -> Self;
    fn wide(self) -> f64;
}

macro_rules! values {
    ($($ty:ty: $near:expr, $wide:expr;)*) => {$(
        impl Value for $ty {
            fn near(number: f64) -> $ty {
                $near(number)
            }
            fn wide(self) -> f64 {
                $wide(self)
            }
        }
    )*};
}
values! {
    f32: |number| number as f32, f64::from;
    f16: f16::from_f64, f64::from;
    bf16: bf16::from_f64, f64::from;
    i8: |number| number as i8, f64::from;
    i32: |number| number as i32, f64::from;
    i64: |number| number as i64, |value| value as f64;
    u8: |number| number as u8, f64::from;
}

/// A number that no work computes.
pub(crate) fn poison(dtype: Dtype) -> f64 {
    if matches!(dtype, Dtype::F32 | Dtype::F16 | Dtype::Bf16) { f64::NAN } else { 101.0 }
}

/// Runs a block with `T` as the type of a dtype.
macro_rules! with_type {
    ($dtype:expr, $ty:ident, $block:expr) => {
        with_type!(@ $dtype, $ty, $block, F32: f32, F16: galatea::f16, Bf16: galatea::bf16, I8: i8, I32: i32, I64: i64, U8: u8)
    };
    (@ $dtype:expr, $ty:ident, $block:expr, $($name:ident: $type:ty),*) => {
        match $dtype {
            $(Dtype::$name => {
                type $ty = $type;
                $block
            })*
            other => panic!("no work has a tensor of {other}"),
        }
    };
}
pub(crate) use with_type;

//! Constants of Rust that a kernel's body names: rustc checks that each has the type that the kernel takes it for.

use crate::tensor::element::{Element, Scalar};

/// A constant that a kernel may take for a `K`: a `K`, or an integer all of whose values a `K` has.
#[diagnostic::on_unimplemented(
    message = "the kernel takes this constant for `{K}`, and it is `{Self}`",
    label = "this is `{Self}`",
    note = "cast it where the kernel names it, `N as i64`, or cast the value that it meets"
)]
pub trait ConstantOf<K>: Scalar {}

impl<T: Element> ConstantOf<T> for T {}

macro_rules! widened {
    ($($from:ty => $($to:ty),+;)+) => {$($(
        impl ConstantOf<$to> for $from {}
    )+)+};
}

widened! {
    i8 => i16, i32, i64;
    i16 => i32, i64;
    i32 => i64;
    u8 => i16, i32, i64, u16, u32, u64;
    u16 => i32, i64, u32, u64;
    u32 => i64, u64;
    usize => i64;
    isize => i64;
}

/// The constant itself.
#[inline]
pub fn constant_of<K, C: ConstantOf<K>>(constant: C) -> C {
    constant
}

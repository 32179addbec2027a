//! The Rust types of tensor elements and of scalar kernel arguments, and the types that a launch can name for a type parameter.

pub use half::{bf16, f16};

use kernel_lang::dtype::Dtype;

use crate::ops::Any;
pub use crate::tensor::float8::{f8e4m3, f8e5m2};

mod sealed {
    pub trait Sealed {}
}

/// An element type of tensors: `bool`, the integers, and the floats, including those of 8 bits.
///
/// A `bool` takes one byte in memory, 0 or 1.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of tensor elements",
    note = "tensors hold `bool`, `i8` to `i64`, `u8` to `u64`, `f16`, `bf16`, `f32`, `f64`, `f8e4m3` and `f8e5m2`"
)]
pub trait Element: ElementArg + Copy + PartialEq + Send + Sync + std::fmt::Debug + Default {
    /// The dtype inside a kernel.
    const DTYPE: Dtype;
    /// The code of this type in a kernel's key.
    const CODE: u64 = Self::DTYPE.code();

    /// The bits of the value, zero-extended to 64.
    #[doc(hidden)]
    fn bits(self) -> u64;

    /// The value with these bits. Higher bits are ignored.
    #[doc(hidden)]
    fn of_bits(bits: u64) -> Self;
}

/// A type that the bound `Float` of a kernel's type parameter allows: `f16`, `bf16`, `f32` or `f64`.
#[diagnostic::on_unimplemented(
    note = "a launch names `ops::Any` for a type parameter only if a tensor has the type, and no rule of `#[autotune]` or `heuristics` mentions it"
)]
pub trait Float: Number + FloatArg {}

/// A type that the bound `Int` of a kernel's type parameter allows: an integer of a fixed width.
#[diagnostic::on_unimplemented(
    note = "a launch names `ops::Any` for a type parameter only if a tensor has the type, and no rule of `#[autotune]` or `heuristics` mentions it"
)]
pub trait Int: Number + IntArg {}

/// A [`Float`] or an [`Int`].
#[diagnostic::on_unimplemented(
    note = "a launch names `ops::Any` for a type parameter only if a tensor has the type, and no rule of `#[autotune]` or `heuristics` mentions it"
)]
pub trait Number: Element + NumberArg {}

/// A type that a launch can name for a type parameter with the bound `Element`: an [`Element`], or [`Any`] for the dtype of the arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of tensor elements",
    note = "tensors hold `bool`, `i8` to `i64`, `u8` to `u64`, `f16`, `bf16`, `f32`, `f64`, `f8e4m3` and `f8e5m2`"
)]
pub trait ElementArg: sealed::Sealed + 'static {
    /// The dtype of the type. `None` for [`Any`].
    #[doc(hidden)]
    const KNOWN: Option<Dtype>;
}

/// A type that a launch can name for a type parameter with the bound `Float`: a [`Float`], or [`Any`].
#[diagnostic::on_unimplemented(
    message = "the trait bound `{Self}: Float` is not satisfied",
    label = "the trait `Float` is not implemented for `{Self}`"
)]
pub trait FloatArg: ElementArg {}

/// A type that a launch can name for a type parameter with the bound `Int`: an [`Int`], or [`Any`].
#[diagnostic::on_unimplemented(
    message = "the trait bound `{Self}: Int` is not satisfied",
    label = "the trait `Int` is not implemented for `{Self}`"
)]
pub trait IntArg: ElementArg {}

/// A type that a launch can name for a type parameter with the bound `Number`: a [`Number`], or [`Any`].
#[diagnostic::on_unimplemented(
    message = "the trait bound `{Self}: Number` is not satisfied",
    label = "the trait `Number` is not implemented for `{Self}`"
)]
pub trait NumberArg: ElementArg {}

impl sealed::Sealed for Any {}
impl ElementArg for Any {
    const KNOWN: Option<Dtype> = None;
}
impl FloatArg for Any {}
impl IntArg for Any {}
impl NumberArg for Any {}

/// A type that a scalar parameter of a kernel takes: every [`Element`], and `usize` and `isize`, which are `i64` inside a kernel.
pub trait Scalar: sealed::Sealed + Copy {
    /// The argument word: the bits of the value, zero-extended to 64.
    ///
    /// # Errors
    /// The value, if it is a `usize` above `i64::MAX`, which an `i64` cannot hold.
    fn word(self) -> Result<u64, u64>;

    /// The argument with this word.
    #[doc(hidden)]
    fn of_word(word: u64) -> Self;

    /// The argument word of a constant whose parameter may have a wider integer type: the bits of a signed integer are sign-extended.
    ///
    /// # Errors
    /// As [`Scalar::word`].
    #[doc(hidden)]
    fn extended_word(self) -> Result<u64, u64> {
        self.word()
    }
}

impl<T: Element> Scalar for T {
    #[inline]
    fn word(self) -> Result<u64, u64> {
        Ok(self.bits())
    }

    #[inline]
    fn of_word(word: u64) -> T {
        T::of_bits(word)
    }

    #[inline]
    fn extended_word(self) -> Result<u64, u64> {
        Ok(if T::DTYPE.is_signed_int() { signed(T::DTYPE, self.bits()).cast_unsigned() } else { self.bits() })
    }
}

macro_rules! elements {
    ($($name:ident $arg:ident: $($ty:ty = $dtype:ident as |$value:ident| $bits:expr, |$word:ident| $of:expr),+;)+) => {$($(
        impl sealed::Sealed for $ty {}

        impl ElementArg for $ty {
            const KNOWN: Option<Dtype> = Some(Dtype::$dtype);
        }

        impl Element for $ty {
            const DTYPE: Dtype = Dtype::$dtype;

            #[inline]
            fn bits(self) -> u64 {
                let $value = self;
                $bits
            }

            #[inline]
            fn of_bits($word: u64) -> $ty {
                $of
            }
        }

        elements!(@$name $arg $ty);
    )+)+};
    (@Stored ElementArg $ty:ty) => {};
    (@$name:ident $arg:ident $ty:ty) => {
        impl NumberArg for $ty {}
        impl Number for $ty {}
        impl $arg for $ty {}
        impl $name for $ty {}
    };
}

elements! {
    Stored ElementArg:
        bool = Bool as |x| u64::from(x), |w| w & 1 == 1,
        f8e4m3 = F8E4M3 as |x| u64::from(x.to_bits()), |w| f8e4m3::from_bits(w as u8),
        f8e5m2 = F8E5M2 as |x| u64::from(x.to_bits()), |w| f8e5m2::from_bits(w as u8);
    Int IntArg:
        i8 = I8 as |x| u64::from(x.cast_unsigned()), |w| w as i8,
        i16 = I16 as |x| u64::from(x.cast_unsigned()), |w| w as i16,
        i32 = I32 as |x| u64::from(x.cast_unsigned()), |w| w as i32,
        i64 = I64 as |x| x.cast_unsigned(), |w| w.cast_signed(),
        u8 = U8 as |x| u64::from(x), |w| w as u8,
        u16 = U16 as |x| u64::from(x), |w| w as u16,
        u32 = U32 as |x| u64::from(x), |w| w as u32,
        u64 = U64 as |x| x, |w| w;
    Float FloatArg:
        f16 = F16 as |x| u64::from(x.to_bits()), |w| f16::from_bits(w as u16),
        bf16 = Bf16 as |x| u64::from(x.to_bits()), |w| bf16::from_bits(w as u16),
        f32 = F32 as |x| u64::from(x.to_bits()), |w| f32::from_bits(w as u32),
        f64 = F64 as |x| x.to_bits(), |w| f64::from_bits(w);
}

impl sealed::Sealed for usize {}
impl Scalar for usize {
    #[inline]
    fn word(self) -> Result<u64, u64> {
        let word = self as u64;
        if word <= i64::MAX.cast_unsigned() { Ok(word) } else { Err(word) }
    }

    #[inline]
    fn of_word(word: u64) -> usize {
        word as usize
    }
}

impl sealed::Sealed for isize {}
impl Scalar for isize {
    #[inline]
    fn word(self) -> Result<u64, u64> {
        Ok((self as i64).cast_unsigned())
    }

    #[inline]
    fn of_word(word: u64) -> isize {
        word as isize
    }
}

/// The value of the element with these bits, zero-extended to 64. Exact, except that 64-bit integers are rounded.
#[inline(always)]
pub(crate) fn value(dtype: Dtype, bits: u64) -> f64 {
    match dtype {
        Dtype::F64 => f64::from_bits(bits),
        Dtype::F32 => f32::from_bits(bits as u32).into(),
        Dtype::F16 => f16::from_bits(bits as u16).into(),
        Dtype::Bf16 => bf16::from_bits(bits as u16).into(),
        Dtype::F8E4M3 => f8e4m3::from_bits(bits as u8).into(),
        Dtype::F8E5M2 => f8e5m2::from_bits(bits as u8).into(),
        _ if dtype.is_signed_int() => signed(dtype, bits) as f64,
        _ => bits as f64,
    }
}

/// The signed integer with these bits, of which those above the width of the dtype are ignored.
#[inline(always)]
pub(crate) fn signed(dtype: Dtype, bits: u64) -> i64 {
    let unused = 64 - 8 * dtype.bytes();
    (bits << unused).cast_signed() >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_zero_extended_bits() {
        assert_eq!((-1i8).word(), Ok(0xff));
        assert_eq!((-2i32).word(), Ok(0xffff_fffe));
        assert_eq!((-1i64).word(), Ok(u64::MAX));
        assert_eq!((-1isize).word(), Ok(u64::MAX));
        assert_eq!(true.word(), Ok(1));
        assert_eq!(1.0f32.word(), Ok(0x3f80_0000));
        assert_eq!(f16::from_f32(1.0).word(), Ok(0x3c00));
        assert_eq!(bf16::from_f32(1.0).word(), Ok(0x3f80));
        assert_eq!((-0.0f64).word(), Ok(1 << 63));
    }

    #[test]
    fn a_constant_keeps_its_value_in_a_wider_word() {
        assert_eq!((-1i8).extended_word(), Ok(u64::MAX));
        assert_eq!(i32::MIN.extended_word(), Ok(0xffff_ffff_8000_0000));
        assert_eq!(200u8.extended_word(), Ok(200));
        assert_eq!((-5isize).extended_word(), Ok((-5i64).cast_unsigned()));
        assert_eq!((-1.0f32).extended_word(), Ok(0xbf80_0000));
        assert_eq!(usize::MAX.extended_word(), Err(u64::MAX));
    }

    #[test]
    fn bits_give_the_value_of_every_dtype() {
        fn check<T: Element>(element: T, expected: f64) {
            assert_eq!(value(T::DTYPE, element.bits()).to_bits(), expected.to_bits(), "{element:?} of {}", T::DTYPE);
        }
        check(true, 1.0);
        check(-3i8, -3.0);
        check(i16::MIN, -32768.0);
        check(-5i32, -5.0);
        check(i64::MIN, -9_223_372_036_854_775_808.0);
        check(200u8, 200.0);
        check(u16::MAX, 65535.0);
        check(u32::MAX, 4_294_967_295.0);
        check(1u64 << 63, 9_223_372_036_854_775_808.0);
        check(f16::from_f32(-0.5), -0.5);
        check(bf16::from_f32(3.0), 3.0);
        check(0.1f32, f64::from(0.1f32));
        check(-0.0f64, -0.0);
        check(f8e4m3::MAX, 448.0);
        check(f8e5m2::NEG_INFINITY, f64::NEG_INFINITY);
    }

    #[test]
    fn a_word_gives_its_argument_back() {
        fn check<T: Scalar + PartialEq + std::fmt::Debug>(values: &[T]) {
            values.iter().for_each(|&value| assert_eq!(T::of_word(value.word().unwrap()), value));
        }
        check(&[true, false]);
        check(&[-1i8, 7]);
        check(&[-300i16, 300]);
        check(&[i32::MIN, 5]);
        check(&[i64::MIN, -1]);
        check(&[255u8]);
        check(&[u16::MAX]);
        check(&[u32::MAX]);
        check(&[u64::MAX]);
        check(&[f16::from_f32(-1.5)]);
        check(&[bf16::from_f32(3.0)]);
        check(&[-0.1f32, f32::MAX]);
        check(&[f64::MIN_POSITIVE]);
        check(&[f8e4m3::from_bits(0x31)]);
        check(&[f8e5m2::from_bits(0x42)]);
        check(&[7usize]);
        check(&[-7isize]);
    }

    #[test]
    fn an_index_beyond_i64_is_refused() {
        assert_eq!(7usize.word(), Ok(7));
        assert_eq!(usize::MAX.word(), Err(u64::MAX));
        assert_eq!(u64::MAX.word(), Ok(u64::MAX), "a u64 parameter holds every u64");
    }

    #[test]
    fn an_element_has_the_size_of_its_dtype() {
        fn check<T: Element>() {
            assert_eq!(size_of::<T>(), T::DTYPE.bytes());
        }
        check::<bool>();
        check::<i8>();
        check::<u16>();
        check::<i32>();
        check::<u64>();
        check::<f16>();
        check::<bf16>();
        check::<f32>();
        check::<f64>();
        check::<f8e4m3>();
        check::<f8e5m2>();
    }
}

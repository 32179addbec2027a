//! Arguments for scalar parameters: values of the parameter's type, dims for integers, and numbers for parameters whose dtype is that of tensors.

use kernel_lang::dtype::Dtype;
use kernel_lang::scalar::{self, Scalar as Value};

use crate::ops::Any;
use crate::tensor::element::{ElementArg, value};
use crate::{Dim, Scalar};

/// An argument for a scalar parameter of type `T` of a kernel: a `T`, or a [`Dim`] if `T` is an integer of at least 32 bits.
#[diagnostic::on_unimplemented(
    message = "a kernel parameter of type `{T}` cannot take `{Self}`",
    note = "convert the argument: `n as {T}`, or `{T}::try_from(n)?`"
)]
pub trait ScalarArg<T> {
    /// The argument.
    #[doc(hidden)]
    fn argument(self) -> ScalarWord;
}

/// An integer type of a parameter that takes a [`Dim`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntegerType {
    /// `i32`.
    I32,
    /// `u32`.
    U32,
    /// `i64`.
    I64,
    /// `u64`.
    U64,
    /// `isize`, an `i64` inside a kernel.
    Isize,
    /// `usize`, an `i64` inside a kernel.
    Usize,
}

impl IntegerType {
    /// All of them.
    pub const ALL: [IntegerType; 6] =
        [IntegerType::I32, IntegerType::U32, IntegerType::I64, IntegerType::U64, IntegerType::Isize, IntegerType::Usize];

    /// The name in Rust.
    pub fn name(self) -> &'static str {
        match self {
            IntegerType::I32 => "i32",
            IntegerType::U32 => "u32",
            IntegerType::I64 => "i64",
            IntegerType::U64 => "u64",
            IntegerType::Isize => "isize",
            IntegerType::Usize => "usize",
        }
    }

    /// The dtype inside a kernel.
    pub(crate) fn dtype(self) -> Dtype {
        match self {
            IntegerType::I32 => Dtype::I32,
            IntegerType::U32 => Dtype::U32,
            IntegerType::U64 => Dtype::U64,
            IntegerType::I64 | IntegerType::Isize | IntegerType::Usize => Dtype::I64,
        }
    }

    /// The argument word of a number, or the number itself if it is not in the range of the type.
    pub(crate) fn word(self, number: i64) -> Result<u64, u64> {
        match self {
            IntegerType::I32 => word_of::<i32>(number),
            IntegerType::U32 => word_of::<u32>(number),
            IntegerType::I64 => word_of::<i64>(number),
            IntegerType::U64 => word_of::<u64>(number),
            IntegerType::Isize => word_of::<isize>(number),
            IntegerType::Usize => word_of::<usize>(number),
        }
    }
}

/// An argument for a scalar parameter whose type is the type parameter `T` of a kernel: that of [`ScalarArg`], or a number if `T` is [`Any`].
#[diagnostic::on_unimplemented(
    message = "a kernel parameter of type `{T}` cannot take `{Self}`",
    note = "convert the argument: `n as {T}`, or `{T}::try_from(n)?`; for `Any`, to `f64` or `i64`"
)]
pub trait GenericScalarArg<T: ElementArg> {
    /// The argument.
    #[doc(hidden)]
    fn generic_argument(self) -> ScalarWord;
}

impl<T: ElementArg, A: ScalarArg<T>> GenericScalarArg<T> for A {
    #[inline]
    fn generic_argument(self) -> ScalarWord {
        self.argument()
    }
}

macro_rules! numbers {
    ($($ty:ty => $of:expr),*) => {$(
        impl GenericScalarArg<Any> for $ty {
            fn generic_argument(self) -> ScalarWord {
                ScalarWord::Untyped($of(self))
            }
        }
    )*};
}

numbers!(f32 => |number| Untyped::Float(f64::from(number)), f64 => Untyped::Float, i64 => Untyped::Int);

/// A number that is converted to the dtype of tensors.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Untyped {
    /// A float.
    Float(f64),
    /// An integer.
    Int(i64),
}

impl Untyped {
    /// The argument word of the number in a dtype. A float dtype rounds once. `None` if an integer or `bool` cannot represent the number, or if it
    /// is finite and beyond the finite numbers of a float dtype.
    pub(crate) fn word(self, dtype: Dtype) -> Option<u64> {
        let from = match self {
            Untyped::Float(number) => Value::from_bits(Dtype::F64, number.to_bits()),
            Untyped::Int(number) => Value::from_bits(Dtype::I64, number.cast_unsigned()),
        };
        let Some((least, most)) = dtype.int_range() else {
            let word = scalar::cast(from, dtype).bits();
            let is_finite = |dtype, bits| value(dtype, bits).is_finite();
            return (!is_finite(from.dtype(), from.bits()) || is_finite(dtype, word)).then_some(word);
        };
        let number = match self {
            Untyped::Int(number) => i128::from(number),
            // The conversion saturates beyond the range of every integer dtype.
            Untyped::Float(number) if number.fract() == 0.0 => number as i128,
            Untyped::Float(_) => return None,
        };
        (least..=most).contains(&number).then(|| number as u64 & (u64::MAX >> (64 - dtype.bits())))
    }
}

impl std::fmt::Display for Untyped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Untyped::Float(number) => write!(f, "{number:?}"),
            Untyped::Int(number) => write!(f, "{number}"),
        }
    }
}

/// An argument word, or an expression that is known when a recorded graph runs.
#[doc(hidden)]
pub enum ScalarWord {
    /// The word, or a number that is not in the range of the parameter.
    Known(Result<u64, u64>),
    /// An expression, and the type of the parameter.
    Dim(Dim, IntegerType),
    /// A number whose dtype the other arguments determine.
    Untyped(Untyped),
}

impl<T: Scalar> ScalarArg<T> for T {
    #[inline]
    fn argument(self) -> ScalarWord {
        ScalarWord::Known(self.word())
    }
}

/// The argument word of a number for a parameter of this type.
fn word_of<T: Scalar + TryFrom<i64>>(number: i64) -> Result<u64, u64> {
    T::try_from(number).map_err(|_| number.cast_unsigned()).and_then(T::word)
}

macro_rules! dims {
    ($($ty:ty = $name:ident),*) => {$(
        impl ScalarArg<$ty> for Dim {
            fn argument(self) -> ScalarWord {
                ScalarArg::<$ty>::argument(&self)
            }
        }

        impl ScalarArg<$ty> for &Dim {
            fn argument(self) -> ScalarWord {
                match self.known() {
                    Some(number) => ScalarWord::Known(word_of::<$ty>(number)),
                    None => ScalarWord::Dim(self.clone(), IntegerType::$name),
                }
            }
        }
    )*};
}

dims!(usize = Usize, isize = Isize, i64 = I64, u64 = U64, i32 = I32, u32 = U32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, bf16, f16};

    #[test]
    fn numbers_round_once_to_a_float_dtype() {
        // Halfway between two neighbours, and a bit above: a first rounding to f32 or f64 would lose the bit.
        let above_half_ulp = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(Untyped::Float(above_half_ulp).word(Dtype::F16), Some(f16::from_f32(1.0 + 2f32.powi(-10)).bits()));
        assert_eq!(Untyped::Float(1.0 + 2f64.powi(-11)).word(Dtype::F16), Some(f16::from_f32(1.0).bits()));
        assert_eq!(Untyped::Int((1 << 62) + (1 << 54) + 1).word(Dtype::Bf16), Some(bf16::from_f32(2f32.powi(62) + 2f32.powi(55)).bits()));
        assert_eq!(Untyped::Int((1 << 53) + 1).word(Dtype::F64), Some((2f64.powi(53)).bits()));
        assert_eq!(Untyped::Float(0.1).word(Dtype::F32), Some(0.1f32.bits()));
        assert_eq!(Untyped::Float(-0.0).word(Dtype::F64), Some((-0.0f64).bits()));
    }

    #[test]
    fn numbers_beyond_a_float_dtype_are_refused_unless_they_are_infinite() {
        assert_eq!(Untyped::Float(65504.0).word(Dtype::F16), Some(f16::MAX.bits()));
        assert_eq!(Untyped::Float(65520.0).word(Dtype::F16), None);
        assert_eq!(Untyped::Int(100_000).word(Dtype::F16), None);
        assert_eq!(Untyped::Float(1e300).word(Dtype::F32), None);
        assert_eq!(Untyped::Float(f64::NEG_INFINITY).word(Dtype::F16), Some(f16::NEG_INFINITY.bits()));
        assert!(Untyped::Float(f64::NAN).word(Dtype::Bf16).is_some_and(|word| bf16::of_bits(word).is_nan()));
    }

    #[test]
    fn an_integer_dtype_takes_the_integers_of_its_range() {
        for dtype in Dtype::INTS {
            let (least, most) = dtype.int_range().unwrap();
            for number in [least - 1, least, -1, 0, 1, most, most + 1] {
                let Ok(int) = i64::try_from(number) else { continue };
                let expected = (least..=most).contains(&number).then(|| int.cast_unsigned() & (u64::MAX >> (64 - dtype.bits())));
                assert_eq!(Untyped::Int(int).word(dtype), expected, "{number} as {dtype}");
                if (int as f64) as i128 == number {
                    assert_eq!(Untyped::Float(int as f64).word(dtype), expected, "{number} as {dtype}");
                }
            }
        }
        assert_eq!(Untyped::Float(2f64.powi(63)).word(Dtype::I64), None);
        assert_eq!(Untyped::Float(2f64.powi(63)).word(Dtype::U64), Some(1 << 63));
        assert_eq!(Untyped::Float(2f64.powi(64)).word(Dtype::U64), None);
        for number in [0.5, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(Untyped::Float(number).word(Dtype::I32), None);
        }
        assert_eq!([0, 1, 2, -1].map(|number| Untyped::Int(number).word(Dtype::Bool)), [Some(0), Some(1), None, None]);
    }
}

//! Arguments for scalar parameters: values of the parameter's type, and dims for integers.

use kernel_lang::dtype::Dtype;

use crate::{Dim, Scalar};

/// An argument for a scalar parameter of type `T` of a kernel: a `T`, or a [`Dim`] if `T` is an integer of at least 32 bits.
#[diagnostic::on_unimplemented(
    message = "a kernel parameter of type `{T}` cannot take `{Self}`",
    note = "convert the argument: `n as {T}`, or `{T}::try_from(n)?`"
)]
pub trait ScalarArg<T: Scalar> {
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

/// An argument word, or an expression that is known when a recorded graph runs.
#[doc(hidden)]
pub enum ScalarWord {
    /// The word, or a number that is not in the range of the parameter.
    Known(Result<u64, u64>),
    /// An expression, and the type of the parameter.
    Dim(Dim, IntegerType),
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

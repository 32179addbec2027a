//! Arguments for scalar parameters: values of the parameter's type, and dims for integers.

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

/// The argument word of a number, or the number itself if it is not in the range of the parameter.
pub(crate) type ToWord = fn(i64) -> Result<u64, u64>;

/// An argument word, or an expression that is known when a recorded graph runs.
#[doc(hidden)]
pub enum ScalarWord {
    /// The word, or a number that is not in the range of the parameter.
    Known(Result<u64, u64>),
    /// An expression, and the conversion of its value.
    Dim(Dim, fn(i64) -> Result<u64, u64>),
}

impl<T: Scalar> ScalarArg<T> for T {
    #[inline]
    fn argument(self) -> ScalarWord {
        ScalarWord::Known(self.word())
    }
}

/// The [`ToWord`] of a type.
fn word_of<T: Scalar + TryFrom<i64>>(number: i64) -> Result<u64, u64> {
    T::try_from(number).map_err(|_| number.cast_unsigned()).and_then(T::word)
}

macro_rules! dims {
    ($($ty:ty),*) => {$(
        impl ScalarArg<$ty> for Dim {
            fn argument(self) -> ScalarWord {
                ScalarArg::<$ty>::argument(&self)
            }
        }

        impl ScalarArg<$ty> for &Dim {
            fn argument(self) -> ScalarWord {
                match self.known() {
                    Some(number) => ScalarWord::Known(word_of::<$ty>(number)),
                    None => ScalarWord::Dim(self.clone(), word_of::<$ty>),
                }
            }
        }
    )*};
}

dims!(usize, isize, i64, u64, i32, u32);

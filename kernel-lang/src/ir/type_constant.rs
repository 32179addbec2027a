//! The constants of element types: `i32::MAX`, `f32::EPSILON`.
//!
//! The constant of a type parameter, `T::MAX`, is a [`ConstExpr::OfType`] until specialisation knows the type.

use crate::dtype::Dtype;
use crate::float8::Format;
use crate::ir::constexpr::ConstExpr;

macro_rules! type_constants {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A constant of an element type, with the name and the value that Rust gives it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum TypeConstant { $($(#[$doc])* $variant,)* }

        impl TypeConstant {
            /// Every constant.
            pub const ALL: &[TypeConstant] = &[$(TypeConstant::$variant),*];

            /// The name in Rust.
            pub const fn name(self) -> &'static str {
                match self { $(TypeConstant::$variant => $name,)* }
            }
        }
    };
}

type_constants! {
    /// Infinity, of floats that have it.
    Infinity = "INFINITY",
    /// The negative infinity.
    NegInfinity = "NEG_INFINITY",
    /// A value that is not a number, of floats.
    Nan = "NAN",
    /// The largest finite value.
    Max = "MAX",
    /// The smallest value; of floats the negative of `MAX`.
    Min = "MIN",
    /// The number of bits of an integer.
    Bits = "BITS",
    /// The difference between 1 and the next larger float.
    Epsilon = "EPSILON",
    /// The smallest positive normal float.
    MinPositive = "MIN_POSITIVE",
}

impl TypeConstant {
    /// The constant of that name.
    pub fn named(name: &str) -> Option<TypeConstant> {
        TypeConstant::ALL.iter().copied().find(|constant| constant.name() == name)
    }

    /// Its value for an element type; `None` if the type does not have it.
    pub fn of(self, dtype: Dtype) -> Option<ConstExpr> {
        if dtype.is_float() {
            return self.of_float(dtype).map(ConstExpr::Float);
        }
        let (low, high) = dtype.int_range().filter(|_| dtype.is_int())?;
        match self {
            TypeConstant::Max => Some(ConstExpr::Int(high)),
            TypeConstant::Min => Some(ConstExpr::Int(low)),
            TypeConstant::Bits => Some(ConstExpr::Int(dtype.bits().into())),
            _ => None,
        }
    }

    fn of_float(self, dtype: Dtype) -> Option<f64> {
        use half::{bf16, f16};
        let float8 = Format::of(dtype);
        if let Some(format) = float8 {
            let largest = format.to_f32(format.largest());
            return match self {
                TypeConstant::Max => Some(largest.into()),
                TypeConstant::Min => Some((-largest).into()),
                TypeConstant::Epsilon => Some(format.epsilon().into()),
                TypeConstant::MinPositive => Some(format.smallest_normal().into()),
                TypeConstant::Infinity => format.has_infinities().then_some(f64::INFINITY),
                TypeConstant::NegInfinity => format.has_infinities().then_some(f64::NEG_INFINITY),
                TypeConstant::Nan => Some(f64::NAN),
                TypeConstant::Bits => None,
            };
        }
        let pick = |f16: f16, bf16: bf16, f32: f32, f64: f64| match dtype {
            Dtype::F16 => f16.to_f64(),
            Dtype::Bf16 => bf16.to_f64(),
            Dtype::F32 => f64::from(f32),
            _ => f64,
        };
        Some(match self {
            TypeConstant::Infinity => f64::INFINITY,
            TypeConstant::NegInfinity => f64::NEG_INFINITY,
            TypeConstant::Nan => f64::NAN,
            TypeConstant::Max => pick(f16::MAX, bf16::MAX, f32::MAX, f64::MAX),
            TypeConstant::Min => pick(f16::MIN, bf16::MIN, f32::MIN, f64::MIN),
            TypeConstant::Epsilon => pick(f16::EPSILON, bf16::EPSILON, f32::EPSILON, f64::EPSILON),
            TypeConstant::MinPositive => pick(f16::MIN_POSITIVE, bf16::MIN_POSITIVE, f32::MIN_POSITIVE, f64::MIN_POSITIVE),
            TypeConstant::Bits => return None,
        })
    }
}

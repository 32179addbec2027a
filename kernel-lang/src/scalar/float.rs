//! Elementwise ops on floats: [`Real`] is the element type in memory, [`Wide`] the type that it is computed in.

use std::ops::{Add, Div, Mul, Rem, Sub};

use half::{bf16, f16};

use crate::float8::Format;
use crate::scalar::half as convert;
use crate::scalar::math;
use crate::scalar::pio2::SMALL;

/// A float element. Ops widen it, compute, and narrow the result: one rounding each for `f16` and `bf16`, none for `f32` and `f64`.
pub(super) trait Real: Copy + 'static {
    /// The type of its arithmetic.
    type Wide: Wide;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    /// Converts an `f64` that is exact, or rounded to odd if this type is narrower than `f64`.
    fn from_f64_odd(value: f64) -> Self;
}

impl Real for f32 {
    type Wide = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
    #[inline(always)]
    fn narrow(wide: f32) -> f32 {
        wide
    }
    #[inline(always)]
    fn from_f64_odd(value: f64) -> f32 {
        value as f32
    }
}

impl Real for f64 {
    type Wide = f64;
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
    #[inline(always)]
    fn narrow(wide: f64) -> f64 {
        wide
    }
    #[inline(always)]
    fn from_f64_odd(value: f64) -> f64 {
        value
    }
}

impl Real for f16 {
    type Wide = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        convert::f16_to_f32(self)
    }
    #[inline(always)]
    fn narrow(wide: f32) -> f16 {
        convert::f32_to_f16(wide)
    }
    #[inline(always)]
    fn from_f64_odd(value: f64) -> f16 {
        convert::f32_to_f16(convert::f64_to_f32_odd(value))
    }
}

impl Real for bf16 {
    type Wide = f32;
    #[inline(always)]
    fn widen(self) -> f32 {
        convert::bf16_to_f32(self)
    }
    #[inline(always)]
    fn narrow(wide: f32) -> bf16 {
        convert::f32_to_bf16(wide)
    }
    #[inline(always)]
    fn from_f64_odd(value: f64) -> bf16 {
        convert::f32_to_bf16(convert::f64_to_f32_odd(value))
    }
}

/// An 8-bit float in memory.
macro_rules! float8 {
    ($($name:ident = $format:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name(pub(super) u8);

        impl Real for $name {
            type Wide = f32;
            #[inline(always)]
            fn widen(self) -> f32 {
                $format.to_f32(self.0)
            }
            #[inline(always)]
            fn narrow(wide: f32) -> $name {
                $name($format.from_f32(wide))
            }
            #[inline(always)]
            fn from_f64_odd(value: f64) -> $name {
                $name($format.from_f32(convert::f64_to_f32_odd(value)))
            }
        }
    )*};
}
float8! {
    F8E4M3 = Format::E4M3;
    F8E5M2 = Format::E5M2;
}

/// The arithmetic type of floats: `f32` or `f64`.
pub(super) trait Wide:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Rem<Output = Self>
{
    fn exp(self) -> Self;
    fn exp2(self) -> Self;
    /// As on a GPU: for `f32`, results below the normal numbers are zero.
    fn exp2_ftz(self) -> Self;
    fn log(self) -> Self;
    fn log2(self) -> Self;
    fn sqrt(self) -> Self;
    fn rsqrt(self) -> Self;
    fn recip(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    /// [`Wide::sin`] of an angle that is not [hard](Wide::is_hard_angle), without branches.
    fn sin_small(self) -> Self;
    /// [`Wide::cos`] of such an angle.
    fn cos_small(self) -> Self;
    /// [`Wide::tan`] of such an angle.
    fn tan_small(self) -> Self;
    /// Does the angle need the slow reduction?
    fn is_hard_angle(self) -> bool;
    fn tanh(self) -> Self;
    fn sigmoid(self) -> Self;
    fn erf(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round(self) -> Self;
    fn rint(self) -> Self;
    fn trunc(self) -> Self;
    /// `self * b + c`, rounded once.
    fn fma(self, b: Self, c: Self) -> Self;
    /// The minimum; -0 is smaller than +0, and a number wins over NaN.
    fn minimum(self, other: Self) -> Self;
    /// The maximum; +0 is larger than -0, and a number wins over NaN.
    fn maximum(self, other: Self) -> Self;
}

/// Functions that both types implement: `[name = function of the type]`.
macro_rules! wide {
    ($ty:ident { is_hard_angle = $hard:expr, $($name:ident = $function:expr,)* }) => {
        impl Wide for $ty {
            $(#[inline(always)] fn $name(self) -> $ty { $function(self) })*
            #[inline(always)]
            fn is_hard_angle(self) -> bool {
                $hard(self)
            }
            #[inline(always)]
            fn recip(self) -> $ty {
                1.0 / self
            }
            #[inline(always)]
            fn fma(self, b: $ty, c: $ty) -> $ty {
                self.mul_add(b, c)
            }
            #[inline(always)]
            fn minimum(self, other: $ty) -> $ty {
                let smaller = if self < other { self } else { other };
                // Equal numbers have equal bits, or are zeros: the or of their bits is then -0 if either is.
                let equal = $ty::from_bits(self.to_bits() | other.to_bits());
                let value = if self == other { equal } else { smaller };
                if other.is_nan() { self } else { value }
            }
            #[inline(always)]
            fn maximum(self, other: $ty) -> $ty {
                let larger = if self > other { self } else { other };
                let equal = $ty::from_bits(self.to_bits() & other.to_bits());
                let value = if self == other { equal } else { larger };
                if other.is_nan() { self } else { value }
            }
        }
    };
}

wide!(f32 {
    is_hard_angle = |x: f32| x.is_nan() || x.abs() >= SMALL,
    exp = math::exp,
    exp2 = math::exp2,
    exp2_ftz = math::exp2_ftz,
    log = math::log,
    log2 = math::log2,
    sqrt = f32::sqrt,
    rsqrt = |x: f32| (1.0 / f64::from(x).sqrt()) as f32,
    sin = math::sin,
    cos = math::cos,
    tan = math::tan,
    sin_small = math::sin_small,
    cos_small = math::cos_small,
    tan_small = math::tan_small,
    tanh = math::tanh,
    sigmoid = math::sigmoid,
    erf = |x: f32| libm::erf(f64::from(x)) as f32,
    floor = f32::floor,
    ceil = f32::ceil,
    round = f32::round,
    rint = f32::round_ties_even,
    trunc = f32::trunc,
});

wide!(f64 {
    is_hard_angle = |_: f64| false,
    exp = f64::exp,
    exp2 = f64::exp2,
    exp2_ftz = f64::exp2,
    log = f64::ln,
    log2 = f64::log2,
    sqrt = f64::sqrt,
    rsqrt = |x: f64| 1.0 / x.sqrt(),
    sin = f64::sin,
    cos = f64::cos,
    tan = f64::tan,
    sin_small = f64::sin,
    cos_small = f64::cos,
    tan_small = f64::tan,
    tanh = f64::tanh,
    sigmoid = |x: f64| {
        let small = (-x.abs()).exp();
        (if x < 0.0 { small } else { 1.0 }) / (1.0 + small)
    },
    erf = libm::erf,
    floor = f64::floor,
    ceil = f64::ceil,
    round = f64::round,
    rint = f64::round_ties_even,
    trunc = f64::trunc,
});

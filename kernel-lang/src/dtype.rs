//! The element types of the kernel language and their properties.

use std::fmt;
use std::str::FromStr;

/// The type of one element of a scalar, a tile or a tensor in memory.
///
/// Inside a kernel `usize` and `isize` are [`Dtype::I64`]: an index is exact and signed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Dtype {
    /// A boolean; one byte in memory, 0 or 1.
    Bool = 0,
    /// 8-bit two's complement.
    I8 = 1,
    /// 16-bit two's complement.
    I16 = 2,
    /// 32-bit two's complement.
    I32 = 3,
    /// 64-bit two's complement; also `usize` and `isize`.
    I64 = 4,
    /// 8-bit unsigned.
    U8 = 5,
    /// 16-bit unsigned.
    U16 = 6,
    /// 32-bit unsigned.
    U32 = 7,
    /// 64-bit unsigned.
    U64 = 8,
    /// IEEE 754 binary16.
    F16 = 9,
    /// The upper half of an IEEE 754 binary32.
    Bf16 = 10,
    /// IEEE 754 binary32.
    F32 = 11,
    /// IEEE 754 binary64.
    F64 = 12,
    /// 4 bits of exponent, 3 of fraction, no infinities: `E4M3` of the Open Compute Project's 8-bit floating point specification.
    F8E4M3 = 13,
    /// 5 bits of exponent, 2 of fraction: `E5M2` of the same specification.
    F8E5M2 = 14,
}

impl Dtype {
    /// Every dtype, in the order of [`Dtype::code`].
    pub const ALL: [Dtype; 15] = [
        Dtype::Bool,
        Dtype::I8,
        Dtype::I16,
        Dtype::I32,
        Dtype::I64,
        Dtype::U8,
        Dtype::U16,
        Dtype::U32,
        Dtype::U64,
        Dtype::F16,
        Dtype::Bf16,
        Dtype::F32,
        Dtype::F64,
        Dtype::F8E4M3,
        Dtype::F8E5M2,
    ];
    /// The dtypes that the bound `Float` allows.
    pub const FLOATS: [Dtype; 4] = [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64];
    /// The dtypes that the bound `Int` allows.
    pub const INTS: [Dtype; 8] = [Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64, Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64];

    /// The dtypes that the bound `Number` allows: [`Dtype::INTS`] and [`Dtype::FLOATS`].
    pub const NUMBERS: [Dtype; 12] = [
        Dtype::I8,
        Dtype::I16,
        Dtype::I32,
        Dtype::I64,
        Dtype::U8,
        Dtype::U16,
        Dtype::U32,
        Dtype::U64,
        Dtype::F16,
        Dtype::Bf16,
        Dtype::F32,
        Dtype::F64,
    ];

    /// The number of this dtype in a kernel's key.
    pub const fn code(self) -> u64 {
        self as u64
    }

    /// The dtype with that [`Dtype::code`].
    pub fn from_code(code: u64) -> Option<Dtype> {
        Dtype::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// The width of the value in bits: 1 for `bool`.
    #[inline]
    pub const fn bits(self) -> u32 {
        match self {
            Dtype::Bool => 1,
            Dtype::I8 | Dtype::U8 | Dtype::F8E4M3 | Dtype::F8E5M2 => 8,
            Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::Bf16 => 16,
            Dtype::I32 | Dtype::U32 | Dtype::F32 => 32,
            Dtype::I64 | Dtype::U64 | Dtype::F64 => 64,
        }
    }

    /// The signed integer type of the same width.
    pub const fn bits_dtype(self) -> Dtype {
        match self.bits() {
            1 | 8 => Dtype::I8,
            16 => Dtype::I16,
            32 => Dtype::I32,
            _ => Dtype::I64,
        }
    }

    /// Bytes of one element in memory.
    #[inline]
    pub const fn bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// Is it a float: `f16`, `bf16`, `f32`, `f64`, or an 8-bit float?
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self, Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64) || self.is_float8()
    }

    /// Is it `f8e4m3` or `f8e5m2`? These are stored, compared and cast, but have no arithmetic.
    pub const fn is_float8(self) -> bool {
        matches!(self, Dtype::F8E4M3 | Dtype::F8E5M2)
    }

    /// Is it a signed or unsigned integer? `bool` is not.
    pub const fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, Dtype::Bool)
    }

    /// Is it a signed integer?
    #[inline]
    pub const fn is_signed_int(self) -> bool {
        matches!(self, Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64)
    }

    /// Is it `f16` or `bf16`, whose arithmetic is computed in `f32` and rounded once?
    pub const fn is_half(self) -> bool {
        matches!(self, Dtype::F16 | Dtype::Bf16)
    }

    /// The bits of an `f32` or an `f64` of that value, as a number of a key.
    pub fn bits_of(self, value: f64) -> Option<i128> {
        match self {
            Dtype::F32 => Some((value as f32).to_bits().into()),
            Dtype::F64 => Some(value.to_bits().into()),
            _ => None,
        }
    }

    /// The smallest and largest integer of an integer type or `bool`.
    pub fn int_range(self) -> Option<(i128, i128)> {
        let bits = self.bits();
        if self.is_float() {
            None
        } else if self.is_signed_int() {
            Some((-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1))
        } else {
            Some((0, (1i128 << bits) - 1))
        }
    }

    /// Wraps an integer to this integer type, modulo 2 to the power of its width, as Rust's `as` does.
    pub fn wrap(self, value: i128) -> i128 {
        let bits = self.bits();
        let low = value & ((1i128 << bits) - 1);
        if self.is_signed_int() && low >> (bits - 1) == 1 { low - (1i128 << bits) } else { low }
    }

    /// Does every value of `self` keep its value when converted to `to`?
    ///
    /// Exactly these conversions are implicit: `i32` to `i64`, `u8` to `i16`. Floats never convert implicitly.
    pub fn widens_to(self, to: Dtype) -> bool {
        match (self.int_range(), to.int_range()) {
            (Some((low, high)), Some((to_low, to_high))) if self.is_int() && to.is_int() => to_low <= low && high <= to_high,
            _ => self == to,
        }
    }

    /// The name in Rust, which is also the name in the IR's text.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::Bool => "bool",
            Dtype::I8 => "i8",
            Dtype::I16 => "i16",
            Dtype::I32 => "i32",
            Dtype::I64 => "i64",
            Dtype::U8 => "u8",
            Dtype::U16 => "u16",
            Dtype::U32 => "u32",
            Dtype::U64 => "u64",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
            Dtype::F32 => "f32",
            Dtype::F64 => "f64",
            Dtype::F8E4M3 => "f8e4m3",
            Dtype::F8E5M2 => "f8e5m2",
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text is not the name of a dtype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownDtype;

impl FromStr for Dtype {
    type Err = UnknownDtype;

    fn from_str(text: &str) -> Result<Dtype, UnknownDtype> {
        Dtype::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or(UnknownDtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_round_trip() {
        for dtype in Dtype::ALL {
            assert_eq!(Dtype::from_code(dtype.code()), Some(dtype));
            assert_eq!(dtype.name().parse(), Ok(dtype));
        }
        assert_eq!(Dtype::from_code(99), None);
        assert_eq!("usize".parse::<Dtype>(), Err(UnknownDtype));
    }

    #[test]
    fn widening_keeps_every_value() {
        assert!(Dtype::I32.widens_to(Dtype::I64));
        assert!(Dtype::U8.widens_to(Dtype::I16));
        assert!(Dtype::U32.widens_to(Dtype::I64));
        assert!(!Dtype::U32.widens_to(Dtype::I32));
        assert!(!Dtype::I8.widens_to(Dtype::U64));
        assert!(!Dtype::I32.widens_to(Dtype::F64));
        assert!(!Dtype::Bool.widens_to(Dtype::I8));
        assert!(Dtype::F32.widens_to(Dtype::F32));
        assert!(!Dtype::F16.widens_to(Dtype::F32));
    }
}

//! Elements as numbers: the arithmetic of the references, which shares nothing with the compiler's.
//!
//! A number is an integer that no type is too narrow for, or an `f64`; only storing it in a type wraps or rounds it.

use galatea::Dtype;

/// An element's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i128),
    Float(f64),
}

use Number::{Float, Int};

impl Number {
    pub(crate) fn int(self) -> i128 {
        match self {
            Int(value) => value,
            Float(value) => panic!("{value} is no integer"),
        }
    }

    /// As a float. Integers are rounded to odd, so that rounding once more, to a narrower type, gives what rounding once would have.
    pub(crate) fn float(self) -> f64 {
        match self {
            Float(value) => value,
            Int(value) => {
                let near = value as f64;
                if near as i128 == value {
                    return near;
                }
                let below = if (near as i128).abs() > value.abs() { f64::from_bits(near.to_bits() - 1) } else { near };
                f64::from_bits(below.to_bits() | 1)
            }
        }
    }

    /// The number in a type, as Rust's `as` converts it: integers wrap, floats are rounded to nearest even or, to integers, to zero and into the range.
    pub(crate) fn to(self, dtype: Dtype) -> Number {
        match (self, dtype.int_range()) {
            (Int(value), Some(_)) if dtype == Dtype::Bool => Int(i128::from(value != 0)),
            (Float(value), Some(_)) if dtype == Dtype::Bool => Int(i128::from(value != 0.0)),
            (Int(value), Some(_)) => Int(wrap(value, dtype)),
            (Float(value), Some((low, high))) => Int((value as i128).clamp(low, high)),
            (Int(value), None) if dtype == Dtype::F64 => Float(value as f64),
            (number, None) => Float(round(number.float(), dtype)),
        }
    }
}

/// The low bits of an integer, in an integer type.
fn wrap(value: i128, dtype: Dtype) -> i128 {
    let low = value & ((1 << dtype.bits()) - 1);
    if dtype.is_signed_int() && low >> (dtype.bits() - 1) == 1 { low - (1 << dtype.bits()) } else { low }
}

/// How a type of floats spends its bits.
pub(crate) struct Format {
    /// Digits of the significand, the leading one among them.
    pub(crate) digits: i32,
    pub(crate) bias: i32,
    /// The largest finite number.
    pub(crate) end: f64,
}

impl Format {
    /// The exponent of the largest number.
    pub(crate) fn largest(&self) -> i32 {
        exponent(self.end, self.bias)
    }
}

pub(crate) fn format(dtype: Dtype) -> Format {
    let ieee = |digits: i32, bias: i32| Format { digits, bias, end: (2.0 - 2f64.powi(1 - digits)) * 2f64.powi(bias) };
    match dtype {
        Dtype::F16 => ieee(11, 15),
        Dtype::Bf16 => ieee(8, 127),
        Dtype::F32 => ieee(24, 127),
        Dtype::F8E5M2 => ieee(3, 15),
        // The exponent that is for infinities elsewhere has numbers too; only its last one is NaN.
        Dtype::F8E4M3 => Format { digits: 4, bias: 7, end: 448.0 },
        _ => ieee(53, 1023),
    }
}

/// The exponent of a number's leading digit; for numbers below the normal ones that of the smallest normal number.
fn exponent(value: f64, bias: i32) -> i32 {
    let field = (value.to_bits() >> 52 & 0x7ff) as i32;
    (field - 1023).max(1 - bias)
}

/// The distance of neighbouring numbers of a float type around a value.
pub(crate) fn ulp(value: f64, dtype: Dtype) -> f64 {
    let Format { digits, bias, end } = format(dtype);
    2f64.powi(exponent(value.abs().min(end), bias) - digits + 1)
}

/// The nearest number of a float type; of two the even one. Too large ones are infinite, but floats of 8 bits stay finite.
pub(crate) fn round(value: f64, dtype: Dtype) -> f64 {
    if dtype == Dtype::F64 || value.is_nan() {
        return value;
    }
    let ulp = ulp(value, dtype);
    let rounded = (value / ulp).round_ties_even() * ulp;
    let end = format(dtype).end;
    let beyond = if dtype.bits() == 8 { end } else { f64::INFINITY };
    if rounded.abs() > end { beyond.copysign(value) } else { rounded }
}

/// The number that a type's bits stand for.
pub(crate) fn decode(bits: u64, dtype: Dtype) -> Number {
    if dtype.int_range().is_some() {
        return Int(wrap(bits.into(), dtype));
    }
    if dtype == Dtype::F64 {
        return Float(f64::from_bits(bits));
    }
    let Format { digits, bias, end } = format(dtype);
    let (field, fraction) = (bits >> (digits - 1) & (2 * bias as u64 + 1), bits & ((1 << (digits - 1)) - 1));
    let sign = if bits >> (dtype.bits() - 1) & 1 == 1 { -1.0 } else { 1.0 };
    let value = match field as i32 {
        0 => fraction as f64 * 2f64.powi(2 - bias - digits),
        field => (fraction | 1 << (digits - 1)) as f64 * 2f64.powi(field - bias - digits + 1),
    };
    let is_infinite = dtype != Dtype::F8E4M3 && fraction == 0;
    Float(if value <= end {
        sign * value
    } else if is_infinite {
        sign * f64::INFINITY
    } else {
        f64::NAN
    })
}

/// The bits of a number in a type.
pub(crate) fn encode(number: Number, dtype: Dtype) -> u64 {
    let value = match number.to(dtype) {
        Int(value) => return value as u64 & (u64::MAX >> (64 - dtype.bits())),
        Float(value) => value,
    };
    if dtype == Dtype::F64 {
        return value.to_bits();
    }
    let Format { digits, bias, .. } = format(dtype);
    let sign = u64::from(value.is_sign_negative()) << (dtype.bits() - 1);
    if value.is_nan() && dtype.bits() == 8 {
        return 0x7f;
    }
    if value.is_nan() || value.is_infinite() {
        let special = (2 * bias as u64 + 1) << (digits - 1);
        return sign | special | u64::from(value.is_nan()) << (digits - 2);
    }
    let steps = (value.abs() / ulp(value, dtype)) as u64;
    // Below the normal numbers there is no leading one, and the field is 0.
    let field = (exponent(value, bias) + bias - 1) as u64;
    sign | ((field << (digits - 1)) + steps)
}

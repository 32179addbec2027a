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

/// Digits of the significand, the leading one among them, and the largest exponent.
pub(crate) fn format(dtype: Dtype) -> (i32, i32) {
    match dtype {
        Dtype::F16 => (11, 15),
        Dtype::Bf16 => (8, 127),
        Dtype::F32 => (24, 127),
        _ => (53, 1023),
    }
}

/// The exponent of a number's leading digit; for numbers below the normal ones that of the smallest normal number.
pub(crate) fn exponent(value: f64, dtype: Dtype) -> i32 {
    let (_, largest) = format(dtype);
    let field = (value.to_bits() >> 52 & 0x7ff) as i32;
    (field - 1023).max(1 - largest)
}

/// The distance of neighbouring numbers of a float type around a value.
pub(crate) fn ulp(value: f64, dtype: Dtype) -> f64 {
    let (digits, largest) = format(dtype);
    2f64.powi(exponent(value, dtype).min(largest) - digits + 1)
}

/// The nearest number of a float type; of two the even one.
pub(crate) fn round(value: f64, dtype: Dtype) -> f64 {
    if dtype == Dtype::F64 || !value.is_finite() {
        return value;
    }
    let ulp = ulp(value, dtype);
    let rounded = (value / ulp).round_ties_even() * ulp;
    let (digits, largest) = format(dtype);
    let end = (2.0 - 2f64.powi(1 - digits)) * 2f64.powi(largest);
    if rounded.abs() > end { f64::INFINITY.copysign(value) } else { rounded }
}

/// The number that a type's bits stand for.
pub(crate) fn decode(bits: u64, dtype: Dtype) -> Number {
    if !dtype.is_float() {
        return Int(wrap(bits.into(), dtype));
    }
    if dtype == Dtype::F64 {
        return Float(f64::from_bits(bits));
    }
    let (digits, largest) = format(dtype);
    let (field, fraction) = (bits >> (digits - 1) & (2 * largest as u64 + 1), bits & ((1 << (digits - 1)) - 1));
    let sign = if bits >> (dtype.bits() - 1) & 1 == 1 { -1.0 } else { 1.0 };
    let value = match field as i32 {
        0 => fraction as f64 * 2f64.powi(2 - largest - digits),
        field if field > 2 * largest => return Float(if fraction == 0 { sign * f64::INFINITY } else { f64::NAN }),
        field => (fraction | 1 << (digits - 1)) as f64 * 2f64.powi(field - largest - digits + 1),
    };
    Float(sign * value)
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
    let (digits, largest) = format(dtype);
    let sign = u64::from(value.is_sign_negative()) << (dtype.bits() - 1);
    if value.is_nan() || value.is_infinite() {
        let special = (2 * largest as u64 + 1) << (digits - 1);
        return sign | special | u64::from(value.is_nan()) << (digits - 2);
    }
    let steps = (value.abs() / ulp(value, dtype)) as u64;
    // Below the normal numbers there is no leading one, and the field is 0.
    let field = (exponent(value, dtype) + largest - 1) as u64;
    sign | ((field << (digits - 1)) + steps)
}

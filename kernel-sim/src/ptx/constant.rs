//! Constants and constant expressions.
//!
//! An integer literal is signed unless it has the suffix `U` or does not fit. The usual conversions of C apply (PTX ISA, 4.5).

/// The value of a constant expression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Constant {
    Signed(i64),
    Unsigned(u64),
    /// `0f..`: exact bits. Constants of this kind cannot be operands of expressions.
    F32(u32),
    F64(f64),
}

/// The binary operators by precedence, lowest first.
pub(super) const LEVELS: [&[&str]; 10] =
    [&["||"], &["&&"], &["|"], &["^"], &["&"], &["==", "!="], &["<", ">", "<=", ">="], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

impl Constant {
    /// Parses a number.
    pub(super) fn parse(text: &str) -> Result<Constant, String> {
        let lower = text.to_ascii_lowercase();
        let hexadecimal = |digits: &str, count: usize| {
            let bits = u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == count);
            bits.ok_or_else(|| format!("`{text}` must have {count} hexadecimal digits"))
        };
        if let Some(digits) = lower.strip_prefix("0f") {
            return Ok(Constant::F32(hexadecimal(digits, 8)? as u32));
        }
        if let Some(digits) = lower.strip_prefix("0d") {
            return Ok(Constant::F64(f64::from_bits(hexadecimal(digits, 16)?)));
        }
        let (digits, radix) = match lower.as_bytes() {
            [b'0', b'x', ..] => (&lower[2..], 16),
            [b'0', b'b', ..] => (&lower[2..], 2),
            _ if lower.contains(['.', 'e']) => {
                let value = lower.parse().map_err(|_| format!("`{text}` is no number"))?;
                return Ok(Constant::F64(value));
            }
            [b'0', b'0'..=b'9', ..] => (&lower[1..], 8),
            _ => (&lower[..], 10),
        };
        let unsigned = digits.strip_suffix('u');
        let value = u64::from_str_radix(unsigned.unwrap_or(digits), radix).map_err(|error| match error.kind() {
            std::num::IntErrorKind::PosOverflow => format!("`{text}` does not fit into 64 bits"),
            _ => format!("`{text}` is no number"),
        })?;
        Ok(match i64::try_from(value) {
            Ok(value) if unsigned.is_none() => Constant::Signed(value),
            _ => Constant::Unsigned(value),
        })
    }

    /// The bits of an integer.
    pub(super) fn integer(self) -> Option<u64> {
        match self {
            Constant::Signed(value) => Some(value as u64),
            Constant::Unsigned(value) => Some(value),
            Constant::F32(_) | Constant::F64(_) => None,
        }
    }

    /// Applies `-x`, `+x`, `~x`, `!x` or a cast.
    pub(super) fn unary(self, operator: &str) -> Result<Constant, String> {
        Ok(match (operator, self) {
            ("-", Constant::Signed(value)) => Constant::Signed(value.wrapping_neg()),
            ("-", Constant::Unsigned(value)) => Constant::Unsigned(value.wrapping_neg()),
            ("-", Constant::F64(value)) => Constant::F64(-value),
            ("+", value @ (Constant::Signed(_) | Constant::Unsigned(_) | Constant::F64(_))) => value,
            ("~", Constant::Signed(value)) => Constant::Signed(!value),
            ("~", Constant::Unsigned(value)) => Constant::Unsigned(!value),
            ("!", Constant::Signed(value)) => Constant::Signed(i64::from(value == 0)),
            ("!", Constant::Unsigned(value)) => Constant::Signed(i64::from(value == 0)),
            ("s64", Constant::Unsigned(value)) => Constant::Signed(value as i64),
            ("u64", Constant::Signed(value)) => Constant::Unsigned(value as u64),
            ("s64", value @ Constant::Signed(_)) | ("u64", value @ Constant::Unsigned(_)) => value,
            _ => return Err(format!("`{operator}` can not be applied to this constant")),
        })
    }

    /// Computes `self operator other`.
    pub(super) fn binary(self, operator: &str, other: Constant) -> Result<Constant, String> {
        let boolean = |value: bool| Ok(Constant::Signed(i64::from(value)));
        let zero = || "division by zero".to_owned();
        match (self, other) {
            (Constant::F64(a), Constant::F64(b)) => match operator {
                "+" => Ok(Constant::F64(a + b)),
                "-" => Ok(Constant::F64(a - b)),
                "*" => Ok(Constant::F64(a * b)),
                "/" => Ok(Constant::F64(a / b)),
                "<" => boolean(a < b),
                ">" => boolean(a > b),
                "<=" => boolean(a <= b),
                ">=" => boolean(a >= b),
                "==" => boolean(a == b),
                "!=" => boolean(a != b),
                _ => Err(format!("`{operator}` can not be applied to floating-point constants")),
            },
            // The type of a shift is the type of its left operand.
            (Constant::Signed(a), b) if operator == ">>" => Ok(Constant::Signed(a >> shift(b)?.min(63))),
            (Constant::Unsigned(a), b) if operator == ">>" => Ok(Constant::Unsigned(a.checked_shr(shift(b)?).unwrap_or(0))),
            (Constant::Signed(a), b) if operator == "<<" => Ok(Constant::Signed(a.checked_shl(shift(b)?).unwrap_or(0))),
            (Constant::Unsigned(a), b) if operator == "<<" => Ok(Constant::Unsigned(a.checked_shl(shift(b)?).unwrap_or(0))),
            (Constant::Signed(a), Constant::Signed(b)) => match operator {
                "+" => Ok(Constant::Signed(a.wrapping_add(b))),
                "-" => Ok(Constant::Signed(a.wrapping_sub(b))),
                "*" => Ok(Constant::Signed(a.wrapping_mul(b))),
                "/" if b == 0 => Err(zero()),
                "%" if b == 0 => Err(zero()),
                "/" => Ok(Constant::Signed(a.wrapping_div(b))),
                "%" => Ok(Constant::Signed(a.wrapping_rem(b))),
                "<" => boolean(a < b),
                ">" => boolean(a > b),
                "<=" => boolean(a <= b),
                ">=" => boolean(a >= b),
                "&" => Ok(Constant::Signed(a & b)),
                "|" => Ok(Constant::Signed(a | b)),
                "^" => Ok(Constant::Signed(a ^ b)),
                _ => same(operator, a as u64, b as u64),
            },
            _ => {
                let (Some(a), Some(b)) = (self.integer(), other.integer()) else {
                    return Err(format!("`{operator}` can not be applied to these constants"));
                };
                match operator {
                    "+" => Ok(Constant::Unsigned(a.wrapping_add(b))),
                    "-" => Ok(Constant::Unsigned(a.wrapping_sub(b))),
                    "*" => Ok(Constant::Unsigned(a.wrapping_mul(b))),
                    "/" => a.checked_div(b).map(Constant::Unsigned).ok_or_else(zero),
                    "%" => a.checked_rem(b).map(Constant::Unsigned).ok_or_else(zero),
                    "<" => boolean(a < b),
                    ">" => boolean(a > b),
                    "<=" => boolean(a <= b),
                    ">=" => boolean(a >= b),
                    "&" => Ok(Constant::Unsigned(a & b)),
                    "|" => Ok(Constant::Unsigned(a | b)),
                    "^" => Ok(Constant::Unsigned(a ^ b)),
                    _ => same(operator, a, b),
                }
            }
        }
    }
}

/// Operators with the same result for signed and unsigned integers.
fn same(operator: &str, a: u64, b: u64) -> Result<Constant, String> {
    let boolean = match operator {
        "==" => a == b,
        "!=" => a != b,
        "&&" => a != 0 && b != 0,
        "||" => a != 0 || b != 0,
        _ => return Err(format!("`{operator}` is no operator of constants")),
    };
    Ok(Constant::Signed(i64::from(boolean)))
}

/// A shift distance. Distances of 64 and more shift all bits out.
fn shift(distance: Constant) -> Result<u32, String> {
    let distance = distance.integer().ok_or("a shift needs an integer")?;
    Ok(distance.min(64) as u32)
}

#[cfg(test)]
mod tests {
    use super::Constant::{F32, F64, Signed, Unsigned};
    use super::*;

    #[test]
    fn numbers() {
        for (text, value) in [
            ("0", Signed(0)),
            ("017", Signed(15)),
            ("0b101", Signed(5)),
            ("0X1fU", Unsigned(31)),
            ("12U", Unsigned(12)),
            ("18446744073709551615", Unsigned(u64::MAX)),
            ("0F3f800000", F32(0x3f80_0000)),
            ("0dBFF0000000000000", F64(-1.0)),
            ("1.5e1", F64(15.0)),
            ("1.", F64(1.0)),
        ] {
            assert_eq!(Constant::parse(text), Ok(value), "{text}");
        }
        for text in ["09", "0x", "0f3F80000", "0d0", "1z", "18446744073709551616", "0b2", "1e", "0xg"] {
            assert!(Constant::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn signedness_decides_division_and_shifts() {
        assert_eq!(Signed(-8).binary("/", Signed(2)), Ok(Signed(-4)));
        assert_eq!(Signed(-8).binary("/", Unsigned(2)), Ok(Unsigned((u64::MAX - 7) / 2)));
        assert_eq!(Signed(-8).binary(">>", Unsigned(1)), Ok(Signed(-4)));
        assert_eq!(Unsigned(8).binary(">>", Signed(64)), Ok(Unsigned(0)));
        assert_eq!(Signed(1).binary("<<", Signed(-1)), Ok(Signed(0)));
        assert_eq!(Signed(i64::MIN).binary("/", Signed(-1)), Ok(Signed(i64::MIN)));
        assert!(Signed(1).binary("%", Signed(0)).is_err());
        assert!(F32(0).binary("+", F32(0)).is_err());
        assert_eq!(Signed(-1).binary("<", Unsigned(1)), Ok(Signed(0)));
    }
}

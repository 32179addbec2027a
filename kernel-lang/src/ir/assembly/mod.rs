//! The texts of `inline_ptx!`: placeholders for registers. [`statements()`] analyses the instructions.
//!
//! A placeholder is `{name}`, or `{name[1]}` if a value takes several registers; `{{` and `}}` are braces, as in Rust's `asm!`.

mod statements;

use std::fmt;

use super::template;
use crate::dtype::Dtype;

pub use statements::{Reach, statements};

/// A part of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// A register of a result or an operand.
    Register {
        /// The result or operand: its name in the language, its number in the IR.
        name: String,
        /// The register's index, if the value takes several.
        part: Option<usize>,
    },
}

/// Prints the piece as it is written in a text.
impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Piece::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            Piece::Register { name, part: None } => write!(f, "{{{name}}}"),
            Piece::Register { name, part: Some(part) } => write!(f, "{{{name}[{part}]}}"),
        }
    }
}

/// Splits a text into pieces.
///
/// # Errors
/// An unmatched brace or a malformed placeholder.
pub fn parse(text: &str) -> Result<Vec<Piece>, String> {
    template::pieces(text, Piece::Text, placeholder)
}

/// Parses the text between the braces of a placeholder.
fn placeholder(text: &str) -> Result<Piece, String> {
    let (name, part) = match text.split_once('[').map(|(name, part)| (name, part.strip_suffix(']').and_then(|part| part.parse().ok()))) {
        None => (text, None),
        Some((name, Some(part))) => (name, Some(part)),
        Some((_, None)) => return Err(format!("`{{{text}}}` is no valid placeholder")),
    };
    let is_name = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric());
    if is_name { Ok(Piece::Register { name: name.to_string(), part }) } else { Err(format!("`{{{text}}}` is no valid placeholder")) }
}

/// Does a 32-bit register hold several elements of this type in a text that takes `pack` elements at once?
pub fn is_packed(dtype: Dtype, pack: usize) -> bool {
    pack > 1 && dtype.bits() < 32 && dtype != Dtype::Bool
}

/// The number of registers that hold `pack` elements.
///
/// # Errors
/// Narrow elements that do not fill 32-bit registers.
pub fn registers(dtype: Dtype, pack: usize) -> Result<usize, String> {
    if !is_packed(dtype, pack) {
        return Ok(pack);
    }
    let bits = pack * dtype.bits() as usize;
    if !bits.is_multiple_of(32) {
        return Err(format!("`pack = {pack}` of `{dtype}` are {bits} bits, and packed elements fill registers of 32 bits"));
    }
    Ok(bits / 32)
}

/// Checks the placeholders of a text against the types of the results and operands, in order, as far as the types are known.
///
/// # Errors
/// A placeholder that names no value or no register of its value, and elements that cannot be packed.
pub fn check(text: &str, types: &[Option<Dtype>], pack: usize) -> Result<(), String> {
    for dtype in types.iter().flatten() {
        registers(*dtype, pack)?;
    }
    for piece in parse(text)? {
        let Piece::Register { name, part } = &piece else { continue };
        let index = name.parse::<usize>().ok().filter(|index| *index < types.len());
        let Some(index) = index else { return Err(format!("the placeholder `{piece}` names no result and no operand")) };
        let Some(dtype) = types[index] else { continue };
        check_part(&piece, dtype, pack, *part)?;
    }
    Ok(())
}

/// Checks one placeholder of a value with that element type.
///
/// # Errors
/// A register index out of range, or a missing index where the value has several registers.
pub fn check_part(piece: &Piece, dtype: Dtype, pack: usize, part: Option<usize>) -> Result<(), String> {
    let count = registers(dtype, pack)?;
    match part {
        None if count > 1 => Err(format!("`{piece}` is {count} registers, because `pack = {pack}` of `{dtype}` are")),
        Some(part) if part >= count => Err(format!("there is no `{piece}`: it has {count} register{}", if count == 1 { "" } else { "s" })),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_apart_and_put_together() {
        for text in ["", "add.f32 {d}, {a}, {b};", "{{ .reg .b32 t; mov.b32 {d[1]}, t; }}", "mov.b32 {0}, {{{1}, {2[0]}}};"] {
            assert_eq!(parse(text).unwrap().iter().map(Piece::to_string).collect::<String>(), text);
        }
        for wrong in ["{", "}", "{}", "{a b}", "{a[}", "{a[b]}", "{a.0}"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn narrow_elements_fill_whole_registers() {
        assert_eq!(registers(Dtype::U8, 4), Ok(1));
        assert_eq!(registers(Dtype::F16, 4), Ok(2));
        assert_eq!(registers(Dtype::F32, 4), Ok(4));
        assert_eq!(registers(Dtype::U8, 1), Ok(1));
        assert!(registers(Dtype::U8, 2).is_err());
    }
}

//! Operands, addresses and constant expressions.

use super::constant::{Constant, LEVELS};
use super::cursor::Cursor;
use super::lexer::Kind;
use super::{AddressBase, Operand, PtxError};

/// The names of the elements of a vector register.
pub(super) const ELEMENTS: [&str; 4] = ["x", "y", "z", "w"];

/// Parses an operand of an instruction. In a `call`, parentheses enclose a list of arguments.
pub(super) fn operand(cursor: &mut Cursor<'_>, is_call: bool) -> Result<Operand, PtxError> {
    cursor.nested(|cursor| operand_inside(cursor, is_call))
}

fn operand_inside(cursor: &mut Cursor<'_>, is_call: bool) -> Result<Operand, PtxError> {
    let token = cursor.peek();
    let after = cursor.peek_after(1);
    let names_follows = after.kind == Kind::Name && after.text != "WARP_SZ";
    if token.kind == Kind::Name && token.text != "WARP_SZ" {
        return named(cursor);
    }
    if token.is("!") && names_follows {
        cursor.advance();
        return Ok(Operand::Not(name(cursor)?));
    }
    if token.is("-") && names_follows {
        return Err(cursor.error("an operand can not be negated here"));
    }
    if cursor.accept("[") {
        return address(cursor);
    }
    if cursor.accept("{") {
        return Ok(Operand::Vector(cursor.list("}", |cursor| operand(cursor, false))?));
    }
    if is_call && cursor.accept("(") {
        return Ok(Operand::List(cursor.list(")", |cursor| operand(cursor, false))?));
    }
    Ok(match expression(cursor)? {
        Constant::Signed(value) => Operand::Int(value as u64),
        Constant::Unsigned(value) => Operand::Int(value),
        Constant::F32(bits) => Operand::F32(bits),
        Constant::F64(value) => Operand::F64(value.to_bits()),
    })
}

/// Parses an operand that begins with a name.
fn named(cursor: &mut Cursor<'_>) -> Result<Operand, PtxError> {
    let first = cursor.peek();
    let name = name(cursor)?;
    let next = cursor.peek();
    if next.is("|") {
        cursor.advance();
        return Ok(Operand::Pair(name, self::name(cursor)?));
    }
    if next.is("+") || next.is("-") {
        return Ok(Operand::Sum(name, offset(cursor)?));
    }
    if next.is("[") {
        return Err(cursor.error(format!("the simulator does not know elements of arrays: write `[{name}+bytes]` or `{name}+bytes`")));
    }
    Ok(match cursor.vector(first.text) {
        Some(count) if name == first.text => {
            let elements = ELEMENTS.iter().take(count as usize);
            Operand::Vector(elements.map(|element| Operand::Name(format!("{name}.{element}"))).collect())
        }
        _ => Operand::Name(name),
    })
}

/// Parses a name with an optional element such as `.x`.
fn name(cursor: &mut Cursor<'_>) -> Result<String, PtxError> {
    let base = cursor.take(Kind::Name, "a name")?;
    if cursor.peek().kind != Kind::Dotted {
        return Ok(base.to_owned());
    }
    let element = cursor.advance().text;
    let colours = ["r", "g", "b", "a"];
    let element = match colours.iter().position(|&colour| colour == element) {
        // The elements of a vector have two sets of names.
        Some(index) if cursor.vector(base).is_some() => ELEMENTS[index],
        _ => element,
    };
    Ok(format!("{base}.{element}"))
}

/// Parses the part of an address after `[`.
fn address(cursor: &mut Cursor<'_>) -> Result<Operand, PtxError> {
    let token = cursor.peek();
    let (base, offset) = if token.kind == Kind::Name && token.text != "WARP_SZ" {
        (AddressBase::Name(name(cursor)?), offset(cursor)?)
    } else {
        (AddressBase::Absolute(integer(cursor)?), 0)
    };
    if cursor.accept("]") {
        return Ok(Operand::Address { base, offset, coordinates: Vec::new() });
    }
    if !cursor.accept(",") {
        return Err(cursor.expected("`]`, `,` or an offset"));
    }
    let mut rest = cursor.list("]", |cursor| operand(cursor, false))?;
    let coordinates = match rest.as_mut_slice() {
        [Operand::Vector(parts)] => std::mem::take(parts),
        _ => rest,
    };
    Ok(Operand::Address { base, offset, coordinates })
}

/// Parses the offset after a name: `+4`, `-4`, `+4+4`, or nothing.
pub(super) fn offset(cursor: &mut Cursor<'_>) -> Result<i64, PtxError> {
    let mut sum = 0i64;
    loop {
        let is_negative = cursor.peek().is("-");
        if !is_negative && !cursor.peek().is("+") {
            return Ok(sum);
        }
        cursor.advance();
        let first = cursor.peek();
        let value = binary(cursor, LEVELS.len() - 1)?;
        let value = value.integer().ok_or_else(|| cursor.error_at(first, "an offset must be an integer"))? as i64;
        sum = if is_negative { sum.wrapping_sub(value) } else { sum.wrapping_add(value) };
    }
}

/// Parses a constant expression that must be an integer, and returns its 64 bits.
pub(super) fn integer(cursor: &mut Cursor<'_>) -> Result<u64, PtxError> {
    let first = cursor.peek();
    expression(cursor)?.integer().ok_or_else(|| cursor.error_at(first, "an integer is wanted"))
}

/// Parses a constant expression.
pub(super) fn expression(cursor: &mut Cursor<'_>) -> Result<Constant, PtxError> {
    cursor.nested(|cursor| {
        let first = cursor.peek();
        let condition = binary(cursor, 0)?;
        if !cursor.accept("?") {
            return Ok(condition);
        }
        let yes = expression(cursor)?;
        cursor.expect(":")?;
        let no = expression(cursor)?;
        match condition.integer() {
            Some(0) => Ok(no),
            Some(_) => Ok(yes),
            None => Err(cursor.error_at(first, "a condition must be an integer")),
        }
    })
}

/// Parses operators of this level and of higher precedence, from left to right.
fn binary(cursor: &mut Cursor<'_>, level: usize) -> Result<Constant, PtxError> {
    let Some(operators) = LEVELS.get(level) else {
        return cursor.nested(unary);
    };
    let mut value = binary(cursor, level + 1)?;
    loop {
        let token = cursor.peek();
        let Some(operator) = operators.iter().find(|operator| token.is(operator)) else {
            return Ok(value);
        };
        cursor.advance();
        let other = binary(cursor, level + 1)?;
        value = value.binary(operator, other).map_err(|message| cursor.error_at(token, message))?;
    }
}

fn unary(cursor: &mut Cursor<'_>) -> Result<Constant, PtxError> {
    let token = cursor.peek();
    let operator = match token.kind {
        Kind::Number => {
            cursor.advance();
            return Constant::parse(token.text).map_err(|message| cursor.error_at(token, message));
        }
        // `.5`
        Kind::Dotted if token.text.starts_with(|first: char| first.is_ascii_digit()) => {
            cursor.advance();
            return Constant::parse(&format!("0.{}", token.text)).map_err(|message| cursor.error_at(token, message));
        }
        Kind::Name if token.text == "WARP_SZ" => {
            cursor.advance();
            return Ok(Constant::Signed(32));
        }
        Kind::Sign if ["-", "+", "~", "!"].contains(&token.text) => {
            cursor.advance();
            token.text
        }
        Kind::Sign if token.text == "(" => {
            cursor.advance();
            let cast = cursor.peek();
            if cast.kind != Kind::Dotted || !["s64", "u64"].contains(&cast.text) {
                let value = expression(cursor)?;
                cursor.expect(")")?;
                return Ok(value);
            }
            cursor.advance();
            cursor.expect(")")?;
            cast.text
        }
        _ => return Err(cursor.expected("an operand")),
    };
    let value = cursor.nested(unary)?;
    value.unary(operator).map_err(|message| cursor.error_at(token, message))
}

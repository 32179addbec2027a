//! The parser of variable and parameter declarations, and of initial values.

use super::constant::Constant;
use super::cursor::Cursor;
use super::lexer::{Kind, Token};
use super::operand::{expression, integer, offset};
use super::{Init, Linkage, PtxError, Space, Type, Variable};

/// The maximum size of a variable. No device has as much memory, and arithmetic on smaller sizes cannot overflow.
const MAX_BYTES: u64 = 1 << 40;

/// The part of a declaration before the names.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) linkage: Linkage,
    /// `None` for `.reg`.
    pub(super) space: Option<Space>,
    align: Option<u32>,
    pub(super) vector: u32,
    pub(super) ty: Type,
}

/// The state space of variables with this name; the name is given without the dot.
pub(super) fn space(word: &str) -> Option<Space> {
    Some(match word {
        "global" => Space::Global,
        "shared" => Space::Shared,
        "local" => Space::Local,
        "param" => Space::Param,
        "const" => Space::Const,
        _ => return None,
    })
}

/// Parses `.space .align 4 .v2 .f32`, with the attributes of a parameter. The cursor is at the space or at `.reg`.
pub(super) fn head(cursor: &mut Cursor<'_>, linkage: Linkage) -> Result<Head, PtxError> {
    let first = cursor.advance();
    let space = match first.text {
        "reg" if first.kind == Kind::Dotted => None,
        word if first.kind == Kind::Dotted && self::space(word).is_some() => self::space(word),
        _ => {
            return Err(
                cursor.error_at(first, "a state space is wanted here: `.reg`, `.global`, `.shared`, `.local`, `.const` or `.param`")
            );
        }
    };
    let mut head = Head { linkage, space, align: None, vector: 1, ty: Type::Pred };
    let mut ty = None;
    let mut is_pointer = false;
    while cursor.peek().kind == Kind::Dotted {
        let token = cursor.advance();
        match token.text {
            "align" => {
                // After `.ptr`, the alignment is that of the memory that the parameter points to.
                let align = alignment(cursor)?;
                head.align = if is_pointer { head.align } else { Some(align) };
            }
            "v2" => head.vector = 2,
            "v4" => head.vector = 4,
            "v8" => head.vector = 8,
            "ptr" if space == Some(Space::Param) => is_pointer = true,
            word if is_pointer && self::space(word).is_some() => {}
            "attribute" => attribute(cursor)?,
            word if ty.is_none() && Type::parse(word).is_some() => ty = Type::parse(word),
            word => return Err(cursor.error_at(token, format!("the simulator does not know `.{word}` in a declaration"))),
        }
    }
    head.ty = ty.ok_or_else(|| cursor.expected("a type"))?;
    Ok(head)
}

fn alignment(cursor: &mut Cursor<'_>) -> Result<u32, PtxError> {
    let first = cursor.peek();
    let value = u32::try_from(integer(cursor)?).ok().filter(|align| align.is_power_of_two() && *align <= 1 << 16);
    value.ok_or_else(|| cursor.error_at(first, "an alignment must be a power of two, at most 65536"))
}

/// Parses `.attribute(.managed, .unified(1, 2))`, which has no effect in the simulator.
pub(super) fn attribute(cursor: &mut Cursor<'_>) -> Result<(), PtxError> {
    cursor.expect("(")?;
    cursor.list(")", |cursor| {
        cursor.take(Kind::Dotted, "an attribute")?;
        if cursor.accept("(") {
            cursor.list(")", integer)?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Parses a parameter of a function.
pub(super) fn parameter(cursor: &mut Cursor<'_>) -> Result<Variable, PtxError> {
    let first = cursor.peek();
    let head = head(cursor, Linkage::Internal)?;
    if !matches!(head.space, None | Some(Space::Param)) {
        return Err(cursor.error_at(first, "a parameter is `.param` or `.reg`"));
    }
    let name = cursor.peek();
    cursor.take(Kind::Name, "a name")?;
    let extents = extents(cursor, &head)?;
    Ok(variable(cursor, &head, name, name.text.to_owned(), extents))
}

/// Parses the variables of a declaration, from after its head up to `;`.
pub(super) fn variables(cursor: &mut Cursor<'_>, head: &Head) -> Result<Vec<Variable>, PtxError> {
    let mut variables = Vec::new();
    loop {
        let name = cursor.peek();
        cursor.take(Kind::Name, "a name")?;
        if let Some(count) = count(cursor)? {
            let numbered = (0..count).map(|number| variable(cursor, head, name, format!("{}{number}", name.text), Vec::new()));
            variables.extend(numbered);
        } else {
            let extents = extents(cursor, head)?;
            let mut variable = variable(cursor, head, name, name.text.to_owned(), extents);
            if cursor.peek().is("=") {
                variable.init = Some(initial_value(cursor, &variable)?);
            }
            variables.push(variable);
        }
        if cursor.accept(";") {
            return Ok(variables);
        }
        if !cursor.accept(",") {
            return Err(cursor.expected("`;` or `,`"));
        }
    }
}

fn variable(cursor: &Cursor<'_>, head: &Head, token: Token<'_>, name: String, extents: Vec<Option<u64>>) -> Variable {
    Variable {
        linkage: head.linkage,
        space: head.space.unwrap_or(Space::Generic),
        align: head.align,
        ty: head.ty,
        vector: head.vector,
        name,
        extents,
        init: None,
        position: cursor.position_of(token),
    }
}

/// Parses `<5>`: the name declares five registers.
pub(super) fn count(cursor: &mut Cursor<'_>) -> Result<Option<u32>, PtxError> {
    const MAX: u64 = 1 << 20;
    if !cursor.accept("<") {
        return Ok(None);
    }
    // A constant expression would parse the closing `>` as a comparison.
    let token = cursor.peek();
    let text = cursor.take(Kind::Number, "a number")?;
    let count = Constant::parse(text).ok().and_then(Constant::integer).filter(|count| *count <= MAX);
    let count = count.ok_or_else(|| cursor.error_at(token, format!("expected a number, at most {MAX}")))?;
    cursor.expect(">")?;
    Ok(Some(count as u32))
}

fn extents(cursor: &mut Cursor<'_>, head: &Head) -> Result<Vec<Option<u64>>, PtxError> {
    let first = cursor.peek();
    let mut extents = Vec::new();
    while cursor.accept("[") {
        if cursor.accept("]") {
            if !extents.is_empty() {
                return Err(cursor.error_at(first, "only the first extent may be left out"));
            }
            extents.push(None);
        } else {
            extents.push(Some(integer(cursor)?));
            cursor.expect("]")?;
        }
    }
    let element = u64::from(head.ty.bytes() * head.vector);
    let bytes = extents.iter().flatten().try_fold(element, |bytes, extent| bytes.checked_mul(*extent).filter(|bytes| *bytes <= MAX_BYTES));
    match bytes {
        Some(_) => Ok(extents),
        None => Err(cursor.error_at(first, "the variable is larger than any memory")),
    }
}

fn initial_value(cursor: &mut Cursor<'_>, variable: &Variable) -> Result<Init, PtxError> {
    let first = cursor.expect("=")?;
    if !matches!(variable.space, Space::Global | Space::Const) {
        return Err(cursor.error_at(first, "only `.global` and `.const` variables have initial values"));
    }
    let init = value(cursor, variable.ty)?;
    let elements = variable.extents.iter().try_fold(u64::from(variable.vector), |product, extent| Some(product * (*extent)?));
    let count = leaves(&init);
    if elements.is_some_and(|elements| count > elements) {
        return Err(cursor.error_at(first, format!("{count} initial values are too many for `{}`", variable.name)));
    }
    Ok(init)
}

fn leaves(init: &Init) -> u64 {
    match init {
        Init::List(parts) => parts.iter().map(leaves).sum(),
        _ => 1,
    }
}

/// Parses an initial value of this element type.
fn value(cursor: &mut Cursor<'_>, ty: Type) -> Result<Init, PtxError> {
    if cursor.accept("{") {
        return Ok(Init::List(cursor.nested(|cursor| cursor.list("}", |cursor| value(cursor, ty)))?));
    }
    let first = cursor.peek();
    if first.kind == Kind::Name && first.text != "WARP_SZ" {
        return symbol(cursor);
    }
    let constant = expression(cursor)?;
    if let (Some(mask), true) = (constant.integer(), cursor.accept("(")) {
        let symbol = Box::new(symbol(cursor)?);
        cursor.expect(")")?;
        return Ok(Init::Masked { mask, symbol });
    }
    let init = match (constant, ty) {
        (Constant::F32(bits), _) if ty.is_float() => Some(Init::Float(f64::from(f32::from_bits(bits)))),
        (Constant::F64(value), _) if ty.is_float() => Some(Init::Float(value)),
        (Constant::F32(bits), _) if ty.bits() == 32 => Some(Init::Int(u64::from(bits))),
        (Constant::F64(value), _) if ty.bits() == 64 => Some(Init::Int(value.to_bits())),
        (Constant::F64(value), _) if ty.bits() == 32 => Some(Init::Int(u64::from((value as f32).to_bits()))),
        _ => constant.integer().filter(|_| !ty.is_float()).map(Init::Int),
    };
    init.ok_or_else(|| cursor.error_at(first, format!("this is no value of a `{ty}` variable")))
}

/// `name+4`, `generic(name)+4`.
fn symbol(cursor: &mut Cursor<'_>) -> Result<Init, PtxError> {
    let first = cursor.take(Kind::Name, "a name")?;
    let generic = first == "generic" && cursor.accept("(");
    let name = if generic { cursor.take(Kind::Name, "a name")?.to_owned() } else { first.to_owned() };
    if generic {
        cursor.expect(")")?;
    }
    Ok(Init::Symbol { name, offset: offset(cursor)?, generic })
}
